package accounts

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whoever waits as long as told is admitted if nobody else asks, and no
// earlier; and no minute, wherever it begins, has more than the limit.
func TestAdmissionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		limits := map[Rule]int64{}
		for rule, most := range map[Rule]int64{RequestsPerMinute: 20, TokensPerMinute: 2000, ImageBytesPerMinute: 5000, TokensPerDay: 20_000} {
			if rapid.Bool().Draw(t, string(rule)) {
				limits[rule] = rapid.Int64Range(1, most).Draw(t, "limit")
			}
		}
		a := limited(c, limits)
		p := principal("a")
		h := history{limits: limits}
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			c.advance(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause")))
			e := Estimate{
				Prompt:     rapid.IntRange(0, 500).Draw(t, "prompt"),
				MaxTokens:  rapid.IntRange(0, 500).Draw(t, "max_tokens"),
				ImageBytes: rapid.Int64Range(0, 2000).Draw(t, "images"),
			}
			ticket, err := a.admit(p, "m", e)
			if refused, ok := errors.AsType[*LimitError](err); ok {
				ticket = waitAsTold(t, c, a, p, e, refused)
			}
			if ticket == nil {
				continue
			}
			used := rapid.Int64Range(0, e.tokens()).Draw(t, "used")
			h.add(c.Now(), e, used)
			if rapid.Bool().Draw(t, "settle") {
				ticket.Settle(Usage{Completion: int(used)})
			} else {
				h.last().used = e.tokens() // it still runs
			}
		}
		h.check(t)
	})
}

// waitAsTold waits for a refused request, and asks again too early and in time.
func waitAsTold(t *rapid.T, c *clock, a *admission, p *Principal, e Estimate, refused *LimitError) *Ticket {
	if refused.Remaining < 0 || refused.Reset < refused.RetryAfter || refused.Rule != TokensPerDay && refused.Reset > time.Minute {
		t.Fatalf("%+v is odd", refused)
	}
	if refused.TooLarge {
		if refused.Need <= refused.Limit || refused.RetryAfter != 0 {
			t.Fatalf("%+v is not too large", refused)
		}
		return nil
	}
	if refused.RetryAfter < time.Second || refused.RetryAfter%time.Second != 0 {
		t.Fatalf("%+v is odd", refused)
	}
	early := refused.RetryAfter - time.Second - time.Nanosecond
	if early > 0 {
		c.advance(early)
		if _, err := a.admit(p, "m", e); err == nil {
			t.Fatalf("admitted more than a second before %v", refused.RetryAfter)
		}
		c.advance(refused.RetryAfter - early)
	} else {
		c.advance(refused.RetryAfter)
	}
	ticket, err := a.admit(p, "m", e)
	if err != nil {
		t.Fatalf("after %v: %v", refused.RetryAfter, err)
	}
	return ticket
}

// A history is what was admitted.
type history struct {
	limits map[Rule]int64
	list   []admitted
}

type admitted struct {
	at           time.Time
	used, images int64
}

func (h *history) add(at time.Time, e Estimate, used int64) {
	h.list = append(h.list, admitted{at, used, e.ImageBytes})
}

func (h *history) last() *admitted { return &h.list[len(h.list)-1] }

// check adds up every minute that begins with a request.
func (h *history) check(t *rapid.T) {
	for i, first := range h.list {
		var requests, tokens, images int64
		for _, r := range h.list[i:] {
			if r.at.Sub(first.at) < time.Minute {
				requests, tokens, images = requests+1, tokens+r.used, images+r.images
			}
		}
		for rule, sum := range map[Rule]int64{RequestsPerMinute: requests, TokensPerMinute: tokens, ImageBytesPerMinute: images} {
			if limit, ok := h.limits[rule]; ok && sum > limit {
				t.Fatalf("%d %s from %v, the limit is %d", sum, rule, first.at, limit)
			}
		}
	}
}
