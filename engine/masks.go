package engine

import (
	"sync"
	"sync/atomic"

	"github.com/b3os/b3infer/grammar/mask"
)

// A masker computes the token masks of a step on other goroutines, while the model
// computes the logits. A mask depends only on tokens that are known by then.
type masker struct {
	words int      // of one mask
	masks []uint64 // one for each job
	jobs  []maskJob
	next  atomic.Int64
	busy  sync.WaitGroup
}

// A maskJob is one row's mask.
type maskJob struct {
	guide   *mask.Sequence
	allowed int // tokens in the mask
	err     error
}

// maskWorkers is on how many goroutines masks are computed. One mask takes about a
// microsecond, so that one goroutine would do but for the few that take a thousand
// times as long.
const maskWorkers = 2

// add asks for the mask of the next token of a guide, and is its place among masks.
func (m *masker) add(guide *mask.Sequence) int32 {
	m.jobs = append(m.jobs, maskJob{guide: guide})
	return int32(len(m.jobs) - 1)
}

// reset forgets the last step.
func (m *masker) reset() {
	clear(m.jobs) // which hold on to guides
	m.jobs = m.jobs[:0]
}

// begin starts to compute what was asked for.
func (m *masker) begin() {
	if len(m.jobs) == 0 {
		return
	}
	if need := len(m.jobs) * m.words; len(m.masks) < need {
		m.masks = make([]uint64, need)
	}
	m.next.Store(0)
	for range min(maskWorkers, len(m.jobs)) {
		m.busy.Go(m.work)
	}
}

// work does jobs that nobody has begun yet.
func (m *masker) work() {
	for {
		i := int(m.next.Add(1)) - 1
		if i >= len(m.jobs) {
			return
		}
		j := &m.jobs[i]
		j.allowed, j.err = j.guide.Mask(m.masks[i*m.words : (i+1)*m.words])
	}
}

// wait returns when all masks are there.
func (m *masker) wait() { m.busy.Wait() }

// all are the masks, as llama.Context.Sample takes them.
func (m *masker) all() []uint64 { return m.masks[:len(m.jobs)*m.words] }

// allowed is how many tokens the mask of that place allows; 0 where there is none.
func (m *masker) allowed(place int32) int32 {
	if place < 0 {
		return 0
	}
	return int32(m.jobs[place].allowed)
}

// failure is why the mask of that place could not be computed.
func (m *masker) failure(place int32) error {
	if place < 0 {
		return nil
	}
	return m.jobs[place].err
}
