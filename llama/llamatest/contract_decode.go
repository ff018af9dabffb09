package llamatest

import (
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/google/go-cmp/cmp"
)

// A badBatch is refused by a context whose sequence 0 holds positions 0 to 7
// and that is empty otherwise.
type badBatch struct {
	name  string
	batch func(r *rig) llama.Batch
	// jumps: positions jump forward, which images do with M-RoPE.
	jumps bool
}

// consecutive are n positions that follow on sequence 0.
func consecutive(n int) []llama.Pos {
	positions := make([]llama.Pos, n)
	for i := range positions {
		positions[i] = llama.Pos(8 + i)
	}
	return positions
}

// batchOf is a batch of tokens of one sequence at these positions.
func batchOf(r *rig, s llama.SeqID, positions ...llama.Pos) llama.Batch {
	var b llama.Batch
	for i, t := range r.prompt(shipText, len(positions)) {
		b.Add(t, positions[i], s, i == len(positions)-1)
	}
	return b
}

// edit is a valid batch with a mistake put in.
func edit(mistake func(r *rig, b *llama.Batch)) func(r *rig) llama.Batch {
	return func(r *rig) llama.Batch {
		b := batchOf(r, 0, 8, 9, 10)
		mistake(r, &b)
		return b
	}
}

var badBatches = []badBatch{
	{name: "no rows", batch: func(*rig) llama.Batch { return llama.Batch{} }},
	{name: "more rows than Batch", batch: func(r *rig) llama.Batch {
		return batchOf(r, 0, consecutive(r.ctx.Limits().Batch+1)...)
	}},
	{name: "a gap behind the sequence", jumps: true, batch: func(r *rig) llama.Batch { return batchOf(r, 0, 9, 10) }},
	{name: "a gap in the batch", jumps: true, batch: func(r *rig) llama.Batch { return batchOf(r, 0, 8, 10) }},
	{name: "an empty sequence that starts above 0", jumps: true, batch: func(r *rig) llama.Batch { return batchOf(r, 1, 1, 2) }},
	{name: "a position held already", batch: func(r *rig) llama.Batch { return batchOf(r, 0, 7, 8) }},
	{name: "falling positions", batch: func(r *rig) llama.Batch { return batchOf(r, 0, 9, 8) }},
	{name: "a position twice", batch: func(r *rig) llama.Batch { return batchOf(r, 0, 8, 8) }},
	{name: "a negative position", batch: func(r *rig) llama.Batch { return batchOf(r, 1, -1, 0) }},
	{name: "a negative sequence", batch: func(r *rig) llama.Batch { return batchOf(r, -1, 0) }},
	{name: "a sequence out of range", batch: func(r *rig) llama.Batch {
		return batchOf(r, llama.SeqID(r.ctx.Limits().Sequences), 0)
	}},
	{name: "a negative token", batch: edit(func(r *rig, b *llama.Batch) { b.Token[1] = -1 })},
	{name: "a token out of range", batch: edit(func(r *rig, b *llama.Batch) { b.Token[1] = llama.Token(r.vocab.Len()) })},
	{name: "too few tokens", batch: edit(func(r *rig, b *llama.Batch) { b.Token = b.Token[:2] })},
	{name: "too few positions", batch: edit(func(r *rig, b *llama.Batch) { b.Pos = b.Pos[:2] })},
	{name: "too few outputs", batch: edit(func(r *rig, b *llama.Batch) { b.Output = b.Output[:2] })},
	{name: "tokens and embeddings", batch: edit(func(r *rig, b *llama.Batch) {
		b.Embd = make([]float32, 3*r.model.Info().Embedding)
	})},
	{name: "too short an embedding", batch: edit(func(r *rig, b *llama.Batch) {
		b.Token, b.Embd = nil, make([]float32, 3*r.model.Info().Embedding-1)
	})},
	{name: "more outputs than Outputs", batch: func(r *rig) llama.Batch {
		b := batchOf(r, 0, consecutive(r.ctx.Limits().Outputs+1)...)
		for i := range b.Output {
			b.Output[i] = true
		}
		return b
	}},
	{name: "more non-causal rows than UBatch", batch: func(r *rig) llama.Batch {
		b := batchOf(r, 0, consecutive(r.ctx.Limits().UBatch+1)...)
		b.NonCausal = true
		return b
	}},
}

