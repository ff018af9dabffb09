package engine

import (
	"fmt"
	"time"

	"github.com/b3os/b3infer/llama"
)

const (
	// warmUpStep bounds the steps of the warm-up: what would take longer is left
	// out, and its cost is extrapolated.
	warmUpStep = 500 * time.Millisecond
	// warmUpRows is the length of the longest prefill that is tried.
	warmUpRows = 512
)

// warmUp computes a few batches of each kind: llama.cpp reads the weights and
// allocates its graphs, and the cost model learns what rows, logits and cells
// cost. Everything is removed again.
func (s *scheduler) warmUp() error {
	token, err := plainToken(s.vocab)
	if err != nil {
		return err
	}
	rows := min(warmUpRows, s.limits.Batch, s.limits.Cells/4)
	w := warmUp{s: s, token: token}
	// Prefills of growing length behind each other, so that rows × cells varies.
	for n := 1; n <= rows; n *= 4 {
		if err := w.twice(1, n, false); err != nil {
			return err
		}
	}
	// Steps that decode, alone and side by side.
	for _, n := range []int{1, s.parallel / 4, s.parallel} {
		if n = min(n, s.limits.Cells/4); n > 0 {
			if err := w.twice(n, 1, true); err != nil {
				return err
			}
		}
	}
	s.cost.settle()
	for id := range w.pos {
		if err := s.ctx.SeqRemove(llama.SeqID(id), -1, -1); err != nil {
			return err
		}
	}
	return nil
}

// plainToken is some token of text.
func plainToken(v *llama.Vocab) (llama.Token, error) {
	for t := llama.Token(v.Len() / 2); v.Valid(t); t++ {
		if v.Kind(t) == llama.KindNormal && !v.IsEnd(t) {
			return t, nil
		}
	}
	for t := range llama.Token(v.Len()) {
		if v.Kind(t) == llama.KindNormal && !v.IsEnd(t) {
			return t, nil
		}
	}
	return 0, fmt.Errorf("the vocabulary has no tokens of text")
}

// A warmUp is the state of scheduler.warmUp.
type warmUp struct {
	s     *scheduler
	token llama.Token
	pos   []llama.Pos // next position by sequence id
	cells int
}

// twice computes two equal batches and learns from the second, since llama.cpp
// allocates a graph for the first.
func (w *warmUp) twice(seqs, rows int, output bool) error {
	s := w.s
	for i := range 2 {
		size := stepSize{rows: seqs * rows, cells: w.cells}
		if output {
			size.outputs = seqs
		}
		if s.cost.predict(size) > warmUpStep || w.cells+size.rows > s.limits.Cells {
			return nil
		}
		w.fill(seqs, rows, output)
		began := time.Now()
		if err := s.ctx.Decode(&s.batch); err != nil {
			return err
		}
		if output {
			if err := s.ctx.Sample(s.rows, nil, s.sampled[:len(s.rows)]); err != nil {
				return err
			}
		}
		if i == 1 {
			s.cost.observe(size, time.Since(began))
		}
		w.cells += size.rows
	}
	return nil
}

func (w *warmUp) fill(seqs, rows int, output bool) {
	s := w.s
	s.batch.Reset()
	s.rows = s.rows[:0]
	for id := range seqs {
		if id == len(w.pos) {
			w.pos = append(w.pos, 0)
		}
		for range rows {
			s.batch.Add(w.token, w.pos[id], llama.SeqID(id), output)
			w.pos[id]++
		}
		if output {
			s.rows = append(s.rows, llama.SampleRow{
				Output: int32(s.batch.Len() - 1), P: &llama.Sampling{Temperature: 1, TopK: 40, TopP: 1}, Mask: -1, Top: -1,
			})
		}
	}
}
