package accounts

import (
	"fmt"
	"strconv"
	"strings"
)

// Credits are an amount of what requests cost, in millionths. Unless a model
// has prices of its own a million tokens cost one credit, so that a millionth
// is a token.
type Credits int64

// Credit is one credit.
const Credit Credits = 1_000_000

// These keep sums far from overflowing.
const (
	maxCredits = 1_000_000_000 * Credit
	maxPrice   = 10_000 * Credit
)

// ParseCredits reads a decimal number of credits, such as 2.5, with at most
// six digits after the point.
func ParseCredits(text string) (Credits, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", max(0, 6-len(fraction))), 10, 63)
	if err != nil || whole == "" || len(fraction) > 6 || Credits(n) > maxCredits {
		return 0, fmt.Errorf("%s is not a number of credits from 0 to %v with at most six digits after the point", quote(text), maxCredits)
	}
	return Credits(n), nil
}

// String writes c as a decimal number of credits.
func (c Credits) String() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	text := fmt.Sprintf("%s%d.%06d", sign, c/Credit, c%Credit)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON writes c as a JSON number of credits.
func (c Credits) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalJSON reads a JSON number of credits.
func (c *Credits) UnmarshalJSON(text []byte) (err error) {
	*c, err = ParseCredits(string(text))
	return err
}

// prices are what a million tokens cost.
type prices struct{ input, cached, output Credits }

// cost is the price of u, rounded up to a millionth of a credit.
func (p prices) cost(u Usage) Credits {
	sum := Credits(u.Prompt-u.Cached)*p.input + Credits(u.Cached)*p.cached + Credits(u.Completion)*p.output
	return (sum + Credit - 1) / Credit
}
