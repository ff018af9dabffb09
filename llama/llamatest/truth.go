package llamatest

import "github.com/b3os/b3infer/llama"

// TrueOutput is the answer that a correct engine gets after a prompt of text
// tokens: at most n tokens, the last of them an end token if there is one.
// The token at index i is drawn with Step i. Counts follow from the prompt and
// the answer. It needs no context and may be called by several goroutines.
func (m *Model) TrueOutput(prompt []llama.Token, n int, p llama.Sampling, seed uint64, bias ...llama.TokenBias) []llama.Token {
	var mem memory
	sequence := make([]llama.Token, 0, len(prompt)+n)
	read := func(t llama.Token) {
		value := mem.value(tokenContent(t), llama.Pos(len(sequence)))
		mem = mem.with(value, m.options.Hybrid)
		sequence = append(sequence, t)
	}
	for _, t := range prompt {
		read(t)
	}
	s := newSampler(m.vocab.Len())
	for step := range n {
		m.logits(m.outlook(mem, sequence), s.logits)
		answer := sequence[len(prompt):]
		row := llama.SampleRow{
			P: &p, Seed: seed, Step: uint64(step), Bias: bias, Mask: -1, Top: -1,
			Counts: countTokens(prompt, answer),
		}
		var out llama.Sampled
		s.sample(&row, nil, &out)
		if out.Token == llama.NoToken {
			break
		}
		read(out.Token)
		if m.vocab.IsEnd(out.Token) {
			break
		}
	}
	return sequence[len(prompt):]
}

// countTokens counts for penalties, each token of prompt and answer once.
func countTokens(prompt, answer []llama.Token) []llama.TokenCount {
	index := make(map[llama.Token]int)
	var counts []llama.TokenCount
	count := func(t llama.Token, times int32) {
		i, ok := index[t]
		if !ok {
			i = len(counts)
			index[t] = i
			counts = append(counts, llama.TokenCount{Token: t})
		}
		counts[i].Answer += times
	}
	for _, t := range prompt {
		count(t, 0)
	}
	for _, t := range answer {
		count(t, 1)
	}
	return counts
}

// tokenContent tells rows of tokens apart by what is put in (see rowContent).
func tokenContent(t llama.Token) uint64 { return mix(uint64(t)) }
