package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

// A twinBench counts the rows that its context computes.
type twinBench struct {
	*bench
	rows int
}

func newTwinBench(t *testing.T, hybrid bool, p Params) *twinBench {
	b := &twinBench{}
	b.bench = newBench(t, llamatest.Options{
		Hybrid: hybrid, MeanAnswer: -1,
		OnDecode: func(batch *llama.Batch) error { b.rows += batch.Len(); return nil },
	}, p)
	b.keepIdle()
	b.rows = 0
	return b
}

// fork submits a prompt that starts with another one's first n tokens.
func (b *twinBench) fork(prompt []llama.Token, n, seed, own int) *client {
	return b.request(append(prompt[:n:n], b.text(seed, own)...), 3)
}

// Requests with the same start compute it once, however they come and however few
// cells there are.
func TestTwinsComputeTheirStartOnce(t *testing.T) {
	for _, hybrid := range []bool{false, true} {
		for _, cells := range []int{1024, 256} {
			t.Run(fmt.Sprintf("hybrid=%v, %d cells", hybrid, cells), func(t *testing.T) {
				b := newTwinBench(t, hybrid, Params{Cells: cells, Parallel: 8, Batch: 64})
				prompt := b.text(1, 150)
				clients := []*client{b.fork(prompt, 150, 2, 8)}
				b.step()
				for seed := range 5 {
					clients = append(clients, b.fork(prompt, 150, 3+seed, 8))
				}
				b.finish(200)
				for i, c := range clients {
					b.want(c)
					if want := min(i, 1) * 150; c.seq.cached != want || c.seq.preempted > 0 {
						t.Errorf("request %d has %d tokens from the cache, want %d; %d preemptions", i, c.seq.cached, want, c.seq.preempted)
					}
				}
				if want := 150 + 6*(8+2); b.rows != want {
					t.Errorf("%d rows were computed, want %d", b.rows, want)
				}
			})
		}
	}
}

// What is being computed for one may in turn be the start of others: each waits for
// the most that it can have.
func TestTwinsOfTwins(t *testing.T) {
	b := newTwinBench(t, false, Params{Parallel: 8, Batch: 64})
	prompt := b.text(1, 300)
	long := b.fork(prompt, 300, 2, 10)
	short := b.fork(prompt, 100, 3, 200)
	twin := b.request(append(short.prompt[:250:250], b.text(4, 10)...), 3)
	same := b.request(long.prompt, 3)
	b.finish(200)
	for i, c := range []*client{long, short, twin, same} {
		b.want(c)
		if want := []int{0, 100, 250, 309}[i]; c.seq.cached != want {
			t.Errorf("request %d has %d tokens from the cache, want %d", i, c.seq.cached, want)
		}
	}
}

// When the one that leads goes away, the next one leads.
func TestTwinsOfOneThatLeaves(t *testing.T) {
	b := newTwinBench(t, false, Params{Parallel: 8, Batch: 64})
	prompt := b.text(1, 200)
	var clients []*client
	for seed := range 4 {
		clients = append(clients, b.fork(prompt, 200, 2+seed, 5))
	}
	b.step()
	first := clients[0].seq
	if len(b.s.running) != 1 || first.computed == 0 || first.computed >= 200 {
		t.Fatalf("%d run, the first has computed %d", len(b.s.running), first.computed)
	}
	b.s.leave(first, ending{err: errLeft})
	b.finish(200)
	for _, c := range clients[1:] {
		b.want(c)
	}
	if want := 200 + 3*(5+2); b.rows != want {
		t.Errorf("%d rows were computed, want %d", b.rows, want)
	}
}

// A short prompt gets its token as soon as the start that it has in common with a long
// one is there, and before others that are longer.
func TestShortTwinOfALongPrompt(t *testing.T) {
	b := newTwinBench(t, false, Params{Cells: 4096, Parallel: 8, Batch: 64})
	long := b.request(b.text(1, 2000), 3)
	other := b.request(b.text(2, 1000), 3)
	short := b.fork(long.prompt, 200, 3, 10)
	steps := 0
	for ; short.seq.answered() == 0 && steps < 100; steps++ {
		b.step()
	}
	// A quarter of the rows is the oldest's, which is the long one's.
	if steps > 6 || long.seq.answered()+other.seq.answered() > 0 {
		t.Errorf("the short one's first token took %d steps", steps)
	}
	b.finish(1000)
	for _, c := range []*client{long, other, short} {
		b.want(c)
	}
}

// Who is held back does not take a place in the queue, and is not held for ever.
func TestHeldBackIsNotQueued(t *testing.T) {
	b := newTwinBench(t, false, Params{Cells: 4096, Parallel: 8, Batch: 64, MaxWaiting: 3})
	prompt := b.text(1, 1000)
	var clients []*client
	for seed := range 6 {
		clients = append(clients, b.fork(prompt, 1000, 2+seed, 5))
		b.step()
	}
	if len(b.s.running) != 1 || len(b.s.waiting) != 5 {
		t.Fatalf("%d run and %d wait", len(b.s.running), len(b.s.waiting))
	}
	clients[1].seq.submitted = time.Now().Add(-b.s.queueTimeout)
	b.step()
	if len(b.s.running) != 2 || b.s.running[1] != clients[1].seq {
		t.Errorf("%d run; the one that has waited for long is not among them", len(b.s.running))
	}
	b.finish(1000)
	for _, c := range clients {
		b.want(c)
	}
}

// Starts too short to be worth a step are computed by each.
func TestShortStartsAreNotWaitedFor(t *testing.T) {
	b := newTwinBench(t, false, Params{Parallel: 8, Batch: 512})
	prompt := b.text(1, minHeld-1)
	for seed := range 4 {
		b.fork(prompt, len(prompt), 2+seed, 5)
	}
	b.step()
	if len(b.s.running) != 4 {
		t.Errorf("%d of 4 run", len(b.s.running))
	}
	b.finish(100)
}
