package mask

// This file takes configurations apart into what inner masks are of: items
// without their frame, whose counters go no further than a token can reach.

// localOf is the configuration of items of one frame, as if that were bottom.
// What does not depend on memory has none.
func (a *Automaton) localOf(items []item) int32 {
	frame := int32(bottom)
	if a.program.remembers && a.memorizes(items) {
		frame = a.framed(bottom, a.frames[items[0].frame].memory)
	}
	a.locals = a.locals[:0]
	for _, it := range items {
		it.register = a.program.within(it, uint32(a.vocab.longest))
		it.frame = frame
		a.locals = append(a.locals, it)
	}
	a.locals = sortItems(a.locals)
	return a.intern(a.locals, false, noMemory)
}

// memorizes tells whether what the items do depends on memory.
func (a *Automaton) memorizes(items []item) bool {
	for _, it := range items {
		if a.program.states[it.state].flags&flagMemorizes != 0 {
			return true
		}
	}
	return false
}

// framed is a frame with another memory.
func (a *Automaton) framed(id, memory int32) int32 {
	base := a.frames[id].base
	if memory == noMemory {
		return base
	}
	to := a.memories.framed.get(base, memory)
	if to == unknown {
		to = int32(len(a.frames))
		a.frames = append(a.frames, frame{returns: a.frames[base].returns, base: base, memory: memory})
		a.memories.framed.put(base, memory, to)
	}
	return to
}

// within is the register of an item as far as a text of n bytes can tell: a
// round takes at least one.
func (p *program) within(it item, n uint32) uint64 {
	if p.states[it.state].flags&flagCounted == 0 {
		return it.register
	}
	need, left := roundsOf(it.register)
	if need > n {
		need = unlimited
	}
	if left > n {
		left = unlimited
	}
	return rounds(need, left)
}

// alike tells whether no text of up to n bytes tells two configurations apart.
// They may be alike where it says no.
func (a *Automaton) alike(x, y int32, n uint32) bool {
	cx, cy := &a.configs[x], &a.configs[y]
	if cx.ends != cy.ends || cx.items.to-cx.items.from != cy.items.to-cy.items.from {
		return false
	}
	ys := a.of(cy.items)
	for i, it := range a.of(cx.items) {
		other := ys[i]
		if it.state != other.state || it.frame != other.frame ||
			it.register != other.register && a.program.within(it, n) != a.program.within(other, n) {
			return false
		}
	}
	return true
}

// baseOf is a configuration whose inner mask is likely to differ little from
// that of a local one, or unknown.
func (a *Automaton) baseOf(local int32) int32 {
	if a.items[a.configs[local].items.from].frame != bottom {
		return unknown
	}
	if base := a.uncounted(local); base != local {
		return base
	}
	return a.loopAfter(local)
}

// fewRounds is up to how many rounds still to be made the inner mask is worked
// out from that without any.
const fewRounds = 8

// uncounted is the local configuration with unlimited counters.
func (a *Automaton) uncounted(local int32) int32 {
	a.locals = a.locals[:0]
	for _, it := range a.of(a.configs[local].items) {
		if a.program.states[it.state].flags&flagCounted != 0 {
			need, _ := roundsOf(it.register)
			if need <= fewRounds {
				need = 0
			} else {
				need = unlimited
			}
			it.register = rounds(need, unlimited)
		}
		a.locals = append(a.locals, it)
	}
	a.locals = sortItems(a.locals)
	return a.intern(a.locals, false, noMemory)
}

// loopProbes are bytes of ordinary texts.
const loopProbes = "aeinost019_-"

// loopAfter is the configuration that most bytes lead to from a local one, if it
// leads back to itself: the rest of a string, in most cases.
func (a *Automaton) loopAfter(local int32) int32 {
	best, votes := int32(unknown), 0
	for i := range len(loopProbes) {
		to := a.next(local, loopProbes[i])
		if to == dead || to == best {
			continue
		}
		count := 0
		for j := range len(loopProbes) {
			if a.next(local, loopProbes[j]) == to && a.next(to, loopProbes[j]) == to {
				count++
			}
		}
		if count > votes {
			best, votes = to, count
		}
	}
	if 2*votes < len(loopProbes) || best == local {
		return unknown
	}
	items := a.of(a.configs[best].items)
	if items[0].frame != bottom || items[len(items)-1].frame != bottom {
		return unknown
	}
	if base := a.localOf(items); base != local {
		return base
	}
	return unknown
}
