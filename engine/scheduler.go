package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/b3os/b3infer/llama"
)

// A scheduler turns sequences into tokens. Its one goroutine, run, owns the
// llama context, the books of cells and every running sequence.
type scheduler struct {
	*inbox
	ctx     llama.Context
	vocab   *llama.Vocab
	limits  llama.Limits
	cache   *cache
	cost    costModel
	metrics *metrics
	log     *slog.Logger

	parallel     int
	queueTimeout time.Duration
	single       bool // one prefill chunk a step (hybrids)
	maxRun       int  // most forced tokens at a time
	minHeld      int  // least tokens of a start that is waited for
	spell        func(text []byte) []int32

	waiting []*sequence // next first; the preempted are in front
	running []*sequence // in the order of admission
	blocked *sequence   // the next one, when it is known not to fit yet
	held    int         // of those that wait, how many are held back
	steps   uint64
	fails   int // decodes that failed in a row

	// The step's batch and what belongs to it; reused.
	batch    llama.Batch
	plan     []planned
	prefills []prefill
	shares   []int
	rows     []llama.SampleRow
	drawn    []*sequence // whose token each row is
	sampled  []llama.Sampled
	masks    masker
	finished int

	pulse pulse
	done  chan struct{} // closed when run has returned
}

// planned is a sequence's part of a step's batch.
type planned struct {
	seq  *sequence
	rows int
}

// A pulse is what Health reads while the loop is busy.
type pulse struct {
	running, waiting atomic.Int64
	beat             atomic.Int64 // when the last step ended, in Unix nanoseconds
	busy             atomic.Bool  // there is work
	failed           atomic.Bool  // the loop has died
}

const (
	// freeStep and busyStep are how long a step may take: without and with
	// sequences that decode, whose readers see the step's time as a pause.
	freeStep = 40 * time.Millisecond
	busyStep = 20 * time.Millisecond
	// busySteps is how many pure decode steps a step with prefill rows may take,
	// where that is longer than busyStep: a prefill then costs the running streams
	// a bounded factor, and itself no more than one part in busySteps.
	busySteps = 7
	// minPrefill is the least number of prefill rows of a step, so that prompts
	// advance also where decoding alone takes up the budget; freeMinPrefill is so
	// without decoding: fewer rows cost more each, and at 64 llama.cpp's attention
	// goes over to matrices.
	minPrefill, freeMinPrefill = 16, 64
	// maxFails is how many decodes may fail in a row before the loop gives up.
	maxFails = 5
)

// run is the scheduler's goroutine.
func (s *scheduler) run() {
	// An OpenMP team and a ggml thread pool belong to the OS thread that uses them.
	runtime.LockOSThread()
	defer close(s.done)
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("scheduler died", "panic", r, "stack", string(debug.Stack()))
			s.pulse.failed.Store(true)
			s.die()
		}
	}()
	for {
		more, stop := s.step()
		if stop {
			return
		}
		if !more {
			<-s.wake
		}
	}
}

// die ends everything after the loop has failed, and refuses what comes.
func (s *scheduler) die() {
	why := &Error{Code: CodeUnavailable, Message: "The model runtime has failed and must be restarted", RetryAfter: time.Minute}
	s.close(why)
	n := s.take()
	for _, seqs := range [][]*sequence{n.submitted, s.waiting, s.running} {
		for _, seq := range seqs {
			seq.out.end(ending{err: why})
		}
	}
	s.waiting, s.running = nil, nil
	s.report(time.Now())
}

// step is one turn of the loop: intake, schedule, Decode, Sample, postprocess.
// more is false when there is nothing to do until the inbox signals.
func (s *scheduler) step() (more, stop bool) {
	began := time.Now()
	s.pulse.busy.Store(true)
	stop = s.intake(began)
	if !stop {
		s.admit(began)
		s.expire(began)
		s.heed()
		s.schedule()
		if len(s.plan) > 0 {
			s.compute(began)
		}
	}
	s.report(time.Now())
	return len(s.running) > 0 || len(s.waiting) > 0, stop
}

