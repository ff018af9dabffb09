package llamatest

import (
	"fmt"
	"slices"

	"github.com/b3os/b3infer/llama"
)

// sequence finds a sequence by its id.
func (c *Context) sequence(s llama.SeqID) (*sequence, error) {
	if s < 0 || int(s) >= len(c.sequences) {
		return nil, fmt.Errorf("%w: sequence %d of %d", llama.ErrInvalid, s, len(c.sequences))
	}
	return &c.sequences[s], nil
}

// SeqCopy implements llama.Context.
func (c *Context) SeqCopy(src, dst llama.SeqID, from, to llama.Pos) error {
	c.enter()
	defer c.leave()
	if err := c.lock("copy sequence"); err != nil {
		return err
	}
	defer c.mu.Unlock()
	source, err := c.sequence(src)
	if err != nil {
		return fmt.Errorf("copy sequence: %w", err)
	}
	target, err := c.sequence(dst)
	if err != nil {
		return fmt.Errorf("copy sequence: %w", err)
	}
	if source.lost || target.lost {
		return fmt.Errorf("copy sequence: %w: %d or %d is lost", llama.ErrInvalid, src, dst)
	}
	return c.share(source, target, from, to)
}

func (c *Context) share(source, target *sequence, from, to llama.Pos) error {
	first, end := c.held(source, from, to)
	at, occupied := c.held(target, from, to)
	hybrid := c.model.options.Hybrid
	switch {
	case first == end:
		return nil
	case at != occupied || hybrid && len(target.cells) > 0:
		return fmt.Errorf("copy sequence: %w: the copy's place is taken", llama.ErrInvalid)
	case hybrid && end-first < len(source.cells):
		return fmt.Errorf("copy sequence: %w: the recurrent state is copied whole", llama.ErrPartial)
	}
	for _, i := range source.cells[first:end] {
		c.cells.cells[i].holders++
		target.memory.cells += c.cells.cells[i].value
	}
	target.cells = slices.Insert(target.cells, at, source.cells[first:end]...)
	target.memory.state, target.recurrent = source.memory.state, source.recurrent
	return nil
}

// SeqRemove implements llama.Context.
func (c *Context) SeqRemove(s llama.SeqID, from, to llama.Pos) error {
	c.enter()
	defer c.leave()
	if err := c.lock("remove sequence"); err != nil {
		return err
	}
	defer c.mu.Unlock()
	seq, err := c.sequence(s)
	if err != nil {
		return fmt.Errorf("remove sequence: %w", err)
	}
	first, end := c.held(seq, from, to)
	switch {
	case first == 0 && end == len(seq.cells):
		c.clear(seq)
		return nil
	case first == end:
		return nil
	case seq.lost:
		return fmt.Errorf("remove sequence: %w: %d is lost, it must be removed whole", llama.ErrInvalid, s)
	case c.model.options.Hybrid && (from <= seq.recurrent || end < len(seq.cells)):
		return fmt.Errorf("remove sequence: %w: the recurrent state is at %d", llama.ErrPartial, seq.recurrent)
	}
	for _, i := range seq.cells[first:end] {
		seq.memory.cells -= c.cells.cells[i].value
		c.cells.release(i)
	}
	seq.cells = slices.Delete(seq.cells, first, end)
	return nil
}

// SeqRange implements llama.Context. As in llama.cpp, a hybrid's sequence
// begins where its recurrent state is: at its last position.
func (c *Context) SeqRange(s llama.SeqID) (first, last llama.Pos) {
	c.enter()
	defer c.leave()
	if err := c.lock("sequence range"); err != nil {
		return -1, -1
	}
	defer c.mu.Unlock()
	seq, err := c.sequence(s)
	if err != nil || len(seq.cells) == 0 {
		return -1, -1
	}
	if c.model.options.Hybrid {
		return seq.recurrent, seq.recurrent
	}
	return c.cells.cells[seq.cells[0]].pos, c.end(seq).pos
}
