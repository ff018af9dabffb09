package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/b3os/b3infer/llama"
	"github.com/prometheus/client_golang/prometheus"
)

// Params sizes an Engine. Zero values mean the defaults.
type Params struct {
	Cells        int                   // tokens that the KV cache holds: the model's training context
	Parallel     int                   // requests that run at a time: 32
	Batch        int                   // most rows of a step: 2048
	UBatch       int                   // most rows computed at a time: 512
	Threads      int                   // CPU threads: 1
	KV           llama.KVType          // number format of the KV cache: f16
	MaxWaiting   int                   // requests that wait for a place: 1024
	QueueTimeout time.Duration         // longest wait for a place: 120 s
	Template     string                // chat template to use in place of the model's own
	Metrics      prometheus.Registerer // where the engine's metrics go; nil: nowhere
	Log          *slog.Logger          // nil: slog.Default
}

func (p Params) withDefaults(m llama.Info) Params {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&p.Cells, max(m.TrainContext, 512))
	set(&p.Parallel, 32)
	set(&p.Batch, 2048)
	set(&p.UBatch, 512)
	set(&p.Threads, 1)
	set(&p.MaxWaiting, 1024)
	p.UBatch = min(p.UBatch, p.Batch)
	p.Parallel = min(p.Parallel, llama.MaxSequences, p.Batch)
	if p.QueueTimeout <= 0 {
		p.QueueTimeout = 120 * time.Second
	}
	if p.Log == nil {
		p.Log = slog.Default()
	}
	return p
}

// Sequences is how many sequence ids an engine takes for so many parallel
// requests: the others keep the cells of ended requests. With recurrent state
// each id costs memory for a state of its own, so there are few of these.
func Sequences(parallel int, hybrid bool) int {
	if hybrid {
		return min(parallel+max(4, parallel/4), llama.MaxSequences)
	}
	return min(2*parallel, llama.MaxSequences)
}

// An Engine serves one model. All methods may be called by any goroutine.
type Engine struct {
	model llama.Model
	chat  llama.Chat
	ctx   llama.Context
	sched *scheduler
	forms *forms
	info  Info
	log   *slog.Logger
}

// New creates the model's context, warms it up, which also measures what rows
// and cells cost, and starts the scheduler. The model stays the caller's.
func New(model llama.Model, p Params) (*Engine, error) {
	p = p.withDefaults(model.Info())
	chat, err := model.NewChat(llama.ChatParams{Template: p.Template})
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	info := model.Info()
	ctx, err := model.NewContext(llama.ContextParams{
		Cells:     p.Cells,
		Sequences: Sequences(p.Parallel, info.Hybrid),
		Batch:     p.Batch,
		UBatch:    p.UBatch,
		Outputs:   p.Parallel,
		Threads:   p.Threads,
		KV:        p.KV,
	})
	if err != nil {
		return nil, fmt.Errorf("create context: %w", err)
	}
	forms := newForms(model.Vocab(), chat)
	s := newScheduler(ctx, model, p)
	s.masks.words = forms.words
	if err := s.warmUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("warm up: %w", err), ctx.Close())
	}
	e := &Engine{model: model, chat: chat, ctx: ctx, sched: s, forms: forms, log: p.Log, info: Info{
		Model:      info,
		Context:    s.limits.Cells,
		Cells:      s.limits.Cells,
		Parallel:   s.parallel,
		VocabSize:  model.Vocab().Len(),
		MaxWaiting: p.MaxWaiting,
	}}
	go s.run()
	return e, nil
}

func newScheduler(ctx llama.Context, model llama.Model, p Params) *scheduler {
	limits := ctx.Limits()
	parallel := min(p.Parallel, limits.Sequences, limits.Outputs, limits.Batch)
	s := &scheduler{
		inbox:        newInbox(p.MaxWaiting),
		ctx:          ctx,
		vocab:        model.Vocab(),
		limits:       limits,
		cache:        newCache(ctx, model.Info().SWA),
		metrics:      newMetrics(p.Metrics),
		log:          p.Log,
		parallel:     parallel,
		queueTimeout: p.QueueTimeout,
		single:       !limits.PartialRemove,
		minHeld:      minHeld,
		spell:        speller(model),
		sampled:      make([]llama.Sampled, parallel),
		done:         make(chan struct{}),
	}
	// Hybrids compute sequences of unequal rows one after the other.
	if s.maxRun = min(maxRun, limits.Batch/parallel-1); s.single {
		s.maxRun = 0
	}
	s.pulse.beat.Store(time.Now().UnixNano())
	return s
}

// Info describes the engine.
func (e *Engine) Info() Info { return e.info }

// Generate submits a prepared request and yields its answer: First, Texts,
// Finish. When the request cannot be answered, or not to its end, the last pair
// is an error: an *Error, or ctx's. Breaking out of the loop cancels the request
// within one step, in whatever state it is.
func (e *Engine) Generate(ctx context.Context, p *Prepared) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		seq := p.sequence(time.Now())
		if err := e.sched.submit(seq); err != nil {
			yield(nil, err)
			return
		}
		g := generation{seq: seq, prepared: p, out: newOutput(e.model.Vocab(), p)}
		p.generation = &g
		switch ended := g.run(ctx, yield); {
		case ended:
		case g.out.stopped:
			e.sched.leave(seq, ending{reason: FinishStop})
		default:
			e.sched.leave(seq, ending{err: errLeft})
		}
	}
}

