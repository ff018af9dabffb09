package grammar

import (
	"slices"
	"strconv"
)

// A ruleList is the rules of a grammar in the making.
type ruleList struct {
	rules []Rule
	taken map[string]bool
	next  map[string]int // the number to try next for a name
}

// reserve makes a rule whose body comes later. A name that is taken gets a
// number.
func (l *ruleList) reserve(name string) int {
	if l.taken == nil {
		l.taken, l.next = map[string]bool{}, map[string]int{}
	}
	unique := name
	for l.taken[unique] {
		l.next[name] = max(l.next[name], 1) + 1
		unique = name + "-" + strconv.Itoa(l.next[name])
	}
	l.taken[unique] = true
	l.rules = append(l.rules, Rule{Name: unique})
	return len(l.rules) - 1
}

// A graph is an automaton whose edges spell nodes. State 0 is the start.
type graph []graphState

type graphState struct {
	edges []graphEdge
	final Node // what may still come before the end; nil if this is no place to end
}

type graphEdge struct {
	label Node
	to    int
}

// A stateGraph is a graph whose states come up while others are worked out.
type stateGraph[S comparable] struct {
	graph
	states []S
	ids    map[S]int
}

// id is a state's number.
func (g *stateGraph[S]) id(s S) int {
	id, ok := g.ids[s]
	if !ok {
		if g.ids == nil {
			g.ids = map[S]int{}
		}
		id = len(g.states)
		g.ids[s] = id
		g.states = append(g.states, s)
		g.graph = append(g.graph, graphState{})
	}
	return id
}

// grow works out all states that come up. Above a number of them it ends with the error
// over.
func (g *stateGraph[S]) grow(most int, over error, expand func(i int) error) error {
	for i := 0; i < len(g.states); i++ {
		if err := expand(i); err != nil {
			return err
		}
		if len(g.states) > most {
			return over
		}
	}
	return nil
}

// node spells the graph. States that are entered from several places become
// rules, the others stand where they are entered.
func (g graph) node(rules *ruleList, name string) Node {
	w := graphWriter{list: rules, g: g, name: name, entries: g.entries(), rules: make([]int, len(g))}
	return w.enter(0)
}

// entries counts from how many other states each state is entered, the start
// from outside too.
func (g graph) entries() []int {
	entries := make([]int, len(g))
	entries[0] = 1
	for from, s := range g {
		seen := map[int]bool{from: true}
		for _, edge := range s.edges {
			if !seen[edge.to] {
				seen[edge.to] = true
				entries[edge.to]++
			}
		}
	}
	return entries
}

type graphWriter struct {
	list    *ruleList
	g       graph
	name    string
	entries []int
	rules   []int // 1 + the rule of each state, 0 for none yet
	depth   int   // states that stand inside each other
}

// maxInlined bounds how deep states stand inside each other, and with them the
// brackets of the printed form.
const maxInlined = 32

// inline tells whether a state stands where it is entered.
func (w *graphWriter) inline(state int) bool {
	return w.rules[state] == 0 && (w.entries[state] < 2 || len(w.g[state].edges) == 0)
}

func (w *graphWriter) enter(state int) Node {
	for s := w.g[state]; len(s.edges) == 1 && s.final == nil && isEmptyOrNil(s.edges[0].label) && s.edges[0].to != state; s = w.g[state] {
		state = s.edges[0].to
	}
	if w.inline(state) && w.depth < maxInlined {
		w.depth++
		n := w.state(state)
		w.depth--
		return n
	}
	if w.rules[state] == 0 {
		id := w.list.reserve(w.name)
		w.rules[state] = id + 1
		body := w.state(state)
		w.list.rules[id].Body = body
	}
	return Ref(w.rules[state] - 1)
}

// state is what may follow. It walks along states with one way on, rather than
// descending, so that long objects take linear time.
func (w *graphWriter) state(state int) Node {
	var parts []Node
	for {
		ways, loop := w.ways(state)
		if len(loop) > 0 {
			parts = append(parts, Repeat{alternatives(loop...), 0, Unbounded})
		}
		if label, n, end := w.optionalRun(state); n > 1 {
			parts = append(parts, Repeat{label, 0, n})
			state = end
			continue
		}
		if len(ways) != 1 || w.g[state].final != nil {
			return sequence(append(parts, w.branch(state, ways))...)
		}
		parts = append(parts, alternatives(ways[0].labels...))
		if to := ways[0].to; w.inline(to) {
			state = to
		} else {
			return sequence(append(parts, w.enter(to))...)
		}
	}
}

