package mask

import "slices"

// This file is about arrays whose items must differ: grammar.Unique. A place
// inside of one remembers the items so far, and as much of the present one as was
// read. A memory belongs to an item's frame, since it must survive the rules
// that are entered and left in between.
//
// Masks are worked out with vague memories, which know how deep they are and
// nothing else, so that all places with the same rules share them. What the
// exact memory bars is taken away afterwards. A vague memory lets a token end one
// item, and begin the next one: tokens that do more are not allowed, here and in
// Accept alike.

// The first numbers of memories. Both are of places outside of any Unique.
const (
	noMemory    = 0
	vagueMemory = 1
)

// A memory is what is remembered inside of one Unique.
type memory struct {
	parent int32 // of the Unique around it
	set    int32 // the items so far, or one of those below
	text   int32 // the present item as far as it was read, or noText
	vague  bool
	trails bool // text is the beginning of an item of set, or that holds for parent
	counts bool // the bytes of an item behind the end of another, or that holds for parent
}

// The sets of vague memories.
const (
	anySet   = -1
	endedSet = -2 // an item has ended in the present token
)

// Texts are the nodes of a trie. In a vague memory behind the end of an item they
// count the bytes of the next one.
const (
	noText    = 0
	emptyText = 1
)

// maxBegun is how many bytes of another item a token may have behind the end of
// one.
const maxBegun = 2

// emptySet is the set without items.
const emptySet = 0

// An itemSet is a set with one more item.
type itemSet struct {
	before int32
	path   span // of memories.paths: the item's texts by their length
}

// Memories interns memories, sets and texts, in lists without pointers.
type memories struct {
	list   []memory
	index  index
	sets   []itemSet
	paths  []int32
	texts  []textNode
	longer transitions // texts with one more byte
	framed transitions // frames with a memory
	added  transitions // sets with one more text
}

type textNode struct {
	before int32
	length int32
	b      byte // the last one
}

func (m *memories) reset() {
	*m = memories{
		list:  []memory{{}, {vague: true}},
		sets:  []itemSet{{}},
		texts: []textNode{{}, {}},
	}
	m.index.reset()
	m.longer.reset()
	m.framed.reset()
	m.added.reset()
}

func (m *memories) bytes() int {
	return 16*cap(m.list) + 12*cap(m.sets) + 4*cap(m.paths) + 12*cap(m.texts) + 4*len(m.index.slots) +
		m.longer.bytes() + m.framed.bytes() + m.added.bytes()
}

// of is the number of a memory.
func (m *memories) of(parent, set, text int32) int32 {
	hash := mix(mix(uint64(uint32(parent))<<32|uint64(uint32(set))) ^ uint64(uint32(text)))
	slot := m.index.find(hash, func(id int32) bool {
		x := &m.list[id]
		return x.parent == parent && x.set == set && x.text == text
	})
	if *slot != 0 {
		return *slot
	}
	id := int32(len(m.list))
	*slot = id
	above := m.list[parent]
	m.list = append(m.list, memory{
		parent: parent, set: set, text: text, vague: above.vague,
		trails: above.trails || set > emptySet && m.begins(set, text),
		counts: above.counts || set == endedSet && text != noText,
	})
	m.index.grow(func(id int32) uint64 {
		x := &m.list[id]
		return mix(mix(uint64(uint32(x.parent))<<32|uint64(uint32(x.set))) ^ uint64(uint32(x.text)))
	})
	return id
}

// begins tells whether an item of the set begins with the text.
func (m *memories) begins(set, text int32) bool {
	if text == noText {
		return false
	}
	length := m.texts[text].length
	for ; set > emptySet; set = m.sets[set].before {
		path := m.sets[set].path
		if path.from+length < path.to && m.paths[path.from+length] == text {
			return true
		}
	}
	return false
}

// has tells whether the text is an item of the set.
func (m *memories) has(set, text int32) bool {
	for ; set > emptySet; set = m.sets[set].before {
		if m.paths[m.sets[set].path.to-1] == text {
			return true
		}
	}
	return false
}

