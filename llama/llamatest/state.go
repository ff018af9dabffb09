package llamatest

import (
	"encoding/binary"
	"fmt"

	"github.com/b3os/b3infer/llama"
)

// A saved state is a head of stateWords words, on hybrids stretched to
// Options.RecurrentBytes, and cellWords words for each cell unless it is
// partial. Words are little-endian.
const (
	stateMagic = 0x746573746c6c616d // "testllam"
	stateWords = 5                  // magic, checksum of what follows, cells, recurrent state and position
	cellWords  = 2                  // value; position and token
)

func (m *Model) stateHead() int { return max(m.options.RecurrentBytes, stateWords*8) }

// StateSize implements llama.Context.
func (c *Context) StateSize(s llama.SeqID, partial bool) (int, error) {
	c.enter()
	defer c.leave()
	if err := c.lock("size of state"); err != nil {
		return 0, err
	}
	defer c.mu.Unlock()
	seq, err := c.sequence(s)
	if err != nil {
		return 0, fmt.Errorf("size of state: %w", err)
	}
	return c.stateSize(seq, partial), nil
}

func (c *Context) stateSize(seq *sequence, partial bool) int {
	if partial {
		return c.model.stateHead()
	}
	return c.model.stateHead() + len(seq.cells)*cellWords*8
}

// StateSave implements llama.Context.
func (c *Context) StateSave(s llama.SeqID, dst []byte, partial bool) (int, error) {
	c.enter()
	defer c.leave()
	if err := c.lock("save state"); err != nil {
		return 0, err
	}
	defer c.mu.Unlock()
	seq, err := c.sequence(s)
	if err != nil {
		return 0, fmt.Errorf("save state: %w", err)
	}
	size := c.stateSize(seq, partial)
	if seq.lost || len(dst) < size {
		return 0, fmt.Errorf("save state: %w: %d bytes for %d, or sequence %d is lost", llama.ErrInvalid, len(dst), size, s)
	}
	clear(dst[:size])
	cells := dst[c.model.stateHead():size]
	put := binary.LittleEndian.PutUint64
	put(dst[0:], stateMagic)
	put(dst[16:], uint64(len(cells)/(cellWords*8)))
	put(dst[24:], seq.memory.state)
	put(dst[32:], uint64(seq.recurrent))
	for n := range len(cells) / (cellWords * 8) {
		row := &c.cells.cells[seq.cells[n]]
		put(cells[n*cellWords*8:], row.value)
		put(cells[n*cellWords*8+8:], uint64(row.pos)<<32|uint64(uint32(row.token)))
	}
	put(dst[8:], checksum(dst[16:size]))
	return size, nil
}

func checksum(p []byte) uint64 {
	h := uint64(len(p))
	for _, b := range p {
		h = mix(h ^ uint64(b))
	}
	return h
}

// StateLoad implements llama.Context. A state that it refuses changes nothing.
func (c *Context) StateLoad(s llama.SeqID, src []byte, partial bool) error {
	c.enter()
	defer c.leave()
	if err := c.lock("load state"); err != nil {
		return err
	}
	defer c.mu.Unlock()
	seq, err := c.sequence(s)
	if err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	head, get := c.model.stateHead(), binary.LittleEndian.Uint64
	if len(src) < head || get(src) != stateMagic || get(src[8:]) != checksum(src[16:]) {
		return fmt.Errorf("load state: %w: damaged, or of another model", llama.ErrInvalid)
	}
	n := int(get(src[16:]))
	state, recurrent := get(src[24:]), llama.Pos(get(src[32:]))
	if seq.lost || partial && n > 0 || !partial && len(seq.cells) > 0 {
		return fmt.Errorf("load state: %w: sequence %d is lost or not empty, or the state is of another kind", llama.ErrInvalid, s)
	}
	if partial {
		return c.restore(seq, state, recurrent)
	}
	if n > c.cells.free() {
		return fmt.Errorf("load state: %w", llama.ErrNoKVSpace)
	}
	for row := src[head:]; len(row) > 0; row = row[cellWords*8:] {
		value, place := get(row), get(row[8:])
		seq.cells = append(seq.cells, c.cells.take(cell{value: value, pos: llama.Pos(place >> 32), token: llama.Token(uint32(place))}))
		seq.memory.cells += value
	}
	seq.memory.state, seq.recurrent = state, recurrent
	return nil
}

// restore puts back a hybrid's recurrent state. The cells behind it are stale
// until they are removed; those before it must still be there.
func (c *Context) restore(seq *sequence, state uint64, recurrent llama.Pos) error {
	if !c.model.options.Hybrid {
		return nil
	}
	if first, end := c.held(seq, recurrent, recurrent+1); first == end {
		return fmt.Errorf("load state: %w: the state is of position %d, which the cells do not have", llama.ErrInvalid, recurrent)
	}
	seq.memory.state, seq.recurrent = state, recurrent
	return nil
}
