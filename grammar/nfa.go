package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// An nfa is a non-deterministic automaton over code points, built by adding
// states and arcs. State 0 is the start.
type nfa struct {
	arcs   [][]arc
	accept []bool
}

// An arc leads to a state on a code point of set, or, where set is nil, on none
// if the assertion holds.
type arc struct {
	set    runeSet
	assert assertion
	to     int32
}

// An assertion is a condition on the characters around a place in the text.
type assertion uint8

const (
	assertNone  assertion = iota
	assertStart           // ^
	assertEnd             // $
	assertWord            // \b
	assertNoWord
)

func (n *nfa) state() int32 {
	n.arcs = append(n.arcs, nil)
	n.accept = append(n.accept, false)
	return int32(len(n.arcs) - 1)
}

func (n *nfa) on(from int32, set runeSet, to int32) {
	if len(set) > 0 {
		n.arcs[from] = append(n.arcs[from], arc{set: set, to: to})
	}
}

func (n *nfa) empty(from, to int32) {
	n.arcs[from] = append(n.arcs[from], arc{to: to})
}

func (n *nfa) assert(from int32, a assertion, to int32) {
	n.arcs[from] = append(n.arcs[from], arc{assert: a, to: to})
}

// side is what stands on one side of a place in the text.
type side uint8

const (
	sideNone  side = iota // the text's start or end
	sideOther             // a character that is not of a word
	sideWord              // one of A-Z a-z 0-9 _
)

func (a assertion) holds(before, after side) bool {
	switch a {
	case assertStart:
		return before == sideNone
	case assertEnd:
		return after == sideNone
	case assertWord:
		return (before == sideWord) != (after == sideWord)
	case assertNoWord:
		return (before == sideWord) == (after == sideWord)
	}
	return true
}

var wordRunes = runeSet{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}

// determinize is the subset construction. A state of the result is a set of nfa
// states before assertions are looked at, and what stands before it: whether an
// assertion holds is known when the next character is.
func (n *nfa) determinize(m *meter, limit int) (*DFA, error) {
	d := subsets{nfa: n, meter: m, ids: map[string]int32{}, mark: make([]uint32, len(n.arcs))}
	if err := d.findCertain(); err != nil {
		return nil, err
	}
	if err := d.findSymbols(); err != nil {
		return nil, err
	}
	d.id([]int32{0}, sideNone)
	for i := 0; i < len(d.sets); i++ {
		if err := d.expand(i); err != nil {
			return nil, err
		}
		if len(d.sets) > 2*limit {
			return nil, errStates
		}
	}
	return finishDFA(m, d.states, limit)
}

type subset struct {
	states []int32
	before side
}

type subsets struct {
	nfa      *nfa
	meter    *meter
	asserts  bool               // some arc has an assertion
	words    bool               // some assertion is about words
	symbols  []symbol           // code points that no arc tells apart
	members  map[*Range][]int32 // the symbols of each set, by its first range
	stretch  []stretch
	ids      map[string]int32
	sets     []subset
	states   []State
	key      []byte
	certain  []bool   // states that accept every text
	mark     []uint32 // closure's visited marks, by round
	round    uint32
	closed   []int32
	nextSets [][]int32
}

// findCertain finds the states that accept every text: those that stay on any
// character and accept, and those that can become such a state without one.
func (d *subsets) findCertain() error {
	n := d.nfa
	d.certain = make([]bool, len(n.arcs))
	for s, arcs := range n.arcs {
		d.certain[s] = n.accept[s] && slices.ContainsFunc(arcs, func(a arc) bool {
			return a.to == int32(s) && slices.Equal(a.set, anyRune)
		})
	}
	for changed := true; changed; {
		changed = false
		for s := len(n.arcs) - 1; s >= 0; s-- {
			if !d.certain[s] && slices.ContainsFunc(n.arcs[s], func(a arc) bool {
				return a.set == nil && a.assert == assertNone && d.certain[a.to]
			}) {
				d.certain[s], changed = true, true
			}
		}
		if err := d.meter.spend(len(n.arcs)); err != nil {
			return err
		}
	}
	return nil
}

// A symbol is a class of code points that all arcs treat alike.
type symbol struct {
	rep  rune // one of them
	side side
}

type stretch struct {
	lo, hi rune
	symbol int
}

// findSymbols splits the code points by the sets that arcs have.
func (d *subsets) findSymbols() error {
	sets, cuts := d.arcSets()
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	byMembers := map[string]int{}
	var key []byte
	next := make([]int, len(sets)) // first range of each set that may still matter
	for i, lo := range cuts {
		hi := anyRune[1].Hi
		if i+1 < len(cuts) {
			hi = cuts[i+1] - 1
		}
		key = key[:0]
		for j, set := range sets {
			for next[j] < len(set) && set[next[j]].Hi < lo {
				next[j]++
			}
			if next[j] < len(set) && set[next[j]].Lo <= lo {
				key = binary.AppendUvarint(key, uint64(j))
			}
		}
		if err := d.meter.spend(1 + len(sets)); err != nil {
			return err
		}
		if len(key) == 0 {
			continue
		}
		id, ok := byMembers[string(key)]
		if !ok {
			id = len(d.symbols)
			byMembers[string(key)] = id
			d.symbols = append(d.symbols, symbol{lo, d.sideOf(lo)})
		}
		d.stretch = append(d.stretch, stretch{lo, hi, id})
	}
	d.nextSets = make([][]int32, len(d.symbols))
	d.members = make(map[*Range][]int32, len(sets))
	for _, set := range sets {
		var symbols []int32
		for i, s := range d.symbols {
			if hasRune(set, s.rep) {
				symbols = append(symbols, int32(i))
			}
		}
		d.members[&set[0]] = symbols
	}
	return nil
}

