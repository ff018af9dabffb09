//go:build cgo

package libllama

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/b3os/b3infer/llama"
)

// likeModel is a row of logits shaped like a language model's: most tokens far
// below a few likely ones.
func likeModel(vocab int) []float32 {
	r := rand.New(rand.NewPCG(1, 3))
	logits := normal(1, vocab, 2.5)
	for i := range 30 {
		logits[r.IntN(vocab)] = 20 - float32(i)/3
	}
	return logits
}

// BenchmarkSample draws one row a time.
func BenchmarkSample(b *testing.B) {
	typical := llama.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}
	penalized := typical
	penalized.Presence, penalized.Frequency, penalized.Repetition = 0.5, 0.1, 1.1
	counts := func(vocab, n int) []llama.TokenCount {
		var all []llama.TokenCount
		for _, t := range rand.New(rand.NewPCG(1, 4)).Perm(vocab)[:n] {
			all = append(all, llama.TokenCount{Token: llama.Token(t), Answer: int32(t % 3)})
		}
		return all
	}
	sorted := func(c []llama.TokenCount) []llama.TokenCount {
		slices.SortFunc(c, func(a, b llama.TokenCount) int { return int(a.Token - b.Token) })
		return c
	}
	every := func(n int) func(llama.Token) bool { return func(t llama.Token) bool { return int(t)%n == 0 } }
	for _, bench := range []struct {
		name string
		row  func(vocab int) llama.SampleRow
		mask func(llama.Token) bool
		flat bool // the likely tokens are missing
	}{
		{name: "greedy", row: func(int) llama.SampleRow { return llama.SampleRow{P: greedy} }},
		{name: "typical", row: func(int) llama.SampleRow { return llama.SampleRow{P: &typical} }},
		{name: "temp", row: func(int) llama.SampleRow { return llama.SampleRow{P: &llama.Sampling{Temperature: 1, TopP: 1}} }},
		{name: "topp", row: func(int) llama.SampleRow { return llama.SampleRow{P: &llama.Sampling{Temperature: 1, TopP: 0.95}} }},
		{name: "toppflat", flat: true, row: func(int) llama.SampleRow { return llama.SampleRow{P: &llama.Sampling{Temperature: 1, TopP: 0.95}} }},
		{name: "topk1000", row: func(int) llama.SampleRow {
			return llama.SampleRow{P: &llama.Sampling{Temperature: 1, TopK: 1000, TopP: 1}}
		}},
		{name: "minp", row: func(int) llama.SampleRow {
			return llama.SampleRow{P: &llama.Sampling{Temperature: 1, TopP: 1, MinP: 0.05}}
		}},
		{name: "penalties1k", row: func(v int) llama.SampleRow { return llama.SampleRow{P: &penalized, Counts: sorted(counts(v, 1000))} }},
		{name: "penalties32k", row: func(v int) llama.SampleRow {
			return llama.SampleRow{P: &penalized, Counts: sorted(counts(v, 32768))}
		}},
		{name: "penalties32kshuffled", row: func(v int) llama.SampleRow { return llama.SampleRow{P: &penalized, Counts: counts(v, 32768)} }},
		{name: "mask", mask: every(2), row: func(int) llama.SampleRow { return llama.SampleRow{P: &typical} }},
		{name: "narrowmask", mask: every(10_000), row: func(int) llama.SampleRow { return llama.SampleRow{P: &typical} }},
		{name: "logprobs", row: func(int) llama.SampleRow { return llama.SampleRow{P: &typical, Top: 20 + 1} }},
	} {
		for name, vocab := range map[string]int{"152k": 151_936, "262k": 262_144} {
			b.Run(fmt.Sprintf("%s/%s", bench.name, name), func(b *testing.B) {
				s := openSampler(b, vocab, 1, bestKernels)
				logits := likeModel(vocab)
				if bench.flat {
					logits = normal(1, vocab, 2.5)
				}
				rows := []llama.SampleRow{bench.row(vocab)}
				rows[0].Top-- // the zero value means none here
				rows[0].Mask = -1
				var mask []uint64
				if bench.mask != nil {
					rows[0].Mask, mask = 0, maskOf(vocab, bench.mask)
				}
				out := make([]llama.Sampled, 1)
				for b.Loop() {
					rows[0].Step++
					if err := s.sampleLogits(logits, rows, mask, out); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkSampleRows draws a step of many rows.
func BenchmarkSampleRows(b *testing.B) {
	const vocab = 151_936
	for _, threads := range []int{1, 2} {
		for _, n := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("rows=%d/threads=%d", n, threads), func(b *testing.B) {
				s := openSampler(b, vocab, threads, bestKernels)
				logits := slices.Repeat(likeModel(vocab), n)
				rows := make([]llama.SampleRow, n)
				for i := range rows {
					rows[i] = llama.SampleRow{Output: int32(i), P: &llama.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}, Mask: -1, Top: -1}
				}
				out := make([]llama.Sampled, n)
				for b.Loop() {
					if err := s.sampleLogits(logits, rows, nil, out); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