// report publishes the state of the loop.
func (s *scheduler) report(now time.Time) {
	// Who is held back has a place.
	s.settle(len(s.waiting)-min(s.held, s.parallel-len(s.running)), s.finished, now)
	s.finished = 0
	s.pulse.running.Store(int64(len(s.running)))
	s.pulse.waiting.Store(int64(len(s.waiting)))
	s.pulse.beat.Store(now.UnixNano())
	s.pulse.busy.Store(len(s.running)+len(s.waiting) > 0)
	s.metrics.state(len(s.running), len(s.waiting), s.cache, s.cache.heldBy(s.running))
}

// intake takes the inbox in: new sequences, those that were left, the end. stop
// tells that nothing is left to do, ever.
func (s *scheduler) intake(now time.Time) (stop bool) {
	n := s.take()
	s.waiting = append(s.waiting, n.submitted...)
	for _, d := range n.left {
		s.finish(d.seq, d.end)
	}
	if n.refuse != nil {
		s.endWhere(func(seq *sequence) bool { return n.stop || seq.admissions == 0 }, n.refuse)
	}
	return n.refuse != nil && len(s.waiting)+len(s.running) == 0
}

// errLeft ends a sequence that was left; nobody sees it.
var errLeft = errors.New("left by the client")

// endWhere ends the sequences that match.
func (s *scheduler) endWhere(match func(*sequence) bool, err error) {
	for _, seq := range slices.Concat(s.waiting, s.running) {
		if match(seq) {
			s.finish(seq, ending{err: err})
		}
	}
}

// expire ends what has waited too long. The preempted have been served and stay.
func (s *scheduler) expire(now time.Time) {
	for i := len(s.waiting) - 1; i >= 0; i-- {
		seq := s.waiting[i]
		if seq.admissions == 0 && now.Sub(seq.submitted) > s.queueTimeout {
			s.finish(seq, ending{err: &Error{
				Code:       CodeOverloaded,
				Message:    fmt.Sprintf("The request waited %s for a place and got none", s.queueTimeout),
				RetryAfter: s.waitFor(len(s.waiting)),
			}})
		}
	}
}

