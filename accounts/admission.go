package accounts

import (
	"sync"
	"time"
)

// DefaultCap is how many tokens of answer are reserved for a request that sets
// no limit of its own.
const DefaultCap = 512

// Usage are the tokens of a request that are paid for.
type Usage struct {
	Prompt     int // tokens of the prompt, Cached included
	Cached     int // of Prompt, tokens that were in the cache
	Completion int // tokens of the answer, Reasoning included
	Reasoning  int // of Completion, tokens of reasoning
}

// An Estimate is what a request may use.
type Estimate struct {
	Prompt     int   // tokens of the prompt
	MaxTokens  int   // the most tokens of answer; 0 stands for DefaultCap
	ImageBytes int64 // bytes of images that were fetched for it
	// CountOnly is a request that only counts tokens: it takes part in requests
	// per minute and in nothing else, and costs nothing.
	CountOnly bool
}

// maxReserved is the most that is reserved for an answer, above any model's
// context: clients may ask for any number, and sums must not overflow.
const maxReserved = 1 << 28

// tokens are what is reserved, unless tokens are only counted.
func (e Estimate) tokens() int64 {
	answer := e.MaxTokens
	if answer == 0 {
		answer = DefaultCap
	}
	return int64(e.Prompt) + int64(min(answer, maxReserved))
}

// admission counts what the limits are about. One mutex guards all of it: a
// request holds it twice, for about a microsecond.
type admission struct {
	now   func() time.Time
	epoch time.Time

	mu            sync.Mutex
	rules         *directory
	organizations map[string]*tenant
	keys          map[string]*spending
}

// A tenant is an organization's part of the counts.
type tenant struct {
	spending
	daily    daily
	models   map[string]*traffic
	inFlight tickets
}

// traffic is what one organization asks of one model, on what terms.
type traffic struct {
	requests, tokens, images window
	terms                    terms
	from                     *directory // where the terms are from
}

// spending is what was spent since the beginning, and what the requests in
// flight may spend.
type spending struct{ spent, reserved Credits }

// reached tells whether a cap leaves room for nothing more. What is in flight
// counts as spent, so the cap is passed by at most one request.
func (s *spending) reached(limit *Credits) bool {
	return limit != nil && s.spent+s.reserved >= *limit
}

// daily are the tokens of one day.
type daily struct{ day, used, reserved int64 }

// turn begins a new day.
func (d *daily) turn(today int64) {
	if d.day < today {
		*d = daily{day: today}
	}
}

// booked is what the ledger says: by key and organization what was spent, and
// the tokens of a day.
type booked struct {
	keys, organizations map[string]Credits
	day                 int64
	tokens              map[string]int64
}

func newBooked() booked {
	return booked{keys: map[string]Credits{}, organizations: map[string]Credits{}, tokens: map[string]int64{}}
}

func newAdmission(now func() time.Time) *admission {
	return &admission{now: now, epoch: now(), rules: &directory{}, organizations: map[string]*tenant{}, keys: map[string]*spending{}}
}

// day numbers the days of UTC.
func day(t time.Time) int64 { return t.Unix() / secondsPerDay }

const secondsPerDay = 24 * 60 * 60

// untilTomorrow is the time that the day of UTC has left.
func untilTomorrow(t time.Time) time.Duration {
	return time.Unix((day(t)+1)*secondsPerDay, 0).Sub(t)
}

// learn takes over new rules and what the ledger says.
func (a *admission) learn(d *directory, b booked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rules = d
	a.catchUpLocked(b)
}

// catchUp takes over what the ledger says. The amounts only grow; the ledger's
// lag behind ours, but know of other processes.
func (a *admission) catchUp(b booked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.catchUpLocked(b)
}

func (a *admission) catchUpLocked(b booked) {
	for id, spent := range b.keys {
		s := a.key(id)
		s.spent = max(s.spent, spent)
	}
	for id, spent := range b.organizations {
		o := a.organization(id)
		o.spent = max(o.spent, spent)
	}
	for id, tokens := range b.tokens {
		o := a.organization(id)
		o.daily.turn(b.day)
		if o.daily.day == b.day {
			o.daily.used = max(o.daily.used, tokens)
		}
	}
}

func (a *admission) organization(id string) *tenant {
	o := a.organizations[id]
	if o == nil {
		o = &tenant{models: map[string]*traffic{}}
		a.organizations[id] = o
	}
	return o
}

// traffic is what an organization asks of a model, with the terms of now and
// without what is too old.
func (a *admission) traffic(organization, model string, at time.Duration) *traffic {
	models := a.organization(organization).models
	t := models[model]
	if t == nil {
		t = new(traffic)
		models[model] = t
	}
	if t.from != a.rules {
		t.from, t.terms = a.rules, a.rules.terms(organization, model)
	}
	t.requests.advance(at)
	t.tokens.advance(at)
	t.images.advance(at)
	return t
}

func (a *admission) key(id string) *spending {
	s := a.keys[id]
	if s == nil {
		s = new(spending)
		a.keys[id] = s
	}
	return s
}

// Admit books a request of p for a model, which must be one that is served,
// against all limits, or against none if one of them refuses it. The error is
// a *LimitError. The ticket must be settled, however the request ends.
func (s *Store) Admit(p *Principal, model string, e Estimate) (*Ticket, error) {
	return s.admission.admit(p, model, e)
}

func (a *admission) admit(p *Principal, model string, e Estimate) (*Ticket, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now() // behind the lock, so that time does not go back
	at := now.Sub(a.epoch)
	o, key := a.organization(p.Organization.ID), a.key(p.Key.ID)
	if !e.CountOnly {
		if err := exhausted(p, model, o, key); err != nil {
			return nil, err
		}
	}
	o.daily.turn(day(now))
	t := a.traffic(p.Organization.ID, model, at)
	gauges := a.gauges(o, t, e, now)
	if err := refusal(gauges, model, p.Organization.Name); err != nil {
		return nil, err
	}
	ticket := &Ticket{
		admission: a, organization: o, key: key, traffic: t,
		admitted: now, day: o.daily.day, prices: t.terms.prices, free: e.CountOnly,
	}
	ticket.charge(at, e)
	ticket.standing, ticket.limited = closest(a.gauges(o, t, e, now))
	return ticket, nil
}

// exhausted is the error of a request for which nobody pays.
func exhausted(p *Principal, model string, o *tenant, key *spending) error {
	switch {
	case key.reached(p.Key.SpendCap):
		return &LimitError{Standing: Standing{Rule: KeySpendCap, Limit: int64(*p.Key.SpendCap)}, Model: model}
	case o.reached(p.Organization.Credit):
		return &LimitError{Standing: Standing{Rule: OrganizationCredit, Limit: int64(*p.Organization.Credit)}, Model: model}
	}
	return nil
}
