package grammar

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// minimizeStates joins the states of a trimmed automaton that accept the same
// texts. States with finitely many texts are joined bottom-up. Where others are
// left, a partition is refined (Hopcroft).
func minimizeStates(m *meter, states []State, into sourceList) ([]State, error) {
	p := partition{states: states, block: slices.Repeat([]int32{-1}, len(states))}
	p.joinFinite(into)
	if err := m.spend(8 * len(states)); err != nil {
		return nil, err
	}
	if slices.Contains(p.block, -1) {
		h := hopcroft{states: states, dead: int32(len(states))}
		if err := h.run(m); err != nil {
			return nil, err
		}
		p.block, p.blocks = h.block[:len(states)], int32(len(h.first))
	}
	return p.quotient(), nil
}

// A partition says which states are equal.
type partition struct {
	states []State
	block  []int32 // of each state
	blocks int32
	key    []byte
}

// signature is the bytes of a state's edges in terms of blocks.
func (p *partition) signature(key []byte, state int32) []byte {
	s := p.states[state]
	if s.Accept {
		key = append(key, 1)
	} else {
		key = append(key, 0)
	}
	for i := 0; i < len(s.Edges); {
		lo, hi, to := s.Edges[i].Lo, s.Edges[i].Hi, p.block[s.Edges[i].To]
		for i++; i < len(s.Edges) && s.Edges[i].Lo == hi+1 && p.block[s.Edges[i].To] == to; i++ {
			hi = s.Edges[i].Hi
		}
		key = binary.AppendUvarint(key, uint64(lo))
		key = binary.AppendUvarint(key, uint64(hi))
		key = binary.AppendUvarint(key, uint64(uint32(to)))
	}
	return key
}

// joinFinite gives equal blocks to equal states among those that lead to no
// cycle, successors first.
func (p *partition) joinFinite(into sourceList) {
	waiting := make([]int, len(p.states)) // edges to states without a block
	var ready []int32
	for i, s := range p.states {
		waiting[i] = len(s.Edges)
		if len(s.Edges) == 0 {
			ready = append(ready, int32(i))
		}
	}
	if len(ready) == 0 {
		return
	}
	seen := make(map[string]int32, len(p.states))
	for len(ready) > 0 {
		state := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		p.key = p.signature(p.key[:0], state)
		block, ok := seen[string(p.key)]
		if !ok {
			block = p.blocks
			p.blocks++
			seen[string(p.key)] = block
		}
		p.block[state] = block
		for _, from := range into.of(state) {
			if waiting[from]--; waiting[from] == 0 {
				ready = append(ready, from)
			}
		}
	}
}

// quotient has one state for each block, in the order of a walk from the start.
func (p *partition) quotient() []State {
	renumber := slices.Repeat([]int32{-1}, int(p.blocks))
	renumber[p.block[0]] = 0
	order := []int32{0}
	out := make([]State, 0, p.blocks)
	var arena edgeArena
	var edges []Edge
	for i := 0; i < len(order); i++ {
		s := p.states[order[i]]
		edges = edges[:0]
		for _, e := range s.Edges {
			b := p.block[e.To]
			if renumber[b] < 0 {
				renumber[b] = int32(len(order))
				order = append(order, e.To)
			}
			edges = appendEdge(edges, Edge{e.Lo, e.Hi, renumber[b]})
		}
		out = append(out, State{s.Accept, arena.keep(edges)})
	}
	return out
}

// hopcroft refines a partition of states. The text that leaves the automaton
// leads to a state of its own, dead.
type hopcroft struct {
	states []State
	dead   int32

	symbols int
	sources []int32 // the states that lead to a state on a symbol, for all of them
	starts  []int32 // [symbol*(states+1) + state]: where these begin in sources

	order []int32 // all states, those of a block together
	place []int32 // of each state in order
	block []int32 // of each state
	first []int32 // of each block: its part of order
	size  []int32
	marks []int32 // of each block: how many of its states are marked, at its front

	waiting []int32 // blocks to split by
	queued  []bool
}

func (h *hopcroft) run(m *meter) error {
	if err := h.transitions(m); err != nil {
		return err
	}
	h.start()
	var touched []int32
	for len(h.waiting) > 0 {
		splitter := h.waiting[len(h.waiting)-1]
		h.waiting = h.waiting[:len(h.waiting)-1]
		h.queued[splitter] = false
		members := slices.Clone(h.order[h.first[splitter] : h.first[splitter]+h.size[splitter]])
		for symbol := range h.symbols {
			touched = touched[:0]
			work := len(members)
			for _, to := range members {
				cell := symbol*(len(h.states)+1) + int(to)
				from := h.sources[h.starts[cell]:h.starts[cell+1]]
				for _, state := range from {
					touched = h.mark(state, touched)
				}
				work += len(from)
			}
			for _, b := range touched {
				h.split(b)
			}
			if err := m.spend(work); err != nil {
				return err
			}
		}
	}
	return nil
}

