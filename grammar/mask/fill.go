package mask

import "slices"

// A fill works out the tokens that a configuration stays alive on, and how
// others leave. Its lists are kept between uses.
type fill struct {
	mask   []uint64
	other  []uint64 // scratch, for a second mask
	path   []int32  // configurations by the number of bytes read
	rows   [][]int32
	ends   []int32     // nodes of the trie where the rule may end
	memory int32       // with which it may; mixed if it depends
	exits  []exitToken // tokens that leave
	diff   difference
	trails []trail
}

func (f *fill) init(v *Vocabulary) {
	f.mask, f.other = make([]uint64, v.Words()), make([]uint64, v.Words())
	f.path = make([]int32, v.longest+1)
	f.rows = make([][]int32, v.longest+1)
	f.diff.path = make([]int32, v.longest+1)
	f.trails = make([]trail, v.longest+1)
}

func (f *fill) bytes() int { return 16*len(f.mask) + (4+24+4+64)*len(f.path) }

// innerOf is the inner mask of a local configuration.
func (a *Automaton) innerOf(local int32) *inner {
	if at := a.configs[local].inner; at >= 0 {
		return a.inners[at]
	}
	key, isShared := a.sharedKey(local)
	if isShared {
		if in := a.vocab.inners.get(key); in != nil {
			a.hold(local, in)
			return in
		}
	}
	in := a.fillInner(local)
	if a.fault != nil {
		return in
	}
	if !isShared || !a.vocab.inners.put(key, in) {
		a.innerAt += in.bytes()
	}
	a.hold(local, in)
	return in
}

func (a *Automaton) hold(local int32, in *inner) {
	a.configs[local].inner = int32(len(a.inners))
	a.inners = append(a.inners, in)
	a.innerAt += 8
}

// maxBases is how many inner masks may be worked out for the sake of another one.
const maxBases = 2

func (a *Automaton) fillInner(local int32) *inner {
	if base := a.baseOf(local); base != unknown && a.fault == nil && a.bases < maxBases {
		a.bases++
		in := a.innerOf(base)
		a.bases--
		if !in.partial && a.fault == nil {
			return a.fillFrom(local, base, in)
		}
	}
	f := &a.fill
	a.walkAll(local)
	f.exits = f.exits[:0]
	if f.memory == mixed || !f.leaveAt(a.vocab, f.ends) {
		return &inner{partial: true}
	}
	in := f.finish(a.vocab)
	in.memory = max(f.memory, noMemory)
	return in
}

// finish makes an inner mask of what was found.
func (f *fill) finish(v *Vocabulary) *inner {
	in := &inner{exits: newExits(v, f.exits)}
	in.keep(f.mask)
	return in
}

// walkAll fills the mask of a configuration, and ends.
func (a *Automaton) walkAll(from int32) {
	f := &a.fill
	clear(f.mask)
	f.ends, f.memory = f.ends[:0], unset
	t := &a.vocab.trie
	a.walk(from, 0, t.plain, 0)
	absorbs := a.configs[from].absorbs
	if absorbs > 0 {
		a.vocab.plain.addTo(f.mask, absorbs)
	}
	if absorbs != unlimited {
		a.walk(from, t.plain, int32(len(t.nodes)), absorbs)
	}
	a.vocab.copyAliases(f.mask)
}

// manyNodes is how large a part of the trie must be for its configuration to get
// a row of transitions.
const manyNodes = 8

