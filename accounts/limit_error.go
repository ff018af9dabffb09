package accounts

import (
	"fmt"
	"time"
)

// A Standing is how a limit stands, for the RateLimit headers.
type Standing struct {
	Rule      Rule
	Limit     int64         // in what the rule counts
	Remaining int64         // of Limit, at least 0
	Reset     time.Duration // until all of Limit is left again if nobody asks, in whole seconds
}

// A LimitError is a request that was not admitted.
type LimitError struct {
	Standing     // of the limit that refused it
	Model        string
	Organization string // its name
	// Need is what the request would have added to what is used.
	Need int64
	// TooLarge tells that Need is more than Limit: no waiting helps.
	TooLarge bool
	// RetryAfter is in whole seconds, at least one. Whoever waits that long is
	// admitted if no one else asks and what is in flight uses what it reserved;
	// for RequestsInFlight it is an estimate from the requests before. It is 0 if
	// no waiting helps: the request is TooLarge, or credits are exhausted.
	RetryAfter time.Duration
}

// Exhausted tells whether there is nobody who pays (402), rather than too much
// at a time (429).
func (e *LimitError) Exhausted() bool {
	return e.Rule == OrganizationCredit || e.Rule == KeySpendCap
}

// Error is what a client may be told.
func (e *LimitError) Error() string {
	switch e.Rule {
	case OrganizationCredit:
		return "the organization's credits are used up; add credits and try again"
	case KeySpendCap:
		return fmt.Sprintf("this API key has reached its spend cap of %v credits; use another key or one with a higher cap", Credits(e.Limit))
	}
	text := fmt.Sprintf("%d %s", e.Limit, e.subject())
	if e.TooLarge {
		return fmt.Sprintf("%s, and this request needs %d; waiting does not help, ask for less", text, e.Need)
	}
	return fmt.Sprintf("%s; retry in %s", text, secondsText(e.RetryAfter))
}

func (e *LimitError) subject() string {
	switch e.Rule {
	case RequestsPerMinute:
		return "requests per minute allowed on " + e.Model
	case TokensPerMinute:
		return "tokens per minute allowed on " + e.Model
	case ImageBytesPerMinute:
		return "bytes of remote images per minute allowed on " + e.Model
	case TokensPerDay:
		return "tokens per day allowed in organization " + e.Organization + ", asked of " + e.Model
	}
	return "requests in flight allowed in organization " + e.Organization + ", asked of " + e.Model
}

func secondsText(d time.Duration) string {
	if d == time.Second {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}
