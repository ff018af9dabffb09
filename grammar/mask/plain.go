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
	if !found {
		return
	}
	m.shrink()
	m.markLoops()
	for id := range b.drafts {
		if m.absorbs[id] {
			b.drafts[id].flags |= flagAbsorbs
		}
	}
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

// A byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) add(lo, hi byte) {
	for c := int(lo); c <= int(hi); c++ {
		s[c>>6] |= 1 << (c & 63)
	}
}

func (s *byteSet) has(t *byteSet) bool {
	for i := range s {
		if t[i]&^s[i] != 0 {
			return false
		}
	}
	return true
}

func byteRange(lo, hi byte) (s byteSet) {
	s.add(lo, hi)
	return s
}

// plainASCII is the plain characters of one byte.
var plainASCII = func() (s byteSet) {
	s.add(' ', '!')
	s.add('#', '[')
	s.add(']', '~')
	return s
}()

// The shapes of longer characters: ranges of bytes, one behind the other
// (Unicode 17, table 3-7).
var longCharacters = [][]byteSet{
	{byteRange(0xc2, 0xdf), byteRange(0x80, 0xbf)},
	{byteRange(0xe0, 0xe0), byteRange(0xa0, 0xbf), byteRange(0x80, 0xbf)},
	{byteRange(0xe1, 0xec), byteRange(0x80, 0xbf), byteRange(0x80, 0xbf)},
	{byteRange(0xed, 0xed), byteRange(0x80, 0x9f), byteRange(0x80, 0xbf)},
	{byteRange(0xee, 0xef), byteRange(0x80, 0xbf), byteRange(0x80, 0xbf)},
	{byteRange(0xf0, 0xf0), byteRange(0x90, 0xbf), byteRange(0x80, 0xbf), byteRange(0x80, 0xbf)},
	{byteRange(0xf1, 0xf3), byteRange(0x80, 0xbf), byteRange(0x80, 0xbf), byteRange(0x80, 0xbf)},
	{byteRange(0xf4, 0xf4), byteRange(0x80, 0x8f), byteRange(0x80, 0xbf), byteRange(0x80, 0xbf)},
}

// covered tells whether the state's own edges lead on every plain character to
// a state that is good.
func (m *marker) covered(id int32, good func(int32) bool) bool {
	if !m.follows(id, []byteSet{plainASCII}, good) {
		return false
	}
	for _, shape := range longCharacters {
		if !m.follows(id, shape, good) {
			return false
		}
	}
	return true
}

// follows tells whether all byte sequences of a shape lead to a good state.
func (m *marker) follows(id int32, shape []byteSet, good func(int32) bool) bool {
	if len(shape) == 0 {
		return good(id)
	}
	if id < 0 {
		return false
	}
	var on byteSet
	for _, e := range m.b.drafts[id].bytes {
		if hit := byteRange(e.lo, e.hi); on.has(&hit) || !overlap(&hit, &shape[0]) {
			continue
		}
		if m.follows(e.to, shape[1:], good) {
			on.add(e.lo, e.hi)
		}
	}
	return on.has(&shape[0])
}

func overlap(a, b *byteSet) bool {
	return a[0]&b[0]|a[1]&b[1]|a[2]&b[2]|a[3]&b[3] != 0
}
