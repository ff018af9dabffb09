package accounts

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// limited is an admission with rules for everyone.
func limited(c *clock, rules map[Rule]int64) *admission {
	a := newAdmission(c.Now)
	d := &directory{rules: map[ruleKey]int64{}}
	for rule, value := range rules {
		d.rules[ruleKey{Target{}, rule}] = value
	}
	a.learn(d, newBooked())
	return a
}

// principal is someone of an organization.
func principal(organization string) *Principal {
	return &Principal{
		Key:          Key{ID: "key_" + organization},
		Organization: Organization{ID: "org_" + organization, Name: organization},
	}
}

func mustAdmit(t *testing.T, a *admission, p *Principal, model string, e Estimate) *Ticket {
	t.Helper()
	ticket, err := a.admit(p, model, e)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func mustRefuse(t *testing.T, a *admission, p *Principal, model string, e Estimate, want LimitError) {
	t.Helper()
	_, err := a.admit(p, model, e)
	got, ok := errors.AsType[*LimitError](err)
	if !ok {
		t.Fatalf("error %v, want a LimitError", err)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestRequestsPerMinute(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{RequestsPerMinute: 2})
	p := principal("a")
	for i, want := range []Standing{
		{RequestsPerMinute, 2, 1, time.Minute},
		{RequestsPerMinute, 2, 0, time.Minute},
	} {
		got, ok := mustAdmit(t, a, p, "m", Estimate{Prompt: 1}).Standing()
		if !ok || got != want {
			t.Errorf("request %d: %+v, %v, want %+v", i, got, ok, want)
		}
		c.advance(10 * time.Second)
	}
	mustRefuse(t, a, p, "m", Estimate{Prompt: 1}, LimitError{
		Standing: Standing{RequestsPerMinute, 2, 0, 50 * time.Second},
		Model:    "m", Organization: "a", Need: 1, RetryAfter: 40 * time.Second,
	})
	mustAdmit(t, a, p, "other", Estimate{Prompt: 1})
	mustAdmit(t, a, principal("b"), "m", Estimate{Prompt: 1})
	c.advance(40 * time.Second)
	mustAdmit(t, a, p, "m", Estimate{Prompt: 1})
}

// Rule 74 to 78 of the contract: what is reserved, and what is given back.
func TestTokensPerMinute(t *testing.T) {
	tests := []struct {
		name     string
		limit    int64
		estimate Estimate
		admitted bool
	}{
		{"more than the limit", 1000, Estimate{Prompt: 10, MaxTokens: 2000}, false},
		{"the whole limit", 1000, Estimate{Prompt: 10, MaxTokens: 990}, true},
		{"without a cap, too much", 400, Estimate{Prompt: 10}, false},
		{"without a cap, enough", 1000, Estimate{Prompt: 10}, true},
		{"without a cap, exactly", 522, Estimate{Prompt: 10}, true},
		{"counting is free", 1, Estimate{Prompt: 1000, CountOnly: true}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := limited(newClock(), map[Rule]int64{TokensPerMinute: test.limit})
			_, err := a.admit(principal("a"), "m", test.estimate)
			if (err == nil) != test.admitted {
				t.Errorf("error %v, want admitted: %v", err, test.admitted)
			}
		})
	}
}

func TestSettleGivesBack(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{TokensPerMinute: 1000})
	p, e := principal("a"), Estimate{Prompt: 10, MaxTokens: 900}
	first := mustAdmit(t, a, p, "m", e)
	if _, err := a.admit(p, "m", e); err == nil {
		t.Fatal("admitted beyond the limit")
	}
	if cost := first.Settle(Usage{Prompt: 10, Completion: 10}); cost != 20 {
		t.Errorf("cost %d, want 20", cost)
	}
	second := mustAdmit(t, a, p, "m", e) // 20 + 910
	if cost := second.Settle(Usage{}); cost != 0 {
		t.Errorf("nothing cost %d", cost)
	}
	third := mustAdmit(t, a, p, "m", e)
	for range 2 { // the second time changes nothing
		third.Settle(Usage{Prompt: 10, Completion: 990})
	}
	c.advance(time.Second)
	mustRefuse(t, a, p, "m", e, LimitError{ // 20 + 1000 are used: 30 too many would be left after the first 20
		Standing: Standing{TokensPerMinute, 1000, 0, 59 * time.Second},
		Model:    "m", Organization: "a", Need: 910, RetryAfter: 59 * time.Second,
	})
}