// walk follows the tokens between two nodes of the trie. Those of up to known
// characters are in the mask already.
func (a *Automaton) walk(from, first, end int32, known uint32) {
	f, nodes := &a.fill, a.vocab.trie.nodes
	isPlain := first >= a.vocab.trie.plain
	f.path[0], f.rows[0] = from, a.rowOf(from)
	for i := first; i < end; {
		n := &nodes[i]
		if uint32(n.depth)+uint32(n.longest) <= known && n.longest < maxLongest {
			i += n.size
			continue
		}
		to := a.along(f.path[n.depth-1], f.rows[n.depth-1], n.b)
		if to == dead {
			i += n.size
			continue
		}
		c := &a.configs[to]
		if c.staysAlive(n, isPlain) {
			setBits(f.mask, a.vocab.trie.below(i))
			i += n.size
			continue
		}
		if n.token >= 0 {
			setBit(f.mask, n.token)
		}
		if n.size > 1 {
			if c.ends {
				f.ends = append(f.ends, i)
				f.end(c.memory)
			}
			f.path[n.depth], f.rows[n.depth] = to, nil
			if n.size >= manyNodes {
				f.rows[n.depth] = a.rowOf(to)
			}
		}
		i++
	}
}

// unset is the memory of a rule that did not end yet.
const unset = -3

func (f *fill) end(memory int32) {
	if f.memory != unset && f.memory != memory {
		memory = mixed
	}
	f.memory = memory
}

// along is next for a configuration whose row may be known.
func (a *Automaton) along(from int32, row []int32, b byte) int32 {
	if row != nil {
		if to := row[b]; to != unknown {
			return to
		}
	}
	return a.next(from, b)
}

// rowOf is the configuration's row of transitions.
func (a *Automaton) rowOf(id int32) []int32 {
	c := &a.configs[id]
	if c.row < 0 {
		c.row = a.moves.newRow()
	}
	return a.moves.row(c.row)
}

// staysAlive tells whether the configuration certainly stays alive on all tokens
// below a node, which may be plain ones.
func (c *config) staysAlive(n *trieNode, isPlain bool) bool {
	if isPlain && c.absorbs == unlimited {
		return true
	}
	if n.longest == maxLongest {
		return false
	}
	return isPlain && c.absorbs > 0 && uint32(n.longest) <= c.absorbs ||
		n.below&^c.run.classes == 0 && n.longest <= c.run.bytes && c.run.bytes > 0
}

// leaveAt adds to exits what is left of the tokens behind nodes of the trie,
// where they are not in the mask. It reports false where these are too many.
func (f *fill) leaveAt(v *Vocabulary, ends []int32) bool {
	for _, at := range ends {
		for _, t := range v.trie.below(at) {
			if t != v.trie.nodes[at].token && !hasBit(f.mask, t) {
				f.exits = append(f.exits, exitToken{token: t, at: at})
			}
		}
		if len(f.exits) > maxExits {
			return false
		}
	}
	return true
}

// fillFrom works out an inner mask from that of another configuration.
func (a *Automaton) fillFrom(local, base int32, in *inner) *inner {
	f, d := &a.fill, &a.fill.diff
	in.copyTo(f.mask)
	a.walkDifference(local, base)
	a.vocab.copyAliases(f.mask)
	root, dropped, own := in, []int32(nil), []exitToken(nil)
	if in.root != nil {
		root, dropped, own = in.root, in.dropped, in.exits.tokens
	}
	f.exits = append(f.exits[:0], d.exits...)
	for _, t := range own {
		if !d.isGone(t.at) && !hasBit(f.mask, t.token) {
			f.exits = append(f.exits, t)
		}
	}
	if !f.leaveAt(a.vocab, f.ends) {
		return &inner{partial: true}
	}
	out := &inner{root: root, dropped: d.appendGone(slices.Clone(dropped), root.exits.tokens)}
	root.copyTo(f.other)
	if out.keepDifference(f.mask, f.other) {
		out.exits = newExits(a.vocab, f.exits)
		return out
	}
	for _, t := range root.exits.tokens {
		if _, isDropped := slices.BinarySearch(out.dropped, t.at); !isDropped && !hasBit(f.mask, t.token) {
			f.exits = append(f.exits, t)
		}
	}
	if len(f.exits) > maxExits {
		return &inner{partial: true}
	}
	return f.finish(a.vocab)
}
