package grammar

import (
	"encoding/binary"
	"slices"
)

// minimizeStates joins the states of a trimmed automaton that accept the same
// texts. States with finitely many texts are joined bottom-up; the others by
// refining a partition (Moore), which starts from the length of each state's
// shortest text, so that long chains are apart from the outset.
func minimizeStates(m *meter, states []State) ([]State, error) {
	p := partition{states: states, block: slices.Repeat([]int32{-1}, len(states))}
	p.joinFinite()
	if err := m.spend(8 * len(states)); err != nil {
		return nil, err
	}
	if err := p.refine(m); err != nil {
		return nil, err
	}
	return p.quotient(), nil
}

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
func (p *partition) joinFinite() {
	into := make([][]int32, len(p.states))
	waiting := make([]int, len(p.states)) // edges to states without a block
	var ready []int32
	for i, s := range p.states {
		waiting[i] = len(s.Edges)
		if len(s.Edges) == 0 {
			ready = append(ready, int32(i))
		}
		for _, e := range s.Edges {
			into[e.To] = append(into[e.To], int32(i))
		}
	}
	seen := map[string]int32{}
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
		for _, from := range into[state] {
			if waiting[from]--; waiting[from] == 0 {
				ready = append(ready, from)
			}
		}
	}
}

// refine finds the blocks of the states that lead to a cycle.
func (p *partition) refine(m *meter) error {
	var open []int32
	for i, b := range p.block {
		if b < 0 {
			open = append(open, int32(i))
		}
	}
	if len(open) == 0 {
		return nil
	}
	base, dist := p.blocks, distances(p.states)
	for _, s := range open {
		p.block[s] = base + dist[s]
	}
	next := make([]int32, len(open))
	for count := 0; ; {
		seen := map[string]int32{}
		for i, s := range open {
			p.key = binary.AppendUvarint(p.key[:0], uint64(uint32(p.block[s])))
			p.key = p.signature(p.key, s)
			block, ok := seen[string(p.key)]
			if !ok {
				block = base + int32(len(seen))
				seen[string(p.key)] = block
			}
			next[i] = block
			if err := m.spend(4 + 4*len(p.states[s].Edges)); err != nil {
				return err
			}
		}
		for i, s := range open {
			p.block[s] = next[i]
		}
		p.blocks = base + int32(len(seen))
		if len(seen) == count {
			return nil
		}
		count = len(seen)
	}
}

// quotient has one state for each block, in the order of a walk from the start.
func (p *partition) quotient() []State {
	if int(p.blocks) == len(p.states) {
		return p.states
	}
	renumber := slices.Repeat([]int32{-1}, int(p.blocks))
	renumber[p.block[0]] = 0
	order := []int32{0}
	var out []State
	for i := 0; i < len(order); i++ {
		s := p.states[order[i]]
		edges := make([]Edge, 0, len(s.Edges))
		for _, e := range s.Edges {
			b := p.block[e.To]
			if renumber[b] < 0 {
				renumber[b] = int32(len(order))
				order = append(order, e.To)
			}
			edges = appendEdge(edges, Edge{e.Lo, e.Hi, renumber[b]})
		}
		out = append(out, State{s.Accept, edges})
	}
	return out
}
