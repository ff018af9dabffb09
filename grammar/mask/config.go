package mask

import (
	"cmp"
	"slices"
)

// An item is one place where a text may stand: a state of a rule, the rule's
// register, and the frame of whoever called it.
type item struct {
	register uint64
	state    int32
	frame    int32
}

// bottom is the frame of the first rule, and in inner masks of the rule that is
// looked at. What returns there returns to accepting.
const bottom = 0

// accepting is the only return of bottom.
var accepting = item{state: noState}

// A config is a configuration: all items where a text may stand. Its number is
// its identity.
type config struct {
	items   span
	row     int32   // its row of transitions, or -1
	recipe  int32   // of its mask, or -1
	inner   int32   // the inner mask of its items, or -1
	absorbs uint32  // it stays alive on so many plain characters, or on any number if unlimited
	run     run     // the longest of an item
	steps   uint8   // transitions that are in the table, not in a row
	memory  int32   // with which the rule at the bottom may end here, or mixed
	vague   int32   // the configuration that its mask is worked out with, or unknown
	ends    bool    // the rule at the bottom may end here
	exact   bool    // some item remembers what was read
	trails  bool    // what was read is the beginning of an item that was there before
	between bool    // some item stands between the items of a Unique
	begun   bool    // an item ended and another one began
	viable  verdict // whether all that leads on repeats an item, for trails
	tokens  bool    // some item is left by a token
}

// newConfig is a configuration of which nothing was worked out.
func newConfig(items span, ends bool, memory int32) config {
	return config{items: items, row: -1, recipe: -1, inner: -1, ends: ends, memory: memory}
}

// A verdict is yes, no, or not known yet.
type verdict uint8

const (
	notKnown verdict = iota
	yes
	no
)

// mixed is the memory of a configuration that may end with one or another.
const mixed = -2

// The first numbers of configurations.
const (
	unknown = 0 // no configuration: a transition that was not worked out
	dead    = 1 // the empty one
)

// A frame is the items to go on with when a rule has ended, one or more, and what
// the rule's items remember. The frames of returns are without memory: what
// returns there brings its own.
type frame struct {
	returns span
	config  int32 // the configuration of the returns, or unknown
	base    int32 // the frame with these returns and without memory
	memory  int32
}

// A store interns configurations and frames, in lists without pointers.
type store struct {
	items   []item // of configurations and of frames
	configs []config
	frames  []frame
	byItems index // of configurations
	byBack  index // of frames
}

// reset forgets everything.
func (s *store) reset() {
	s.items = s.items[:0]
	s.configs = append(s.configs[:0], config{}, newConfig(span{}, false, noMemory))
	s.frames = s.frames[:0]
	s.byItems.reset()
	s.byBack.reset()
	s.frameOf([]item{accepting})
}

// bytes is how much memory the store holds.
func (s *store) bytes() int {
	return 16*cap(s.items) + 56*cap(s.configs) + 20*cap(s.frames) + 4*(len(s.byItems.slots)+len(s.byBack.slots))
}

func (s *store) of(sp span) []item { return s.items[sp.from:sp.to] }

// sortItems sorts and leaves out what comes twice.
func sortItems(items []item) []item {
	if len(items) > 1 {
		slices.SortFunc(items, compareItems)
		items = slices.Compact(items)
	}
	return items
}

func compareItems(a, b item) int {
	if a.frame != b.frame {
		return cmp.Compare(a.frame, b.frame)
	}
	if a.state != b.state {
		return cmp.Compare(a.state, b.state)
	}
	return cmp.Compare(a.register, b.register)
}

// configOf is the number of the configuration of items, which are sorted.
func (s *store) configOf(items []item, ends bool, memory int32) int32 {
	if len(items) == 0 && !ends {
		return dead
	}
	slot := s.byItems.find(hashConfig(items, ends, memory), func(id int32) bool {
		c := &s.configs[id]
		return c.ends == ends && c.memory == memory && slices.Equal(s.of(c.items), items)
	})
	if *slot != 0 {
		return *slot
	}
	id := int32(len(s.configs))
	*slot = id
	s.configs = append(s.configs, newConfig(s.put(items), ends, memory))
	s.byItems.grow(func(id int32) uint64 {
		c := &s.configs[id]
		return hashConfig(s.of(c.items), c.ends, c.memory)
	})
	return id
}

// frameOf is the number of the frame of returns, which are sorted.
func (s *store) frameOf(returns []item) int32 {
	slot := s.byBack.find(hashItems(returns), func(id int32) bool {
		return slices.Equal(s.of(s.frames[id-1].returns), returns)
	})
	if *slot != 0 {
		return *slot - 1
	}
	id := int32(len(s.frames))
	*slot = id + 1
	s.frames = append(s.frames, frame{returns: s.put(returns), base: id})
	s.byBack.grow(func(id int32) uint64 { return hashItems(s.of(s.frames[id-1].returns)) })
	return id
}

func hashConfig(items []item, ends bool, memory int32) uint64 {
	hash := hashItems(items)
	if ends {
		hash = mix(hash ^ uint64(uint32(memory)))
	}
	return hash
}

func (s *store) put(items []item) span {
	from := int32(len(s.items))
	s.items = append(s.items, items...)
	return span{from, int32(len(s.items))}
}

func hashItems(items []item) uint64 {
	h := uint64(len(items))
	for _, it := range items {
		h = mix(h ^ it.register)
		h = mix(h ^ uint64(uint32(it.state))<<32 ^ uint64(uint32(it.frame)))
	}
	return h
}
