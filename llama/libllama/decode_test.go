//go:build cgo

package libllama

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/llama"
)

// prompts are long enough to need several ubatches of 16.
var prompts = []string{
	"The capital of France is",
	"Once upon a time there was a small dragon who could not breathe fire. Every morning she went to the river and",
	"def fibonacci(n):\n    if n < 2:\n        return n\n    return",
	"1, 1, 2, 3, 5, 8, 13,",
	"Water boils at a temperature of",
	"Dear Sir or Madam,\n\nI am writing to",
	"The three primary colours are red,",
	"In 1969, the first man on the Moon",
	"To make a cup of tea, first",
}

// likeliest draws the likeliest token of rows of the last Decode.
func likeliest(t *testing.T, c *Context, rows ...int32) []llama.Token {
	t.Helper()
	ask := make([]llama.SampleRow, len(rows))
	for i, row := range rows {
		ask[i] = llama.SampleRow{Output: row, P: &llama.Sampling{}, Mask: -1, Top: -1}
	}
	out := make([]llama.Sampled, len(rows))
	if err := c.Sample(ask, nil, out); err != nil {
		t.Fatal(err)
	}
	tokens := make([]llama.Token, len(rows))
	for i := range out {
		tokens[i] = out[i].Token
	}
	return tokens
}

// addRun appends tokens to a batch from a position on; the last row has logits.
func addRun(b *llama.Batch, seq llama.SeqID, from llama.Pos, tokens []llama.Token) {
	for i, token := range tokens {
		b.Add(token, from+llama.Pos(i), seq, i == len(tokens)-1)
	}
}

func decode(t *testing.T, c *Context, b *llama.Batch) {
	t.Helper()
	if err := c.Decode(b); err != nil {
		t.Fatal(err)
	}
}

// answerAlone computes a prompt in chunks and then n tokens, alone in a sequence.
func answerAlone(t *testing.T, c *Context, seq llama.SeqID, prompt []llama.Token, n, chunk int) []llama.Token {
	t.Helper()
	var b llama.Batch
	var answer []llama.Token
	pos := llama.Pos(0)
	next := prompt
	for len(answer) < n {
		for len(next) > 0 {
			k := min(chunk, len(next))
			b.Reset()
			addRun(&b, seq, pos, next[:k])
			decode(t, c, &b)
			pos, next = pos+llama.Pos(k), next[k:]
		}
		next = likeliest(t, c, int32(b.Len()-1))
		answer = append(answer, next...)
	}
	return answer
}

func promptTokens(t *testing.T, m *Model) [][]llama.Token {
	t.Helper()
	tokens := make([][]llama.Token, len(prompts))
	for i, p := range prompts {
		var err error
		if tokens[i], err = m.Tokenize(nil, literal(p), true); err != nil {
			t.Fatal(err)
		}
	}
	return tokens
}

// With flash attention and quantized weights an answer is the same to the bit
// alone, among others, prefilled in any chunks, and recomputed after its cells
// were lost. On the CPU that holds as long as ubatches are below 64 rows and a
// sequence's cells lie in the order of its positions: attention sums up in the
// order of cells, from 64 rows on in tiles (GGML_FA_TILE_Q), and in 16 bits.
func TestSameAnswer(t *testing.T) {
	m := loadModel(t, testModelPath(t, smolModel), llama.ModelParams{})
	c := newTestContext(t, m, llama.ContextParams{Cells: 2048, Batch: 512, UBatch: 32})
	tokens := promptTokens(t, m)
	const n = 24
	want := make([][]llama.Token, len(tokens))
	for i, prompt := range tokens {
		want[i] = answerAlone(t, c, 0, prompt, n, len(prompt))
		if err := c.SeqRemove(0, -1, -1); err != nil {
			t.Fatal(err)
		}
	}
	for _, chunk := range []int{1, 3} {
		if diff := cmp.Diff(want[1], answerAlone(t, c, 5, tokens[1], n, chunk)); diff != "" {
			t.Errorf("in chunks of %d: %s", chunk, diff)
		}
		if err := c.SeqRemove(5, -1, -1); err != nil {
			t.Fatal(err)
		}
	}
	got := answerTogether(t, c, tokens, n)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("among others: %s", diff)
	}
}

// answerTogether runs all prompts at once. Half way all lose their cells and are
// computed again, prompts and answers.
func answerTogether(t *testing.T, c *Context, prompts [][]llama.Token, n int) [][]llama.Token {
	t.Helper()
	have := make([][]llama.Token, len(prompts)) // prompt and answer
	computed := make([]int, len(prompts))
	for i, p := range prompts {
		have[i] = append([]llama.Token(nil), p...)
	}
	var b llama.Batch
	for step := range n {
		if step == n/2 {
			for i := range prompts {
				if err := c.SeqRemove(llama.SeqID(i), -1, -1); err != nil {
					t.Fatal(err)
				}
				computed[i] = 0
			}
		}
		b.Reset()
		var rows []int32
		for i := range have {
			addRun(&b, llama.SeqID(i), llama.Pos(computed[i]), have[i][computed[i]:])
			computed[i] = len(have[i])
			rows = append(rows, int32(b.Len()-1))
		}
		decode(t, c, &b)
		for i, token := range likeliest(t, c, rows...) {
			have[i] = append(have[i], token)
		}
	}
	for i := range have {
		if err := c.SeqRemove(llama.SeqID(i), -1, -1); err != nil {
			t.Fatal(err)
		}
		have[i] = have[i][len(prompts[i]):]
	}
	return have
}

func TestDecodeEmbeddings(t *testing.T) {
	for _, file := range []string{tinyModel, hybridModel} {
		t.Run(file, func(t *testing.T) {
			m := loadModel(t, testModelPath(t, file), llama.ModelParams{})
			c := newTestContext(t, m, llama.ContextParams{UBatch: 16})
			var b llama.Batch
			addRun(&b, 0, 0, []llama.Token{1, 2, 3})
			decode(t, c, &b)

			const rows = 4 // of a 2 by 2 image
			width, dims := m.Info().Embedding, m.Info().PosPerRow
			image := llama.Batch{Embd: make([]float32, rows*width), Seq: make([]llama.SeqID, rows), Output: make([]bool, rows), NonCausal: true}
			image.Output[rows-1] = true
			for i := range image.Embd {
				image.Embd[i] = float32(math.Sin(float64(i)))
			}
			next := llama.Pos(3 + rows)
			if dims == 1 {
				image.Pos = []llama.Pos{3, 4, 5, 6}
			} else {
				image.Pos = []llama.Pos{3, 3, 3, 3, 3, 3, 4, 4, 3, 4, 3, 4, 0, 0, 0, 0} // time, y, x, unused
				next = 5
			}
			decode(t, c, &image)
			b.Reset()
			addRun(&b, 0, next, []llama.Token{5})
			decode(t, c, &b)
			if _, last := c.SeqRange(0); last != next {
				t.Errorf("ends at %d, want %d", last, next)
			}
		})
	}
}