// with is the set with one more text.
func (m *memories) with(set, text int32) int32 {
	if id := m.added.get(set, text); id != unknown {
		return id
	}
	from := int32(len(m.paths))
	for t := text; t != noText; t = m.texts[t].before {
		m.paths = append(m.paths, t)
	}
	slices.Reverse(m.paths[from:])
	id := int32(len(m.sets))
	m.sets = append(m.sets, itemSet{set, span{from, int32(len(m.paths))}})
	m.added.put(set, text, id)
	return id
}

// longerText is the text with one more byte.
func (m *memories) longerText(text int32, b byte) int32 {
	id := m.longer.get(text, int32(b))
	if id == unknown {
		id = int32(len(m.texts))
		m.texts = append(m.texts, textNode{text, m.texts[text].length + 1, b})
		m.longer.put(text, int32(b), id)
	}
	return id
}

// A memoryChange is what entering and leaving a rule does.
type memoryChange uint8

const (
	changeNothing memoryChange = iota
	changeUnique               // the rule is a Unique
	changeItem                 // the rule is an Item
)

// lost is no memory: the place must be given up.
const lost = -1

// enter is the memory inside of a rule.
func (m *memories) enter(id int32, change memoryChange) int32 {
	x := m.list[id]
	switch {
	case change == changeUnique && x.vague:
		return m.of(id, anySet, noText)
	case change == changeUnique:
		return m.of(id, emptySet, noText)
	case change == changeItem && id > vagueMemory && x.set != anySet:
		return m.of(x.parent, x.set, emptyText)
	}
	return id
}

// leave is the memory behind the end of a rule.
func (m *memories) leave(id int32, change memoryChange) int32 {
	x := m.list[id]
	switch {
	case change == changeUnique:
		return x.parent
	case change == changeNothing || id <= vagueMemory:
		return id
	case x.set == anySet:
		return m.of(x.parent, endedSet, noText)
	case x.set == endedSet || m.has(x.set, x.text):
		return lost
	}
	return m.of(x.parent, m.with(x.set, x.text), noText)
}

// read is the memory behind one more byte.
func (m *memories) read(id int32, b byte) int32 {
	if id <= vagueMemory {
		return id
	}
	x := m.list[id]
	if x.vague && !x.counts {
		return id
	}
	parent := m.read(x.parent, b)
	if parent == lost {
		return lost
	}
	switch {
	case x.set == endedSet && x.text != noText:
		if x.text++; x.text > emptyText+maxBegun {
			return lost
		}
	case x.set != anySet && x.text != noText:
		x.text = m.longerText(x.text, b)
	}
	return m.of(parent, x.set, x.text)
}

// vagueOf is a memory as masks are worked out with.
func (m *memories) vagueOf(id int32) int32 {
	if id <= vagueMemory {
		return vagueMemory
	}
	return m.of(m.vagueOf(m.list[id].parent), anySet, noText)
}

// isBetween tells whether a memory stands between items of which there were some.
func (m *memories) isBetween(id int32) bool {
	for ; id > vagueMemory; id = m.list[id].parent {
		if x := &m.list[id]; x.text == noText && x.set > emptySet {
			return true
		}
	}
	return false
}

// hasBegun tells whether in a vague memory an item ended and another one began.
func (m *memories) hasBegun(id int32) bool {
	for ; id > vagueMemory; id = m.list[id].parent {
		if x := &m.list[id]; x.set == endedSet && x.text > emptyText {
			return true
		}
	}
	return false
}

// addNext adds to a set the bytes that lead on along items that were there
// before.
func (m *memories) addNext(id int32, bytes *byteSet) {
	for ; m.list[id].trails; id = m.list[id].parent {
		if x := &m.list[id]; x.text != noText {
			m.addAfter(x.set, x.text, bytes)
		}
	}
}

// addAfter adds the bytes that come next in the items of a set that begin with a
// text. It tells whether the text is one of the items itself.
func (m *memories) addAfter(set, text int32, bytes *byteSet) (whole bool) {
	length := m.texts[text].length
	for ; set > emptySet; set = m.sets[set].before {
		path := m.sets[set].path
		switch next := path.from + length + 1; {
		case next > path.to || m.paths[next-1] != text:
		case next == path.to:
			whole = true
		default:
			bytes.add(m.texts[m.paths[next]].b)
		}
	}
	return whole
}

// A byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) add(b byte) { s[b>>6] |= 1 << (b & 63) }

func (s *byteSet) has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }
