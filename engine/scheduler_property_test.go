package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// workload drives a scheduler with random arrivals, lengths, follow-ups,
// departures and failures, on a context that is too small for all of them.
type workload struct {
	*bench
	t       *rapid.T
	clients []*client
	left    map[*client]bool
	noSpace bool // the next Decode claims to have no room
}

// arrive submits a prompt: new text, or what an earlier client had, or its start, and more.
func (w *workload) arrive() {
	prompt := w.text(rapid.IntRange(0, 5).Draw(w.t, "text"), rapid.IntRange(1, 60).Draw(w.t, "length"))
	if len(w.clients) > 0 && rapid.Bool().Draw(w.t, "follow up") {
		c := rapid.SampledFrom(w.clients).Draw(w.t, "after")
		c.collect()
		had := append(c.prompt[:len(c.prompt):len(c.prompt)], c.got...)
		if rapid.Bool().Draw(w.t, "fork") {
			had = had[:rapid.IntRange(0, len(had)).Draw(w.t, "at")]
		}
		prompt = append(slices.Clip(had), prompt[:min(len(prompt), 10)]...)
	}
	cells := w.s.limits.Cells
	if len(prompt) >= cells {
		prompt = prompt[:cells-1]
	}
	room := cells - len(prompt)
	c := w.request(prompt, rapid.IntRange(1, room).Draw(w.t, "max tokens"))
	w.clients = append(w.clients, c)
}

// leave has a client go away, whatever state its sequence is in.
func (w *workload) leave() {
	if len(w.clients) == 0 {
		return
	}
	c := rapid.SampledFrom(w.clients).Draw(w.t, "leaver")
	if !w.left[c] {
		w.left[c] = true
		w.s.leave(c.seq, ending{err: errLeft})
	}
}

func (w *workload) turn() {
	switch rapid.SampledFrom([]string{"arrive", "step", "step", "step", "step", "leave", "no space"}).Draw(w.t, "action") {
	case "arrive":
		w.arrive()
	case "leave":
		w.leave()
	case "no space":
		w.noSpace = true
	case "step":
		w.step()
	}
}

// done checks that everything has ended as it must: with its true answer, or
// because its client left, or as too much for a context that claims to be full.
func (w *workload) done() {
	for i, c := range w.clients {
		c.collect()
		if c.end == nil {
			w.t.Fatalf("client %d has no ending", i)
		}
		want := w.model.TrueOutput(c.prompt, c.max, c.seq.sampling, c.seq.seed)
		if c.end.err != nil {
			if !w.left[c] && fmt.Sprint(c.end.err) != "internal: The model's cache has no room for this request" {
				w.t.Errorf("client %d: %v", i, c.end.err)
			}
			want = want[:min(len(c.got), len(want))]
		}
		if diff := cmp.Diff(want, c.got, cmpopts.EquateEmpty()); diff != "" {
			w.t.Errorf("client %d's answer (-want +got):\n%s", i, diff)
		}
	}
	if n := len(w.s.running) + len(w.s.waiting); n != 0 {
		w.t.Errorf("%d sequences are left", n)
	}
	for len(w.s.cache.idle) > 0 {
		w.s.cache.evict(w.s.cache.idle[0])
	}
	if n := w.ctx.UsedCells(); n != 0 {
		w.t.Errorf("%d cells are held after everything was evicted", n)
	}
}

func TestRandomWorkloads(t *testing.T) {
	for _, hybrid := range []bool{false, true} {
		t.Run(fmt.Sprintf("hybrid=%v", hybrid), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w := &workload{t: rt, left: make(map[*client]bool)}
				o := llamatest.Options{Hybrid: hybrid, MeanAnswer: rapid.SampledFrom([]int{5, 40, -1}).Draw(rt, "mean answer")}
				o.OnDecode = func(*llama.Batch) error {
					if w.noSpace {
						w.noSpace = false
						return llama.ErrNoKVSpace
					}
					return nil
				}
				w.bench = newBench(rt, o, Params{
					Cells:    rapid.IntRange(64, 300).Draw(rt, "cells"),
					Parallel: rapid.IntRange(1, 6).Draw(rt, "parallel"),
					Batch:    rapid.IntRange(8, 64).Draw(rt, "batch"),
				})
				w.s.minHeld = rapid.SampledFrom([]int{1, 8, minHeld}).Draw(rt, "least held back")
				for range rapid.IntRange(1, 150).Draw(rt, "turns") {
					w.turn()
				}
				w.noSpace = false
				// Bounded waiting: each step gives every running sequence its row, so that
				// the longest possible work is what all answers take one after the other,
				// with their prompts, twice for what preemption repeats.
				steps := 100
				for _, c := range w.clients {
					steps += 2 * (c.max + len(c.prompt))
				}
				w.finish(steps)
				w.done()
			})
		})
	}
}

// All requests of a burst begin within the time that those before them take,
// and what waits too long is told so.
func TestWaitingIsBounded(t *testing.T) {
	b := newBench(t, llamatest.Options{MeanAnswer: -1}, Params{Parallel: 1, QueueTimeout: time.Nanosecond})
	first := b.request(b.text(1, 10), 50)
	b.step()
	second := b.request(b.text(2, 10), 10)
	b.step()
	second.collect()
	if e, ok := second.end.err.(*Error); !ok || e.Code != CodeOverloaded || e.RetryAfter < time.Second {
		t.Errorf("ending is %+v, want capacity_unavailable", second.end)
	}
	b.finish(100)
	b.want(first)
}