// admit lets waiting sequences run while there are places and, as things stand,
// cells, but for those that wait for what another one computes. How long answers will be is not known, so this is optimistic; see
// preempt for when it was too much so.
func (s *scheduler) admit(now time.Time) {
	for i := 0; i < len(s.waiting) && len(s.running) < s.parallel && s.waiting[i] != s.blocked; {
		seq := s.waiting[i]
		if s.heldBack(seq, now) {
			i++
			continue
		}
		if !s.fits(seq) {
			s.blocked = seq
			return
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.cache.begin(seq, s.running)
		s.cache.charge(seq.pending(), &s.cost) // first, so that the prompt lies in what it frees
		s.cache.room(seq.pending())            // all at once, so that its tokens lie in the order of cells
		s.running = append(s.running, seq)
		seq.prefillFrom = s.steps
		if seq.admissions == 0 {
			seq.admitted, seq.cached = now, seq.computed
			s.metrics.admitted(seq)
		}
		seq.admissions++
	}
}

// fits tells whether the cells suffice for a sequence beside the running ones,
// with some left to grow. Idle cells count as free. What was preempted needs
// more room than it had, else it would soon be preempted again.
func (s *scheduler) fits(seq *sequence) bool {
	if len(s.running) == 0 {
		return true
	}
	need := s.cache.heldBy(s.running) + len(s.running) + 1
	need += len(seq.tokens) - s.cache.fromRunning(seq.tokens, s.running).n
	if seq.preempted > 0 {
		need += min(seq.maxTokens-seq.answered(), max(64, len(seq.tokens)/8))
	}
	for _, r := range s.running {
		need += r.pending()
	}
	return need <= s.limits.Cells
}

// schedule plans the batch, and preempts until its rows have cells.
func (s *scheduler) schedule() {
	for {
		rows := s.planRows()
		if rows == 0 || s.cache.room(rows) {
			return
		}
		if len(s.running) == 1 {
			// Prepare lets nothing in that does not fit alone.
			panic("engine: a sequence outgrew the cache")
		}
		s.preempt(s.youngest())
	}
}

// planRows fills plan: the rows of each sequence that decodes, and as many rows
// for those that prefill as the step's time allows.
func (s *scheduler) planRows() int {
	s.plan, s.prefills = s.plan[:0], s.prefills[:0]
	size := stepSize{cells: s.cache.used}
	for _, seq := range s.running {
		if seq.decoding() {
			s.plan = append(s.plan, planned{seq, seq.pending()})
			size.rows += seq.pending()
			size.outputs++
		} else {
			s.prefills = append(s.prefills, s.prefillOf(seq))
		}
	}
	if len(s.prefills) == 0 {
		return size.rows
	}
	least := minPrefill
	if size.rows == 0 {
		least = freeMinPrefill
	}
	rows := max(s.cost.prefillRows(size, s.budget(size)), least)
	rows = min(rows, s.limits.Batch-size.rows)
	s.shares = share(rows, s.prefills, s.single, s.steps, s.shares)
	i := 0
	for _, seq := range s.running {
		if seq.decoding() {
			continue
		}
		if n := s.shares[i]; n > 0 {
			s.plan = append(s.plan, planned{seq, n})
			size.rows += n
		}
		i++
	}
	return size.rows
}

// prefillOf is what a sequence asks for. What cannot be cut has to stop where others go on
// by themselves.
func (s *scheduler) prefillOf(seq *sequence) prefill {
	p := prefill{pending: seq.pending(), wanted: seq.stop - seq.computed, due: seq.due, since: seq.prefillFrom}
	if !s.cache.cuttable {
		p.pending = p.wanted
	}
	return p
}

// budget is how long a step may take whose decode rows have the given size.
func (s *scheduler) budget(decode stepSize) time.Duration {
	if decode.rows == 0 {
		return freeStep
	}
	return max(busyStep, busySteps*s.cost.predict(decode))
}

// youngest is the running sequence that was submitted last.
func (s *scheduler) youngest() *sequence {
	return slices.MaxFunc(s.running, func(a, b *sequence) int { return int(a.number) - int(b.number) })
}

// preempt takes a sequence's place. It keeps its tokens and waits in front of
// the queue; its cells become idle ones, so that what is not needed of them at
// once is still there when it goes on.
func (s *scheduler) preempt(seq *sequence) {
	s.cache.end(seq)
	s.running = slices.DeleteFunc(s.running, func(r *sequence) bool { return r == seq })
	seq.preempted++
	s.waiting = slices.Insert(s.waiting, 0, seq)
	s.blocked = nil
	s.metrics.preemptions.Inc()
}

// compute does the planned batch: Decode, Sample, postprocess.
func (s *scheduler) compute(began time.Time) {
	size := s.fill()
	scheduled := time.Now()
	s.masks.begin()
	err := s.ctx.Decode(&s.batch)
	s.masks.wait()
	decoded := time.Now()
	if err != nil {
		s.failed(err)
		return
	}
	s.fails = 0
	for _, p := range s.plan {
		s.cache.grow(p.seq, p.rows)
	}
	s.sample()
	sampled := time.Now()
	s.cost.observe(size, sampled.Sub(scheduled))
	for i, seq := range s.drawn {
		if err := s.masks.failure(s.rows[i].Mask); err != nil {
			s.finish(seq, ending{err: lost(err)})
			continue
		}
		s.accept(seq, &s.sampled[i], sampled)
	}
	s.cache.charge(size.outputs, &s.cost)
	s.steps++
	s.metrics.step(stepTimes{
		schedule: scheduled.Sub(began), decode: decoded.Sub(scheduled),
		sample: sampled.Sub(decoded), post: time.Since(sampled),
	}, size)
}

// sample draws a token for each row that asks for one, in one crossing.
func (s *scheduler) sample() {
	if len(s.rows) == 0 {
		return
	}
	for i := range s.rows {
		row := &s.rows[i]
		row.Allowed = s.masks.allowed(row.Mask)
	}
	if err := s.ctx.Sample(s.rows, s.masks.all(), s.sampled[:len(s.rows)]); err != nil {
		panic(fmt.Sprintf("engine: sample: %v", err))
	}
}

// fill writes the planned rows into the batch.
func (s *scheduler) fill() stepSize {
	s.batch.Reset()
	s.masks.reset()
	s.rows, s.drawn = s.rows[:0], s.drawn[:0]
	for _, p := range s.plan {
		seq := p.seq
		end := seq.computed + p.rows
		for i := seq.computed; i < end; i++ {
			s.batch.Add(seq.tokens[i], seq.pos[i], seq.id, i == len(seq.tokens)-1)
		}
		if end == len(seq.tokens) {
			row := seq.row(s.batch.Len() - 1)
			if seq.guide != nil {
				row.Mask = s.masks.add(seq.guide)
			}
			s.rows = append(s.rows, row)
			s.drawn = append(s.drawn, seq)
		}
	}
	return stepSize{rows: s.batch.Len(), outputs: len(s.rows), cells: s.cache.used}
}

// accept gives a sequence its next token, and ends it if that was the last.
func (s *scheduler) accept(seq *sequence, drawn *llama.Sampled, now time.Time) {
	if drawn.Token == llama.NoToken {
		s.finish(seq, ending{err: &Error{Code: CodeInternal, Message: "The model gave no probabilities for a next token"}})
		return
	}
	seq.forced = 0
	t, err := s.lengthen(seq, drawn.Token)
	if err == nil {
		t, err = seq.choose(t, s.vocab)
	}
	if err != nil {
		s.finish(seq, ending{err: lost(err)})
		return
	}
	s.put(seq, t, seq.logprobs(t, drawn), now)
	switch {
	case s.vocab.IsEnd(t):
		s.finish(seq, ending{reason: FinishStop})
		return
	case seq.guide != nil:
		if err := s.force(seq, now); err != nil {
			s.finish(seq, ending{err: lost(err)})
			return
		}
	}
	if seq.answered() >= seq.maxTokens {
		s.finish(seq, ending{reason: FinishLength})
	}
}

// put appends a token to a sequence's answer.
func (s *scheduler) put(seq *sequence, t llama.Token, logprobs []llama.TokenLogprob, now time.Time) {
	seq.append(t)
	s.metrics.token(seq, now)
	seq.out.put(t, logprobs)
}

// lost is the error for an answer whose form could not be kept to.
func lost(err error) *Error {
	return &Error{Code: CodeInternal, Message: "The answer could not be held to the form that was asked for", Err: err}
}

// finish ends a sequence, wherever it is. One that has ended already, which can
// happen to one that its client leaves, is let be.
func (s *scheduler) finish(seq *sequence, e ending) {
	if i := slices.Index(s.running, seq); i >= 0 {
		s.running = slices.Delete(s.running, i, i+1)
		s.cache.end(seq)
	} else if i := slices.Index(s.waiting, seq); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else {
		return
	}
	s.blocked = nil
	s.finished++
	s.metrics.finished(seq, e)
	seq.out.end(e)
}

// failed handles a Decode that did not work. Without room although the books
// said so (sliding windows have cells of their own), idle cells go first, then
// the youngest sequence. Any other failure ends the sequences that lost rows.
func (s *scheduler) failed(err error) {
	var decode *llama.DecodeError
	switch {
	case errors.Is(err, llama.ErrNoKVSpace):
		s.log.Warn("no room in the KV cache though the books had it", "rows", s.batch.Len(), "used", s.cache.used)
		s.makeRoom()
	case errors.As(err, &decode):
		s.log.Error("decode failed", "err", err, "rows", s.batch.Len())
		if s.fails++; s.fails > maxFails {
			panic(fmt.Sprintf("engine: %d decodes failed in a row: %v", s.fails, err))
		}
		s.lose(decode)
	default:
		panic(fmt.Sprintf("engine: decode: %v", err))
	}
}

func (s *scheduler) makeRoom() {
	switch {
	case len(s.cache.idle) > 0:
		for len(s.cache.idle) > 0 {
			s.cache.evict(s.cache.idle[0])
		}
	case len(s.running) > 1:
		s.preempt(s.youngest())
		for len(s.cache.idle) > 0 {
			s.cache.evict(s.cache.idle[0])
		}
	default:
		seq := s.running[0]
		s.cache.drop(seq)
		s.finish(seq, ending{err: &Error{Code: CodeInternal, Message: "The model's cache has no room for this request"}})
	}
}

// lose ends the sequences that a failed batch damaged. The others may hold rows
// of the batch that the books do not know, so they are computed anew.
func (s *scheduler) lose(err *llama.DecodeError) {
	for _, p := range s.plan {
		seq := p.seq
		lost := slices.Contains(err.Lost, seq.id)
		s.cache.drop(seq)
		if lost {
			s.finish(seq, ending{err: &Error{Code: CodeInternal, Message: "The model failed while computing this request", Err: err}})
		} else {
			s.preempt(seq)
		}
	}
}