var decodeCases = []contractCase{
	{"has the limits asked for", func(r *rig) {
		got, asked := r.ctx.Limits(), smallContext
		if got.Cells < asked.Cells || got.Sequences < asked.Sequences || got.Batch < asked.Batch ||
			got.UBatch < 1 || got.UBatch > got.Batch || got.Outputs < got.Sequences {
			r.Errorf("got limits %+v, asked for %+v", got, asked)
		}
		if hybrid := r.model.Info().Hybrid; got.RangeCopy == hybrid || got.PartialRemove == hybrid {
			r.Errorf("hybrid %v, limits %+v", hybrid, got)
		}
	}},
	{"starts empty", func(r *rig) {
		for s := range r.ctx.Limits().Sequences {
			r.wantRange(llama.SeqID(s), -1)
		}
	}},
	{"is deterministic", func(r *rig) {
		want, tokens := r.answer(0, r.prompt(foxText, 40), 8)
		other := r.suite.rig(r.T)
		got := other.repeat(0, other.prompt(foxText, 40), tokens)
		if diff := cmp.Diff(want, got); diff != "" {
			r.Errorf("a fresh context gave other results:\n%s", diff)
		}
	}},
	{"does not depend on how a prompt is cut into batches", func(r *rig) {
		prompt := r.prompt(foxText, 40)
		want, tokens := r.answer(0, prompt, 4)
		for s, size := range []int{1, 7, 33} {
			s := llama.SeqID(s + 1)
			for rest := prompt[:len(prompt)-1]; len(rest) > 0; rest = rest[min(size, len(rest)):] {
				r.prefill(s, rest[:min(size, len(rest))])
			}
			r.near("in batches", r.repeat(s, prompt[len(prompt)-1:], tokens), want)
		}
	}},
	{"sequences do not see each other", func(r *rig) {
		fox, ship := r.prompt(foxText, 30), r.prompt(shipText, 20)
		want, tokens := r.answer(0, fox, 6)
		r.must("SeqRemove", r.ctx.SeqRemove(0, -1, -1))
		r.near("among others", r.interleave(fox, ship, tokens), want)
	}},
	{"refuses", refusals},
	{"no room changes nothing", noRoom},
	{"allocates nothing", func(r *rig) {
		for s := range llama.SeqID(4) {
			r.prefill(s, r.prompt(foxText, 4))
		}
		rows := []llama.SampleRow{greedyRow(0), greedyRow(1), greedyRow(2), greedyRow(3)}
		rows[1].P = &llama.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}
		out := make([]llama.Sampled, len(rows))
		token, pos := r.prompt(foxText, 1)[0], llama.Pos(4)
		got := testing.AllocsPerRun(20, func() {
			r.batch.Reset()
			for s := range llama.SeqID(4) {
				r.batch.Add(token, pos, s, true)
			}
			pos++
			if r.ctx.Decode(&r.batch) != nil || r.ctx.Sample(rows, nil, out) != nil {
				panic("a valid step failed")
			}
		})
		if got != 0 {
			r.Errorf("a step allocates %v times", got)
		}
	}},
}

// wantRange fails unless the last position of a sequence is last, -1 for an
// empty one.
func (r *rig) wantRange(s llama.SeqID, last llama.Pos) {
	r.Helper()
	want := [2]llama.Pos{0, last}
	first, end := r.ctx.SeqRange(s)
	got := [2]llama.Pos{first, end}
	switch {
	case last < 0:
		want[0] = -1
	case r.model.Info().Hybrid:
		got[0] = 0 // llama.cpp gives the recurrent state's position here
	}
	if got != want {
		r.Fatalf("sequence %d: got range %v, want %v", s, got, want)
	}
}

// interleave computes sequence 0's prompt and answer in batches that other
// sequences share, and gives sequence 0's steps.
func (r *rig) interleave(prompt, other, answer []llama.Token) []llama.Sampled {
	r.Helper()
	tokens := append(append([]llama.Token{}, prompt...), answer[:len(answer)-1]...)
	var steps []llama.Sampled
	for i, t := range tokens {
		r.batch.Reset()
		for s := llama.SeqID(1); s < 4; s++ {
			r.batch.Add(other[(i+int(s))%len(other)], llama.Pos(i), s, s == 2)
		}
		r.batch.Add(t, llama.Pos(i), 0, i >= len(prompt)-1)
		r.must("Decode", r.ctx.Decode(&r.batch))
		if i >= len(prompt)-1 {
			steps = append(steps, r.sample(3))
		}
	}
	return steps
}

// refusals tries each bad batch on the same context, which stays as it is.
func refusals(r *rig) {
	prompt := r.prompt(foxText, 8)
	next := []llama.Token{r.prefill(0, prompt).Token}
	want := r.extend(0, next)
	r.must("SeqRemove", r.ctx.SeqRemove(0, -1, -1))
	r.prefill(0, prompt)
	for _, bad := range badBatches {
		r.Run(bad.name, func(t *testing.T) {
			if bad.jumps && r.model.Info().PosPerRow > 1 {
				t.Skip("positions may jump with M-RoPE")
			}
			r := *r
			r.T = t
			batch := bad.batch(&r)
			r.mustBe("Decode", r.ctx.Decode(&batch), llama.ErrInvalid)
			r.wantRange(0, 7)
			r.wantRange(1, -1)
		})
	}
	r.near("after refusals", r.extend(0, next), want)
}

// noRoom fills the cells but for 3 and asks for 5.
func noRoom(r *rig) {
	prompt := r.prompt(foxText, r.ctx.Limits().Cells-3)
	after := r.prefill(0, prompt)
	next := []llama.Token{after.Token}
	five := batchOf(r, 1, 0, 1, 2, 3, 4)
	for range 2 {
		r.mustBe("Decode", r.ctx.Decode(&five), llama.ErrNoKVSpace)
		r.wantRange(0, llama.Pos(len(prompt)-1))
		r.wantRange(1, -1)
	}
	want := r.extend(0, next)
	two := batchOf(r, 1, 0, 1)
	r.must("Decode of what fits", r.ctx.Decode(&two))
	one := batchOf(r, 1, 2)
	r.mustBe("Decode", r.ctx.Decode(&one), llama.ErrNoKVSpace)
	r.must("SeqRemove", r.ctx.SeqRemove(0, -1, -1))
	r.must("Decode after removal", r.ctx.Decode(&one))

	r.must("SeqRemove", r.ctx.SeqRemove(1, -1, -1))
	r.prefill(0, prompt)
	r.near("after no room", r.extend(0, next), want)
}
