package llamatest

import (
	"math"
	"slices"

	"github.com/b3os/b3infer/llama"
	"github.com/google/go-cmp/cmp"
)

// ready leaves logits of two batch rows: 0 after one text, 1 after another.
func (r *rig) ready() *rig {
	r.Helper()
	r.prefill(0, r.prompt(foxText, 20))
	r.prefill(1, r.prompt(shipText, 20))
	r.batch.Reset()
	r.batch.Add(r.prompt(shipText, 9)[8], 20, 0, true)
	r.batch.Add(r.prompt(foxText, 9)[8], 20, 1, true)
	r.batch.Add(r.prompt(foxText, 9)[7], 21, 1, false)
	r.must("Decode", r.ctx.Decode(&r.batch))
	return r
}

// with is a row of batch row 0 with these parameters, without logprobs.
func with(p llama.Sampling) llama.SampleRow { return llama.SampleRow{P: &p, Mask: -1, Top: -1} }

// allow is a mask of these tokens.
func (r *rig) allow(tokens ...llama.Token) []uint64 {
	mask := make([]uint64, llama.MaskWords(r.vocab.Len()))
	for _, t := range tokens {
		mask[t/64] |= 1 << (t % 64)
	}
	return mask
}

// top is the n likeliest tokens of batch row 0.
func (r *rig) top(n int) []llama.Token {
	r.Helper()
	likeliest := r.sample(0)
	tokens := make([]llama.Token, n)
	for i := range tokens {
		tokens[i] = likeliest.Top[i].Token
	}
	return tokens
}

// draws samples a row n times, each time with the next Step.
func (r *rig) draws(row llama.SampleRow, masks []uint64, n int) []llama.Token {
	r.Helper()
	rows := make([]llama.SampleRow, n)
	for i := range rows {
		rows[i] = row
		rows[i].Step = uint64(i)
	}
	tokens := make([]llama.Token, n)
	for i, s := range r.sampleRows(masks, rows...) {
		tokens[i] = s.Token
	}
	return tokens
}