// What a request used beyond its reservation counts from when it ended.
func TestSettleBeyondReservation(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{TokensPerMinute: 1000})
	p := principal("a")
	long := mustAdmit(t, a, p, "m", Estimate{Prompt: 100, MaxTokens: 100})
	c.advance(30 * time.Second)
	long.Settle(Usage{Prompt: 100, Completion: 1000})
	mustRefuse(t, a, p, "m", Estimate{Prompt: 1, MaxTokens: 99}, LimitError{
		Standing: Standing{TokensPerMinute, 1000, 0, 60 * time.Second},
		Model:    "m", Organization: "a", Need: 100, RetryAfter: 30 * time.Second,
	})
}

// A reservation that has left the window is not given back twice.
func TestSettleLate(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{TokensPerMinute: 1000})
	p := principal("a")
	old := mustAdmit(t, a, p, "m", Estimate{Prompt: 500, MaxTokens: 500})
	c.advance(2 * time.Minute)
	mustAdmit(t, a, p, "m", Estimate{Prompt: 500, MaxTokens: 500})
	old.Settle(Usage{})
	if _, err := a.admit(p, "m", Estimate{Prompt: 1, MaxTokens: 1}); err == nil {
		t.Error("a settled request that is too old made room")
	}
}

func TestRequestsInFlight(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{RequestsInFlight: 2})
	p, e := principal("a"), Estimate{Prompt: 1}
	first, second := mustAdmit(t, a, p, "m", e), mustAdmit(t, a, p, "other", e)
	want := LimitError{
		Standing: Standing{RequestsInFlight, 2, 0, time.Second},
		Model:    "m", Organization: "a", Need: 1, RetryAfter: time.Second,
	}
	mustRefuse(t, a, p, "m", e, want)
	mustAdmit(t, a, p, "m", Estimate{Prompt: 1, CountOnly: true})
	mustAdmit(t, a, principal("b"), "m", e)
	c.advance(10 * time.Second)
	second.Settle(Usage{})
	third := mustAdmit(t, a, p, "m", e)
	first.Settle(Usage{})
	fourth := mustAdmit(t, a, p, "m", e)
	c.advance(3 * time.Second)
	want.RetryAfter, want.Reset = 7*time.Second, 7*time.Second // requests took 10 seconds so far
	mustRefuse(t, a, p, "m", e, want)
	third.Settle(Usage{})
	fourth.Settle(Usage{})
	if l := &a.organization(p.Organization.ID).inFlight; l.n != 0 || l.first != nil || l.last != nil {
		t.Errorf("%+v are in flight when all have ended", l)
	}
}

func TestImageBytesPerMinute(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{ImageBytesPerMinute: 1000})
	p := principal("a")
	mustAdmit(t, a, p, "m", Estimate{Prompt: 1, ImageBytes: 900})
	mustAdmit(t, a, p, "m", Estimate{Prompt: 1})
	mustRefuse(t, a, p, "m", Estimate{Prompt: 1, ImageBytes: 200}, LimitError{
		Standing: Standing{ImageBytesPerMinute, 1000, 100, 60 * time.Second},
		Model:    "m", Organization: "a", Need: 200, RetryAfter: 60 * time.Second,
	})
}

func TestTokensPerDay(t *testing.T) {
	c := newClock() // 15:09:26 UTC
	a := limited(c, map[Rule]int64{TokensPerDay: 1000})
	p := principal("a")
	ticket := mustAdmit(t, a, p, "m", Estimate{Prompt: 100, MaxTokens: 800})
	left := 8*time.Hour + 50*time.Minute + 34*time.Second
	mustRefuse(t, a, p, "other", Estimate{Prompt: 100, MaxTokens: 100}, LimitError{
		Standing: Standing{TokensPerDay, 1000, 100, left},
		Model:    "other", Organization: "a", Need: 200, RetryAfter: left,
	})
	ticket.Settle(Usage{Prompt: 100, Completion: 100})
	night := mustAdmit(t, a, p, "other", Estimate{Prompt: 100, MaxTokens: 700})
	c.advance(left)
	mustAdmit(t, a, p, "m", Estimate{Prompt: 500, MaxTokens: 500}).Settle(Usage{Prompt: 500})
	night.Settle(Usage{Prompt: 100}) // was yesterday's
	if _, err := a.admit(p, "m", Estimate{Prompt: 100, MaxTokens: 401}); err == nil {
		t.Error("yesterday's reservation made room today")
	}
	mustAdmit(t, a, p, "m", Estimate{Prompt: 100, MaxTokens: 400})
}

