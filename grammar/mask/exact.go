package mask

// This file takes from masks that were worked out with vague memories what exact
// ones bar.

// newRecipe works out how a configuration's mask is made.
func (a *Automaton) newRecipe(id int32) recipe {
	if !a.program.remembers || a.isVague(id) {
		return a.compose(id)
	}
	vague := a.vagueOf(id)
	base := a.recipeOf(vague)
	if base == nil {
		return recipe{}
	}
	out := *base
	out.less = a.recipes.put(a.barred(id, vague, out))
	out.allowed -= out.less.to - out.less.from
	return out
}

// isVague tells whether the memories of a configuration are.
func (a *Automaton) isVague(id int32) bool {
	c := &a.configs[id]
	memory := c.memory
	if c.items.from < c.items.to {
		memory = a.frames[a.items[c.items.from].frame].memory
	}
	return a.memories.list[memory].vague
}

// vagueOf is a configuration with vague memories, as at the start of a token.
func (a *Automaton) vagueOf(id int32) int32 {
	c := &a.configs[id]
	if id == dead || c.vague != unknown {
		return max(c.vague, dead)
	}
	a.locals = a.locals[:0]
	for _, it := range a.of(c.items) {
		it.frame = a.framed(it.frame, a.memories.vagueOf(a.frames[it.frame].memory))
		a.locals = append(a.locals, it)
	}
	a.locals = sortItems(a.locals)
	ends, memory := c.ends, int32(noMemory)
	if ends {
		memory = a.memories.vagueOf(c.memory)
	}
	to := a.intern(a.locals, ends, memory)
	a.configs[id].vague = to
	return to
}

// acceptExactly is the configuration after one token, or dead.
func (a *Automaton) acceptExactly(from, token int32) int32 {
	if a.program.remembers && a.accept(a.vagueOf(from), token) == dead {
		return dead
	}
	to := a.accept(from, token)
	if a.isViable(to) {
		return to
	}
	return dead
}

// barred is the tokens of a recipe for vague memories that exact ones do not
// allow: what repeats an item, or can do nothing else.
func (a *Automaton) barred(id, vague int32, r recipe) []int32 {
	f := &a.fill
	a.assemble(&r, f.mask)
	less := a.scratch[:0]
	bar := func(t int32) {
		if hasBit(f.mask, t) {
			clearBit(f.mask, t)
			less = append(less, t)
		}
	}
	a.walkItems(id, vague, bar)
	a.moved = append(a.moved[:0], a.recipes.ids[r.begun.from:r.begun.to]...)
	if a.configs[vague].tokens {
		for _, it := range a.of(a.configs[vague].items) {
			for _, e := range a.program.tokensOf(it.state) {
				if !e.not {
					a.moved = append(a.moved, e.token)
				}
			}
		}
	}
	for _, t := range a.moved {
		if t >= 0 && a.acceptExactly(id, t) == dead {
			bar(t)
		}
	}
	less = a.vocab.appendBarred(less, f.mask)
	a.scratch = less
	return less
}

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
	items := a.of(c.items)
	memory := a.frames[items[0].frame].memory
	same := !t.all && !m.list[m.list[memory].parent].trails
	for _, it := range items {
		m.addNext(a.frames[it.frame].memory, &t.next)
		same = same && a.frames[it.frame].memory == memory
	}
	if same {
		t.text, t.set = m.list[memory].text, m.list[memory].set
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
	return a.leadsBeside(vague, &there.next)
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

// isViable tells whether a configuration leads on to something else than the
// items that were there before. These are more than can be used up, so only what
// was read of one can leave nothing else.
func (a *Automaton) isViable(id int32) bool {
	if !a.configs[id].trails {
		return id != dead
	}
	if a.configs[id].viable == notKnown {
		found := no
		if a.leadsAway(id) {
			found = yes
		}
		a.configs[id].viable = found
	}
	return a.configs[id].viable == yes
}

func (a *Automaton) leadsAway(id int32) bool {
	c := &a.configs[id]
	if c.ends || c.tokens || c.between {
		return true
	}
	var along byteSet
	for _, it := range a.of(c.items) {
		a.memories.addNext(a.frames[it.frame].memory, &along)
	}
	if a.leadsBeside(id, &along) {
		return true
	}
	for b := range 256 {
		if along.has(byte(b)) && a.isViable(a.next(id, byte(b))) {
			return true
		}
	}
	return false
}

// begins tells whether a token ends an item and begins another one.
func (a *Automaton) begins(from, token int32) bool {
	return a.vocab.isText(token) && a.configs[a.read(from, a.vocab.piece(token))].begun
}

// appendBegun appends the tokens of a mask that end an item and begin another
// one.
func (a *Automaton) appendBegun(tokens []int32, from int32, mask []uint64) []int32 {
	for _, t := range appendBits(nil, mask) {
		if a.begins(from, t) {
			tokens = append(tokens, t)
		}
	}
	return tokens
}
