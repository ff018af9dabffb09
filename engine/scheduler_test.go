package engine

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
	"github.com/google/go-cmp/cmp"
)

// tb is what tests and properties have in common.
type tb interface {
	Helper()
	Cleanup(func())
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// bench is a scheduler whose steps a test takes by hand.
type bench struct {
	t     tb
	model *llamatest.Model
	ctx   *llamatest.Context
	s     *scheduler
}

func newBench(t tb, o llamatest.Options, p Params) *bench {
	t.Helper()
	model := llamatest.New(o)
	p.Log = slog.New(slog.DiscardHandler)
	p = p.withDefaults(model.Info())
	ctx, err := model.NewContext(llama.ContextParams{
		Cells: p.Cells, Sequences: Sequences(p.Parallel, o.Hybrid), Batch: p.Batch, UBatch: p.UBatch, Outputs: p.Parallel, Threads: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, model: model, ctx: ctx.(*llamatest.Context), s: newScheduler(ctx, model, p)}
	if err := b.s.warmUp(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// keepIdle lets idle cells stay whatever they cost, which is measured and so differs
// from run to run.
func (b *bench) keepIdle() { b.s.cache.reuse = 1e9 }

// client is a request of a test.
type client struct {
	prompt []llama.Token
	max    int
	seq    *sequence
	got    []llama.Token
	end    *ending
}

// request submits a prompt.
func (b *bench) request(prompt []llama.Token, maxTokens int) *client {
	b.t.Helper()
	c := &client{prompt: prompt, max: maxTokens}
	p := Prepared{tokens: prompt, maxTokens: maxTokens, sampling: llama.Sampling{Temperature: 1, TopP: 1}, seed: 7, top: -1}
	c.seq = p.sequence(time.Now())
	if err := b.s.submit(c.seq); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// collect takes what has come.
func (c *client) collect() {
	taken, end := c.seq.out.take(delivery{})
	c.got = append(c.got, taken.tokens...)
	if end != nil {
		c.end = end
	}
}

// step takes a step and checks the books.
func (b *bench) step() (more bool) {
	b.t.Helper()
	more, _ = b.s.step()
	if err := b.s.cache.check(b.s.running); err != nil {
		b.t.Fatal(err)
	}
	if used := b.ctx.UsedCells(); used != b.s.cache.used {
		b.t.Fatalf("the context holds %d cells, the books say %d", used, b.s.cache.used)
	}
	return more
}

// finish steps until nothing is left to do.
func (b *bench) finish(limit int) {
	b.t.Helper()
	for range limit {
		if !b.step() {
			return
		}
	}
	b.t.Fatalf("still busy after %d steps: %d running, %d waiting", limit, len(b.s.running), len(b.s.waiting))
}

// want checks a client's answer against the model's true one.
func (b *bench) want(c *client) {
	b.t.Helper()
	c.collect()
	want := b.model.TrueOutput(c.prompt, c.max, c.seq.sampling, c.seq.seed)
	if diff := cmp.Diff(want, c.got); diff != "" {
		b.t.Errorf("answer (-want +got):\n%s", diff)
	}
	if c.end == nil || c.end.err != nil {
		b.t.Errorf("ending is %+v", c.end)
	}
}

// text is a prompt of n tokens that depend on seed.
func (b *bench) text(seed, n int) []llama.Token {
	tokens := make([]llama.Token, n)
	x := uint64(seed)*2654435761 + 12345
	for i := range tokens {
		x = x*6364136223846793005 + 1442695040888963407
		tokens[i] = llama.Token('a' + x>>33%26)
	}
	return tokens
}

func TestOneRequest(t *testing.T) {
	b := newBench(t, llamatest.Options{MeanAnswer: -1}, Params{})
	c := b.request(b.text(1, 40), 20)
	b.finish(40)
	b.want(c)
	if c.end.reason != FinishLength {
		t.Errorf("reason is %s, want length", c.end.reason)
	}
}

func TestEndToken(t *testing.T) {
	b := newBench(t, llamatest.Options{MeanAnswer: 5}, Params{})
	c := b.request(b.text(2, 40), 500)
	b.finish(600)
	b.want(c)
	if c.end.reason != FinishStop {
		t.Errorf("reason is %s, want stop", c.end.reason)
	}
}

func TestFollowUpReusesCells(t *testing.T) {
	for _, hybrid := range []bool{false, true} {
		b := newBench(t, llamatest.Options{Hybrid: hybrid, MeanAnswer: -1}, Params{})
		b.keepIdle()
		first := b.request(b.text(3, 100), 10)
		b.finish(100)
		b.want(first)
		next := b.request(append(append(first.prompt[:100:100], first.got...), b.text(4, 20)...), 10)
		b.finish(100)
		b.want(next)
		// All but the last token, which was never computed.
		if next.seq.cached != 109 {
			t.Errorf("hybrid %v: %d tokens came from the cache, want 109", hybrid, next.seq.cached)
		}
	}
}

func TestSharesACommonStart(t *testing.T) {
	b := newBench(t, llamatest.Options{MeanAnswer: -1}, Params{})
	b.keepIdle()
	first := b.request(b.text(5, 100), 10)
	b.finish(100)
	b.want(first)
	fork := func(n, seed int) *client {
		return b.request(append(first.prompt[:n:n], b.text(seed, 20)...), 5)
	}
	others := []*client{fork(30, 6), fork(60, 7), fork(45, 8), fork(minShared-1, 9)}
	b.step()
	// Of an idle sequence, and, now that those run, of running ones.
	for range first.prompt {
		b.step()
		if others[1].seq.computed > 70 {
			break
		}
	}
	twin := b.request(others[1].prompt, 5)
	b.finish(100)
	for i, c := range append(others, twin) {
		b.want(c)
		if want := []int{30, 60, 45, 0, 79}[i]; c.seq.cached != want {
			t.Errorf("request %d has %d tokens from the cache, want %d", i, c.seq.cached, want)
		}
	}
	again := b.request(first.prompt, 10)
	b.finish(100)
	b.want(again)
	if again.seq.cached != 99 {
		t.Errorf("%d tokens came from the cache, want 99", again.seq.cached)
	}
}

// Sequences that share most of their tokens run together where copies would not fit.
func TestSharedCellsCountOnce(t *testing.T) {
	b := newBench(t, llamatest.Options{MeanAnswer: -1}, Params{Cells: 256, Parallel: 4})
	b.keepIdle()
	first := b.request(b.text(5, 180), 1)
	b.finish(100)
	b.want(first)
	var all []*client
	for seed := range 4 {
		all = append(all, b.request(append(first.prompt[:170:170], b.text(seed, 5)...), 5))
	}
	b.step()
	if len(b.s.running) != 4 {
		t.Errorf("%d of 4 run together", len(b.s.running))
	}
	b.finish(100)
	for _, c := range all {
		b.want(c)
		if c.seq.cached != 170 || c.seq.preempted != 0 {
			t.Errorf("%d tokens came from the cache, want 170; %d preemptions", c.seq.cached, c.seq.preempted)
		}
	}
}

func TestPreemption(t *testing.T) {
	for _, hybrid := range []bool{false, true} {
		b := newBench(t, llamatest.Options{Hybrid: hybrid, MeanAnswer: -1}, Params{Cells: 256})
		var clients []*client
		for i := range 4 {
			clients = append(clients, b.request(b.text(10+i, 30), 98)) // together twice the cells
		}
		b.finish(3000)
		preempted := 0
		for _, c := range clients {
			b.want(c)
			preempted += c.seq.preempted
		}
		if preempted == 0 {
			t.Errorf("hybrid %v: nothing was preempted, so this test shows nothing", hybrid)
		}
		if first := clients[0].seq.preempted; first != 0 {
			t.Errorf("hybrid %v: the oldest was preempted %d times", hybrid, first)
		}
	}
}

func TestAloneFitsExactly(t *testing.T) {
	b := newBench(t, llamatest.Options{MeanAnswer: -1}, Params{Cells: 128})
	c := b.request(b.text(20, 100), 28)
	b.finish(200)
	b.want(c)
}

func TestLeaveInEachState(t *testing.T) {
	b := newBench(t, llamatest.Options{MeanAnswer: -1}, Params{Parallel: 2, Batch: 32})
	decoding := b.request(b.text(30, 10), 1000)
	for range 5 {
		b.step()
	}
	prefilling := b.request(b.text(31, 500), 10)
	b.step()
	queued := b.request(b.text(32, 10), 10)
	b.step()
	if !decoding.seq.decoding() || prefilling.seq.decoding() || queued.seq.admissions != 0 {
		t.Fatal("the sequences are not in the states that this test is about")
	}
	for _, c := range []*client{queued, prefilling, decoding} {
		b.s.leave(c.seq, ending{err: errLeft})
		b.step()
		c.collect()
		if c.end == nil || c.end.err != errLeft {
			t.Errorf("ending is %+v one step after leaving", c.end)
		}
	}
	if n := len(b.s.running) + len(b.s.waiting); n != 0 {
		t.Errorf("%d sequences are left", n)
	}
}

func TestLeaveAfterTheEnd(t *testing.T) {
	b := newBench(t, llamatest.Options{MeanAnswer: -1}, Params{})
	c := b.request(b.text(33, 10), 3)
	b.finish(10)
	b.s.leave(c.seq, ending{err: errLeft})
	b.step()
	b.want(c)
}

func TestQueueIsBounded(t *testing.T) {
	b := newBench(t, llamatest.Options{}, Params{Parallel: 1, MaxWaiting: 2})
	b.request(b.text(1, 5), 5)
	b.request(b.text(2, 5), 5)
	p := Prepared{tokens: b.text(3, 5), maxTokens: 5, top: -1}
	err := b.s.submit(p.sequence(time.Now()))
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeOverloaded || e.RetryAfter < time.Second {
		t.Errorf("got %v, want capacity_unavailable with a time to wait", err)
	}
	b.step()
	if err := b.s.submit(p.sequence(time.Now())); err != nil {
		t.Errorf("refused although one has begun: %v", err)
	}
}

func TestShortPromptsPassALongOne(t *testing.T) {
	b := newBench(t, llamatest.Options{TrainContext: 8192, MeanAnswer: -1}, Params{Batch: 64})
	long := b.request(b.text(40, 6000), 1)
	b.step()
	short := b.request(b.text(41, 40), 1)
	steps := 0
	for short.end == nil {
		b.step()
		short.collect()
		steps++
	}
	if steps > 2 {
		t.Errorf("the short prompt took %d steps beside the long one", steps)
	}
	before := long.seq.computed
	b.step()
	if long.seq.computed == before {
		t.Error("the long prompt does not advance")
	}
}

func TestDecodeFailureEndsWhatItDamaged(t *testing.T) {
	var fail error
	o := llamatest.Options{MeanAnswer: -1, OnDecode: func(*llama.Batch) error { err := fail; fail = nil; return err }}
	b := newBench(t, o, Params{UBatch: 1, Batch: 64})
	first, second := b.request(b.text(50, 10), 20), b.request(b.text(51, 10), 20)
	for range 4 {
		b.step()
	}
	fail = &llamatest.Fault{Code: -3, Row: 1}
	b.step()
	b.finish(100)
	first.collect()
	second.collect()
	ended := 0
	for _, c := range []*client{first, second} {
		var e *Error
		if errors.As(c.end.err, &e) && e.Code == CodeInternal {
			ended++
		} else {
			b.want(c)
		}
	}
	if ended != 1 {
		t.Errorf("%d of 2 sequences ended with an error, want the one that lost rows", ended)
	}
	after := b.request(b.text(52, 10), 5)
	b.finish(100)
	b.want(after)
}

func TestNoRoomThoughTheBooksHadIt(t *testing.T) {
	var fail error
	o := llamatest.Options{MeanAnswer: -1, OnDecode: func(*llama.Batch) error { err := fail; fail = nil; return err }}
	b := newBench(t, o, Params{})
	first, second := b.request(b.text(60, 10), 20), b.request(b.text(61, 10), 20)
	for range 4 {
		b.step()
	}
	fail = llama.ErrNoKVSpace
	b.step()
	if first.seq.preempted != 0 || second.seq.preempted != 1 {
		t.Errorf("preempted %d and %d times, want the youngest once", first.seq.preempted, second.seq.preempted)
	}
	b.finish(100)
	b.want(first)
	b.want(second)
}

func TestStepAllocatesNothing(t *testing.T) {
	b := newBench(t, llamatest.Options{MeanAnswer: -1, TrainContext: 16384}, Params{})
	var clients []*client
	for i := range 8 {
		clients = append(clients, b.request(b.text(70+i, 10), 10000))
	}
	for range 5 {
		b.s.step()
	}
	for _, c := range clients {
		c.seq.tokens = append(make([]llama.Token, 0, 20000), c.seq.tokens...)
		c.seq.pos = append(make([]llama.Pos, 0, 20000), c.seq.pos...)
		c.seq.out.tokens = make([]llama.Token, 0, 20000)
	}
	// The fake's own allocations, measured by decoding the same batch size.
	if n := testing.AllocsPerRun(50, func() { b.s.plan = b.s.plan[:0]; b.s.schedule(); b.s.fill() }); n != 0 {
		t.Errorf("scheduling allocates %v times", n)
	}
	now, drawn := time.Now(), &llama.Sampled{Token: 'a'}
	if n := testing.AllocsPerRun(50, func() { b.s.accept(clients[0].seq, drawn, now); b.s.report(now) }); n != 0 {
		t.Errorf("postprocessing allocates %v times", n)
	}
	for _, c := range clients {
		b.s.leave(c.seq, ending{err: errLeft})
	}
	b.s.step()
}
