package llamatest_test

import (
	"errors"
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

// image is a batch of an image's rows for sequence 0, from pos on: of h by w
// rows with M-RoPE positions, time first, then rows, columns and nothing.
func image(d *driver, pos llama.Pos, h, w int, pixel float32) *llama.Batch {
	n := h * w
	b := &llama.Batch{
		Embd: make([]float32, n*d.model.Info().Embedding), Pos: make([]llama.Pos, 4*n),
		Seq: make([]llama.SeqID, n), Output: make([]bool, n),
	}
	b.Embd[0] = pixel
	for i := range n {
		b.Pos[i], b.Pos[n+i], b.Pos[2*n+i] = pos, pos+llama.Pos(i/w), pos+llama.Pos(i%w)
	}
	return b
}

// TestImages puts an image of 2 by 2 rows, which advances positions by 2,
// between tokens. What comes then depends on all that was put in.
func TestImages(t *testing.T) {
	after := func(change func(b *llama.Batch), next llama.Pos) (llama.Token, error) {
		d := newDriver(t, llamatest.Options{PosPerRow: 4, MeanAnswer: -1})
		d.check(d.feed(0, 'a', 'b'))
		b := image(d, 2, 2, 2, 0.5)
		change(b)
		if err := d.ctx.Decode(b); err != nil {
			return 0, err
		}
		var text llama.Batch
		text.Add('c', next, 0, true)
		if err := d.ctx.Decode(&text); err != nil {
			return 0, err
		}
		return d.sample(0, llama.Sampling{TopP: 1}, 0, 0), nil
	}
	want, err := after(func(*llama.Batch) {}, 4)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := after(func(*llama.Batch) {}, 4); err != nil || again != want {
		t.Errorf("again: got %d, %v, want %d", again, err, want)
	}
	for name, change := range map[string]func(b *llama.Batch){
		"other pixels":    func(b *llama.Batch) { b.Embd[7] = 1 },
		"another column":  func(b *llama.Batch) { b.Pos[2*4+1]++ },
		"non-causal":      func(b *llama.Batch) { b.NonCausal = true },
		"one row is lost": func(b *llama.Batch) { b.Seq, b.Output, b.Pos, b.Embd = cut(b, 3) },
	} {
		if got, err := after(change, 4); err != nil || got == want {
			t.Errorf("%s: got %d, %v, which is as before", name, got, err)
		}
	}
	if got, err := after(func(*llama.Batch) {}, 5); err != nil || got == want {
		t.Errorf("another position behind the image: got %d, %v", got, err)
	}
	for name, bad := range map[string]struct {
		change func(b *llama.Batch)
		next   llama.Pos
	}{
		"an image that goes back":  {func(b *llama.Batch) { b.Pos[2] = 1 }, 4},
		"an image too far ahead":   {func(b *llama.Batch) { b.Pos[0] = 3 }, 4},
		"text inside the image":    {func(*llama.Batch) {}, 2},
		"positions of one text":    {func(b *llama.Batch) { b.Pos = b.Pos[:4] }, 4},
		"embeddings of one number": {func(b *llama.Batch) { b.Embd = b.Embd[:4] }, 4},
	} {
		if _, err := after(bad.change, bad.next); !errors.Is(err, llama.ErrInvalid) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

// cut keeps the first n of an image's rows.
func cut(b *llama.Batch, n int) (seq []llama.SeqID, output []bool, pos []llama.Pos, embd []float32) {
	rows := b.Len()
	for dimension := range 4 {
		pos = append(pos, b.Pos[dimension*rows:dimension*rows+n]...)
	}
	return b.Seq[:n], b.Output[:n], pos, b.Embd[:n*len(b.Embd)/rows]
}

// TestNonCausal shows that rows of a non-causal batch see those behind them.
func TestNonCausal(t *testing.T) {
	first := func(nonCausal bool, last llama.Token) llama.Token {
		d := newDriver(t, llamatest.Options{MeanAnswer: -1})
		b := llama.Batch{NonCausal: nonCausal}
		b.Add('a', 0, 0, true)
		b.Add(last, 1, 0, false)
		d.check(d.ctx.Decode(&b))
		return d.sample(0, llama.Sampling{TopP: 1}, 0, 0)
	}
	if got, want := first(false, 'c'), first(false, 'b'); got != want {
		t.Errorf("a causal row saw what came behind it: %d, not %d", got, want)
	}
	if got, other := first(true, 'c'), first(true, 'b'); got == other {
		t.Errorf("a non-causal row did not see what came behind it: %d", got)
	}
}
