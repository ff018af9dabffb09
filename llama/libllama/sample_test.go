//go:build cgo

package libllama

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/google/go-cmp/cmp"
)

var (
	inf    = float32(math.Inf(1))
	nan    = float32(math.NaN())
	greedy = &llama.Sampling{TopP: 1}
)

// openSampler makes a sampler that ends with the test.
func openSampler(t testing.TB, vocab, threads, level int) *sampler {
	t.Helper()
	s, err := newSampler(vocab, threads, level)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// normal is rows of normally distributed logits, the same for the same seed.
func normal(seed uint64, n int, deviation float64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	logits := make([]float32, n)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * deviation)
	}
	return logits
}

// maskOf is a mask of n tokens with the bits that allowed tells.
func maskOf(n int, allowed func(llama.Token) bool) []uint64 {
	mask := make([]uint64, llama.MaskWords(n))
	for t := range n {
		if allowed(llama.Token(t)) {
			mask[t/64] |= 1 << (t % 64)
		}
	}
	return mask
}

// sampleOne draws one token from one row.
func sampleOne(t testing.TB, logits []float32, row llama.SampleRow, mask []uint64) llama.Sampled {
	t.Helper()
	if row.P == nil {
		row.P = greedy
	}
	row.Mask = -1
	if mask != nil {
		row.Mask = 0
	}
	out := make([]llama.Sampled, 1)
	if err := openSampler(t, len(logits), 1, bestKernels).sampleLogits(logits, []llama.SampleRow{row}, mask, out); err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// What has one possible outcome, whatever the random number.
func TestSampleCertain(t *testing.T) {
	warm := func(p llama.Sampling) *llama.Sampling { // chance decides unless truncation leaves one token
		p.Temperature = 1
		return &p
	}
	penal := &llama.Sampling{TopP: 1, Presence: 1, Frequency: 0.5, Repetition: 2}
	alternating := func(t llama.Token) bool { return t%2 == 1 }
	for _, test := range []struct {
		name   string
		logits []float32
		row    llama.SampleRow
		mask   []uint64
		want   llama.Token
	}{
		{name: "likeliest", logits: []float32{1, 3, 2}, want: 1},
		{name: "lowest id among equals", logits: []float32{1, 3, 3}, want: 1},
		{name: "one token", logits: []float32{-5}, row: llama.SampleRow{P: warm(llama.Sampling{TopP: 1})}, want: 0},
		{name: "top-k of one", logits: []float32{1, 3, 2}, row: llama.SampleRow{P: warm(llama.Sampling{TopK: 1, TopP: 1})}, want: 1},
		{name: "top-p of nothing", logits: []float32{1, 3, 2}, row: llama.SampleRow{P: warm(llama.Sampling{TopP: 0})}, want: 1},
		{name: "top-p of little", logits: []float32{1, 3, 3}, row: llama.SampleRow{P: warm(llama.Sampling{TopP: 1e-30})}, want: 1},
		{name: "top-p of top-k", logits: []float32{1, 3, 2}, row: llama.SampleRow{P: warm(llama.Sampling{TopP: 1e-30, TopK: 2})}, want: 1},
		{name: "min-p of all", logits: []float32{1, 3, 2}, row: llama.SampleRow{P: warm(llama.Sampling{TopP: 1, MinP: 1})}, want: 1},
		{name: "temperature near 0", logits: []float32{1, 3, 2}, row: llama.SampleRow{P: &llama.Sampling{Temperature: 1e-45, TopP: 1}}, want: 1},
		{name: "bias", logits: []float32{1, 3, 2}, row: llama.SampleRow{Bias: []llama.TokenBias{{Token: 0, Bias: 2.5}}}, want: 0},
		{name: "ban", logits: []float32{1, inf, 2}, row: llama.SampleRow{Bias: []llama.TokenBias{{Token: 1, Bias: -inf}}}, want: 2},
		{name: "mask", logits: []float32{5, 3, 4}, mask: maskOf(3, alternating), want: 1},
		{name: "mask before bias", logits: []float32{5, 3, 4}, mask: maskOf(3, alternating), row: llama.SampleRow{Bias: []llama.TokenBias{{Token: 0, Bias: 100}}}, want: 1},
		{name: "mask bits past the vocabulary", logits: []float32{5, 3, 4}, mask: []uint64{^uint64(1)}, want: 2},
		{name: "empty mask", logits: []float32{5, 3, 4}, mask: []uint64{0}, want: llama.NoToken},
		{name: "one token allowed of many", logits: normal(1, 10000, 3), mask: maskOf(10000, func(t llama.Token) bool { return t == 9999 }), row: llama.SampleRow{P: warm(llama.Sampling{TopP: 0.9})}, want: 9999},
		{name: "repetition divides", logits: []float32{6, 4}, row: llama.SampleRow{P: penal, Counts: []llama.TokenCount{{Token: 0}}}, want: 1},
		{name: "repetition multiplies", logits: []float32{-3, -5}, row: llama.SampleRow{P: penal, Counts: []llama.TokenCount{{Token: 0}}}, want: 1},
		{name: "presence and frequency of the answer", logits: []float32{4, 0.1}, row: llama.SampleRow{P: penal, Counts: []llama.TokenCount{{Token: 0, Answer: 2}}}, want: 1},
		{name: "just not", logits: []float32{4, -0.1}, row: llama.SampleRow{P: penal, Counts: []llama.TokenCount{{Token: 0, Answer: 2}}}, want: 0},
		{name: "penalty after bias", logits: []float32{-2, -3.5}, row: llama.SampleRow{P: penal, Counts: []llama.TokenCount{{Token: 0}}, Bias: []llama.TokenBias{{Token: 0, Bias: 1}}}, want: 0},
		{name: "no penalty, no counts", logits: []float32{6, 4}, row: llama.SampleRow{Counts: []llama.TokenCount{{Token: 7}}}, want: 0},
		{name: "NaN is no candidate", logits: []float32{nan, 1, nan}, row: llama.SampleRow{P: warm(llama.Sampling{TopP: 1})}, want: 1},
		{name: "only NaN", logits: []float32{nan, nan}, row: llama.SampleRow{P: warm(llama.Sampling{TopP: 1})}, want: llama.NoToken},
		{name: "only -inf", logits: []float32{-inf, -inf}, want: llama.NoToken},
		{name: "+inf", logits: []float32{1, inf, nan}, row: llama.SampleRow{P: warm(llama.Sampling{TopP: 1})}, want: 1},
		{name: "+inf in the end", logits: append(normal(1, 1000, 3), inf), row: llama.SampleRow{P: warm(llama.Sampling{TopK: 40, TopP: 0.9, MinP: 0.1})}, want: 1000},
		{name: "largest floats", logits: []float32{-math.MaxFloat32, math.MaxFloat32}, row: llama.SampleRow{P: warm(llama.Sampling{TopP: 1})}, want: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.row.Top = -1
			for seed := range uint64(20) {
				test.row.Seed = seed
				got := sampleOne(t, test.logits, test.row, test.mask)
				want := llama.Sampled{Token: test.want, Logprob: -inf}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

// All tokens of equal or infinite logits come up, and nothing else.
func TestSampleEqualLogits(t *testing.T) {
	for name, logits := range map[string][]float32{
		"equal":    {-inf, 2, 2, nan, 2},
		"infinite": {1, inf, inf, nan, inf},
		"huge":     {-math.MaxFloat32, math.MaxFloat32, math.MaxFloat32, 0, math.MaxFloat32},
	} {
		for _, p := range []llama.Sampling{{TopP: 1}, {TopP: 0.99}, {TopP: 1, MinP: 0.5}, {TopP: 1, TopK: 3}} {
			t.Run(fmt.Sprintf("%s/%+v", name, p), func(t *testing.T) {
				p.Temperature = 0.8
				seen := map[llama.Token]bool{}
				for seed := range uint64(100) {
					seen[sampleOne(t, logits, llama.SampleRow{P: &p, Seed: seed, Top: -1}, nil).Token] = true
				}
				want := map[llama.Token]bool{1: true, 2: true, 4: true}
				if diff := cmp.Diff(want, seen); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestSampleLogprobs(t *testing.T) {
	log := func(x float64) float32 { return float32(math.Log(x)) }
	// Probabilities 1/2, 1/4, 1/8, 1/8.
	logits := []float32{log(1), log(4), log(2), log(1)}
	tops := func(n int, all ...llama.TokenLogprob) (s llama.Sampled) {
		s.N = int8(copy(s.Top[:], all[:n]))
		return s
	}
	half, quarter, eighth := llama.TokenLogprob{Token: 1, Logprob: log(.5)}, llama.TokenLogprob{Token: 2, Logprob: log(.25)}, log(.125)
	plain := []llama.TokenLogprob{half, quarter, {Token: 0, Logprob: eighth}, {Token: 3, Logprob: eighth}}
	odd := maskOf(4, func(t llama.Token) bool { return t%2 == 1 })
	for _, test := range []struct {
		name   string
		row    llama.SampleRow
		logits []float32
		mask   []uint64
		want   llama.Sampled
		token  llama.Token
		lp     float32
	}{
		{name: "off", row: llama.SampleRow{Top: -1}, token: 1, lp: -inf},
		{name: "own only", row: llama.SampleRow{Top: 0}, token: 1, lp: log(.5)},
		{name: "two", row: llama.SampleRow{Top: 2}, token: 1, lp: log(.5), want: tops(2, plain...)},
		{name: "more than there are", row: llama.SampleRow{Top: 20}, token: 1, lp: log(.5), want: tops(4, plain...)},
		{name: "before temperature and truncation", row: llama.SampleRow{Top: 3, P: &llama.Sampling{Temperature: 2, TopK: 1, TopP: 0.1}}, token: 1, lp: log(.5), want: tops(3, plain...)},
		{name: "before penalties", row: llama.SampleRow{Top: 3, P: &llama.Sampling{TopP: 1, Presence: 9}, Counts: []llama.TokenCount{{Token: 1, Answer: 1}}}, token: 2, lp: log(.25), want: tops(3, plain...)},
		{name: "after mask", row: llama.SampleRow{Top: 3}, mask: odd, token: 1, lp: log(.8), want: tops(2, llama.TokenLogprob{Token: 1, Logprob: log(.8)}, llama.TokenLogprob{Token: 3, Logprob: log(.2)})},
		{name: "after bias", row: llama.SampleRow{Top: 1, Bias: []llama.TokenBias{{Token: 1, Bias: -inf}, {Token: 2, Bias: log(2)}}}, token: 2, lp: log(4. / 6), want: tops(1, llama.TokenLogprob{Token: 2, Logprob: log(4. / 6)})},
		{name: "infinite", row: llama.SampleRow{Top: 5}, logits: []float32{0, inf, nan, inf}, token: 1, lp: log(.5), want: tops(2, half, llama.TokenLogprob{Token: 3, Logprob: log(.5)})},
		{name: "no candidate", row: llama.SampleRow{Top: 5}, mask: []uint64{0}, token: llama.NoToken, lp: -inf},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.logits == nil {
				test.logits = logits
			}
			test.want.Token, test.want.Logprob = test.token, test.lp
			got := sampleOne(t, test.logits, test.row, test.mask)
			if diff := cmp.Diff(test.want, got, near(1e-6)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// near compares floats to within an absolute error.
func near(e float64) cmp.Option {
	return cmp.Comparer(func(a, b float32) bool { return a == b || math.Abs(float64(a)-float64(b)) <= e })
}

// The logprobs of a long row are those of a sum in double precision.
func TestSampleLogprobsLongRow(t *testing.T) {
	const n = 151_936
	logits := normal(3, n, 4)
	max := float64(slices.Max(logits))
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - max)
	}
	var want llama.Sampled
	for id, l := range logits {
		want.Top[0] = llama.TokenLogprob{Token: llama.Token(id), Logprob: float32(float64(l) - max - math.Log(sum))}
		if float64(l) == max {
			break
		}
	}
	want.Token, want.Logprob, want.N = want.Top[0].Token, want.Top[0].Logprob, 1
	if diff := cmp.Diff(want, sampleOne(t, logits, llama.SampleRow{Top: 1}, nil), near(1e-6)); diff != "" {
		t.Error(diff)
	}
}

func TestSampleRefuses(t *testing.T) {
	const vocab = 100
	row := func(change func(*llama.SampleRow)) llama.SampleRow {
		r := llama.SampleRow{P: &llama.Sampling{Temperature: 1, TopP: 1}, Mask: -1, Top: -1}
		change(&r)
		return r
	}
	with := func(p llama.Sampling) llama.SampleRow {
		return row(func(r *llama.SampleRow) { r.P = &p })
	}
	penal := llama.Sampling{TopP: 1, Presence: 1}
	for name, r := range map[string]llama.SampleRow{
		"no parameters":            row(func(r *llama.SampleRow) { r.P = nil }),
		"temperature below 0":      with(llama.Sampling{Temperature: -1, TopP: 1}),
		"temperature NaN":          with(llama.Sampling{Temperature: nan, TopP: 1}),
		"temperature infinite":     with(llama.Sampling{Temperature: inf, TopP: 1}),
		"top-p above 1":            with(llama.Sampling{TopP: 1.1}),
		"top-p NaN":                with(llama.Sampling{TopP: nan}),
		"min-p below 0":            with(llama.Sampling{TopP: 1, MinP: -0.1}),
		"min-p NaN":                with(llama.Sampling{TopP: 1, MinP: nan}),
		"presence NaN":             with(llama.Sampling{TopP: 1, Presence: nan}),
		"frequency infinite":       with(llama.Sampling{TopP: 1, Frequency: -inf}),
		"repetition below 0":       with(llama.Sampling{TopP: 1, Repetition: -1}),
		"repetition NaN":           with(llama.Sampling{TopP: 1, Repetition: nan}),
		"output past the end":      row(func(r *llama.SampleRow) { r.Output = 1 }),
		"output below 0":           row(func(r *llama.SampleRow) { r.Output = -1 }),
		"mask that is not there":   row(func(r *llama.SampleRow) { r.Mask = 1 }),
		"mask below -1":            row(func(r *llama.SampleRow) { r.Mask = -2 }),
		"too many alternatives":    row(func(r *llama.SampleRow) { r.Top = llama.MaxTop + 1 }),
		"alternatives below -1":    row(func(r *llama.SampleRow) { r.Top = -2 }),
		"bias past the vocabulary": row(func(r *llama.SampleRow) { r.Bias = []llama.TokenBias{{Token: vocab}} }),
		"bias of NaN":              row(func(r *llama.SampleRow) { r.Bias = []llama.TokenBias{{Bias: nan}} }),
		"bias of +inf":             row(func(r *llama.SampleRow) { r.Bias = []llama.TokenBias{{Bias: inf}} }),
		"count past the vocabulary": row(func(r *llama.SampleRow) {
			r.P, r.Counts = &penal, []llama.TokenCount{{Token: vocab}}
		}),
		"count below 0": row(func(r *llama.SampleRow) { r.P, r.Counts = &penal, []llama.TokenCount{{Token: -1}} }),
		"more counts than tokens": row(func(r *llama.SampleRow) {
			r.P, r.Counts = &penal, make([]llama.TokenCount, vocab+1)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := openSampler(t, vocab, 1, bestKernels)
			mask := make([]uint64, llama.MaskWords(vocab))
			out := make([]llama.Sampled, 1)
			if err := s.sampleLogits(make([]float32, vocab), []llama.SampleRow{r}, mask, out); !errors.Is(err, llama.ErrInvalid) {
				t.Errorf("got %v, want %v", err, llama.ErrInvalid)
			}
		})
	}
	s := openSampler(t, vocab, 1, bestKernels)
	if err := s.sampleLogits(make([]float32, vocab), make([]llama.SampleRow, 2), nil, make([]llama.Sampled, 1)); !errors.Is(err, llama.ErrInvalid) {
		t.Errorf("too few results: got %v, want %v", err, llama.ErrInvalid)
	}
	if err := s.sampleLogits(nil, nil, nil, nil); err != nil {
		t.Errorf("no rows: %v", err)
	}
}
