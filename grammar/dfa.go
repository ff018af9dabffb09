package grammar

import (
	"cmp"
	"slices"
	"unicode"
)

// This file is the algebra of regular languages. Every DFA that a function here
// returns is trimmed, its edges are merged, and it is minimal unless minimizing
// was too much work.

// match tells whether the DFA accepts a whole text.
func (d *DFA) match(s string) bool {
	state := int32(0)
	for _, r := range s {
		if state = d.next(state, r); state < 0 {
			return false
		}
	}
	return d.States[state].Accept
}

// next is the state that r leads to, or -1.
func (d *DFA) next(state int32, r rune) int32 {
	edges := d.States[state].Edges
	lo, hi := 0, len(edges)
	for lo < hi {
		if mid := (lo + hi) / 2; edges[mid].Hi < r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(edges) && edges[lo].Lo <= r {
		return edges[lo].To
	}
	return -1
}

func (d *DFA) isEmpty() bool { return len(d.States) == 1 && !d.States[0].Accept }

// isAll tells whether the DFA is the set of all texts.
func (d *DFA) isAll() bool {
	s := d.States[0]
	return d == allTexts || len(d.States) == 1 && s.Accept && len(s.Edges) == 2 &&
		s.Edges[0] == Edge{0, surrogateMin - 1, 0} && s.Edges[1] == Edge{surrogateMax + 1, unicode.MaxRune, 0}
}

var (
	noText   = &DFA{States: []State{{}}}
	allTexts = &DFA{States: []State{{Accept: true, Edges: edgesTo(anyRune, 0)}}}
)

func edgesTo(set runeSet, to int32) []Edge {
	edges := make([]Edge, len(set))
	for i, r := range set {
		edges[i] = Edge{r.Lo, r.Hi, to}
	}
	return edges
}

// finishDFA trims and minimizes.
func finishDFA(m *meter, states []State, limit int) (*DFA, error) {
	into := edgesInto(states)
	if slices.Contains(distances(states, into), -1) {
		states = trimStates(states)
		into = edgesInto(states)
	}
	if err := m.spend(4 * len(states)); err != nil {
		return nil, err
	}
	states, err := minimizeStates(m, states, into)
	if err != nil {
		return nil, err
	}
	if len(states) > limit {
		return nil, errStates
	}
	return knownDFA(states), nil
}

// knownDFA is the DFA of minimal states: one pointer each for no text and for
// all texts.
func knownDFA(states []State) *DFA {
	d := &DFA{States: states}
	switch {
	case d.isEmpty():
		return noText
	case d.isAll():
		return allTexts
	}
	return d
}

// trimStates removes the states that no accepting state follows, then those
// that the start does not reach.
func trimStates(states []State) []State {
	useful := coaccessible(states)
	if !useful[0] {
		return []State{{}}
	}
	renumber := make([]int32, len(states))
	for i := range renumber {
		renumber[i] = -1
	}
	renumber[0] = 0
	order := []int32{0}
	out := make([]State, 0, len(states))
	var arena edgeArena
	var edges []Edge
	for i := 0; i < len(order); i++ {
		s := states[order[i]]
		edges = edges[:0]
		for _, e := range s.Edges {
			if !useful[e.To] {
				continue
			}
			if renumber[e.To] < 0 {
				renumber[e.To] = int32(len(order))
				order = append(order, e.To)
			}
			edges = appendEdge(edges, Edge{e.Lo, e.Hi, renumber[e.To]})
		}
		out = append(out, State{s.Accept, arena.keep(edges)})
	}
	return out
}

// An edgeArena gives lists of edges their place, in chunks that double.
type edgeArena struct {
	free  []Edge
	chunk int
}

// Edges of the first and of the largest chunk.
const (
	firstChunk = 16
	maxChunk   = 1024
)

// keep is a copy of the edges.
func (a *edgeArena) keep(edges []Edge) []Edge {
	n := len(edges)
	if n == 0 {
		return nil
	}
	if len(a.free) < n {
		a.chunk = min(max(2*a.chunk, firstChunk), maxChunk)
		a.free = make([]Edge, max(n, a.chunk))
	}
	kept := a.free[:n:n]
	copy(kept, edges)
	a.free = a.free[n:]
	return kept
}

// coaccessible tells which states an accepting state can be reached from.
func coaccessible(states []State) []bool {
	useful := make([]bool, len(states))
	for i, d := range distances(states, edgesInto(states)) {
		useful[i] = d >= 0
	}
	return useful
}

// distances is the length of the shortest text that each state accepts, or -1.
func distances(states []State, into sourceList) []int32 {
	dist := make([]int32, len(states))
	queue := make([]int32, 0, len(states))
	for i, s := range states {
		dist[i] = -1
		if s.Accept {
			dist[i] = 0
			queue = append(queue, int32(i))
		}
	}
	for i := 0; i < len(queue); i++ {
		to := queue[i]
		for _, from := range into.of(to) {
			if dist[from] < 0 {
				dist[from] = dist[to] + 1
				queue = append(queue, from)
			}
		}
	}
	return dist
}

// A sourceList says from where edges lead into each state, once for each edge.
type sourceList struct{ sources, starts []int32 }

func edgesInto(states []State) sourceList {
	l := sourceList{starts: make([]int32, len(states)+2)}
	for _, s := range states {
		for _, e := range s.Edges {
			l.starts[e.To+2]++
		}
	}
	for i := range l.starts[1:] {
		l.starts[i+1] += l.starts[i]
	}
	l.sources = make([]int32, l.starts[len(states)+1])
	for i, s := range states {
		for _, e := range s.Edges {
			l.sources[l.starts[e.To+1]] = int32(i)
			l.starts[e.To+1]++
		}
	}
	return l
}

func (l sourceList) of(to int32) []int32 { return l.sources[l.starts[to]:l.starts[to+1]] }

// longest is the length of the longest accepted text, or -1 when there is no
// longest one.
func (d *DFA) longest() int {
	const unseen, open = -2, -3
	length := slices.Repeat([]int{unseen}, len(d.States))
	var visit func(int32) int
	visit = func(state int32) int {
		switch length[state] {
		case unseen:
		case open:
			return Unbounded
		default:
			return length[state]
		}
		length[state] = open
		most := 0
		for _, e := range d.States[state].Edges {
			n := visit(e.To)
			if n == Unbounded {
				length[state] = Unbounded
				return Unbounded
			}
			most = max(most, n+1)
		}
		length[state] = most
		return most
	}
	return visit(0)
}

// shortest is the length of the shortest accepted text, or -1 for none.
func (d *DFA) shortest() int { return int(distances(d.States, edgesInto(d.States))[0]) }

// only is the text of a trimmed DFA that accepts no other.
func (d *DFA) only() (string, bool) {
	var text []rune
	for s := d.States[0]; ; s = d.States[s.Edges[0].To] {
		switch {
		case s.Accept:
			return string(text), len(s.Edges) == 0
		case len(s.Edges) != 1 || s.Edges[0].Lo != s.Edges[0].Hi:
			return "", false
		}
		text = append(text, s.Edges[0].Lo)
	}
}

// texts lists the accepted texts, or reports false when there are more than
// limit.
func (d *DFA) texts(limit int) ([]string, bool) {
	if d.count() > limit {
		return nil, false
	}
	var out []string
	var prefix []rune
	var visit func(int32)
	visit = func(state int32) {
		s := d.States[state]
		if s.Accept {
			out = append(out, string(prefix))
		}
		for _, e := range s.Edges {
			for r := e.Lo; r <= e.Hi; r++ {
				prefix = append(prefix, r)
				visit(e.To)
				prefix = prefix[:len(prefix)-1]
			}
		}
	}
	visit(0)
	return out, true
}

// equal tells whether two minimal automata accept the same texts: then they are
// the same, since states are numbered in the order of a walk.
func (d *DFA) equal(other *DFA) bool {
	return d == other || slices.EqualFunc(d.States, other.States, func(a, b State) bool {
		return a.Accept == b.Accept && slices.Equal(a.Edges, b.Edges)
	})
}

// An edgeList collects the edges of one state in any order.
type edgeList []Edge

func (l *edgeList) add(e Edge) { *l = append(*l, e) }

// sorted is the edges in order, joined where they can be. It uses the list up.
func (l edgeList) sorted() []Edge {
	slices.SortFunc(l, func(a, b Edge) int { return cmp.Compare(a.Lo, b.Lo) })
	out := l[:0]
	for _, e := range l {
		out = appendEdge(out, e)
	}
	return out
}

// edgeAt is the index of the edge on r, or -1.
func edgeAt(edges []Edge, r rune) int {
	i, found := slices.BinarySearchFunc(edges, r, func(e Edge, r rune) int { return cmp.Compare(e.Lo, r) })
	if found {
		return i
	}
	if i > 0 && r <= edges[i-1].Hi {
		return i - 1
	}
	return -1
}
