package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/accounts"
)

// output runs a command and returns what it prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	p := newProgram()
	p.out, p.err = &out, &errs
	cmd := p.command()
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, errs.String())
	}
	return out.String()
}

// logged is a folder with the records of requests.
func logged(t *testing.T, records ...accounts.Record) (folder string) {
	t.Helper()
	folder = t.TempDir()
	p := newProgram()
	err := p.withStore(context.Background(), folder, func(s *accounts.Store) error {
		for _, r := range records {
			s.Log(r)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func someRecords() []accounts.Record {
	answered := accounts.Record{
		ID: "req_01m5t4yg394wegr3j4y01qb363", Time: time.Unix(1_800_000_000, 0), OrganizationID: accounts.DefaultOrganization, ProjectID: accounts.DefaultProject,
		KeyID: "key_a", Route: "/v1/chat/completions", Model: "m", Streamed: true, Status: 200, FinishReason: "stop",
		Usage: accounts.Usage{Prompt: 100, Cached: 90, Completion: 20, Reasoning: 5}, Cost: 120,
		Phases: accounts.Phases{Render: 1500 * time.Microsecond, Prefill: 250 * time.Millisecond, TTFT: 300 * time.Millisecond, Decode: 2 * time.Second, Total: 2344 * time.Millisecond},
	}
	refused := answered
	refused.ID, refused.Status, refused.Error, refused.FinishReason, refused.KeyID = "req_01m5t4yg394wegr3j4y01qb364", 429, "rate_limited", "", ""
	refused.Usage, refused.Cost, refused.Phases = accounts.Usage{}, 0, accounts.Phases{Total: time.Millisecond}
	left := answered
	left.ID, left.FinishReason, left.ClientGone = "req_01m5t4yg394wegr3j4y01qb365", "", true
	return []accounts.Record{answered, refused, left}
}

// when are times, which depend on where the test runs.
var when = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

func TestRequests(t *testing.T) {
	folder := logged(t, someRecords()...)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"all", nil, `
TIME  ID                              STATUS  MODEL  PROMPT  CACHED  ANSWER  TTFT      TOTAL   ENDED BY      KEY
WHEN  req_01m5t4yg394wegr3j4y01qb365  200     m      100     90      20      300.0 ms  2.34 s  client left   key_a
WHEN  req_01m5t4yg394wegr3j4y01qb364  429     m      0       0       0       -         1.0 ms  rate_limited  -
WHEN  req_01m5t4yg394wegr3j4y01qb363  200     m      100     90      20      300.0 ms  2.34 s  stop          key_a
`},
		{"the last of a key", []string{"--key", "key_a", "--last", "1"}, `
TIME  ID                              STATUS  MODEL  PROMPT  CACHED  ANSWER  TTFT      TOTAL   ENDED BY     KEY
WHEN  req_01m5t4yg394wegr3j4y01qb365  200     m      100     90      20      300.0 ms  2.34 s  client left  key_a
`},
		{"one", []string{"req_01m5t4yg394wegr3j4y01qb363"}, `
id             req_01m5t4yg394wegr3j4y01qb363
time           WHEN
project        default/default
key            key_a
route          /v1/chat/completions
model          m
streamed       yes
status         200
error          -
finish reason  stop
client left    no
prompt         100 tokens, 90 of them cached
answer         20 tokens, 5 of them reasoning
cost           0.00012 credits
auth           -
render         1.5 ms
queue          -
prefill        250.0 ms
first token    300.0 ms
decode         2.00 s
total          2.34 s
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := output(t, append([]string{"requests", "--data", folder}, test.args...)...)
			got = "\n" + strings.ReplaceAll(when.ReplaceAllString(got, "WHEN"), "TIME               ", "TIME")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
	if got := output(t, "requests", "--data", folder, "--json", "req_01m5t4yg394wegr3j4y01qb364"); !strings.Contains(got, `"error": "rate_limited"`) {
		t.Errorf("as JSON: %s", got)
	}
}

// What keys were used for shows in their list, and a revoked key as such.
func TestKeysListShowsUse(t *testing.T) {
	folder := t.TempDir()
	p := newProgram()
	var key accounts.Key
	err := p.withStore(context.Background(), folder, func(s *accounts.Store) (err error) {
		limit := accounts.Credits(120)
		key, _, err = s.CreateKey(context.Background(), accounts.NewKey{Scopes: accounts.AllScopes(), SpendCap: &limit})
		r := someRecords()[0]
		r.KeyID = key.ID
		s.Log(r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := " +- +default/default +infer:run,infer:read,keys:manage +STATE +0.00012 +0.00012 +- +-\n"
	for _, state := range []string{"spent", "revoked"} {
		got := output(t, "keys", "list", "--data", folder)
		if !regexp.MustCompile(key.ID + strings.Replace(want, "STATE", state, 1)).MatchString(got) {
			t.Errorf("no %s key in\n%s", state, got)
		}
		if got, want := output(t, "keys", "revoke", "--data", folder, key.ID), "revoked "+key.ID+"\n"; got != want {
			t.Errorf("revoke prints %q, want %q", got, want)
		}
	}
}
