package libllama

// #include "shim.h"
// #cgo nocallback b3_seq_range
// #cgo noescape b3_seq_range
import "C" // b3_seq_range cannot log

import (
	"fmt"
	"math"

	"github.com/b3os/b3infer/llama"
)

// SeqRange is the first and last position held (llama_memory_seq_pos_min,
// _max). On hybrids both are where the recurrent state is.
func (c *Context) SeqRange(s llama.SeqID) (first, last llama.Pos) {
	if c.checkSequence(s) != nil {
		return -1, -1
	}
	var from, to C.int32_t
	C.b3_seq_range(c.c, C.int32_t(s), &from, &to)
	return llama.Pos(from), llama.Pos(to)
}

// refresh reads the end of a sequence from llama.cpp. image tells whether its
// last row may be one of an image.
func (c *Context) refresh(s llama.SeqID, image bool) {
	_, last := c.SeqRange(s)
	c.ends[s] = end{pos: last, image: image && last >= 0}
}

// SeqCopy makes dst share the cells of src in [from, to) (llama_memory_seq_cp).
// On hybrids the range must cover all of src, and dst must be empty: its
// recurrent state would be replaced.
func (c *Context) SeqCopy(src, dst llama.SeqID, from, to llama.Pos) error {
	if err := c.checkSequence(src, dst); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	from, to = closed(from, to)
	first, last := c.SeqRange(src)
	dstFirst, dstLast := c.SeqRange(dst)
	hybrid := !c.limits.RangeCopy
	if hybrid {
		first = 0 // of the cells; SeqRange tells where the recurrent state is
	}
	switch {
	case src == dst:
		return fmt.Errorf("copy sequence %d to itself: %w", src, llama.ErrInvalid)
	case from > last || to <= first:
		return nil
	case dstLast >= 0 && (hybrid || from <= dstLast && dstFirst < to):
		return fmt.Errorf("copy to sequence %d, which has positions %d to %d: %w", dst, dstFirst, dstLast, llama.ErrInvalid)
	case hybrid && (from > 0 || to <= last):
		return fmt.Errorf("copy a part of sequence %d: %w", src, llama.ErrPartial)
	}
	if code := C.b3_seq_copy(c.c, C.int32_t(src), C.int32_t(dst), C.int32_t(from), C.int32_t(to)); code != C.B3_OK {
		return fmt.Errorf("copy sequence %d: llama_memory_seq_cp failed", src)
	}
	c.refresh(dst, to <= last || c.ends[src].image)
	return nil
}

// SeqRemove takes the cells in [from, to) from a sequence (llama_memory_seq_rm).
// On hybrids that is all of a sequence, or cells behind its recurrent state,
// which are there when an older state was loaded.
func (c *Context) SeqRemove(s llama.SeqID, from, to llama.Pos) error {
	if err := c.checkSequence(s); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	from, to = closed(from, to)
	last := c.ends[s].pos
	switch {
	case from >= to:
		return nil
	case from == 0 && to > last:
		to = math.MaxInt32 // whole, and stale cells too
	case !c.limits.PartialRemove && from <= last:
		return fmt.Errorf("remove positions %d to %d of sequence %d, whose state is at %d: %w", from, to-1, s, last, llama.ErrPartial)
	}
	if code := C.b3_seq_remove(c.c, C.int32_t(s), C.int32_t(from), C.int32_t(to)); code != C.B3_OK {
		return fmt.Errorf("remove sequence %d: llama_memory_seq_rm failed", s)
	}
	c.refresh(s, true)
	return nil
}

// closed turns the open bounds of a range into numbers.
func closed(from, to llama.Pos) (llama.Pos, llama.Pos) {
	if to < 0 {
		to = math.MaxInt32
	}
	return max(from, 0), to
}
