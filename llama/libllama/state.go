package libllama

// #include "shim.h"
import "C"

import (
	"fmt"

	"github.com/b3os/b3infer/llama"
)

// StateSize is the buffer that StateSave needs (llama_state_seq_get_size_ext).
func (c *Context) StateSize(s llama.SeqID, partial bool) (int, error) {
	if err := c.checkSequence(s); err != nil {
		return 0, fmt.Errorf("state: %w", err)
	}
	var size C.size_t
	var cerr C.b3_error
	if code := C.b3_state_size(c.c, C.int32_t(s), cbool(partial), &size, &cerr); code != C.B3_OK {
		return 0, fmt.Errorf("size of the state of sequence %d: %w", s, shimError(code, &cerr))
	}
	return int(size), nil
}

// StateSave copies a sequence's state to dst and returns its length
// (llama_state_seq_get_data_ext).
func (c *Context) StateSave(s llama.SeqID, dst []byte, partial bool) (int, error) {
	if err := c.checkSequence(s); err != nil {
		return 0, fmt.Errorf("state: %w", err)
	}
	size, err := c.StateSize(s, partial)
	if err != nil {
		return 0, err
	}
	if len(dst) < size {
		return 0, fmt.Errorf("save the state of sequence %d: %d bytes for %d: %w", s, len(dst), size, llama.ErrInvalid)
	}
	var n C.size_t
	var cerr C.b3_error
	if code := C.b3_state_save(c.c, C.int32_t(s), cbool(partial), (*C.uint8_t)(ptr(dst)), C.size_t(len(dst)), &n, &cerr); code != C.B3_OK {
		return 0, fmt.Errorf("save the state of sequence %d: %w", s, shimError(code, &cerr))
	}
	return int(n), nil
}

// StateLoad puts a saved state into s (llama_state_seq_set_data_ext). A state
// that does not fit leaves s empty.
func (c *Context) StateLoad(s llama.SeqID, src []byte, partial bool) error {
	if err := c.checkSequence(s); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if !partial && c.ends[s].pos >= 0 {
		return fmt.Errorf("load a state into sequence %d, which is not empty: %w", s, llama.ErrInvalid)
	}
	var cerr C.b3_error
	code := C.b3_state_load(c.c, C.int32_t(s), cbool(partial), (*C.uint8_t)(ptr(src)), C.size_t(len(src)), &cerr)
	if code != C.B3_OK {
		C.b3_seq_remove(c.c, C.int32_t(s), -1, -1)
	}
	c.refresh(s, true)
	if code != C.B3_OK {
		return fmt.Errorf("load a state into sequence %d: %w", s, shimError(code, &cerr))
	}
	return nil
}