// optionalRun finds a label that may follow up to n times before what may follow
// in any case, which is what follows the state end.
func (w *graphWriter) optionalRun(state int) (label Node, n int, end int) {
	if len(w.g[state].edges) > maxRunEdges {
		return nil, 0, state
	}
	for i := range w.g[state].edges {
		if n, end := w.runOf(state, i); n > 1 {
			return w.g[state].edges[i].label, n, end
		}
	}
	return nil, 0, state
}

// maxRunEdges is how many ways on a state of an optional run has at most.
const maxRunEdges = 4

// runOf follows the run that an edge begins: states that differ in where the
// label leads, up to one without it.
func (w *graphWriter) runOf(state, edge int) (n, end int) {
	first := w.g[state]
	run, others := first.edges[edge], without(first.edges, edge)
	if !isEmptyOrNil(first.final) {
		return 0, state
	}
	for next := run.to; ; {
		s := w.g[next]
		if n++; (s.final == nil) != (first.final == nil) || !isEmptyOrNil(s.final) || next == state {
			return 0, state
		}
		if sameEdges(s.edges, others) {
			return n, next
		}
		i := slices.IndexFunc(s.edges, func(e graphEdge) bool { return sameText(e.label, run.label) })
		if i < 0 || s.edges[i].to == next || !sameEdges(without(s.edges, i), others) {
			return 0, state
		}
		next = s.edges[i].to
	}
}

// isEmptyOrNil tells whether a state's final is nothing but a place to end, or
// none.
func isEmptyOrNil(final Node) bool {
	seq, ok := final.(Seq)
	return final == nil || ok && len(seq) == 0
}

func without(edges []graphEdge, i int) []graphEdge {
	return append(slices.Clone(edges[:i]), edges[i+1:]...)
}

func sameEdges(a, b []graphEdge) bool {
	return slices.EqualFunc(a, b, func(x, y graphEdge) bool { return x.to == y.to && sameText(x.label, y.label) })
}

// sameText tells whether two nodes are the same literal or class.
func sameText(a, b Node) bool {
	if x, ok := a.(Class); ok {
		y, ok := b.(Class)
		return ok && slices.Equal(x, y)
	}
	x, ok := a.(Literal)
	return ok && a == b && x != ""
}

// A way is all edges to one state.
type way struct {
	to     int
	labels []Node
}

// skips tells whether the way has no text.
func (w way) skips() bool {
	seq, ok := w.labels[0].(Seq)
	return len(w.labels) == 1 && ok && len(seq) == 0
}

// ways groups the edges from a state by where they lead. Those back to itself
// are the loop.
func (w *graphWriter) ways(state int) (ways []way, loop []Node) {
	at := map[int]int{}
	for _, edge := range w.g[state].edges {
		if edge.to == state {
			loop = append(loop, edge.label)
			continue
		}
		i, ok := at[edge.to]
		if !ok {
			i = len(ways)
			at[edge.to] = i
			ways = append(ways, way{to: edge.to})
		}
		ways[i].labels = append(ways[i].labels, edge.label)
	}
	return ways, loop
}

// branch is any of the ways. A way without text to a state that stands nowhere
// else goes on as further ways of the same branch.
func (w *graphWriter) branch(state int, ways []way) Node {
	var alt []Node
	for {
		next := -1
		for _, way := range ways {
			if next < 0 && way.skips() && w.inline(way.to) && !slices.ContainsFunc(w.g[way.to].edges,
				func(e graphEdge) bool { return e.to == way.to }) {
				next = way.to
				continue
			}
			alt = append(alt, sequence(alternatives(way.labels...), w.enter(way.to)))
		}
		if final := w.g[state].final; final != nil {
			alt = append(alt, final)
		}
		if next < 0 {
			return alternatives(alt...)
		}
		state = next
		ways, _ = w.ways(state)
	}
}