func TestCreditsAndCaps(t *testing.T) {
	c := newClock()
	a := limited(c, nil)
	for name, test := range map[string]struct {
		rule Rule
		of   func(p *Principal) **Credits
	}{
		"spend cap": {KeySpendCap, func(p *Principal) **Credits { return &p.Key.SpendCap }},
		"credit":    {OrganizationCredit, func(p *Principal) **Credits { return &p.Organization.Credit }},
	} {
		p := principal(name)
		amount := Credits(100)
		*test.of(p) = &amount
		mustAdmit(t, a, p, "m", Estimate{Prompt: 10}).Settle(Usage{Prompt: 10, Completion: 60})
		running := mustAdmit(t, a, p, "m", Estimate{Prompt: 10, MaxTokens: 30})
		want := LimitError{Standing: Standing{Rule: test.rule, Limit: 100}, Model: "m"}
		mustRefuse(t, a, p, "m", Estimate{Prompt: 1}, want) // what runs may use it up
		mustAdmit(t, a, p, "m", Estimate{Prompt: 1, CountOnly: true})
		running.Settle(Usage{Prompt: 10, Completion: 19})
		mustAdmit(t, a, p, "m", Estimate{Prompt: 1}).Settle(Usage{Prompt: 1}) // the last one
		mustRefuse(t, a, p, "m", Estimate{Prompt: 1}, want)
		if !want.Exhausted() {
			t.Errorf("%s: is 402", name)
		}
	}
}

// A client may ask for any number of tokens.
func TestHugeReservations(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{TokensPerMinute: maxLimit, TokensPerDay: maxLimit, InputPrice: int64(maxPrice), OutputPrice: int64(maxPrice)})
	p := principal("a")
	amount := maxCredits
	p.Organization.Credit = &amount
	ticket := mustAdmit(t, a, p, "m", Estimate{Prompt: 1_000_000, MaxTokens: math.MaxInt})
	if o := a.organization(p.Organization.ID); o.reserved <= 0 || o.daily.reserved <= 0 {
		t.Errorf("reserved %v and %d tokens", o.reserved, o.daily.reserved)
	}
	if cost := ticket.Settle(Usage{Prompt: 1_000_000}); cost != maxPrice {
		t.Errorf("cost %v, want %v", cost, maxPrice)
	}
	if o := a.organization(p.Organization.ID); o.reserved != 0 || o.spent != maxPrice || o.daily.reserved != 0 {
		t.Errorf("reserved %v, spent %v, and %d tokens are reserved", o.reserved, o.spent, o.daily.reserved)
	}
}

// Of two limits that refuse, the one that takes longer is told.
func TestLongestWaitIsTold(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{RequestsPerMinute: 2, TokensPerMinute: 1000})
	p := principal("a")
	mustAdmit(t, a, p, "m", Estimate{Prompt: 1, MaxTokens: 1})
	c.advance(20 * time.Second)
	mustAdmit(t, a, p, "m", Estimate{Prompt: 900, MaxTokens: 50})
	mustRefuse(t, a, p, "m", Estimate{Prompt: 100, MaxTokens: 10}, LimitError{
		Standing: Standing{TokensPerMinute, 1000, 48, 60 * time.Second},
		Model:    "m", Organization: "a", Need: 110, RetryAfter: 60 * time.Second,
	})
	mustRefuse(t, a, p, "m", Estimate{Prompt: 10, MaxTokens: 10}, LimitError{
		Standing: Standing{RequestsPerMinute, 2, 0, 60 * time.Second},
		Model:    "m", Organization: "a", Need: 1, RetryAfter: 40 * time.Second,
	})
}

