package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// limited is a node with rules for everyone.
func limited(t *testing.T, e Engine, rules map[accounts.Rule]int64) node {
	t.Helper()
	h := serve(t, e)
	if err := h.accounts.SetRules(t.Context(), accounts.Target{}, rules, nil); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestContractLimits(t *testing.T) {
	for _, c := range []struct {
		name    string
		rules   map[accounts.Rule]int64
		before  int  // requests that are let in first
		never   bool // no waiting helps
		more    string
		code    string
		message string
	}{
		{"C058_C087_requests", map[accounts.Rule]int64{accounts.RequestsPerMinute: 2}, 2, false, "",
			"rate_limited", "2 requests per minute allowed on " + testModel + "; retry in "},
		{"C074_C086_max_completion_tokens", map[accounts.Rule]int64{accounts.TokensPerMinute: 1000}, 0, true, `"max_completion_tokens":2000`,
			"rate_limited", "1000 tokens per minute allowed on " + testModel + ", and this request needs "},
		{"C075_max_tokens", map[accounts.Rule]int64{accounts.TokensPerMinute: 1000}, 0, true, `"max_tokens":2000`,
			"rate_limited", "1000 tokens per minute allowed on "},
		{"C075_512_without", map[accounts.Rule]int64{accounts.TokensPerMinute: 400}, 0, true, "",
			"rate_limited", "400 tokens per minute allowed on "},
		{"C084_quota", map[accounts.Rule]int64{accounts.TokensPerDay: 500}, 0, true, "",
			"quota_exceeded", "500 tokens per day allowed in organization default"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := limited(t, says("Hi"), c.rules)
			for range c.before {
				if w := do(t, h, post(chatPath, chatBody(c.more))); w.Code != 200 {
					t.Fatalf("refused too early: %s", w.Body)
				}
			}
			w := do(t, h, post(chatPath, chatBody(c.more)))
			got := errorOf(t, w.Body.Bytes())
			if w.Code != 429 || got.Code != c.code || got.Type != "rate_limit_error" || got.Param != "" || !strings.HasPrefix(got.Message, c.message) {
				t.Errorf("%d %+v", w.Code, got)
			}
			// C065, C085
			for _, name := range []string{"Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
				if has := number(w.Header().Get(name)) >= 0; has == (name == "Retry-After" && c.never) {
					t.Errorf("%s is %q", name, w.Header().Get(name))
				}
			}
			if never := w.Header().Get("X-Should-Retry") == "false"; never != c.never || never != strings.Contains(got.Message, "waiting does not help") {
				t.Errorf("to be tried again: %v, want %v: %s", !never, !c.never, got.Message)
			}
			if c.code == "rate_limited" && number(w.Header().Get("RateLimit-Reset")) > 60 {
				t.Errorf("RateLimit-Reset is %s, and the window has 60 seconds", w.Header().Get("RateLimit-Reset"))
			}
		})
	}
	for name, more := range map[string]string{"C075_1000": "", "C074_fits": `"max_completion_tokens":900`, "context_bounds_it": `"max_tokens":100000`} {
		t.Run(name, func(t *testing.T) {
			rules := map[accounts.Rule]int64{accounts.TokensPerMinute: 1000}
			if name == "context_bounds_it" {
				rules[accounts.TokensPerMinute] = 5000
			}
			h := limited(t, says("Hi"), rules)
			for range 2 { // C078: the second finds what the first did not use
				if w := do(t, h, post(chatPath, chatBody(more))); w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
}

func TestContractLimitHeaders(t *testing.T) {
	h := limited(t, says("Hi"), map[accounts.Rule]int64{accounts.RequestsPerMinute: 3, accounts.TokensPerMinute: 100000})
	for _, more := range []string{"", `"stream":true`} {
		w := do(t, h, post(chatPath, chatBody(more)))
		if w.Code != 200 || w.Header().Get("RateLimit-Limit") != "3" || w.Header().Get("Retry-After") != "" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
	if w := do(t, h, post(chatPath, chatBody(`"foo":1`))); w.Code != 400 || w.Header().Get("RateLimit-Limit") != "" {
		t.Errorf("a 400 is not admitted: %d %v", w.Code, w.Header())
	}
	if w := do(t, serve(t, says("Hi")), post(chatPath, chatBody(""))); w.Header().Get("RateLimit-Limit") != "" {
		t.Error("without limits there are no headers")
	}
}

// A key of each of two projects and of another organization: the first two share
// a counter.
func TestContractC073_SharedCounters(t *testing.T) {
	h := limited(t, says("Hi"), map[accounts.Rule]int64{accounts.RequestsPerMinute: 1})
	keyIn := func(organization, project string) string {
		o, _, err := h.accounts.EnsureOrganization(t.Context(), organization)
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := h.accounts.EnsureProject(t.Context(), o.ID, project)
		if err != nil {
			t.Fatal(err)
		}
		_, secret := newKey(t, h.accounts, accounts.NewKey{ProjectID: p.ID})
		return secret
	}
	for _, c := range []struct {
		secret string
		status int
	}{{keyIn("a", "one"), 200}, {keyIn("a", "two"), 429}, {keyIn("b", "one"), 200}} {
		if w := do(t, h, with(c.secret, post(chatPath, chatBody("")))); w.Code != c.status {
			t.Errorf("got %d, want %d", w.Code, c.status)
		}
	}
}

func TestContractC082_InFlight(t *testing.T) {
	e := &script{events: says("Hi").events[:2], hang: make(chan struct{})}
	h := limited(t, e, map[accounts.Rule]int64{accounts.RequestsInFlight: 1})
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan struct{})
	go func() {
		defer close(first)
		newRecorder(h, post(chatPath, chatBody("")).WithContext(ctx))
	}()
	until(t, func() bool { return e.asked.Load() > 0 })
	w := do(t, h, post(chatPath, chatBody("")))
	if got := errorOf(t, w.Body.Bytes()); w.Code != 429 || got.Code != "concurrency_limited" || w.Header().Get("RateLimit-Limit") != "1" {
		t.Errorf("%d %+v %v", w.Code, got, w.Header())
	}
	leave()
	<-first
	h.model.Serve(says("Hi"))
	if w := do(t, h, post(chatPath, chatBody(""))); w.Code != 200 {
		t.Errorf("after the first has left: %d %s", w.Code, w.Body)
	}
}

// until waits for what another goroutine does.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for begun := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("it never came")
		}
	}
}

func TestContractC050_Credits(t *testing.T) {
	h := serve(t, says("Hi"))
	none := accounts.Credits(0)
	_, capped := newKey(t, h.accounts, accounts.NewKey{SpendCap: &none})
	_, free := newKey(t, h.accounts, accounts.NewKey{})
	exhausted := func(message string) wireError { return wireError{message, "rate_limit_error", "credits_exhausted", ""} }
	runRefusals(t, h, []refusal{{"spend_cap", with(capped, post(chatPath, chatBody(""))), 402,
		exhausted("this API key has reached its spend cap of 0 credits; use another key or one with a higher cap")}})
	if w := do(t, h, with(capped, get("/v1/models"))); w.Code != 200 {
		t.Errorf("reading is free: %d", w.Code)
	}
	if err := h.accounts.SetCredit(t.Context(), accounts.DefaultOrganization, &none); err != nil {
		t.Fatal(err)
	}
	runRefusals(t, h, []refusal{{"organization", with(free, post(chatPath, chatBody(""))), 402,
		exhausted("the organization's credits are used up; add credits and try again")}})
	if w := do(t, h, with(free, post(chatPath, chatBody("")))); w.Header().Get("Retry-After") != "" || w.Header().Get("RateLimit-Limit") != "" {
		t.Errorf("waiting does not help: %v", w.Header())
	}
}

// wireRecord is a record as clients read it.
type wireRecord struct {
	ID           string  `json:"request_id"`
	KeyID        *string `json:"key_id"`
	Route, Model string
	Stream       bool
	Status       int
	Error        *string
	Finish       *string `json:"finish_reason"`
	Gone         bool    `json:"client_gone"`
	Usage        struct {
		Prompt     int `json:"prompt_tokens"`
		Cached     int `json:"cached_tokens"`
		Completion int `json:"completion_tokens"`
		Reasoning  int `json:"reasoning_tokens"`
		Cost       float64
	}
	Timing map[string]float64
}

func recordOf(t *testing.T, h http.Handler, id, secret string) wireRecord {
	t.Helper()
	var r wireRecord
	jsonOf(t, do(t, h, with(secret, get("/v1/requests/"+id))), 200, &r)
	return r
}

func TestContractC028_C359_Record(t *testing.T) {
	h := serve(t, says("the answer"))
	key, secret := newKey(t, h.accounts, accounts.NewKey{})
	for _, stream := range []bool{false, true} {
		w := do(t, h, with(secret, post(chatPath, chatBody(`"stream":`+strconv.FormatBool(stream)))))
		got := recordOf(t, h, w.Header().Get("X-Request-Id"), secret)
		timing := got.Timing
		got.Timing = nil
		stop := "stop"
		want := wireRecord{ID: w.Header().Get("X-Request-Id"), KeyID: &key.ID, Route: chatPath, Model: testModel, Stream: stream, Status: 200, Finish: &stop}
		want.Usage.Prompt, want.Usage.Cached, want.Usage.Completion, want.Usage.Cost = 17, 8, 2, 0.000019 // C080
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		// The header's phases are the record's.
		for _, entry := range strings.Split(w.Header().Get("Server-Timing"), ", ") {
			name, text, _ := strings.Cut(entry, ";dur=")
			if dur, err := strconv.ParseFloat(text, 64); err != nil || name != "total" && dur != timing[name+"_ms"] || dur > timing[name+"_ms"] { // C037
				t.Errorf("%s, but the record has %v", entry, timing[name+"_ms"])
			}
		}
	}
}

func TestContractC359_RecordRefused(t *testing.T) {
	h := serve(t, says("Hi"))
	_, secret := newKey(t, h.accounts, accounts.NewKey{})
	o, _, err := h.accounts.EnsureOrganization(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := h.accounts.EnsureProject(t.Context(), o.ID, "theirs")
	if err != nil {
		t.Fatal(err)
	}
	_, foreign := newKey(t, h.accounts, accounts.NewKey{ProjectID: p.ID})
	id := do(t, h, with(secret, post(chatPath, chatBody("")))).Header().Get("X-Request-Id")
	absent := func(id string) wireError {
		return wireError{"no request of this project has the id " + id + "; records are kept for a time, and of requests that were let in",
			badRequest, "not_found", "request_id"}
	}
	const unknown = "req_01m5t4yg394wegr3j4y01qb363"
	runRefusals(t, h, []refusal{
		{"unknown", with(secret, get("/v1/requests/"+unknown)), 404, absent(unknown)},
		{"of_another_project", with(foreign, get("/v1/requests/"+id)), 404, absent(id)},
		{"no_id", with(secret, get("/v1/requests/x")), 404,
			wireError{"a request id is req_ and 26 characters, as the header x-request-id has it", badRequest, "not_found", "request_id"}},
	})
	denied := do(t, h, post(chatPath, chatBody(""))).Header().Get("X-Request-Id")
	if w := do(t, h, with(secret, get("/v1/requests/"+denied))); w.Code != 404 {
		t.Errorf("a request that was not let in leaves no record, got %d", w.Code)
	}
	open := serve(t, says("Hi"))
	id = do(t, open, post(chatPath, chatBody(""))).Header().Get("X-Request-Id")
	if r := recordOf(t, open, id, "any"); r.KeyID != nil || r.Status != 200 {
		t.Errorf("without keys: %+v", r)
	}
}

// What is refused or fails is in the log of requests too, and costs nothing.
func TestRecordOfFailures(t *testing.T) {
	half := says("Hi")
	half.events, half.broken = half.events[:2], failing(engine.CodeUnavailable)
	half.used = engine.Usage{Prompt: 17, Answer: 1}
	for _, c := range []struct {
		name, body string
		engine     Engine
		status     int
		code       string
	}{
		{"parameter", chatBody(`"foo":1`), says("Hi"), 400, "unsupported_parameter"},
		{"overloaded", chatBody(""), &script{broken: failing(engine.CodeOverloaded)}, 503, "capacity_unavailable"},
		{"panic", chatBody(""), &script{panics: "boom"}, 500, "internal"},
		{"broken_stream", chatBody(`"stream":true`), half, 200, "infer_backend_unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := serve(t, c.engine)
			got := recordOf(t, h, do(t, h, post(chatPath, c.body)).Header().Get("X-Request-Id"), "")
			if got.Status != c.status || got.Error == nil || *got.Error != c.code || got.Usage.Cost != 0 || got.Usage.Completion != 0 {
				text, _ := json.Marshal(got)
				t.Errorf("got %s", text)
			}
		})
	}
}

// Who leaves pays for what was generated until then, not for what was reserved.
func TestContractC079_C165_LeavingIsBilled(t *testing.T) {
	for _, begun := range []bool{true, false} {
		e := &script{hang: make(chan struct{})}
		if begun {
			e.events, e.used = says("Hi").events[:2], engine.Usage{Prompt: 17, Cached: 8, Answer: 5}
		}
		h := limited(t, e, map[accounts.Rule]int64{accounts.TokensPerMinute: 1000})
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan string)
		go func() {
			done <- newRecorder(h, post(chatPath, chatBody(`"stream":true,"max_tokens":900`)).WithContext(ctx)).Header().Get("X-Request-Id")
		}()
		until(t, func() bool { return e.asked.Load() > 0 })
		time.Sleep(10 * time.Millisecond)
		leave()
		got := recordOf(t, h, <-done, "")
		if !got.Gone || got.Status != 499 || got.Usage.Completion != e.used.Answer || got.Usage.Prompt != e.used.Prompt {
			t.Errorf("begun %v: %+v", begun, got)
		}
		h.model.Serve(says("Hi"))
		if w := do(t, h, post(chatPath, chatBody(`"max_tokens":900`))); w.Code != 200 {
			t.Errorf("the reservation is still there: %s", w.Body)
		}
	}
}