var sampleCases = []contractCase{
	{"temperature 0 takes the likeliest", func(r *rig) {
		got := r.ready().sample(0)
		if got.N != llama.MaxTop || got.Token != got.Top[0].Token || got.Logprob != got.Top[0].Logprob {
			r.Errorf("drew %s, of %d likeliest the first is %v", show(&got), got.N, got.Top[0])
		}
		sorted := slices.IsSortedFunc(got.Top[:got.N], func(a, b llama.TokenLogprob) int {
			if a.Logprob == b.Logprob {
				return int(a.Token - b.Token)
			}
			if a.Logprob > b.Logprob {
				return -1
			}
			return 1
		})
		if !sorted {
			r.Errorf("not sorted: %v", got.Top)
		}
	}},
	{"reports as many as asked for", func(r *rig) {
		r.ready()
		full := r.sample(0)
		for _, top := range []int8{-1, 0, 1, 5} {
			row := greedyRow(0)
			row.Top = top
			want := llama.Sampled{Token: full.Token, Logprob: full.Logprob, N: max(top, 0)}
			copy(want.Top[:want.N], full.Top[:])
			got := r.sampleRows(nil, row)[0]
			if top < 0 {
				got.Logprob = want.Logprob // not set when no logprobs are wanted
			}
			if diff := cmp.Diff(want, got); diff != "" {
				r.Errorf("top %d:\n%s", top, diff)
			}
		}
	}},
	{"rows are independent", func(r *rig) {
		r.ready()
		rows := []llama.SampleRow{
			greedyRow(0), greedyRow(1), with(llama.Sampling{Temperature: 1.5, TopP: 1}),
			with(llama.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}),
		}
		rows[3].Output, rows[3].Seed, rows[3].Step = 1, 7, 9
		want := r.sampleRows(nil, rows...)
		for i := range rows {
			if diff := cmp.Diff(want[i], r.sampleRows(nil, rows[i])[0]); diff != "" {
				r.Errorf("row %d alone:\n%s", i, diff)
			}
		}
		slices.Reverse(rows)
		slices.Reverse(want)
		if diff := cmp.Diff(want, r.sampleRows(nil, rows...)); diff != "" {
			r.Errorf("in the other order:\n%s", diff)
		}
	}},
	{"seed and step decide", func(r *rig) {
		r.ready()
		row := with(llama.Sampling{Temperature: 2, TopP: 1})
		row.Seed = 5
		want := r.draws(row, nil, 64)
		if diff := cmp.Diff(want, r.draws(row, nil, 64)); diff != "" {
			r.Errorf("the same seed and steps:\n%s", diff)
		}
		if slices.Max(want) == slices.Min(want) {
			r.Errorf("64 steps drew token %d each time", want[0])
		}
		row.Seed = 6
		if slices.Equal(want, r.draws(row, nil, 64)) {
			r.Error("another seed drew the same")
		}
	}},
	{"draws as the logprobs say", func(r *rig) { r.ready().frequencies(1) }},
	{"draws as the temperature says", func(r *rig) { r.ready().frequencies(2.5) }},
	{"a mask is kept", func(r *rig) {
		r.ready()
		likeliest := r.sample(0)
		allowed := []llama.Token{likeliest.Top[3].Token, likeliest.Top[7].Token, likeliest.Top[19].Token}
		masks := append(r.allow(likeliest.Token), r.allow(allowed...)...)
		row := greedyRow(0)
		row.Mask, row.Allowed = 1, 3
		got := r.sampleRows(masks, row)[0]
		sum := 0.0
		for i, alt := range got.Top[:got.N] {
			sum += math.Exp(float64(alt.Logprob))
			if alt.Token != allowed[i] {
				r.Errorf("alternative %d is token %d, want %d", i, alt.Token, allowed[i])
			}
		}
		if got.Token != allowed[0] || got.N != 3 || math.Abs(sum-1) > 1e-3 {
			r.Errorf("drew %s, %d alternatives of %v in all", show(&got), got.N, sum)
		}
		row.Allowed = 0
		if diff := cmp.Diff(got, r.sampleRows(masks, row)[0]); diff != "" {
			r.Errorf("without Allowed:\n%s", diff)
		}
		hot := with(llama.Sampling{Temperature: 2, TopP: 1})
		hot.Mask = 1
		for _, t := range r.draws(hot, masks, 200) {
			if !slices.Contains(allowed, t) {
				r.Fatalf("drew %d, which the mask forbids", t)
			}
		}
	}},
	{"nothing allowed draws no token", func(r *rig) {
		row := with(llama.Sampling{Temperature: 1, TopP: 1})
		row.Mask = 0
		got := r.ready().sampleRows(r.allow(), row, greedyRow(1))
		if got[0].Token != llama.NoToken {
			r.Errorf("drew %d", got[0].Token)
		}
		if diff := cmp.Diff(r.sample(1), got[1]); diff != "" {
			r.Errorf("the other row:\n%s", diff)
		}
	}},
	{"a bias is added", func(r *rig) {
		r.ready()
		likeliest := r.sample(0)
		row := greedyRow(0)
		row.Bias = []llama.TokenBias{{Token: likeliest.Token, Bias: float32(math.Inf(-1))}}
		if got := r.sampleRows(nil, row)[0]; got.Token != likeliest.Top[1].Token {
			r.Errorf("with %d banned drew %d, want %d", likeliest.Token, got.Token, likeliest.Top[1].Token)
		}
		ninth := likeliest.Top[9].Token
		row.Bias = []llama.TokenBias{{Token: ninth, Bias: 100}}
		if got := r.sampleRows(nil, row)[0]; got.Token != ninth || got.Logprob < -1e-3 {
			r.Errorf("with %d favoured drew %s", ninth, show(&got))
		}
	}},
	{"a mask holds against a bias", func(r *rig) {
		r.ready()
		t := r.top(3)
		row := greedyRow(0)
		row.Mask, row.Bias = 0, []llama.TokenBias{{Token: t[0], Bias: 100}}
		if got := r.sampleRows(r.allow(t[1], t[2]), row)[0]; got.Token != t[1] {
			r.Errorf("drew %d, want %d", got.Token, t[1])
		}
	}},
	{"truncation keeps the likeliest", func(r *rig) {
		r.ready()
		t := r.top(5)
		for _, c := range []struct {
			name string
			p    llama.Sampling
			keep int
		}{
			{"top-k 1", llama.Sampling{Temperature: 5, TopK: 1, TopP: 1}, 1},
			{"top-k 5", llama.Sampling{Temperature: 5, TopK: 5, TopP: 1}, 5},
			{"top-p 0", llama.Sampling{Temperature: 1, TopP: 0}, 1},
			{"top-p tiny", llama.Sampling{Temperature: 1, TopP: 1e-6}, 1},
			{"min-p 1", llama.Sampling{Temperature: 1, TopP: 1, MinP: 1}, 1},
		} {
			for _, drawn := range r.draws(with(c.p), nil, 100) {
				if !slices.Contains(t[:c.keep], drawn) {
					r.Errorf("%s: drew %d, want one of %v", c.name, drawn, t[:c.keep])
					break
				}
			}
		}
	}},
	{"penalties hit what was said", penalties},
	{"refuses", func(r *rig) {
		r.ready()
		nan := float32(math.NaN())
		for name, spoil := range map[string]func(row *llama.SampleRow){
			"a row without logits":    func(row *llama.SampleRow) { row.Output = 2 },
			"a row out of range":      func(row *llama.SampleRow) { row.Output = 3 },
			"a negative row":          func(row *llama.SampleRow) { row.Output = -1 },
			"no parameters":           func(row *llama.SampleRow) { row.P = nil },
			"temperature NaN":         func(row *llama.SampleRow) { row.P = &llama.Sampling{Temperature: nan, TopP: 1} },
			"a mask out of range":     func(row *llama.SampleRow) { row.Mask = 1 },
			"a negative mask":         func(row *llama.SampleRow) { row.Mask = -2 },
			"more than MaxTop":        func(row *llama.SampleRow) { row.Top = llama.MaxTop + 1 },
			"a bias without a token":  func(row *llama.SampleRow) { row.Bias = []llama.TokenBias{{Token: -1}} },
			"a bias of no token":      func(row *llama.SampleRow) { row.Bias = []llama.TokenBias{{Token: llama.Token(r.vocab.Len())}} },
			"a bias NaN":              func(row *llama.SampleRow) { row.Bias = []llama.TokenBias{{Token: 1, Bias: nan}} },
			"a count without a token": func(row *llama.SampleRow) { row.Counts = []llama.TokenCount{{Token: -1}} },
		} {
			row := greedyRow(0)
			row.P = &llama.Sampling{TopP: 1, Presence: 1}
			spoil(&row)
			err := r.ctx.Sample([]llama.SampleRow{row}, r.allow(1, 2, 3), make([]llama.Sampled, 1))
			r.mustBe(name, err, llama.ErrInvalid)
		}
		err := r.ctx.Sample([]llama.SampleRow{greedyRow(0), greedyRow(1)}, nil, make([]llama.Sampled, 1))
		r.mustBe("too few results", err, llama.ErrInvalid)
	}},
}