func TestStandingIsOfTheClosestLimit(t *testing.T) {
	a := limited(newClock(), map[Rule]int64{RequestsPerMinute: 10, TokensPerMinute: 1000, RequestsInFlight: 100})
	got, ok := mustAdmit(t, a, principal("a"), "m", Estimate{Prompt: 400, MaxTokens: 400}).Standing()
	if want := (Standing{TokensPerMinute, 1000, 200, 60 * time.Second}); !ok || got != want {
		t.Errorf("%+v, %v, want %+v", got, ok, want)
	}
	if _, ok := mustAdmit(t, limited(newClock(), nil), principal("a"), "m", Estimate{}).Standing(); ok {
		t.Error("there is a standing without limits")
	}
}

func TestLimitErrorTexts(t *testing.T) {
	standing := func(rule Rule, limit int64) Standing { return Standing{Rule: rule, Limit: limit} }
	const model, organization = "b3os/qwen3.5-9b", "acme"
	for want, e := range map[string]LimitError{
		"200000 tokens per minute allowed on b3os/qwen3.5-9b; retry in 9 seconds":                                                                 {Standing: standing(TokensPerMinute, 200000), RetryAfter: 9 * time.Second},
		"1 requests per minute allowed on b3os/qwen3.5-9b; retry in 1 second":                                                                     {Standing: standing(RequestsPerMinute, 1), RetryAfter: time.Second},
		"4 requests in flight allowed in organization acme, asked of b3os/qwen3.5-9b; retry in 2 seconds":                                         {Standing: standing(RequestsInFlight, 4), RetryAfter: 2 * time.Second},
		"9 bytes of remote images per minute allowed on b3os/qwen3.5-9b; retry in 2 seconds":                                                      {Standing: standing(ImageBytesPerMinute, 9), RetryAfter: 2 * time.Second},
		"9 tokens per day allowed in organization acme, asked of b3os/qwen3.5-9b, and this request needs 10; waiting does not help, ask for less": {Standing: standing(TokensPerDay, 9), Need: 10, TooLarge: true},
		"the organization's credits are used up; add credits and try again":                                                                       {Standing: standing(OrganizationCredit, 9)},
		"this API key has reached its spend cap of 2.5 credits; use another key or one with a higher cap":                                         {Standing: standing(KeySpendCap, 2_500_000)},
	} {
		e.Model, e.Organization = model, organization
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What the ledger says is taken over, but does not undo what is known better.
func TestLearn(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{TokensPerDay: 1000})
	p := principal("a")
	amount := Credits(100)
	p.Key.SpendCap = &amount
	b := newBooked()
	b.day, b.tokens[p.Organization.ID], b.keys[p.Key.ID], b.organizations[p.Organization.ID] = day(c.Now()), 600, 50, 50
	a.learn(a.rules, b)
	if _, err := a.admit(p, "m", Estimate{Prompt: 300, MaxTokens: 200}); err == nil {
		t.Error("the ledger's tokens of the day are not counted")
	}
	mustAdmit(t, a, p, "m", Estimate{Prompt: 60, MaxTokens: 1}).Settle(Usage{Prompt: 60})
	a.learn(a.rules, b) // the same ledger, before the request came to it
	if _, err := a.admit(p, "m", Estimate{Prompt: 1, MaxTokens: 1}); err == nil {
		t.Error("what was spent is forgotten")
	}
}

// A window has a bounded number of entries, and its sum is theirs.
func TestWindowIsBounded(t *testing.T) {
	var w window
	at := time.Duration(0)
	for range 100_000 {
		at += 7 * time.Millisecond
		w.advance(at)
		slot := w.add(at, 3)
		w.takeBack(slot, 1)
	}
	var sum int64
	for _, charge := range w.charges {
		sum += charge.n
	}
	if len(w.charges) > int(windowSlots)+1 || sum != w.sum {
		t.Errorf("%d entries, sum %d of %d", len(w.charges), w.sum, sum)
	}
	w.advance(at + 2*windowTime)
	if w.sum != 0 || len(w.charges) != 0 || w.empties(at) != 0 {
		t.Errorf("%+v is left of an old window", w)
	}
}

func TestRulesApply(t *testing.T) {
	s, _ := openStore(t)
	ctx := t.Context()
	o, _, err := s.EnsureOrganization(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	set := func(target Target, value int64) {
		t.Helper()
		if err := s.SetRules(ctx, target, map[Rule]int64{RequestsPerMinute: value}, nil); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want int64) {
		t.Helper()
		got, ok := s.current.Load().terms(o.ID, "m").limits[RequestsPerMinute]
		if !ok {
			got = Unlimited
		}
		if got != want {
			t.Errorf("limit %d, want %d", got, want)
		}
	}
	check(Unlimited)
	set(Target{}, 1)
	check(1)
	set(Target{Model: "m"}, 2)
	check(2)
	set(Target{Organization: o.ID}, 3)
	check(3)
	set(Target{o.ID, "m"}, 4)
	check(4)
	set(Target{o.ID, "m"}, Unlimited)
	check(Unlimited)
	want := []RuleSet{
		{Target{}, map[Rule]int64{RequestsPerMinute: 1}},
		{Target{Model: "m"}, map[Rule]int64{RequestsPerMinute: 2}},
		{Target{Organization: o.ID}, map[Rule]int64{RequestsPerMinute: 3}},
		{Target{o.ID, "m"}, map[Rule]int64{RequestsPerMinute: Unlimited}},
	}
	if diff := cmp.Diff(want, s.RuleSets(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if err := s.SetRules(ctx, Target{o.ID, "m"}, nil, []Rule{RequestsPerMinute}); err != nil {
		t.Fatal(err)
	}
	check(3)
	for rule, target := range map[Rule]Target{"walks_per_minute": {}, RequestsInFlight: {Model: "m"}, InputPrice: {}} {
		err := s.SetRules(ctx, target, map[Rule]int64{rule: Unlimited}, nil)
		if e, ok := errors.AsType[*InvalidError](err); !ok || !strings.Contains(e.Message, string(rule)) {
			t.Errorf("%s: %v", rule, err)
		}
	}
	if err := s.SetRules(ctx, Target{Model: "m"}, map[Rule]int64{InputPrice: int64(2 * Credit), OutputPrice: int64(6 * Credit)}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := s.current.Load().terms(o.ID, "m").prices, (prices{2 * Credit, 2 * Credit, 6 * Credit}); got != want {
		t.Errorf("prices %v, want %v", got, want)
	}
}

// Many at once never pass the limits, and leave nothing behind.
func TestAdmitAtOnce(t *testing.T) {
	c := newClock()
	a := limited(c, map[Rule]int64{RequestsPerMinute: 500, RequestsInFlight: 3})
	p := principal("a")
	var asking sync.WaitGroup
	var mu sync.Mutex
	admitted, most, running := 0, 0, 0
	for range 8 {
		asking.Go(func() {
			for range 500 {
				ticket, err := a.admit(p, "m", Estimate{Prompt: 1})
				if err != nil {
					continue
				}
				mu.Lock()
				admitted++
				running++
				most = max(most, running)
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				running--
				mu.Unlock()
				ticket.Settle(Usage{Prompt: 1})
			}
		})
	}
	asking.Wait()
	o := a.organization(p.Organization.ID)
	if admitted > 500 || admitted == 0 || most > 3 || o.inFlight.n != 0 || o.reserved != 0 || o.spent != Credits(admitted) || o.daily.reserved != 0 {
		t.Errorf("%d admitted, %d in flight of %d, reserved %v, spent %v", admitted, o.inFlight.n, most, o.reserved, o.spent)
	}
}

func BenchmarkAdmit(b *testing.B) {
	a := limited(newClock(), map[Rule]int64{RequestsPerMinute: maxLimit, TokensPerMinute: maxLimit, RequestsInFlight: 10, TokensPerDay: maxLimit})
	p := principal("a")
	b.ReportAllocs()
	for b.Loop() {
		ticket, err := a.admit(p, "m", Estimate{Prompt: 100})
		if err != nil {
			b.Fatal(err)
		}
		ticket.Settle(Usage{Prompt: 100, Completion: 10})
	}
}
