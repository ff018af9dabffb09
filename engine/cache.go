package engine

import (
	"fmt"
	"slices"

	"github.com/b3os/b3infer/llama"
)

// A cache keeps the books of a context's cells and sequence ids. A cell is
// held by a running sequence or by an idle one: the cells of a request that has
// ended, kept for a follow-up that starts with the same tokens.
type cache struct {
	ctx    llama.Context
	limits llama.Limits
	// cuttable: the end of a sequence can be cut off. Not so with recurrent state,
	// nor with sliding windows, which have forgotten what a cut would bring back.
	cuttable bool

	free      []llama.SeqID
	idle      []*idle // least recently used first
	used      int     // cells held, idle ones included
	idleCells int
	// reuse estimates how likely an idle sequence is continued.
	reuse float64
}

// idle is the cells of an ended request.
type idle struct {
	id     llama.SeqID
	tokens []llama.Token // one per cell
	pos    []llama.Pos
	rent   float64 // seconds that each cell has cost the running sequences so far
}

func newCache(ctx llama.Context, swa bool) *cache {
	limits := ctx.Limits()
	c := &cache{ctx: ctx, limits: limits, cuttable: limits.PartialRemove && !swa, reuse: 0.5}
	for id := limits.Sequences - 1; id >= 0; id-- {
		c.free = append(c.free, llama.SeqID(id))
	}
	return c
}

// begin gives a sequence an id, and the cells of the idle sequence that it
// continues, if there is one worth taking over. An id is always to be had: no more
// sequences run than there are ids, and idle ones give theirs up.
func (c *cache) begin(s *sequence) {
	if from, n := c.match(s.tokens); from != nil {
		c.resume(s, from, n)
		return
	}
	if len(c.free) == 0 {
		c.evict(c.idle[0])
	}
	s.id = c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	s.computed = 0
}

// match finds the idle sequence with the most tokens in common. Taking it over
// costs the tokens that are not, so at least half must be.
func (c *cache) match(tokens []llama.Token) (*idle, int) {
	var best *idle
	most := 0
	for _, e := range c.idle {
		// The last token is computed in any case, since its logits are wanted.
		n := commonPrefix(e.tokens, tokens[:len(tokens)-1])
		if n <= most || 2*n < len(e.tokens) || n < len(e.tokens) && !c.cuttable {
			continue
		}
		best, most = e, n
	}
	return best, most
}

func (c *cache) resume(s *sequence, from *idle, n int) {
	if n < len(from.tokens) {
		c.cut(from, n)
	}
	c.forget(from)
	s.id, s.computed = from.id, n
	c.reuse += (1 - c.reuse) * reuseWeight
}

// reuseWeight is how much one reuse or eviction moves the estimate.
const reuseWeight = 0.05

// end takes a sequence's cells over as idle.
func (c *cache) end(s *sequence) {
	if s.id == noSeq {
		return
	}
	if s.computed == 0 {
		c.free = append(c.free, s.id)
	} else {
		c.idle = append(c.idle, &idle{id: s.id, tokens: s.tokens[:s.computed:s.computed], pos: s.pos[:s.computed:s.computed]})
		c.idleCells += s.computed
	}
	s.id, s.computed = noSeq, 0
}

// drop gives up a sequence's cells, also those that a failed batch left.
func (c *cache) drop(s *sequence) {
	if s.id == noSeq {
		return
	}
	c.remove(s.id, -1)
	c.free = append(c.free, s.id)
	c.used -= s.computed
	s.id, s.computed = noSeq, 0
}

// grow books the rows of a finished batch.
func (c *cache) grow(s *sequence, rows int) {
	s.computed += rows
	c.used += rows
}

// room makes space for rows, at the cost of idle sequences, and tells whether
// there is enough.
func (c *cache) room(rows int) bool {
	for c.used+rows > c.limits.Cells && len(c.idle) > 0 {
		oldest := c.idle[0]
		lacking := c.used + rows - c.limits.Cells + removeMore
		if c.cuttable && lacking < len(oldest.tokens) {
			c.cut(oldest, len(oldest.tokens)-lacking)
		} else {
			c.evict(oldest)
		}
	}
	return c.used+rows <= c.limits.Cells
}

// removeMore is how many cells more than needed are cut off at a time: a removal
// looks at every cell, and rows that go into cells freed one by one lie in them
// in another order than their positions, which changes how attention rounds.
const removeMore = 64

// charge books what a step's attention paid for idle cells, and evicts what has
// cost more than computing it again is expected to: its price times the
// likelihood that it is wanted. As with ski rental, the sum is at most twice the
// best that could have been done with foresight.
func (c *cache) charge(perCell, price float64) {
	if perCell == 0 {
		return
	}
	for i := len(c.idle) - 1; i >= 0; i-- {
		e := c.idle[i]
		e.rent += perCell
		if e.rent > price*c.reuse {
			c.evict(e)
		}
	}
}

// evict gives up an idle sequence.
func (c *cache) evict(e *idle) {
	c.remove(e.id, -1)
	c.forget(e)
	c.free = append(c.free, e.id)
	c.used -= len(e.tokens)
	c.reuse -= c.reuse * reuseWeight
}

// cut shortens an idle sequence to n tokens.
func (c *cache) cut(e *idle, n int) {
	c.remove(e.id, e.pos[n])
	c.used -= len(e.tokens) - n
	c.idleCells -= len(e.tokens) - n
	e.tokens, e.pos = e.tokens[:n], e.pos[:n]
}

// forget takes a sequence off the idle list; its cells stay.
func (c *cache) forget(e *idle) {
	i := slices.Index(c.idle, e)
	c.idle = slices.Delete(c.idle, i, i+1)
	c.idleCells -= len(e.tokens)
}

func (c *cache) remove(id llama.SeqID, from llama.Pos) {
	if err := c.ctx.SeqRemove(id, from, -1); err != nil {
		panic(fmt.Sprintf("engine: remove sequence %d from %d: %v", id, from, err))
	}
}

// check verifies the books against the sequences that run.
func (c *cache) check(running []*sequence) error {
	held, idleCells := 0, 0
	seen := make(map[llama.SeqID]bool)
	hold := func(id llama.SeqID, n int, pos []llama.Pos) error {
		if seen[id] {
			return fmt.Errorf("sequence id %d is held twice", id)
		}
		seen[id] = true
		held += n
		want := llama.Pos(-1)
		if n > 0 {
			want = pos[n-1]
		}
		if _, last := c.ctx.SeqRange(id); last != want {
			return fmt.Errorf("sequence id %d ends at %d, want %d", id, last, want)
		}
		return nil
	}
	for _, s := range running {
		if err := hold(s.id, s.computed, s.pos); err != nil {
			return err
		}
		if s.computed >= len(s.tokens) {
			return fmt.Errorf("sequence id %d has nothing left to compute", s.id)
		}
	}
	for _, e := range c.idle {
		idleCells += len(e.tokens)
		if err := hold(e.id, len(e.tokens), e.pos); err != nil {
			return err
		}
	}
	for _, id := range c.free {
		if err := hold(id, 0, nil); err != nil {
			return err
		}
	}
	if held != c.used || idleCells != c.idleCells {
		return fmt.Errorf("%d cells are held (%d idle), the books say %d (%d)", held, idleCells, c.used, c.idleCells)
	}
	if len(seen) != c.limits.Sequences {
		return fmt.Errorf("%d sequence ids are known, want %d", len(seen), c.limits.Sequences)
	}
	return nil
}