func (d *subsets) sideOf(r rune) side {
	if d.words && hasRune(wordRunes, r) {
		return sideWord
	}
	return sideOther
}

// arcSets lists the different sets of the arcs and where their ranges begin and
// end.
func (d *subsets) arcSets() ([]runeSet, []rune) {
	seen := map[*Range]bool{}
	var sets []runeSet
	var cuts []rune
	add := func(set runeSet) {
		if len(set) == 0 || seen[&set[0]] {
			return
		}
		seen[&set[0]] = true
		sets = append(sets, set)
		for _, r := range set {
			cuts = append(cuts, r.Lo, r.Hi+1)
		}
	}
	for _, arcs := range d.nfa.arcs {
		for _, a := range arcs {
			add(a.set)
			if a.assert == assertWord || a.assert == assertNoWord {
				d.words = true
				add(wordRunes)
			}
			d.asserts = d.asserts || a.assert != assertNone
		}
	}
	return sets, slices.DeleteFunc(cuts, func(r rune) bool { return r > anyRune[1].Hi })
}

func (d *subsets) id(states []int32, before side) int32 {
	if !d.asserts {
		before = sideNone
	}
	d.key = append(d.key[:0], byte(before))
	for _, s := range states {
		d.key = binary.LittleEndian.AppendUint32(d.key, uint32(s))
	}
	id, ok := d.ids[string(d.key)]
	if !ok {
		id = int32(len(d.sets))
		d.ids[string(d.key)] = id
		d.sets = append(d.sets, subset{slices.Clone(states), before})
		d.states = append(d.states, State{})
	}
	return id
}

// close is the states that a set reaches without a character, given what stands
// before and after the place. The result is valid until the next call.
func (d *subsets) close(set subset, after side) []int32 {
	d.round++
	d.closed = d.closed[:0]
	push := func(s int32) {
		if d.mark[s] != d.round {
			d.mark[s] = d.round
			d.closed = append(d.closed, s)
		}
	}
	for _, s := range set.states {
		push(s)
	}
	for i := 0; i < len(d.closed); i++ {
		for _, a := range d.nfa.arcs[d.closed[i]] {
			if a.set == nil && a.assert.holds(set.before, after) {
				push(a.to)
			}
		}
	}
	return d.closed
}

// expand fills in one state of the result.
func (d *subsets) expand(i int) error {
	set := d.sets[i]
	for _, s := range d.close(set, sideNone) {
		d.states[i].Accept = d.states[i].Accept || d.nfa.accept[s]
	}
	for sym := range d.nextSets {
		d.nextSets[sym] = d.nextSets[sym][:0]
	}
	sides := []side{sideOther}
	if d.words {
		sides = []side{sideOther, sideWord}
	}
	for _, after := range sides {
		closed := d.close(set, after)
		if err := d.step(closed, after); err != nil {
			return err
		}
	}
	targets := make([]int32, len(d.symbols))
	for sym, next := range d.nextSets {
		targets[sym] = -1
		if i := slices.IndexFunc(next, func(s int32) bool { return d.certain[s] }); i >= 0 {
			targets[sym] = d.id(next[i:i+1], sideNone) // the others do not matter
		} else if len(next) > 0 {
			slices.Sort(next)
			targets[sym] = d.id(slices.Compact(next), d.symbols[sym].side)
		}
	}
	for _, s := range d.stretch {
		if to := targets[s.symbol]; to >= 0 {
			d.states[i].Edges = appendEdge(d.states[i].Edges, Edge{s.lo, s.hi, to})
		}
	}
	return d.meter.spend(len(d.stretch))
}

// step collects where the closed states lead to, by symbol.
func (d *subsets) step(closed []int32, after side) error {
	for _, s := range closed {
		for _, a := range d.nfa.arcs[s] {
			if a.set == nil {
				continue
			}
			symbols := d.members[&a.set[0]]
			for _, sym := range symbols {
				if d.symbols[sym].side == after {
					d.nextSets[sym] = append(d.nextSets[sym], a.to)
				}
			}
			if err := d.meter.spend(4 + 2*len(symbols)); err != nil {
				return err
			}
		}
	}
	return d.meter.spend(len(closed))
}

// trie is the DFA of a list of texts.
func trie(m *meter, texts []string, limit int) (*DFA, error) {
	states := []State{{}}
	for _, text := range texts {
		at := int32(0)
		for _, r := range text {
			edges := states[at].Edges
			i, found := slices.BinarySearchFunc(edges, r, func(e Edge, r rune) int { return cmp.Compare(e.Lo, r) })
			if !found {
				states = append(states, State{})
				states[at].Edges = slices.Insert(edges, i, Edge{r, r, int32(len(states) - 1)})
			}
			at = states[at].Edges[i].To
		}
		states[at].Accept = true
		if err := m.spend(4 + 2*len(text)); err != nil {
			return nil, err
		}
		if len(states) > 8*limit {
			return nil, errStates
		}
	}
	return finishDFA(m, states, limit)
}
