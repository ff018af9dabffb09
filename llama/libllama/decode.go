package libllama

// #include "shim.h"
import "C"

import (
	"fmt"
	"slices"

	"github.com/b3os/b3infer/llama"
)

// Decode computes a batch and waits for the result (llama_decode,
// llama_synchronize). After a failure that is not ErrNoKVSpace the sequences
// that lack rows are in DecodeError.Lost, and have been removed whole.
func (c *Context) Decode(b *llama.Batch) error {
	if err := c.check(b); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	c.outputs = c.outputs[:0]
	switch code := c.decode(b); code {
	case 0:
		copy(c.ends, c.rows)
		c.outputs = append(c.outputs, b.Output...)
		return nil
	case 1:
		return llama.ErrNoKVSpace
	default:
		err := &llama.DecodeError{Code: int(code), Lost: c.lose(b)}
		if text := C.GoString(&c.cerr.text[0]); text != "" {
			return fmt.Errorf("%w: %s", err, text)
		}
		return err
	}
}

func (c *Context) decode(b *llama.Batch) C.int {
	return C.b3_decode(c.c, C.int32_t(b.Len()),
		(*C.int32_t)(ptr(b.Token)), (*C.float)(ptr(b.Embd)), (*C.int32_t)(ptr(b.Pos)), (*C.int32_t)(ptr(b.Seq)),
		(*C.int8_t)(ptr(b.Output)), cbool(b.NonCausal), c.cerr)
}

// check finds what llama.cpp would answer with an abort or only with a log line.
func (c *Context) check(b *llama.Batch) error {
	n := b.Len()
	embd := len(b.Embd) > 0
	width := 1
	if embd {
		width = c.model.info.PosPerRow
	}
	outputs := 0
	for _, out := range b.Output {
		if out {
			outputs++
		}
	}
	bad := ""
	switch {
	case c.c == nil:
		return llama.ErrClosed
	case n == 0 || n > c.limits.Batch:
		bad = fmt.Sprintf("%d rows, a batch takes 1 to %d", n, c.limits.Batch)
	case embd == (len(b.Token) > 0):
		bad = "a batch has tokens or embeddings"
	case !embd && len(b.Token) != n, embd && len(b.Embd) != n*c.model.info.Embedding, len(b.Pos) != n*width, len(b.Output) != n:
		bad = fmt.Sprintf("%d rows, but %d tokens, %d floats, %d positions, %d outputs", n, len(b.Token), len(b.Embd), len(b.Pos), len(b.Output))
	case outputs > c.limits.Outputs:
		bad = fmt.Sprintf("%d outputs of at most %d", outputs, c.limits.Outputs)
	case b.NonCausal && n > c.limits.UBatch:
		bad = fmt.Sprintf("%d non-causal rows, a ubatch takes %d", n, c.limits.UBatch)
	default:
		return c.checkRows(b, embd)
	}
	return fmt.Errorf("%s: %w", bad, llama.ErrInvalid)
}

// checkRows looks at the ids and positions of all rows, and leaves in c.rows
// where the sequences end after the batch.
func (c *Context) checkRows(b *llama.Batch, image bool) error {
	copy(c.rows, c.ends)
	mrope := c.model.info.PosPerRow > 1
	for i, s := range b.Seq {
		if s < 0 || int(s) >= len(c.rows) {
			return fmt.Errorf("row %d: sequence %d of %d: %w", i, s, len(c.rows), llama.ErrInvalid)
		}
		if !image && !c.model.vocab.Valid(b.Token[i]) {
			return fmt.Errorf("row %d: token %d: %w", i, b.Token[i], llama.ErrInvalid)
		}
		row := end{pos: b.Pos[i], image: image}
		if !row.follows(c.rows[s], mrope) {
			return fmt.Errorf("row %d: position %d of sequence %d, which ends at %d: %w", i, row.pos, s, c.rows[s].pos, llama.ErrInvalid)
		}
		c.rows[s] = row
	}
	return nil
}

// follows tells whether a row may stand behind another. With M-RoPE the rows
// of an image share positions, and what comes behind it may jump ahead.
func (e end) follows(prev end, mrope bool) bool {
	switch {
	case mrope && prev.image && e.image:
		return e.pos >= prev.pos
	case mrope && prev.image:
		return e.pos > prev.pos
	default:
		return e.pos == prev.pos+1
	}
}

// lose finds the sequences of a failed batch that lack rows and removes them
// whole. On hybrids that is all of them: llama.cpp removes the failed ubatch
// from the cells, which a recurrent state does not allow.
func (c *Context) lose(b *llama.Batch) []llama.SeqID {
	var lost []llama.SeqID
	for _, s := range b.Seq {
		if slices.Contains(lost, s) {
			continue
		}
		c.refresh(s, c.rows[s].image)
		if c.limits.PartialRemove && c.ends[s] == c.rows[s] {
			continue
		}
		C.b3_seq_remove(c.c, C.int32_t(s), -1, -1)
		c.refresh(s, false)
		lost = append(lost, s)
	}
	return lost
}
