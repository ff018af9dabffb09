package handlers

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// A script is an engine that answers every request with the same events.
type script struct {
	refuse error // of Prepare
	events []engine.Event
	broken error         // ends the answer after the events
	panics any           // panics after the events
	hang   chan struct{} // closed when the answer, which never ends, is left
	health engine.Health
	used   engine.Usage    // told of an answer that was left
	asked  atomic.Int32    // how often Generate was called
	got    *engine.Request // the last request
}

func (s *script) Prepare(_ context.Context, r *engine.Request) (*engine.Prepared, error) {
	s.got = r
	return &engine.Prepared{}, s.refuse
}

func (s *script) Generate(ctx context.Context, _ *engine.Prepared) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		s.asked.Add(1)
		if s.hang != nil {
			defer close(s.hang)
		}
		for _, ev := range s.events {
			if !yield(ev, nil) {
				return
			}
		}
		switch {
		case s.panics != nil:
			panic(s.panics)
		case s.broken != nil:
			yield(nil, s.broken)
		case s.hang != nil:
			<-ctx.Done()
			yield(nil, ctx.Err())
		}
	}
}

func (s *script) Used(*engine.Prepared) engine.Usage { return s.used }

func (s *script) Info() engine.Info { return engine.Info{Context: 4096} }

func (s *script) Health() engine.Health {
	if s.health.State == "" {
		return engine.Health{State: engine.StateReady}
	}
	return s.health
}

var testTiming = engine.Timing{
	Render: time.Millisecond, Queue: 2 * time.Millisecond, Prefill: 3 * time.Millisecond,
	TTFT: 6 * time.Millisecond, Decode: 4 * time.Millisecond, Total: 10 * time.Millisecond,
}

// says is a script that answers with texts.
func says(texts ...string) *script {
	s := &script{events: []engine.Event{engine.First{PromptTokens: 17, CachedTokens: 8, Timing: testTiming}}}
	for _, t := range texts {
		s.events = append(s.events, engine.Text{Text: t})
	}
	usage := engine.Usage{Prompt: 17, Cached: 8, Answer: len(texts) + 1}
	s.events = append(s.events, engine.Finish{Reason: engine.FinishStop, Usage: usage, Timing: testTiming})
	return s
}

const testModel = "b3os/qwen3.5-9b"

// node is a handler under test with its parts.
type node struct {
	http.Handler
	model    *Model
	accounts *accounts.Store
	data     string // the folder of accounts
	log      *strings.Builder
}

// serve makes a node with one model, which is loading when e is nil.
func serve(t testing.TB, e Engine, change ...func(*Config)) node {
	t.Helper()
	n := node{log: &strings.Builder{}}
	n.model = NewModel(ModelParams{ID: testModel, Created: time.Unix(1793001600, 0), Owner: "b3os"})
	if e != nil {
		n.model.Serve(e)
	}
	n.data = t.TempDir()
	n.accounts = openAccounts(t, n.data)
	cfg := Config{
		Models:   []*Model{n.model},
		Accounts: n.accounts,
		Hosts:    []string{"example.com"}, // of httptest's requests
		Node:     "n1",
		Version:  "0.1.0",
		Log:      slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Metrics:  prometheus.NewRegistry(),
	}
	for _, f := range change {
		f(&cfg)
	}
	n.Handler = New(cfg)
	return n
}

// newAccounts is the file of a new store. Making one waits for the disk many times,
// so it is made once and copied.
var newAccounts = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "accounts.db")
	store, err := accounts.Open(context.Background(), path, accounts.Options{})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// openAccounts opens a store for the test.
func openAccounts(t testing.TB, folder string) *accounts.Store {
	t.Helper()
	path := filepath.Join(folder, "accounts.db")
	empty, err := newAccounts()
	if err == nil && !fileExists(path) {
		err = os.WriteFile(path, empty, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err := accounts.Open(context.Background(), path, accounts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

const chatPath = "/v1/infer/chat/completions"

// chatBody is the smallest request with more keys, as they stand in JSON.
func chatBody(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"` + testModel + `","messages":[{"role":"user","content":"Hi"}]` + more + `}`
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// post makes a request; headers are pairs of name and value.
func post(path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return withHeaders(r, headers...)
}

func get(path string, headers ...string) *http.Request {
	return withHeaders(httptest.NewRequest(http.MethodGet, path, nil), headers...)
}

func withHeaders(r *http.Request, headers ...string) *http.Request {
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

// do sends r to h and checks the answer against openapi.yaml.
func do(t testing.TB, h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	contract(t).check(t, r, body, w)
	return w
}

// failing is an engine error as Generate yields it.
func failing(code engine.Code) *engine.Error {
	return &engine.Error{Code: code, Message: "it failed", RetryAfter: 1500 * time.Millisecond, Err: errors.New("secret cause")}
}

// newRecorder serves r without checking the answer.
func newRecorder(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
