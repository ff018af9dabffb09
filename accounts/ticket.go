package accounts

import "time"

// A Ticket is an admitted request.
type Ticket struct {
	admission    *admission
	organization *tenant
	key          *spending
	traffic      *traffic
	prices       prices
	admitted     time.Time
	free         bool // of CountOnly
	standing     Standing
	limited      bool

	// What was reserved; admission.mu guards it and what follows.
	day           int64
	slot          int64
	tokens        int64
	cost          Credits
	settled       bool
	before, after *Ticket // in flight
}

// Standing is how the limit that is closest to exhaustion stood right after
// the request was admitted, and false if no limit takes part.
func (t *Ticket) Standing() (Standing, bool) { return t.standing, t.limited }

// charge books the request. admission.mu is held.
func (t *Ticket) charge(at time.Duration, e Estimate) {
	t.traffic.requests.add(at, 1)
	if t.free {
		return
	}
	t.tokens = e.tokens()
	t.slot = t.traffic.tokens.add(at, t.tokens)
	if e.ImageBytes > 0 {
		t.traffic.images.add(at, e.ImageBytes)
	}
	t.cost = t.prices.cost(Usage{Prompt: e.Prompt, Completion: int(t.tokens) - e.Prompt})
	t.key.reserved += t.cost
	t.organization.reserved += t.cost
	t.organization.daily.reserved += t.tokens
	t.organization.inFlight.push(t)
}

// Settle puts what was really used in the place of what was reserved and
// returns what it costs: nothing for the zero Usage, or if only tokens were
// counted. It is to be called once the request has ended in any way, also
// when the client left; calls after the first change nothing and return 0.
//
// Tokens beyond the reservation are charged now. They may take a window over
// its limit, since they cannot be undone; then the next ones wait longer.
func (t *Ticket) Settle(u Usage) Credits {
	a := t.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if t.settled || t.free {
		return 0
	}
	t.settled = true
	at := now.Sub(a.epoch)
	tokens, cost := int64(u.Prompt)+int64(u.Completion), t.prices.cost(u)
	if spare := t.tokens - tokens; spare >= 0 {
		t.traffic.tokens.takeBack(t.slot, spare)
	} else {
		t.traffic.tokens.advance(at)
		t.traffic.tokens.add(at, -spare)
	}
	for _, s := range []*spending{t.key, &t.organization.spending} {
		s.reserved -= t.cost
		s.spent += cost
	}
	if d := &t.organization.daily; d.day == t.day {
		d.reserved -= t.tokens
		d.used += tokens
	}
	t.organization.inFlight.remove(t, now)
	return cost
}

// tickets are those in flight, oldest first.
type tickets struct {
	n           int
	first, last *Ticket
	mean        time.Duration // that a request takes; recent ones count most
}

func (l *tickets) push(t *Ticket) {
	t.before = l.last
	if l.last == nil {
		l.first = t
	} else {
		l.last.after = t
	}
	l.last = t
	l.n++
}

func (l *tickets) remove(t *Ticket, now time.Time) {
	if t.before == nil {
		l.first = t.after
	} else {
		t.before.after = t.after
	}
	if t.after == nil {
		l.last = t.before
	} else {
		t.after.before = t.before
	}
	t.before, t.after = nil, nil
	l.n--
	took := now.Sub(t.admitted)
	if l.mean == 0 {
		l.mean = took
	}
	l.mean += (took - l.mean) / 8
}

// nextEnd estimates when the oldest request ends: as late as the mean of the
// requests before. One that is overdue may end any time.
func (l *tickets) nextEnd(now time.Time) time.Duration {
	if l.first == nil {
		return 0
	}
	return max(0, l.mean-now.Sub(l.first.admitted))
}