// frequencies draws often from five tokens and compares with the model's own
// probabilities at a temperature.
func (r *rig) frequencies(temperature float64) {
	r.Helper()
	const n = 4000
	tokens := r.top(5)
	masks := r.allow(tokens...)
	row := greedyRow(0)
	row.Mask = 0
	for i, t := range tokens { // so that they are not about equally likely
		row.Bias = append(row.Bias, llama.TokenBias{Token: t, Bias: -0.8 * float32(i)})
	}
	share := make(map[llama.Token]float64)
	total := 0.0
	masked := r.sampleRows(masks, row)[0]
	for _, alt := range masked.Top[:masked.N] {
		share[alt.Token] = math.Exp(float64(alt.Logprob) / temperature)
		total += share[alt.Token]
	}
	row.P, row.Top, row.Seed = &llama.Sampling{Temperature: float32(temperature), TopP: 1}, -1, 11
	drawn := make(map[llama.Token]int)
	for _, t := range r.draws(row, masks, n) {
		drawn[t]++
	}
	for _, t := range tokens {
		p := share[t] / total
		// Five standard deviations of a binomial distribution.
		if got, off := float64(drawn[t])/n, 5*math.Sqrt(p*(1-p)/n); math.Abs(got-p) > off {
			r.Errorf("token %d: drawn %.4f of the time, want %.4f ± %.4f", t, got, p, off)
		}
	}
}

// penalties pushes the likeliest tokens out of their place. The logprobs stay
// those of the model.
func penalties(r *rig) {
	r.ready()
	before := r.sample(0)
	t := r.top(3)
	masks := r.allow(t...)
	answered := []llama.TokenCount{{Token: t[0], Answer: 1}, {Token: t[1]}}
	for _, c := range []struct {
		name   string
		p      llama.Sampling
		counts []llama.TokenCount
		want   llama.Token
	}{
		{"none", llama.Sampling{TopP: 1}, answered, t[0]},
		{"presence", llama.Sampling{TopP: 1, Presence: 1000}, answered, t[1]},
		{"presence below 0", llama.Sampling{TopP: 1, Presence: -1000}, []llama.TokenCount{{Token: t[2], Answer: 1}}, t[2]},
		{"frequency", llama.Sampling{TopP: 1, Frequency: 400}, []llama.TokenCount{{Token: t[0], Answer: 9}, {Token: t[1], Answer: 2}, {Token: t[2], Answer: 5}}, t[1]},
		{"presence of the prompt alone", llama.Sampling{TopP: 1, Presence: 1000, Frequency: 1000}, []llama.TokenCount{{Token: t[0]}}, t[0]},
	} {
		row := greedyRow(0)
		row.P, row.Counts, row.Mask = &c.p, c.counts, 0
		if got := r.sampleRows(masks, row)[0]; got.Token != c.want {
			r.Errorf("%s: drew %d, want %d", c.name, got.Token, c.want)
		}
	}
	row := greedyRow(0)
	row.P, row.Counts = &llama.Sampling{TopP: 1, Presence: 1000}, answered
	if diff := cmp.Diff(before.Top, r.sampleRows(nil, row)[0].Top); diff != "" {
		r.Errorf("logprobs under a penalty:\n%s", diff)
	}
}
