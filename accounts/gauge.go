package accounts

import "time"

// A gauge is one limit as a request finds it.
type gauge struct {
	rule   Rule
	limit  int64
	used   int64
	need   int64         // what the request would add
	wait   time.Duration // until that fits, if it does not now
	resets time.Duration // until nothing is used
}

// gauges are the limits that take part in a request. The windows have been
// advanced.
func (a *admission) gauges(o *tenant, t *traffic, e Estimate, now time.Time) []gauge {
	at := now.Sub(a.epoch)
	list := make([]gauge, 0, len(t.terms.limits))
	add := func(rule Rule, need int64, measure func(g *gauge)) {
		if limit, ok := t.terms.limits[rule]; ok && need > 0 {
			g := gauge{rule: rule, limit: limit, need: need}
			measure(&g)
			list = append(list, g)
		}
	}
	slide := func(w *window) func(*gauge) {
		return func(g *gauge) { g.used, g.wait, g.resets = w.sum, w.wait(at, g.need, g.limit), w.empties(at) }
	}
	add(RequestsPerMinute, 1, slide(&t.requests))
	if e.CountOnly {
		return list
	}
	add(TokensPerMinute, e.tokens(), slide(&t.tokens))
	add(ImageBytesPerMinute, e.ImageBytes, slide(&t.images))
	add(RequestsInFlight, 1, func(g *gauge) {
		g.used, g.wait = int64(o.inFlight.n), o.inFlight.nextEnd(now)
		g.resets = g.wait
	})
	add(TokensPerDay, e.tokens(), func(g *gauge) {
		g.used, g.wait = o.daily.used+o.daily.reserved, untilTomorrow(now)
		g.resets = g.wait
	})
	return list
}

// fits tells whether the request is within the limit.
func (g gauge) fits() bool { return g.used+g.need <= g.limit }

// never tells whether no waiting helps.
func (g gauge) never() bool { return g.need > g.limit }

func (g gauge) standing() Standing {
	return Standing{Rule: g.rule, Limit: g.limit, Remaining: max(0, g.limit-g.used), Reset: wholeSeconds(g.resets)}
}

// refusal is the error of a request that one of the limits refuses: of several
// the one that takes longest, so that whoever waits for it meets none.
func refusal(gauges []gauge, model, organization string) error {
	var worst *gauge
	for i, g := range gauges {
		switch {
		case g.fits():
		case worst == nil, g.never() && !worst.never(), g.never() == worst.never() && g.wait > worst.wait:
			worst = &gauges[i]
		}
	}
	if worst == nil {
		return nil
	}
	e := &LimitError{
		Standing:     worst.standing(),
		Model:        model,
		Organization: organization,
		Need:         worst.need,
		TooLarge:     worst.never(),
	}
	if !e.TooLarge {
		e.RetryAfter = max(time.Second, wholeSeconds(worst.wait))
		e.Reset = max(e.Reset, e.RetryAfter)
	}
	return e
}

// closest is the limit of which the smallest share is left.
func closest(gauges []gauge) (s Standing, ok bool) {
	share := 2.0
	for _, g := range gauges {
		if left := float64(g.limit-g.used) / float64(max(1, g.limit)); left < share {
			s, share, ok = g.standing(), left, true
		}
	}
	return s, ok
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
