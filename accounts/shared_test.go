package accounts

import (
	"testing"
	"time"
)

// What is spent through one server on a store counts for another one's limits.
func TestSpentIsShared(t *testing.T) {
	path := storePath(t)
	a, b := openAt(t, path, Options{}), openAt(t, path, Options{})
	capped, _ := createKey(t, a, NewKey{SpendCap: new(60 * Credits(1))})
	free, _ := createKey(t, a, NewKey{})
	principals := func(s *Store, id string) *Principal { return s.current.Load().byID[id] }
	spend := func(s *Store, id string, tokens int) error {
		p := principals(s, id)
		ticket, err := s.Admit(p, "m", Estimate{Prompt: tokens, MaxTokens: 1})
		if err != nil {
			return err
		}
		r := record(time.Now(), 0)
		r.OrganizationID, r.ProjectID, r.KeyID, r.Model = p.Organization.ID, p.Project.ID, id, "m"
		r.Usage = Usage{Prompt: tokens}
		r.Cost = ticket.Settle(r.Usage)
		s.Log(r)
		return s.Flush(t.Context())
	}
	refused := func(id string, tokens int) {
		t.Helper()
		for start := time.Now(); spend(b, id, tokens) == nil; time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > 2*time.Second {
				t.Fatal("what another process has spent is not seen")
			}
			tokens = 0 // what is asked meanwhile must not be the cause
		}
	}
	for principals(b, free.ID) == nil || principals(b, capped.ID) == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if err := spend(a, capped.ID, 60); err != nil {
		t.Fatal(err)
	}
	refused(capped.ID, 0)

	if err := a.SetRules(t.Context(), Target{}, map[Rule]int64{TokensPerDay: 100}, nil); err != nil {
		t.Fatal(err)
	}
	if err := spend(a, free.ID, 30); err != nil { // 90 of 100
		t.Fatal(err)
	}
	refused(free.ID, 20)
	if err := a.SetRules(t.Context(), Target{}, nil, []Rule{TokensPerDay}); err != nil {
		t.Fatal(err)
	}
	if err := a.SetCredit(t.Context(), principals(a, free.ID).Organization.ID, new(50*Credits(1))); err != nil {
		t.Fatal(err)
	}
	if err := spend(a, free.ID, 50); err != nil {
		t.Fatal(err)
	}
	refused(free.ID, 0)
	checkLedger(t, a)
}
