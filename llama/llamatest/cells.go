package llamatest

import (
	"slices"

	"github.com/b3os/b3infer/llama"
)

// A cell holds one row, for all sequences that share it.
type cell struct {
	value   uint64
	pos     llama.Pos
	token   llama.Token // NoToken: an embedding
	holders int32       // sequences that hold it
}

// A cache is the one pool of cells. used is the number of cells with holders.
type cache struct {
	cells []cell
	used  int
	head  int // where the search for a free cell begins
}

func newCache(n int) cache { return cache{cells: make([]cell, n)} }

func (k *cache) free() int { return len(k.cells) - k.used }

// take puts a row into a free cell; there must be one.
func (k *cache) take(row cell) int32 {
	for k.cells[k.head].holders > 0 {
		k.head = (k.head + 1) % len(k.cells)
	}
	i := k.head
	row.holders = 1
	k.cells[i] = row
	k.used++
	return int32(i)
}

func (k *cache) release(i int32) {
	k.cells[i].holders--
	if k.cells[i].holders == 0 {
		k.used--
		k.head = min(k.head, int(i))
	}
}

// A sequence is one id's cells, in the order of their positions.
//
// On hybrids memory.state is the recurrent state after the row at position
// recurrent; it can be older than the cells when a partial state was loaded.
type sequence struct {
	cells     []int32
	memory    memory
	recurrent llama.Pos // -1 when empty
	lost      bool      // a failed Decode has spoiled it: it must be removed whole
}

func newSequences(n int) []sequence {
	s := make([]sequence, n)
	for i := range s {
		s[i].recurrent = -1
	}
	return s
}

// held are the indexes in seq.cells of the positions in [from, to).
func (c *Context) held(seq *sequence, from, to llama.Pos) (first, end int) {
	find := func(pos llama.Pos) int {
		i, _ := slices.BinarySearchFunc(seq.cells, pos, func(i int32, pos llama.Pos) int {
			return int(c.cells.cells[i].pos - pos)
		})
		return i
	}
	first, end = 0, len(seq.cells)
	if from >= 0 {
		first = find(from)
	}
	if to >= 0 {
		end = max(first, find(to))
	}
	return first, end
}

// whole tells whether a sequence has all rows that a next row would need: no
// hole, no missing beginning, and a recurrent state at its end.
func (c *Context) whole(seq *sequence) bool {
	if seq.lost || c.model.options.Hybrid && seq.recurrent != c.end(seq).pos {
		return false
	}
	// Images make positions jump with M-RoPE, so that holes cannot be told there.
	return c.model.options.PosPerRow > 1 || c.end(seq).pos == llama.Pos(len(seq.cells))-1
}

// clear takes all cells from a sequence.
func (c *Context) clear(seq *sequence) {
	for _, i := range seq.cells {
		c.cells.release(i)
	}
	*seq = sequence{cells: seq.cells[:0], recurrent: -1}
}
