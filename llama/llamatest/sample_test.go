package llamatest

import (
	"math"
	"slices"
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestTruncation compares what is left to draw from with shares worked out by
// hand. The logits are the logarithms of 8, 4, 2, 1 and 1 sixteenths.
func TestTruncation(t *testing.T) {
	logits := []float32{2: float32(math.Log(8)), 0: float32(math.Log(4)), 4: float32(math.Log(2)), 1: 0, 3: 0}
	tests := []struct {
		name string
		p    llama.Sampling
		want map[llama.Token]float64
	}{
		{"nothing", llama.Sampling{Temperature: 1, TopP: 1}, map[llama.Token]float64{2: 8. / 16, 0: 4. / 16, 4: 2. / 16, 1: 1. / 16, 3: 1. / 16}},
		{"temperature", llama.Sampling{Temperature: 0.5, TopP: 1}, map[llama.Token]float64{2: 64. / 86, 0: 16. / 86, 4: 4. / 86, 1: 1. / 86, 3: 1. / 86}},
		{"top-k", llama.Sampling{Temperature: 1, TopK: 2, TopP: 1}, map[llama.Token]float64{2: 8. / 12, 0: 4. / 12}},
		{"top-k of equals", llama.Sampling{Temperature: 1, TopK: 4, TopP: 1}, map[llama.Token]float64{2: 8. / 15, 0: 4. / 15, 4: 2. / 15, 1: 1. / 15}},
		{"top-p reached", llama.Sampling{Temperature: 1, TopP: 0.74}, map[llama.Token]float64{2: 8. / 12, 0: 4. / 12}},
		{"top-p passed", llama.Sampling{Temperature: 1, TopP: 0.76}, map[llama.Token]float64{2: 8. / 14, 0: 4. / 14, 4: 2. / 14}},
		{"top-p after top-k", llama.Sampling{Temperature: 1, TopK: 2, TopP: 0.6}, map[llama.Token]float64{2: 1}},
		{"top-p after temperature", llama.Sampling{Temperature: 0.5, TopP: 0.74}, map[llama.Token]float64{2: 1}},
		{"min-p", llama.Sampling{Temperature: 1, TopP: 1, MinP: 0.2}, map[llama.Token]float64{2: 8. / 14, 0: 4. / 14, 4: 2. / 14}},
		{"min-p after temperature", llama.Sampling{Temperature: 0.5, TopP: 1, MinP: 0.2}, map[llama.Token]float64{2: 64. / 80, 0: 16. / 80}},
		{"all", llama.Sampling{Temperature: 1, TopK: 3, TopP: 0.9, MinP: 0.4}, map[llama.Token]float64{2: 8. / 12, 0: 4. / 12}},
	}
	for _, tt := range tests {
		s := newSampler(len(logits))
		copy(s.logits, logits)
		s.draw(&llama.SampleRow{P: &tt.p})
		got := make(map[llama.Token]float64)
		for _, c := range s.candidates {
			got[c.token] = c.x / s.sum()
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

func TestPenalties(t *testing.T) {
	counts := []llama.TokenCount{{Token: 0}, {Token: 1, Answer: 3}, {Token: 2, Answer: 1}}
	tests := []struct {
		name string
		p    llama.Sampling
		want []float32
	}{
		{"none", llama.Sampling{}, []float32{4, 2, -1, 0.5}},
		{"presence", llama.Sampling{Presence: 0.5}, []float32{4, 1.5, -1.5, 0.5}},
		{"frequency", llama.Sampling{Frequency: 0.5}, []float32{4, 0.5, -1.5, 0.5}},
		{"repetition", llama.Sampling{Repetition: 2}, []float32{2, 1, -2, 0.5}},
		{"all", llama.Sampling{Presence: 0.5, Frequency: 0.25, Repetition: 2}, []float32{2, -0.25, -2.75, 0.5}},
	}
	for _, tt := range tests {
		s := newSampler(4)
		copy(s.logits, []float32{4, 2, -1, 0.5})
		s.penalize(&llama.SampleRow{P: &tt.p, Counts: counts})
		if diff := cmp.Diff(tt.want, s.logits); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

func TestUniform(t *testing.T) {
	const n = 20000
	var draws [2][n]float64
	for i := range uint64(n) {
		draws[0][i], draws[1][i] = uniform(5, i), uniform(i, 5)
	}
	for which, xs := range draws {
		sum, lag := 0.0, 0.0
		for i, x := range xs {
			sum += x
			lag += (x - 0.5) * (xs[(i+1)%n] - 0.5)
		}
		// Five standard deviations of a mean and of a lag-1 product.
		if mean := sum / n; math.Abs(mean-0.5) > 5*math.Sqrt(1./12/n) || math.Abs(lag/n) > 5./12/math.Sqrt(n) {
			t.Errorf("sequence %d: mean %v, lag product %v", which, mean, lag/n)
		}
		slices.Sort(xs[:])
		if xs[0] < 0 || xs[n-1] >= 1 {
			t.Errorf("sequence %d: from %v to %v", which, xs[0], xs[n-1])
		}
	}
}

func TestSampleChecksLists(t *testing.T) {
	s := newSampler(4)
	for name, row := range map[string]llama.SampleRow{
		"a bias twice":  {Bias: []llama.TokenBias{{Token: 1}, {Token: 1}}},
		"a count twice": {Counts: []llama.TokenCount{{Token: 2}, {Token: 2}}},
	} {
		row.P, row.Mask = &llama.Sampling{}, -1
		if s.check(&row, nil) == nil {
			t.Errorf("%s was taken", name)
		}
	}
	twice := llama.SampleRow{P: &llama.Sampling{}, Mask: -1, Bias: []llama.TokenBias{{Token: 2}}, Counts: []llama.TokenCount{{Token: 2}}}
	if err := s.check(&twice, nil); err != nil {
		t.Errorf("a token with a bias and a count: %v", err)
	}
}

// BenchmarkStep is a step of 32 sequences.
func BenchmarkStep(b *testing.B) {
	for name, p := range map[string]llama.Sampling{"greedy": {TopP: 1}, "typical": {Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}} {
		b.Run(name, func(b *testing.B) {
			model := New(Options{MeanAnswer: -1})
			ctx, err := model.NewContext(llama.ContextParams{Cells: 64 * 1024, Sequences: 32, Batch: 64, UBatch: 64, Outputs: 32})
			if err != nil {
				b.Fatal(err)
			}
			rows, out := make([]llama.SampleRow, 32), make([]llama.Sampled, 32)
			for i := range rows {
				rows[i] = llama.SampleRow{Output: int32(i), P: &p, Mask: -1, Top: -1}
			}
			var batch llama.Batch
			pos := llama.Pos(0)
			for b.Loop() {
				if pos == 2000 {
					for s := range llama.SeqID(32) {
						if err := ctx.SeqRemove(s, -1, -1); err != nil {
							b.Fatal(err)
						}
					}
					pos = 0
				}
				batch.Reset()
				for s := range llama.SeqID(32) {
					batch.Add(out[s].Token, pos, s, true)
				}
				pos++
				if err := ctx.Decode(&batch); err != nil {
					b.Fatal(err)
				}
				if err := ctx.Sample(rows, nil, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
