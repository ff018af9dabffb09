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
	a.make(&r, f.mask)
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

// walkItems follows the tokens from both configurations along the items that were
// there before. It bars those that lead on from the vague one alone.
func (a *Automaton) walkItems(id, vague int32, bar func(int32)) {
	f, d, nodes := &a.fill, &a.fill.diff, a.vocab.trie.nodes
	f.path[0], d.path[0] = id, vague
	for i := int32(0); i < int32(len(nodes)); {
		n := &nodes[i]
		x, y := f.path[n.depth-1], d.path[n.depth-1]
		if a.vagueOf(x) == a.vagueOf(y) && !a.mayRepeat(x, n.b) {
			i += n.size
			continue
		}
		if y = a.next(y, n.b); y == dead {
			i += n.size
			continue
		}
		if x = a.next(x, n.b); !a.isViable(x) {
			for _, t := range a.vocab.trie.below(i) {
				bar(t)
			}
			i += n.size
			continue
		}
		f.path[n.depth], d.path[n.depth] = x, y
		i++
	}
}

// mayRepeat tells whether what a byte leads to may be the beginning of an item
// that was there before.
func (a *Automaton) mayRepeat(id int32, b byte) bool {
	c := &a.configs[id]
	if c.between {
		return true
	}
	if c.trails {
		for _, it := range a.of(c.items) {
			if a.memories.follows(a.frames[it.frame].memory, b) {
				return true
			}
		}
	}
	return false
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
	if a.configs[id].ends || a.configs[id].tokens {
		return true
	}
	var bytes [256]bool
	for _, it := range a.of(a.configs[id].items) {
		for _, e := range a.program.bytesOf(it.state) {
			for b := int(e.lo); b <= int(e.hi); b++ {
				bytes[b] = true
			}
		}
	}
	for _, along := range []bool{false, true} {
		for b := range bytes {
			if bytes[b] && a.mayRepeat(id, byte(b)) == along && a.isViable(a.next(id, byte(b))) {
				return true
			}
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
