package accounts

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// record is the i-th of some requests.
func record(at time.Time, i int) Record {
	return Record{
		ID: newID("req_", at), Time: at, OrganizationID: DefaultOrganization, ProjectID: DefaultProject,
		Route: "/v1/chat/completions", Model: "m", Streamed: i%2 == 0, Status: 200, FinishReason: "stop",
		Usage: Usage{Prompt: 10 + i, Cached: i, Completion: 5, Reasoning: 1}, Cost: Credits(15 + i),
		Phases: Phases{Auth: time.Microsecond, Render: 2 * time.Millisecond, Queue: 3 * time.Microsecond, Prefill: 4 * time.Second,
			TTFT: 5 * time.Second, Decode: 6 * time.Second, Total: 11*time.Second + 1},
	}
}

func TestLog(t *testing.T) {
	s, c := openStore(t)
	ctx := t.Context()
	key, _ := createKey(t, s, NewKey{})
	var want []Record
	for i := range 5 {
		c.advance(time.Millisecond)
		r := record(c.Now(), i)
		if i == 3 {
			r = Record{ID: r.ID, Time: r.Time, OrganizationID: DefaultOrganization, ProjectID: DefaultProject, KeyID: key.ID,
				Route: "none", Status: 404, Error: "not_found", ClientGone: true}
		}
		s.Log(r)
		got, err := s.Request(ctx, r.ID) // still queued, or just written
		if err != nil {
			t.Fatal(err)
		}
		want = append([]Record{r.normal()}, want...)
		if diff := cmp.Diff(want[0], got); diff != "" {
			t.Errorf("queued record (-want +got):\n%s", diff)
		}
	}
	for _, test := range []struct {
		filter RequestFilter
		want   []Record
	}{
		{RequestFilter{}, want},
		{RequestFilter{Limit: 2}, want[:2]},
		{RequestFilter{Limit: 2, Before: want[1].ID}, want[2:4]},
		{RequestFilter{KeyID: key.ID}, want[1:2]},
		{RequestFilter{ProjectID: DefaultProject, Limit: 10}, want},
		{RequestFilter{ProjectID: "prj_none"}, []Record{}},
	} {
		got, err := s.Requests(ctx, test.filter)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.filter, diff)
		}
	}
	if got, err := s.Request(ctx, want[0].ID); err != nil || !cmp.Equal(got, want[0]) {
		t.Errorf("written record %+v, %v", got, err)
	}
	if _, err := s.Request(ctx, "req_none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no record: %v, want %v", err, ErrNotFound)
	}
	checkLedger(t, s)
}

