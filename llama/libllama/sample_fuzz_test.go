//go:build cgo

package libllama

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/b3os/b3infer/llama"
)

// possible are the tokens that a row may draw, worked out slowly in double
// precision: sort everything, and cut. slack widens each cut for rounding.
func possible(logits []float32, row *llama.SampleRow, mask []uint64, slack float64) map[llama.Token]bool {
	all := adjusted(logits, row, mask)
	order := make([]llama.Token, 0, len(all))
	for t, logit := range all {
		if logit > math.Inf(-1) { // false for NaN
			order = append(order, llama.Token(t))
		}
	}
	slices.SortStableFunc(order, func(a, b llama.Token) int { return cmp.Compare(all[b], all[a]) })
	sorted := make([]float64, len(order))
	for i, t := range order {
		sorted[i] = all[t]
	}
	set := map[llama.Token]bool{}
	for _, t := range order[:cut(sorted, row.P, slack)] {
		set[t] = true
	}
	return set
}

// cut says how many of sorted logits truncation keeps.
func cut(logits []float64, p *llama.Sampling, slack float64) int {
	n := len(logits)
	if n == 0 {
		return 0
	}
	reach := func(least float64) {
		n, _ = slices.BinarySearchFunc(logits[:n], least-slack, func(l, least float64) int { return cmp.Compare(least, l) })
	}
	if p.Temperature == 0 {
		reach(logits[0])
		return n
	}
	if k := int(p.TopK); k > 0 && k < n {
		reach(logits[k-1])
	}
	weight := func(l float64) float64 { return math.Exp((l - logits[0]) / float64(p.Temperature)) }
	if p.TopP < 1 {
		sum, share, last := 0.0, 0.0, 0
		for _, l := range logits[:n] {
			sum += weight(l)
		}
		for share = weight(logits[0]); last < n-1 && share < float64(p.TopP)*sum*(1+1e-5); {
			last++
			share += weight(logits[last])
		}
		reach(logits[last])
	}
	if p.MinP > 0 {
		reach(logits[0] + float64(p.Temperature)*math.Log(float64(p.MinP)))
	}
	return n
}

// adjusted is what bias, mask and penalties make of logits.
func adjusted(logits []float32, row *llama.SampleRow, mask []uint64) []float64 {
	out := make([]float64, len(logits))
	for t, l := range logits {
		out[t] = float64(l)
	}
	for _, b := range row.Bias {
		out[b.Token] += float64(b.Bias)
	}
	for t := range out {
		if mask != nil && mask[t/64]>>(t%64)&1 == 0 {
			out[t] = math.Inf(-1)
		}
	}
	p, repetition := row.P, float64(row.P.Repetition)
	if repetition == 0 {
		repetition = 1
	}
	for _, c := range row.Counts {
		x := &out[c.Token]
		if *x > 0 {
			*x /= repetition
		} else {
			*x *= repetition
		}
		if c.Answer > 0 {
			*x -= float64(p.Presence) + float64(p.Frequency)*float64(c.Answer)
		}
	}
	return out
}

// FuzzSample draws from finite logits with any parameters and finds each token
// among those that the slow way keeps.
func FuzzSample(f *testing.F) {
	f.Add(uint64(1), uint16(300), float32(0.8), int32(40), float32(0.95), float32(0.05), float32(0.5), float32(0.1), float32(1.1), uint8(3))
	f.Add(uint64(2), uint16(2000), float32(1), int32(0), float32(0.5), float32(0), float32(0), float32(0), float32(1), uint8(0))
	f.Add(uint64(3), uint16(1), float32(0), int32(0), float32(1), float32(1), float32(-2), float32(2), float32(0.5), uint8(7))
	f.Add(uint64(4), uint16(700), float32(1.5), int32(600), float32(0), float32(0.001), float32(0), float32(0), float32(2), uint8(5))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, temperature float32, k int32, topP, minP, presence, frequency, repetition float32, kinds uint8) {
		p := &llama.Sampling{
			Temperature: temperature, TopK: k, TopP: topP, MinP: minP,
			Presence: presence, Frequency: frequency, Repetition: repetition,
		}
		vocab := int(n)%5000 + 1
		s := openSampler(t, vocab, 1, bestKernels)
		if s.wrong(&llama.SampleRow{P: p, Mask: -1}, 0) != "" || !tame(p) {
			t.Skip("refused, or so large that rounding decides")
		}
		r := rand.New(rand.NewPCG(seed, 5))
		logits := normal(seed, vocab, 4)
		row := llama.SampleRow{P: p, Seed: seed, Mask: -1, Top: int8(kinds>>3)%22 - 1}
		var mask []uint64
		if kinds&1 != 0 {
			row.Mask, mask = 0, maskOf(vocab, func(llama.Token) bool { return r.IntN(3) == 0 })
		}
		for _, t := range r.Perm(vocab)[:int(kinds>>1&1)*r.IntN(vocab+1)] {
			row.Counts = append(row.Counts, llama.TokenCount{Token: llama.Token(t), Answer: int32(r.IntN(4))})
		}
		for _, t := range r.Perm(vocab)[:int(kinds>>2&1)*r.IntN(vocab+1)] {
			row.Bias = append(row.Bias, llama.TokenBias{Token: llama.Token(t), Bias: pick[float32](r, -3, 3, -inf)})
		}
		rows := slices.Repeat([]llama.SampleRow{row}, 50)
		for i := range rows {
			rows[i].Step = uint64(i)
		}
		out := make([]llama.Sampled, len(rows))
		if err := s.sampleLogits(logits, rows, mask, out); err != nil {
			t.Fatal(err)
		}
		want := possible(logits, &row, mask, 1e-3)
		for _, o := range out {
			if len(want) == 0 && o.Token != llama.NoToken || len(want) > 0 && !want[o.Token] {
				t.Fatalf("drew %d, which is not among the %d possible tokens", o.Token, len(want))
			}
		}
	})
}

// tame tells whether single precision is enough to compare with double.
func tame(p *llama.Sampling) bool {
	small := func(x float32) bool { return math.Abs(float64(x)) <= 100 }
	return small(p.Temperature) && (p.Temperature == 0 || p.Temperature > 0.01) && small(p.Presence) && small(p.Frequency) &&
		(p.Repetition == 0 || p.Repetition > 0.01) && small(p.Repetition)
}
