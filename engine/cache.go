package engine

import (
	"fmt"
	"slices"

	"github.com/b3os/b3infer/llama"
)

// A cache keeps the books of a context's cells and sequence ids. Cells are held
// by running sequences and by idle ones, those of requests that have ended, kept for
// what starts with the same tokens. Sequences with a common start hold it together.
type cache struct {
	ctx    llama.Context
	limits llama.Limits
	// cuttable: the end of a sequence can be cut off. Not so with recurrent state,
	// nor with sliding windows, which have forgotten what a cut would bring back.
	cuttable bool

	free  []llama.SeqID
	idle  []*idle // least recently used first
	used  int     // cells held, idle ones included
	count uint64  // of heldBy
	// reuse is the share of requests that go on from an idle sequence, and so also
	// how likely one is continued; lately, see begin.
	reuse float64
}

// idle is what an ended request left.
type idle struct {
	id     llama.SeqID
	tokens []llama.Token
	pos    []llama.Pos
	shared *stretch
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

// minShared is the least number of tokens that are worth sharing.
const minShared = 8

// A source is what a new sequence can have the first n of its tokens from.
type source struct {
	n      int
	id     llama.SeqID
	pos    []llama.Pos
	shared **stretch
	idle   *idle // nil: a running sequence
}

// begin gives a sequence an id, and the longest start of its tokens that another
// one holds. An idle sequence that it continues is taken over. An id is always to be
// had: no more sequences run than there are ids, and idle ones give theirs up.
func (c *cache) begin(s *sequence, running []*sequence) {
	from := c.fromIdle(s.tokens)
	if s.admissions == 0 {
		continues := 0.0
		if from.idle != nil && 2*from.n >= len(from.idle.tokens) {
			continues = 1
		}
		c.reuse += (continues - c.reuse) * reuseWeight
	}
	if other := c.fromRunning(s.tokens, running); other.n > from.n {
		from = other
	}
	whole := from.idle != nil && from.n == len(from.idle.tokens)
	if !whole && len(c.free) == 0 && from.idle != c.idle[0] {
		c.evict(c.idle[0])
	}
	if whole || len(c.free) == 0 {
		c.resume(s, from.idle, from.n)
		return
	}
	s.id = c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	s.computed = from.n
	if from.n > 0 {
		if err := c.ctx.SeqCopy(from.id, s.id, -1, from.pos[from.n]); err != nil {
			panic(fmt.Sprintf("engine: copy sequence %d up to %d: %v", from.id, from.pos[from.n], err))
		}
		s.shared = lend(from.shared, from.n)
	}
}

// fromIdle finds the idle sequence with the most tokens in common. What cannot be
// cut must be continued whole.
func (c *cache) fromIdle(tokens []llama.Token) source {
	var best source
	for _, e := range c.idle {
		// The last token is computed in any case, since its logits are wanted.
		n := commonPrefix(e.tokens, tokens[:len(tokens)-1])
		whole := n == len(e.tokens)
		if n > best.n && (whole || c.cuttable && n >= minShared) {
			best = source{n: n, id: e.id, pos: e.pos, shared: &e.shared, idle: e}
		}
	}
	return best
}

// fromRunning does so among running sequences. What cannot be cut is copied whole.
func (c *cache) fromRunning(tokens []llama.Token, running []*sequence) source {
	var best source
	for _, r := range running {
		n := commonPrefix(r.tokens[:r.computed], tokens[:len(tokens)-1])
		if n > best.n && n >= minShared && (c.cuttable || n == r.computed) {
			best = source{n: n, id: r.id, pos: r.pos, shared: &r.shared}
		}
	}
	return best
}

// has is how many tokens a sequence could have from others.
func (c *cache) has(tokens []llama.Token, running []*sequence) int {
	return max(c.fromIdle(tokens).n, c.fromRunning(tokens, running).n)
}

// resume lets a sequence take over an idle one's first n tokens.
func (c *cache) resume(s *sequence, from *idle, n int) {
	if n < len(from.tokens) {
		c.cut(from, n)
	}
	c.forget(from)
	s.id, s.computed, s.shared = from.id, n, from.shared
}

// reuseWeight is how much one request moves the estimate.
const reuseWeight = 0.1

// end takes a sequence's cells over as idle.
func (c *cache) end(s *sequence) {
	if s.id == noSeq {
		return
	}
	if s.computed == 0 {
		c.free = append(c.free, s.id)
	} else {
		c.idle = append(c.idle, &idle{
			id: s.id, tokens: s.tokens[:s.computed:s.computed], pos: s.pos[:s.computed:s.computed], shared: s.shared,
		})
	}
	s.id, s.computed, s.shared = noSeq, 0, nil
}

// drop gives up a sequence's cells, also those that a failed batch left.
func (c *cache) drop(s *sequence) {
	if s.id == noSeq {
		return
	}
	c.remove(s.id, -1)
	c.free = append(c.free, s.id)
	c.give(s.computed, s.shared)
	s.id, s.computed, s.shared = noSeq, 0, nil
}

// give books that a sequence of n tokens holds nothing any more.
func (c *cache) give(n int, shared *stretch) {
	c.used -= n - shared.end() + shared.give()
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

// charge books what rows pay for attention to idle cells, and evicts what has cost
// more than computing it again is expected to: its price times the likelihood that
// it is wanted. As with ski rental, the sum is at most twice the best that could
// have been done with foresight.
func (c *cache) charge(rows int, cost *costModel) {
	perCell := cost.perCell(rows)
	if perCell == 0 {
		return
	}
	for i := len(c.idle) - 1; i >= 0; i-- {
		e := c.idle[i]
		e.rent += perCell
		if e.rent > c.reuse*cost.perRow(len(e.tokens)/2) {
			c.evict(e)
		}
	}
}

// evict gives up an idle sequence.
func (c *cache) evict(e *idle) {
	c.remove(e.id, -1)
	c.forget(e)
	c.free = append(c.free, e.id)
	c.give(len(e.tokens), e.shared)
}

// cut shortens an idle sequence to n tokens.
func (c *cache) cut(e *idle, n int) {
	c.remove(e.id, e.pos[n])
	kept := e.shared
	if n < kept.end() {
		kept = kept.at(n)
		c.give(len(e.tokens), e.shared)
	} else {
		c.used -= len(e.tokens) - n
	}
	e.tokens, e.pos, e.shared = e.tokens[:n], e.pos[:n], kept
}

// forget takes a sequence off the idle list; its cells stay.
func (c *cache) forget(e *idle) {
	i := slices.Index(c.idle, e)
	c.idle = slices.Delete(c.idle, i, i+1)
}

// heldBy counts the cells that sequences hold.
func (c *cache) heldBy(running []*sequence) (cells int) {
	c.count++
	for _, s := range running {
		cells += s.computed - s.shared.end()
		for x := s.shared; x != nil && x.counted != c.count; x = x.parent {
			x.counted = c.count
			cells += x.to - x.from
		}
	}
	return cells
}

func (c *cache) remove(id llama.SeqID, from llama.Pos) {
	if err := c.ctx.SeqRemove(id, from, -1); err != nil {
		panic(fmt.Sprintf("engine: remove sequence %d from %d: %v", id, from, err))
	}
}

// check verifies the books against the sequences that run.
func (c *cache) check(running []*sequence) error {
	held := 0
	ids := make(map[llama.SeqID]bool)
	holders := make(map[*stretch]int)
	hold := func(id llama.SeqID, n int, pos []llama.Pos, shared *stretch) error {
		if ids[id] {
			return fmt.Errorf("sequence id %d is held twice", id)
		}
		ids[id] = true
		want := llama.Pos(-1)
		if n > 0 {
			want = pos[n-1]
		}
		if _, last := c.ctx.SeqRange(id); last != want {
			return fmt.Errorf("sequence id %d ends at %d, want %d", id, last, want)
		}
		if shared.end() > n {
			return fmt.Errorf("sequence id %d holds %d tokens and shares %d", id, n, shared.end())
		}
		held += n - shared.end()
		for x := shared; x != nil; x = x.parent {
			if holders[x]++; holders[x] > 1 {
				break
			}
			held += x.to - x.from
			if x.from >= x.to || x.from != x.parent.end() {
				return fmt.Errorf("a stretch [%d, %d) behind %d", x.from, x.to, x.parent.end())
			}
		}
		return nil
	}
	for _, s := range running {
		if err := hold(s.id, s.computed, s.pos, s.shared); err != nil {
			return err
		}
		if s.computed >= len(s.tokens) {
			return fmt.Errorf("sequence id %d has nothing left to compute", s.id)
		}
	}
	for _, e := range c.idle {
		if err := hold(e.id, len(e.tokens), e.pos, e.shared); err != nil {
			return err
		}
	}
	for _, id := range c.free {
		if err := hold(id, 0, nil, nil); err != nil {
			return err
		}
	}
	for x, n := range holders {
		if x.holders != n {
			return fmt.Errorf("a stretch [%d, %d) has %d holders, the books say %d", x.from, x.to, n, x.holders)
		}
	}
	if held != c.used {
		return fmt.Errorf("%d cells are held, the books say %d", held, c.used)
	}
	if len(ids) != c.limits.Sequences {
		return fmt.Errorf("%d sequence ids are known, want %d", len(ids), c.limits.Sequences)
	}
	return nil
}
