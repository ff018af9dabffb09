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

// memoryOf is the memory that all items of a configuration have in common, or
// noMemory if they have several.
func (a *Automaton) memoryOf(id int32) int32 {
	memory := int32(noMemory)
	for i, it := range a.of(a.configs[id].items) {
		switch here := a.frames[it.frame].memory; {
		case i == 0:
			memory = here
		case memory != here:
			return noMemory
		}
	}
	return memory
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
	a.moved = a.moved[:0]
	beginning, isKnown := a.beginning(id)
	for _, t := range a.recipes.ids[r.begun.from:r.begun.to] {
		if !isKnown || !a.beginsFreely(id, vague, t, beginning) {
			a.moved = append(a.moved, t)
		}
	}
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
