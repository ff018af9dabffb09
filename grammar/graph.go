package grammar

import "strconv"

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
}

func (w *graphWriter) enter(state int) Node {
	if w.rules[state] > 0 {
		return Ref(w.rules[state] - 1)
	}
	if w.entries[state] < 2 || len(w.g[state].edges) == 0 {
		return w.state(state)
	}
	id := w.list.reserve(w.name)
	w.rules[state] = id + 1
	w.list.rules[id].Body = w.state(state)
	return Ref(id)
}

// state is what may follow: edges with the same end as one, edges back to the
// state as a repetition.
func (w *graphWriter) state(state int) Node {
	var targets []int
	labels := map[int][]Node{}
	for _, edge := range w.g[state].edges {
		if labels[edge.to] == nil {
			targets = append(targets, edge.to)
		}
		labels[edge.to] = append(labels[edge.to], edge.label)
	}
	var alt []Node
	for _, to := range targets {
		if to != state {
			alt = append(alt, sequence(alternatives(labels[to]...), w.enter(to)))
		}
	}
	if final := w.g[state].final; final != nil {
		alt = append(alt, final)
	}
	loop := labels[state]
	if loop == nil {
		return alternatives(alt...)
	}
	return sequence(Repeat{alternatives(loop...), 0, Unbounded}, alternatives(alt...))
}
