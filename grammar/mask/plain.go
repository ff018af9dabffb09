package mask

import "slices"

// mark finds the states that plain characters cannot leave, for the fill of
// inner masks.
func (b *builder) mark() {
	m := marker{b: b, absorbs: make([]bool, len(b.drafts))}
	found := false
	for id := range b.drafts {
		m.absorbs[id] = m.covered(int32(id), func(int32) bool { return true })
		found = found || m.absorbs[id]
	}
	if found {
		m.shrink()
		m.markLoops()
	}
	for id := range b.drafts {
		if m.absorbs[id] {
			b.drafts[id].flags |= flagAbsorbs
		}
	}
	b.markRuns()
}

// A marker finds the states that stay alive on any plain text: it assumes it of
// all that lead on with every plain character, and takes back what does not
// hold.
type marker struct {
	b       *builder
	absorbs []bool
}

// maxPasses bounds the work. Rules of long texts with many ways need a pass for
// each step; they have no states worth marking.
const maxPasses = 40

// shrink takes marks back until those that remain hold. It walks up and down in
// turns, since marks depend on each other along texts, in whose order states
// stand.
func (m *marker) shrink() {
	order := make([]int32, len(m.absorbs))
	for id := range order {
		order[id] = int32(id)
	}
	for range maxPasses {
		changed := false
		for _, id := range order {
			if m.absorbs[id] && !m.covered(id, m.absorbing) {
				m.absorbs[id], changed = false, true
			}
		}
		if !changed {
			return
		}
		slices.Reverse(order)
	}
	clear(m.absorbs)
}

// reach calls visit for a state and those that it is also, until visit says
// true, and tells whether it did.
func (m *marker) reach(id int32, visit func(int32) bool) bool {
	if visit(id) {
		return true
	}
	if id < 0 {
		return false
	}
	for _, to := range m.b.drafts[id].jumps {
		if m.reach(to, visit) {
			return true
		}
	}
	return false
}

func (m *marker) absorbing(id int32) bool {
	return m.reach(id, func(id int32) bool {
		if id < 0 {
			return m.b.p.states[^id].flags&flagAbsorbs != 0
		}
		return m.absorbs[id]
	})
}

// markLoops finds the states that begin the body of the rule's counted loop and
// end it with any plain character.
func (m *marker) markLoops() {
	for _, l := range m.b.loops {
		m.reach(l.body, func(id int32) bool {
			if id >= 0 && m.covered(id, m.endsRound) {
				m.b.drafts[id].flags |= flagAbsorbsBy
			}
			return false
		})
	}
}

func (m *marker) endsRound(id int32) bool {
	return m.reach(id, func(id int32) bool { return id >= 0 && m.b.drafts[id].kind == stateLoopEnd })
}

// A byteRange is the bytes from lo to hi.
type byteRange struct{ lo, hi byte }

// plainShapes are the plain characters: ranges of bytes, one behind the other
// (Unicode 17, table 3-7).
var plainShapes = [][]byteRange{
	{{' ', '!'}},
	{{'#', '['}},
	{{']', '~'}},
	{{0xc2, 0xdf}, {0x80, 0xbf}},
	{{0xe0, 0xe0}, {0xa0, 0xbf}, {0x80, 0xbf}},
	{{0xe1, 0xec}, {0x80, 0xbf}, {0x80, 0xbf}},
	{{0xed, 0xed}, {0x80, 0x9f}, {0x80, 0xbf}},
	{{0xee, 0xef}, {0x80, 0xbf}, {0x80, 0xbf}},
	{{0xf0, 0xf0}, {0x90, 0xbf}, {0x80, 0xbf}, {0x80, 0xbf}},
	{{0xf1, 0xf3}, {0x80, 0xbf}, {0x80, 0xbf}, {0x80, 0xbf}},
	{{0xf4, 0xf4}, {0x80, 0x8f}, {0x80, 0xbf}, {0x80, 0xbf}},
}

// minPlain is the least bytes that a state must have edges for to lead on with
// every plain character.
const minPlain = 128

// covered tells whether the state's own edges lead on every plain character to
// a state that is good.
func (m *marker) covered(id int32, good func(int32) bool) bool {
	if width(m.b.drafts[id].bytes) < minPlain {
		return false
	}
	for _, shape := range plainShapes {
		if !m.follows(id, shape, good) {
			return false
		}
	}
	return true
}

// follows tells whether all byte sequences of a shape lead to a good state.
func (m *marker) follows(id int32, shape []byteRange, good func(int32) bool) bool {
	if len(shape) == 0 {
		return good(id)
	}
	if id < 0 {
		return false
	}
	next, last := int(shape[0].lo), int(shape[0].hi)
	for _, e := range m.b.drafts[id].bytes {
		if int(e.lo) <= next && next <= int(e.hi) && m.follows(e.to, shape[1:], good) {
			if next = int(e.hi) + 1; next > last {
				return true
			}
		}
	}
	return false
}