func (p *Prepared) sequence(now time.Time) *sequence {
	seq := &sequence{
		out:       newOutbox(),
		id:        noSeq,
		tokens:    append(make([]llama.Token, 0, len(p.tokens)+min(p.maxTokens, 512)), p.tokens...),
		pos:       make([]llama.Pos, len(p.tokens), len(p.tokens)+min(p.maxTokens, 512)),
		promptLen: len(p.tokens),
		maxTokens: p.maxTokens,
		sampling:  p.sampling,
		seed:      p.seed,
		bias:      p.bias,
		guide:     p.form.guide,
		budget:    p.budget,
		top:       p.top,
		arrived:   p.arrived,
		submitted: now,
	}
	for i := range seq.pos {
		seq.pos[i] = llama.Pos(i)
	}
	if penalized(p.sampling) {
		seq.counts = newTokenCounts(p.tokens)
	}
	return seq
}

// A generation is a submitted request, seen from the goroutine that serves it.
type generation struct {
	seq      *sequence
	prepared *Prepared
	out      *output
	started  bool
	got      delivery
	events   []Event
}

// run yields until the answer ends, and tells whether the scheduler has ended
// the sequence by itself.
func (g *generation) run(ctx context.Context, yield func(Event, error) bool) (ended bool) {
	for {
		select {
		case <-ctx.Done():
			yield(nil, ctx.Err())
			return false
		case <-g.seq.out.ready:
		}
		var end *ending
		g.got, end = g.seq.out.take(g.got)
		g.events = g.events[:0]
		if len(g.got.tokens) > 0 && !g.started {
			g.started = true
			g.events = append(g.events, g.first())
		}
		g.events = g.out.push(g.events, g.got)
		if end != nil && end.err == nil || g.out.stopped {
			g.events = g.out.close(g.events, end != nil && end.reason == FinishLength)
			g.events = append(g.events, g.finish(end))
		}
		for _, ev := range g.events {
			if !yield(ev, nil) {
				return end != nil
			}
		}
		switch {
		case end == nil && !g.out.stopped:
		case end != nil && end.err != nil && !g.out.stopped:
			yield(nil, end.err)
			return true
		default:
			return end != nil
		}
	}
}

// Times that the scheduler wrote before the token or the ending that was taken
// from the outbox are safe to read: the outbox's lock orders them.

func (g *generation) first() First {
	return First{PromptTokens: g.seq.promptLen, CachedTokens: g.seq.cached, Timing: g.timing(g.seq.first)}
}

func (g *generation) finish(end *ending) Finish {
	reason := FinishStop
	if !g.out.stopped {
		reason = end.reason
	}
	if reason == FinishStop && g.out.stop == "" && g.out.calls > 0 {
		reason = FinishCalls
	}
	return Finish{
		Reason: reason,
		Stop:   g.out.stop,
		Usage:  g.usage(),
		Timing: g.timing(time.Now()),
	}
}

// timing is what is known at the given time, which is that of the first token
// or later.
func (g *generation) timing(now time.Time) Timing {
	s := g.seq
	return Timing{
		Render:  g.prepared.render,
		Queue:   s.admitted.Sub(s.submitted),
		Prefill: s.first.Sub(s.admitted),
		TTFT:    s.first.Sub(s.arrived),
		Decode:  now.Sub(s.first),
		Total:   now.Sub(s.arrived),
	}
}

// State is what an engine is doing.
type State string

// The states of an engine.
const (
	StateReady    State = "ready"
	StateDraining State = "draining" // finishes what runs, takes nothing new
	StateStuck    State = "stuck"    // there is work, and no step has ended for long
	StateFailed   State = "failed"   // the scheduler has died; the process must be restarted
)

// Health is a snapshot of an engine.
type Health struct {
	State            State
	LastStep         time.Duration // since the last step ended
	Running, Waiting int
}

// stuckAfter is when a step that has not ended counts as stuck.
const stuckAfter = 30 * time.Second

// Health answers at once, also while a step computes.
func (e *Engine) Health() Health {
	p := &e.sched.pulse
	h := Health{
		State:    StateReady,
		LastStep: time.Since(time.Unix(0, p.beat.Load())),
		Running:  int(p.running.Load()),
		Waiting:  int(p.waiting.Load()),
	}
	switch {
	case p.failed.Load():
		h.State = StateFailed
	case p.busy.Load() && h.LastStep > stuckAfter:
		h.State = StateStuck
	case e.sched.refusing():
		h.State = StateDraining
	}
	return h
}

// Shutdown refuses new requests and those that have not begun, lets the running
// end until ctx is done, then ends them with a CodeUnavailable error, and frees
// the context. It may be called more than once.
func (e *Engine) Shutdown(ctx context.Context) error {
	s := e.sched
	s.close(&Error{Code: CodeUnavailable, Message: "The server is shutting down", RetryAfter: 5 * time.Second})
	select {
	case <-s.done:
	case <-ctx.Done():
		s.end()
		<-s.done
	}
	return e.ctx.Close()
}