// checkLedger compares the ledger, and the sums of keys and organizations,
// with the records, all of which must still be there.
func checkLedger(t *testing.T, s *Store) (records int) {
	t.Helper()
	read := func(query string) []string {
		list, err := all(t.Context(), s.reader, func(rows *sql.Rows) (text string, err error) {
			err = rows.Scan(&text)
			return text, err
		}, query)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for what, queries := range map[string][2]string{
		"ledger": {
			`SELECT concat_ws(' ', time / 86400000, organization_id, project_id, key_id, model, count(*), sum(prompt), sum(cached), sum(completion), sum(reasoning), sum(cost))
				FROM requests WHERE prompt + completion + cost > 0 GROUP BY time / 86400000, organization_id, project_id, key_id, model ORDER BY 1`,
			`SELECT concat_ws(' ', day, organization_id, project_id, key_id, model, requests, prompt, cached, completion, reasoning, cost) FROM ledger ORDER BY 1`,
		},
		"organizations": {
			`SELECT organization_id || ' ' || sum(cost) FROM requests GROUP BY organization_id HAVING sum(cost) > 0 ORDER BY 1`,
			`SELECT id || ' ' || spent FROM organizations WHERE spent > 0 ORDER BY 1`,
		},
		"keys": {
			`SELECT key_id || ' ' || sum(cost) FROM requests WHERE key_id != '' GROUP BY key_id HAVING sum(cost) > 0 ORDER BY 1`,
			`SELECT id || ' ' || spent FROM keys WHERE spent > 0 ORDER BY 1`,
		},
	} {
		if diff := cmp.Diff(read(queries[0]), read(queries[1])); diff != "" {
			t.Errorf("%s (-records +%s):\n%s", what, what, diff)
		}
	}
	records, err := strconv.Atoi(read("SELECT count(*) FROM requests")[0])
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func TestRecordJSON(t *testing.T) {
	r := record(newClock().Now(), 2)
	r.ID = "req_01m5t4yg394wegr3j4y01qb363"
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"request_id":"req_01m5t4yg394wegr3j4y01qb363","time":"2026-03-14T15:09:26Z","organization_id":"org_default","project_id":"prj_default",` +
		`"key_id":null,"route":"/v1/chat/completions","model":"m","stream":true,"status":200,"error":null,"finish_reason":"stop","client_gone":false,` +
		`"usage":{"prompt_tokens":12,"cached_tokens":2,"completion_tokens":5,"reasoning_tokens":1,"cost":0.000017},` +
		`"timing":{"auth_ms":0.001,"render_ms":2,"queue_ms":0.003,"prefill_ms":4000,"ttft_ms":5000,"decode_ms":6000,"total_ms":11000}}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A batch that was written though that was not told is not written twice.
func TestRecordsAreBookedOnce(t *testing.T) {
	s, c := openStore(t)
	r := record(c.Now(), 1)
	for range 2 {
		s.Log(r)
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := checkLedger(t, s); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// When the file cannot be written Log does not wait, records that have no room
// are dropped, and what all of them cost comes to the ledger later.
func TestLogWhileTheFileIsLocked(t *testing.T) {
	s, c := openStore(t)
	const room, more = 600, 100
	s.books.mu.Lock()
	s.books.room = room
	s.books.mu.Unlock()
	mend := spoil(t, s)
	lock, err := s.writer.BeginTx(t.Context(), nil) // takes the only connection
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := range room + more {
		s.Log(record(c.Now(), i))
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	if got := s.Dropped(); got != more {
		t.Errorf("%d dropped, want %d", got, more)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	mustFail(t, s)
	mend()
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var records, entered int
	var cost Credits
	if err := s.reader.QueryRow("SELECT (SELECT count(*) FROM requests), sum(requests), sum(cost) FROM ledger").Scan(&records, &entered, &cost); err != nil {
		t.Fatal(err)
	}
	const n = room + more
	if want := Credits(15*n + n*(n-1)/2); records != room || entered != n || cost != want {
		t.Errorf("%d records, %d in the ledger, cost %d; want %d, %d, %d", records, entered, cost, room, n, want)
	}
}

// spoil makes every batch with something to pay for fail until mend is called.
func spoil(t *testing.T, s *Store) (mend func()) {
	t.Helper()
	exec := func(statement string) {
		t.Helper()
		if _, err := s.writer.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TRIGGER fail BEFORE INSERT ON ledger BEGIN SELECT raise(ABORT, 'no'); END")
	return func() { exec("DROP TRIGGER fail") }
}

func mustFail(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), s.path) {
		t.Errorf("error %v, want one with the path", err)
	}
}

// A batch that fails comes again, and is paid for once.
func TestFailedBatchComesAgain(t *testing.T) {
	s, c := openStore(t)
	mend := spoil(t, s)
	r := record(c.Now(), 1)
	s.Log(r)
	for range 2 {
		mustFail(t, s)
		if _, err := s.Request(t.Context(), r.ID); err != nil {
			t.Errorf("the record is lost: %v", err)
		}
	}
	mend()
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := checkLedger(t, s); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// The amounts outlive the process; reservations do not.
func TestSpentIsKept(t *testing.T) {
	path := storePath(t)
	c := newClock()
	s, err := Open(context.Background(), path, Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	limit := Credits(100)
	if err := s.SetRules(t.Context(), Target{}, map[Rule]int64{TokensPerDay: 1000}, nil); err != nil {
		t.Fatal(err)
	}
	_, secret := createKey(t, s, NewKey{SpendCap: &limit})
	p, err := s.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Admit(p, "m", Estimate{Prompt: 50}); err != nil { // never settled
		t.Fatal(err)
	}
	r := record(c.Now(), 0)
	r.KeyID, r.Usage, r.Cost = p.Key.ID, Usage{Prompt: 90}, 90
	s.Log(r)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path, Options{Now: c.Now})
	if p, err = s.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	ticket, err := s.Admit(p, "m", Estimate{Prompt: 500, MaxTokens: 410})
	if err != nil {
		t.Fatalf("a reservation is stuck: %v", err)
	}
	if standing, ok := ticket.Standing(); !ok || standing.Remaining != 0 {
		t.Errorf("%+v, %v, want 90 of 1000 used and 910 reserved", standing, ok)
	}
	ticket.Settle(Usage{Prompt: 10})
	if _, err := s.Admit(p, "m", Estimate{Prompt: 1}); err == nil {
		t.Error("the cap of 100 is forgotten when 100 are spent")
	}
}

func TestSetCredit(t *testing.T) {
	s, c := openStore(t)
	r := record(c.Now(), 0)
	r.Cost = 40
	s.Log(r)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	amount := Credits(2)
	if err := s.SetCredit(t.Context(), DefaultOrganization, &amount); err != nil {
		t.Fatal(err)
	}
	if got := s.Anonymous().Organization; got.Credit == nil || *got.Credit != 42 || got.Spent != 40 {
		t.Errorf("%+v, want a credit of 42", got)
	}
	if err := s.SetCredit(t.Context(), DefaultOrganization, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.Anonymous().Organization; got.Credit != nil {
		t.Errorf("%+v, want no limit", got)
	}
	amount = -1
	if err := s.SetCredit(t.Context(), DefaultOrganization, &amount); err == nil {
		t.Error("a negative credit was taken")
	}
	if err := s.SetCredit(t.Context(), "org_none", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("credit of no organization: %v", err)
	}
}

// Old records go, young ones and the ledger stay.
func TestPrune(t *testing.T) {
	path := storePath(t)
	c := newClock()
	s, err := Open(context.Background(), path, Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1200 {
		s.Log(record(c.Now(), i))
	}
	c.advance(24 * time.Hour)
	young := record(c.Now(), 0)
	s.Log(young)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path, Options{Now: c.Now, KeepRequests: 24 * time.Hour})
	if err := s.prune(t.Context()); err != nil { // a day old is not too old
		t.Fatal(err)
	}
	checkCounts := func(wantRecords, wantEntered int) {
		t.Helper()
		var records, entered int
		if err := s.reader.QueryRow("SELECT (SELECT count(*) FROM requests), sum(requests) FROM ledger").Scan(&records, &entered); err != nil {
			t.Fatal(err)
		}
		if records != wantRecords || entered != wantEntered {
			t.Errorf("%d records, %d in the ledger, want %d and %d", records, entered, wantRecords, wantEntered)
		}
	}
	checkCounts(1201, 1201)
	c.advance(time.Second)
	if err := s.prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkCounts(1, 1201)
	if _, err := s.Request(t.Context(), young.ID); err != nil {
		t.Error(err)
	}
}

// logInProcess logs about a thousand requests a second, and says which.
func logInProcess() {
	ctx := context.Background()
	s, err := Open(ctx, os.Getenv("ACCOUNTS_TEST_PATH"), Options{})
	fatal(err)
	_, secret, err := s.CreateKey(ctx, NewKey{Scopes: AllScopes()})
	fatal(err)
	p, err := s.Authenticate(ctx, secret)
	fatal(err)
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(out, secret)
	for {
		for range 20 {
			ticket, err := s.Admit(p, "m", Estimate{Prompt: 10})
			fatal(err)
			r := record(time.Now(), 0)
			r.KeyID, r.Usage = p.Key.ID, Usage{Prompt: 10, Completion: 5}
			r.Cost = ticket.Settle(r.Usage)
			s.Log(r)
			fmt.Fprintln(out, r.ID, r.Time.UnixMilli())
		}
		fatal(out.Flush())
		time.Sleep(20 * time.Millisecond)
	}
}

// A process that is killed loses no key and at most the last second of its
// records; the ledger is what the records say, each time.
func TestKilled(t *testing.T) {
	stores, times := 4, 3
	if testing.Short() {
		stores, times = 1, 2
	}
	for i := range stores {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			path := storePath(t)
			var secrets []string
			for j := range times {
				secret, logged := logUntilKilled(t, path, time.Duration(510+97*i+41*j)*time.Millisecond)
				secrets = append(secrets, secret)
				checkAfterKill(t, path, secrets, logged)
			}
		})
	}
}

// logUntilKilled kills a process that logs after a while, and returns the key
// it made and the ages of its records.
func logUntilKilled(t *testing.T, path string, after time.Duration) (secret string, ages map[string]time.Duration) {
	t.Helper()
	_, hear, process := startProcess(t, "log", path)
	secret = hear()
	times := map[string]time.Time{}
	for start := time.Now(); time.Since(start) < after; {
		id, at, _ := strings.Cut(hear(), " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			t.Fatalf("%s %s: %v", id, at, err)
		}
		times[id] = time.UnixMilli(ms)
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = process.Wait() // says that it was killed
	ages = map[string]time.Duration{}
	for id, at := range times {
		ages[id] = killed.Sub(at)
	}
	return secret, ages
}

func checkAfterKill(t *testing.T, path string, secrets []string, ages map[string]time.Duration) {
	t.Helper()
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if _, err := s.Authenticate(t.Context(), secret); err != nil {
			t.Errorf("a key is lost: %v", err)
		}
	}
	if checkLedger(t, s) == 0 {
		t.Error("no record was written")
	}
	records, err := s.Requests(t.Context(), RequestFilter{})
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	for _, r := range records {
		written[r.ID] = true
	}
	for id, age := range ages {
		if !written[id] && age > time.Second {
			t.Errorf("a record of %v before the end is lost", age)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Log and Request from many goroutines while batches are written.
func TestLogAtOnce(t *testing.T) {
	s := openAt(t, storePath(t), Options{})
	var logging sync.WaitGroup
	for range 4 {
		logging.Go(func() {
			for i := range 500 {
				r := record(time.Now(), i)
				s.Log(r)
				if _, err := s.Request(context.Background(), r.ID); err != nil {
					t.Errorf("%s: %v", r.ID, err)
				}
			}
		})
	}
	logging.Wait()
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := checkLedger(t, s); n != 2000 {
		t.Errorf("%d records, want 2000", n)
	}
}

func BenchmarkLog(b *testing.B) {
	s := openAt(b, storePath(b), Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Log(record(time.Now(), i))
		if i%maxQueued == maxQueued-1 { // as fast as the file takes them
			if err := s.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
}
