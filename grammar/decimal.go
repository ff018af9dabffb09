package grammar

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

var errDecimalSize = errors.New("is a number with too many digits")

// maxDecimalDigits is enough for every finite float64.
const maxDecimalDigits = 400

// A decimal is an exact number.
type decimal struct {
	neg  bool
	int  string // digits without leading zeros; "0" for none
	frac string // digits without trailing zeros
}

// parseDecimal reads a JSON number.
func parseDecimal(text string) (decimal, error) {
	text, neg := strings.CutPrefix(text, "-")
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil || max(exponent, -exponent) > maxDecimalDigits {
			return decimal{}, errDecimalSize
		}
		mantissa = text[:i]
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	if len(whole)+len(frac) > maxDecimalDigits {
		return decimal{}, errDecimalSize
	}
	digits, point := whole+frac, len(whole)+exponent
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	d := decimal{
		int:  strings.TrimLeft(digits[:point], "0"),
		frac: strings.TrimRight(digits[point:], "0"),
	}
	if d.int == "" {
		d.int = "0"
	}
	d.neg = neg && !d.isZero()
	return d, nil
}

func (d decimal) isZero() bool { return d.int == "0" && d.frac == "" }

func (d decimal) isInteger() bool { return d.frac == "" }

// String is the shortest plain spelling.
func (d decimal) String() string {
	s := d.int
	if d.frac != "" {
		s += "." + d.frac
	}
	if d.neg {
		s = "-" + s
	}
	return s
}

// count is a number as a limit of a length or count, which JSON Schema lets be
// spelled 2.0. What is above every count that could matter is cut to maxCount.
func (d decimal) count() (int, bool) {
	if d.neg || !d.isInteger() {
		return 0, false
	}
	n, err := strconv.Atoi(d.int)
	if err != nil || n > maxCount {
		n = maxCount
	}
	return n, true
}

const maxCount = 1 << 40

// scaled is the number as mantissa × 10^-places.
func (d decimal) scaled() (mantissa *big.Int, places int) {
	mantissa, _ = new(big.Int).SetString(d.int+d.frac, 10)
	return mantissa, len(d.frac)
}
