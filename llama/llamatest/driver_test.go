package llamatest_test

import (
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

// A driver is the least that an engine does with a context.
type driver struct {
	testing.TB
	model *llamatest.Model
	ctx   *llamatest.Context
}

func newDriver(t testing.TB, o llamatest.Options) *driver {
	t.Helper()
	model := llamatest.New(o)
	ctx, err := model.NewContext(llama.ContextParams{Cells: 200, Sequences: 6, Batch: 16, UBatch: 4, Outputs: 6})
	if err != nil {
		t.Fatal(err)
	}
	return &driver{TB: t, model: model, ctx: ctx.(*llamatest.Context)}
}

func (d *driver) tokens(text string) []llama.Token {
	d.Helper()
	tokens, err := d.model.Tokenize(nil, []llama.Part{{Text: []byte(text), Special: true}}, false)
	if err != nil {
		d.Fatal(err)
	}
	return tokens
}

func (d *driver) text(tokens []llama.Token) string {
	var text []byte
	for _, t := range tokens {
		text = append(text, d.model.Vocab().Piece(t)...)
	}
	return string(text)
}

// feed puts tokens behind a sequence; the last row has logits.
func (d *driver) feed(s llama.SeqID, tokens ...llama.Token) error {
	_, last := d.ctx.SeqRange(s)
	for len(tokens) > 0 {
		n := min(len(tokens), d.ctx.Limits().Batch)
		var b llama.Batch
		for i, t := range tokens[:n] {
			last++
			b.Add(t, last, s, i == n-1)
		}
		if err := d.ctx.Decode(&b); err != nil {
			return err
		}
		tokens = tokens[n:]
	}
	return nil
}

// sample draws from the only row with logits that feed(.., tokens) left.
func (d *driver) sample(row int, p llama.Sampling, seed, step uint64) llama.Token {
	d.Helper()
	var out [1]llama.Sampled
	rows := []llama.SampleRow{{Output: int32(row), P: &p, Seed: seed, Step: step, Mask: -1, Top: -1}}
	if err := d.ctx.Sample(rows, nil, out[:]); err != nil {
		d.Fatal(err)
	}
	return out[0].Token
}

// next is the likeliest token after what a sequence holds and these tokens.
func (d *driver) next(s llama.SeqID, tokens ...llama.Token) llama.Token {
	d.Helper()
	if err := d.feed(s, tokens...); err != nil {
		d.Fatal(err)
	}
	return d.sample((len(tokens)-1)%d.ctx.Limits().Batch, llama.Sampling{TopP: 1}, 0, 0)
}

// answer generates n tokens, or up to an end token, after a prompt.
func (d *driver) answer(s llama.SeqID, prompt []llama.Token, n int, p llama.Sampling, seed uint64) []llama.Token {
	d.Helper()
	var answer []llama.Token
	next := prompt
	for step := range n {
		if err := d.feed(s, next...); err != nil {
			d.Fatal(err)
		}
		t := d.sample((len(next)-1)%d.ctx.Limits().Batch, p, seed, uint64(step))
		answer, next = append(answer, t), []llama.Token{t}
		if d.model.Vocab().IsEnd(t) {
			break
		}
	}
	return answer
}