// transitions fills sources. A symbol is a set of code points that no state
// tells apart.
func (h *hopcroft) transitions(m *meter) error {
	var cuts []rune
	for _, s := range h.states {
		for _, e := range s.Edges {
			cuts = append(cuts, e.Lo, e.Hi+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	if err := m.spend(len(cuts) * (4 + len(h.states)/8)); err != nil {
		return err
	}
	columns := h.columns(cuts)
	n := len(h.states) + 1
	h.symbols = len(columns)
	if err := m.spend(2 * h.symbols * n); err != nil {
		return err
	}
	targets := make([]int32, h.symbols*len(h.states))
	h.starts = make([]int32, h.symbols*n+1)
	for i, s := range h.states {
		for symbol, at := range columns {
			to := h.dead
			if j := edgeAt(s.Edges, at); j >= 0 {
				to = s.Edges[j].To
			}
			targets[symbol*len(h.states)+i] = to
			h.starts[symbol*n+int(to)+1]++
		}
	}
	for i := range h.starts[1:] {
		h.starts[i+1] += h.starts[i]
	}
	next := slices.Clone(h.starts)
	h.sources = make([]int32, len(targets))
	for i, to := range targets {
		cell := i/len(h.states)*n + int(to)
		h.sources[next[cell]] = int32(i % len(h.states))
		next[cell]++
	}
	return nil
}

// columns chooses one code point of each symbol.
func (h *hopcroft) columns(cuts []rune) []rune {
	hashes := make([]uint64, len(cuts))
	for i, s := range h.states {
		at := 0
		for _, e := range s.Edges {
			for cuts[at] < e.Lo {
				at++
			}
			for ; at < len(cuts) && cuts[at] <= e.Hi; at++ {
				hashes[at] += mix(uint64(i)<<32 | uint64(e.To) + 1)
			}
		}
	}
	seen := map[uint64]bool{0: true}
	var out []rune
	for i, hash := range hashes {
		if !seen[hash] {
			seen[hash] = true
			out = append(out, cuts[i])
		}
	}
	return out
}

// mixSeed keeps anyone from making a schema whose columns collide.
var mixSeed = rand.Uint64()

// mix spreads bits (splitmix64), so that sums of different sets differ.
func mix(x uint64) uint64 {
	x ^= mixSeed
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// start puts the dead state, accepting and other states into blocks.
func (h *hopcroft) start() {
	n := len(h.states) + 1
	h.order, h.place, h.block = make([]int32, 0, n), make([]int32, n), make([]int32, n)
	isIn := func(group int, state int32) bool {
		return state == h.dead == (group == 2) && (state == h.dead || h.states[state].Accept == (group == 1))
	}
	for group := range 3 {
		begin := int32(len(h.order))
		for state := range int32(n) {
			if isIn(group, state) {
				h.place[state], h.block[state] = int32(len(h.order)), int32(len(h.first))
				h.order = append(h.order, state)
			}
		}
		if size := int32(len(h.order)) - begin; size > 0 {
			h.add(begin, size)
		}
	}
}

// add makes a block of a part of order, to be split by.
func (h *hopcroft) add(first, size int32) {
	h.waiting = append(h.waiting, int32(len(h.first)))
	h.first, h.size = append(h.first, first), append(h.size, size)
	h.marks, h.queued = append(h.marks, 0), append(h.queued, true)
}

// mark moves a state to the front of its block.
func (h *hopcroft) mark(state int32, touched []int32) []int32 {
	b := h.block[state]
	to := h.first[b] + h.marks[b]
	at := h.place[state]
	if at < to {
		return touched // marked already
	}
	other := h.order[to]
	h.order[to], h.order[at] = state, other
	h.place[state], h.place[other] = to, at
	if h.marks[b]++; h.marks[b] == 1 {
		touched = append(touched, b)
	}
	return touched
}

// split parts the marked states of a block from the others. The smaller part
// becomes a new block.
func (h *hopcroft) split(b int32) {
	marked := h.marks[b]
	h.marks[b] = 0
	if marked == h.size[b] {
		return
	}
	first, size := h.first[b], marked
	if rest := h.size[b] - marked; rest < marked {
		first, size = h.first[b]+marked, rest
	} else {
		h.first[b] += marked
	}
	h.size[b] -= size
	fresh := int32(len(h.first))
	for _, state := range h.order[first : first+size] {
		h.block[state] = fresh
	}
	h.add(first, size)
}
