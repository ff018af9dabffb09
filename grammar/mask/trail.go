package mask

// This file finds the tokens that lead along items that were there before.

// A trail is where a walk along items stands: the exact and the vague
// configuration, and what bytes lead on along items that were there before. While
// the two differ in nothing but memory, and that is the same for all items, the
// exact one is not worked out: it is known by the set and the text.
type trail struct {
	exact, vague int32 // exact is unknown where text tells it
	text, set    int32
	next         byteSet
	all          bool // all bytes must be looked at
}

// trailAt is the trail of two configurations.
func (a *Automaton) trailAt(exact, vague int32) trail {
	c, m := &a.configs[exact], &a.memories
	t := trail{exact: exact, vague: vague, all: c.between || a.vagueOf(exact) != a.vagueOf(vague)}
	if !c.trails {
		return t
	}
	for _, it := range a.of(c.items) {
		m.addNext(a.frames[it.frame].memory, &t.next)
	}
	if x := m.list[a.memoryOf(exact)]; !t.all && !m.list[x.parent].trails {
		t.text, t.set = x.text, x.set
	}
	return t
}

// walkItems follows the tokens from both configurations along the items that were
// there before. It bars those that lead on from the vague one alone.
func (a *Automaton) walkItems(id, vague int32, bar func(int32)) {
	nodes := a.vocab.trie.nodes
	path := a.fill.trails
	path[0] = a.trailAt(id, vague)
	for i := int32(0); i < int32(len(nodes)) && a.fault == nil; {
		n := &nodes[i]
		here := &path[n.depth-1]
		if !here.all && !here.next.has(n.b) {
			i += n.size
			continue
		}
		vague := a.next(here.vague, n.b)
		if vague == dead {
			i += n.size
			continue
		}
		if there := &path[n.depth]; a.alongText(here, there, vague, n.b) {
			i++
			continue
		}
		exact := a.exactAt(path[:n.depth], i, id)
		if !a.isViable(exact) {
			for _, t := range a.vocab.trie.below(i) {
				bar(t)
			}
			i += n.size
			continue
		}
		path[n.depth] = a.trailAt(exact, vague)
		i++
	}
}

// alongText goes on by text alone where it can: no item ends, and something else
// than the items that were there before may follow.
func (a *Automaton) alongText(here, there *trail, vague int32, b byte) bool {
	if here.text == noText {
		return false
	}
	text := a.memories.longer.get(here.text, int32(b))
	*there = trail{vague: vague, text: text, set: here.set}
	if a.memories.addAfter(here.set, text, &there.next) {
		return false
	}
	return a.leadsBeside(vague, &there.next) || a.leadsBesideLater(there)
}

// leadsBesideLater tells whether the items that were there before lead to a place
// where something else may follow, as far as text tells.
func (a *Automaton) leadsBesideLater(t *trail) bool {
	for b := range 256 {
		if !t.next.has(byte(b)) {
			continue
		}
		vague := a.next(t.vague, byte(b))
		if vague == dead {
			continue
		}
		later := trail{vague: vague, text: a.memories.longer.get(t.text, int32(b)), set: t.set}
		if !a.memories.addAfter(later.set, later.text, &later.next) &&
			(a.leadsBeside(vague, &later.next) || a.leadsBesideLater(&later)) {
			return true
		}
	}
	return false
}

// leadsBeside tells whether a configuration leads on with a byte that is not in
// the set.
func (a *Automaton) leadsBeside(id int32, bytes *byteSet) bool {
	for _, it := range a.of(a.configs[id].items) {
		for _, e := range a.program.bytesOf(it.state) {
			for b := int(e.lo); b <= int(e.hi); b++ {
				if !bytes.has(byte(b)) {
					return true
				}
			}
		}
	}
	return false
}

// exactAt is the exact configuration at a node of the trie, which the path leads
// to.
func (a *Automaton) exactAt(path []trail, at, from int32) int32 {
	depth := len(path) - 1
	for depth > 0 && path[depth].exact == unknown {
		depth--
	}
	if depth > 0 {
		from = path[depth].exact
	}
	t := &a.vocab.trie
	piece := a.vocab.piece(t.below(at)[0])
	return a.read(from, piece[depth:t.nodes[at].depth])
}
