package engine

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// newEngine starts an engine on a fake model; the test's end shuts it down and
// checks that no cell is held by a running sequence.
func newEngine(t testing.TB, o llamatest.Options, p Params) (*Engine, *llamatest.Model) {
	t.Helper()
	model := llamatest.New(o)
	p.Log = slog.New(slog.DiscardHandler)
	e, err := New(model, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, model
}

// says scripts a model to give one answer to everything.
func says(answer string) func(string) (string, bool) {
	return func(string) (string, bool) { return answer, true }
}

func user(text string) *Request {
	return &Request{Messages: []Message{{Role: RoleUser, Content: []string{text}}}}
}

func ptr[T any](v T) *T { return &v }

// answer is what a generation came to.
type answer struct {
	reasoning, content string
	calls              []call
	finish             Finish
	err                error
}

// call is a tool call of an answer.
type call struct {
	name, arguments string
	complete        bool
}

func fold(events iter.Seq2[Event, error]) answer {
	var a answer
	for ev, err := range events {
		if err != nil {
			a.err = err
			return a
		}
		switch ev := ev.(type) {
		case Text:
			if ev.Reasoning {
				a.reasoning += ev.Text
			} else {
				a.content += ev.Text
			}
		case CallStart:
			a.calls = append(a.calls, call{name: ev.Name})
		case CallArguments:
			a.calls[len(a.calls)-1].arguments += ev.Text
		case CallEnd:
			a.calls[len(a.calls)-1].complete = true
		case Finish:
			a.finish = ev
		}
	}
	return a
}

func ask(t testing.TB, e *Engine, r *Request) answer {
	t.Helper()
	p, err := e.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return fold(e.Generate(t.Context(), p))
}

func TestGenerate(t *testing.T) {
	tests := []struct {
		name    string
		says    string
		change  func(*Request)
		content string
		reason  FinishReason
		stop    string
		think   string
	}{
		{name: "text", says: "Hello wörld 😀", content: "Hello wörld 😀", reason: FinishStop},
		{name: "empty", says: "", content: "", reason: FinishStop},
		{name: "length", says: "abcdefgh", change: func(r *Request) { r.MaxTokens = 3 }, content: "abc", reason: FinishLength},
		{name: "stop text", says: "one two three", change: func(r *Request) { r.Stop = []string{"wo t"} }, content: "one t", reason: FinishStop, stop: "wo t"},
		{name: "stop text that does not come", says: "one tw", change: func(r *Request) { r.Stop = []string{"two"} }, content: "one tw", reason: FinishStop},
		{name: "reasoning", says: "a sum\n</think>\n\n2", change: func(r *Request) { r.Thinking = true }, content: "2", think: "a sum", reason: FinishStop},
		{name: "stop texts do not end the reasoning", says: "a\n\nb\n</think>\n\nc\n\nd", change: func(r *Request) { r.Thinking = true; r.Stop = []string{"\n\n"} }, content: "c", think: "a\n\nb", reason: FinishStop, stop: "\n\n"},
		{name: "cut inside a character", says: "\u3042", change: func(r *Request) { r.MaxTokens = 1 }, content: "", reason: FinishLength},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := newEngine(t, llamatest.Options{Script: says(tt.says)}, Params{})
			r := user("hi")
			if tt.change != nil {
				tt.change(r)
			}
			a := ask(t, e, r)
			if a.err != nil {
				t.Fatal(a.err)
			}
			got := []string{a.content, a.think(), string(a.finish.Reason), a.finish.Stop}
			if diff := cmp.Diff([]string{tt.content, tt.think, string(tt.reason), tt.stop}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func (a answer) think() string { return a.reasoning }

func TestUsage(t *testing.T) {
	e, model := newEngine(t, llamatest.Options{Script: says("ab</think>cde")}, Params{})
	r := user("hi")
	r.Thinking = true
	p, err := e.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	a := fold(e.Generate(t.Context(), p))
	length := func(text string) int {
		tokens, err := model.Tokenize(nil, []llama.Part{{Text: []byte(text), Special: true}}, false)
		if err != nil {
			t.Fatal(err)
		}
		return len(tokens)
	}
	want := Usage{Prompt: p.PromptTokens(), Answer: length("ab</think>cde") + 1, Reasoning: length("ab</think>")}
	if diff := cmp.Diff(want, a.finish.Usage); diff != "" {
		t.Error(diff)
	}
	if tm := a.finish.Timing; tm.TTFT <= 0 || tm.Total < tm.TTFT || tm.Prefill <= 0 || tm.Render <= 0 {
		t.Errorf("timing is %+v", tm)
	}
}

func TestFirstComesFirst(t *testing.T) {
	e, _ := newEngine(t, llamatest.Options{Script: says("abc")}, Params{})
	p, err := e.Prepare(t.Context(), user("hi"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ev, err := range e.Generate(t.Context(), p) {
		if err != nil {
			t.Fatal(err)
		}
		first, ok := ev.(First)
		if ok != (n == 0) {
			t.Errorf("event %d is %+v", n, ev)
		}
		if ok && (first.PromptTokens != p.PromptTokens() || first.Timing.TTFT <= 0) {
			t.Errorf("first is %+v", first)
		}
		n++
	}
}

func TestPrepareErrors(t *testing.T) {
	refusal := errors.New("roles must alternate")
	e, _ := newEngine(t, llamatest.Options{Refuse: func(in llama.ChatInput) error {
		if len(in.Messages) > 1 {
			return refusal
		}
		return nil
	}}, Params{Cells: 256})
	tests := []struct {
		name string
		r    *Request
		code Code
		text string
	}{
		{"too long", user(strings.Repeat("x", 300)), CodeContext, "context is 256 tokens"},
		{"much too long", user(strings.Repeat("x", 256*startBytes)), CodeContext, "more than "},
		{"template", &Request{Messages: []Message{{Role: RoleUser}, {Role: RoleUser}}}, CodeInvalid, "roles must alternate"},
		{"bias", &Request{Messages: user("hi").Messages, Sampling: Sampling{Bias: map[int]float64{1 << 30: 1}}}, CodeInvalid, "logit_bias"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := e.Prepare(t.Context(), tt.r)
			var got *Error
			if !errors.As(err, &got) || got.Code != tt.code || !strings.Contains(got.Message, tt.text) || got.Param == "" {
				t.Errorf("got %v, want %s with %q", err, tt.code, tt.text)
			}
		})
	}
	t.Run("counting has no limit", func(t *testing.T) {
		p, err := e.Count(t.Context(), user(strings.Repeat("x", 300)))
		if err != nil || p.PromptTokens() < 300 {
			t.Errorf("got %v, %v", p, err)
		}
	})
}

func TestSamplingDefaults(t *testing.T) {
	file := llama.SamplingDefaults{Temperature: ptr(float32(0.5)), TopK: ptr(int32(20))}
	tests := []struct {
		name   string
		client Sampling
		file   llama.SamplingDefaults
		want   llama.Sampling
	}{
		{"neutral", Sampling{}, llama.SamplingDefaults{}, llama.Sampling{Temperature: 1, TopP: 1, Repetition: 1}},
		{"the file's", Sampling{}, file, llama.Sampling{Temperature: 0.5, TopK: 20, TopP: 1, Repetition: 1}},
		{"the client's", Sampling{Temperature: ptr(0.0), TopK: ptr(-1), TopP: ptr(0.0)}, file, llama.Sampling{TopP: 1e-9, Repetition: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.client.resolve(tt.file)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSeed(t *testing.T) {
	e, _ := newEngine(t, llamatest.Options{MeanAnswer: -1}, Params{})
	say := func(seed *int64) string {
		r := user("hi")
		r.MaxTokens, r.Sampling.Seed = 30, seed
		return ask(t, e, r).content
	}
	if a, b := say(ptr(int64(1))), say(ptr(int64(1))); a != b {
		t.Errorf("one seed gave %q and %q", a, b)
	}
	if a, b := say(ptr(int64(1))), say(ptr(int64(2))); a == b {
		t.Errorf("two seeds gave %q", a)
	}
	if a, b := say(nil), say(nil); a == b {
		t.Errorf("no seed gave %q twice", a)
	}
}

// gauges reads the engine's metrics by name.
func gauges(t testing.TB, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.Metric {
			values[f.GetName()] += value(m)
		}
	}
	return values
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Counter != nil:
		return m.Counter.GetValue()
	}
	return float64(m.Histogram.GetSampleCount())
}

// An answer that a stop text ends has not been left by its client.
func TestStopTextIsCountedAsAnEnd(t *testing.T) {
	registry := prometheus.NewRegistry()
	e, _ := newEngine(t, llamatest.Options{Script: says("one two three")}, Params{Metrics: registry})
	r := user("count")
	r.Stop = []string{"two"}
	if a := ask(t, e, r); a.finish.Reason != FinishStop || a.finish.Stop != "two" {
		t.Errorf("got %+v", a)
	}
	if a := ask(t, e, user("again")); a.err != nil { // the departure is seen by the next step
		t.Error(a.err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "b3infer_requests_ended_total" {
			continue
		}
		for _, m := range f.Metric {
			if reason := m.Label[0].GetValue(); reason != "stop" || m.Counter.GetValue() != 2 {
				t.Errorf("%v ended as %s", m.Counter.GetValue(), reason)
			}
		}
	}
}

// A thousand clients that leave at random moments leave nothing behind.
func TestRandomDisconnects(t *testing.T) {
	registry := prometheus.NewRegistry()
	e, model := newEngine(t, llamatest.Options{MeanAnswer: 200}, Params{Cells: 2048, Parallel: 8, Metrics: registry})
	var wg sync.WaitGroup
	limit := make(chan struct{}, 32)
	for i := range 1000 {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			random := rand.New(rand.NewPCG(uint64(i), 1))
			p, err := e.Prepare(t.Context(), user(strings.Repeat("word ", 1+random.IntN(100))))
			if err != nil {
				t.Error(err)
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(5000))*time.Microsecond)
			defer cancel()
			n := random.IntN(100)
			for _, err := range e.Generate(ctx, p) {
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if n--; n < 0 {
					break
				}
			}
		})
	}
	wg.Wait()
	// The last departures are seen by the next step at the latest.
	ask(t, e, user("still there?"))
	// The step that ended the last answer is reported after its client knows.
	e.sched.close(&Error{Code: CodeUnavailable})
	<-e.sched.done
	values := gauges(t, registry)
	if ended := values["b3infer_requests_ended_total"]; ended != 1001 {
		t.Errorf("%v requests ended, want 1001", ended)
	}
	if values["b3infer_requests_running"] != 0 || values["b3infer_requests_waiting"] != 0 {
		t.Errorf("running and waiting are %v and %v", values["b3infer_requests_running"], values["b3infer_requests_waiting"])
	}
	if used, idle := values["b3infer_kv_cache_cells_used"], values["b3infer_kv_cache_cells_idle"]; used != idle {
		t.Errorf("%v cells are held, %v of them idle", used, idle)
	}
	if used := model.Contexts()[0].UsedCells(); float64(used) != values["b3infer_kv_cache_cells_used"] {
		t.Errorf("the context holds %d cells, the books say %v", used, values["b3infer_kv_cache_cells_used"])
	}
}

// held is a model that computes nothing until it is let go.
type held struct {
	entered chan struct{} // one value per Decode that waits
	gate    chan struct{} // closed to let all go
	armed   chan struct{} // closed to hold from now on
}

func hold() *held {
	return &held{entered: make(chan struct{}, 100), gate: make(chan struct{}), armed: make(chan struct{})}
}

func (h *held) decode(*llama.Batch) error {
	select {
	case <-h.armed:
		h.entered <- struct{}{}
		<-h.gate
	default:
	}
	return nil
}

func TestHealthWhileBusy(t *testing.T) {
	h := hold()
	e, _ := newEngine(t, llamatest.Options{Script: says("a"), OnDecode: h.decode}, Params{})
	if got := e.Health(); got.State != StateReady || got.Running != 0 {
		t.Errorf("idle: %+v", got)
	}
	close(h.armed)
	p, err := e.Prepare(t.Context(), user("hi"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan answer)
	go func() { done <- fold(e.Generate(context.Background(), p)) }()
	<-h.entered
	e.sched.pulse.beat.Store(time.Now().Add(-time.Hour).UnixNano())
	if got := e.Health(); got.State != StateStuck || got.LastStep < time.Hour {
		t.Errorf("a step of an hour: %+v", got)
	}
	close(h.gate)
	if a := <-done; a.content != "a" || a.err != nil {
		t.Errorf("answer is %+v", a)
	}
}

func TestShutdownLetsTheRunningEnd(t *testing.T) {
	h := hold()
	e, _ := newEngine(t, llamatest.Options{Script: says("abc"), OnDecode: h.decode}, Params{Parallel: 1})
	prepare := func() *Prepared {
		p, err := e.Prepare(t.Context(), user("hi"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	running, waiting, late := prepare(), prepare(), prepare()
	close(h.armed)
	answers := [2]chan answer{make(chan answer, 1), make(chan answer, 1)}
	go func() { answers[0] <- fold(e.Generate(context.Background(), running)) }()
	<-h.entered
	go func() { answers[1] <- fold(e.Generate(context.Background(), waiting)) }()
	for unseen(e) == 0 {
		runtime.Gosched()
	}
	down := make(chan error)
	go func() { down <- e.Shutdown(context.Background()) }()
	for e.Health().State != StateDraining {
		runtime.Gosched()
	}
	for _, err := range e.Generate(context.Background(), late) {
		wantUnavailable(t, err)
	}
	close(h.gate)
	if err := <-down; err != nil {
		t.Error(err)
	}
	if a := <-answers[0]; a.content != "abc" || a.err != nil {
		t.Errorf("the running request came to %+v", a)
	}
	wantUnavailable(t, (<-answers[1]).err)
}

func TestShutdownEndsWhatRunsTooLong(t *testing.T) {
	e, _ := newEngine(t, llamatest.Options{MeanAnswer: -1, TrainContext: 1 << 20}, Params{})
	p, err := e.Prepare(t.Context(), user("hi"))
	if err != nil {
		t.Fatal(err)
	}
	started, done := make(chan struct{}), make(chan error)
	go func() {
		var last error
		for ev, err := range e.Generate(context.Background(), p) {
			if _, ok := ev.(First); ok {
				close(started)
			}
			last = err
		}
		done <- last
	}()
	<-started
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	wantUnavailable(t, <-done)
}

func wantUnavailable(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeUnavailable || e.RetryAfter <= 0 {
		t.Errorf("got %v, want infer_backend_unavailable with a time to wait", err)
	}
}

// A scheduler that dies ends its sequences and says so; nothing hangs.
func TestDeadScheduler(t *testing.T) {
	fail := false
	e, _ := newEngine(t, llamatest.Options{OnDecode: func(b *llama.Batch) error {
		if fail {
			panic("broken")
		}
		return nil
	}}, Params{})
	p, err := e.Prepare(t.Context(), user("hi"))
	if err != nil {
		t.Fatal(err)
	}
	fail = true
	wantUnavailable(t, fold(e.Generate(t.Context(), p)).err)
	if got := e.Health().State; got != StateFailed {
		t.Errorf("state is %s, want failed", got)
	}
	for _, err := range e.Generate(t.Context(), p) {
		wantUnavailable(t, err)
	}
}

func TestCancelledContext(t *testing.T) {
	e, _ := newEngine(t, llamatest.Options{}, Params{})
	p, err := e.Prepare(t.Context(), user("hi"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Prepare(ctx, user("hi")); !errors.Is(err, context.Canceled) {
		t.Errorf("Prepare: got %v", err)
	}
	for _, err := range e.Generate(ctx, p) {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Generate: got %v", err)
		}
	}
}

// unseen is the number of submissions that the scheduler has not taken yet.
func unseen(e *Engine) int {
	b := e.sched.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.submitted)
}
