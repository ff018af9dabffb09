package grammar

import (
	"encoding/binary"
	"slices"
)

// text spells strings. Bounds on the length are counted where the language
// allows it, or become states where these are few. Elsewhere the spelling is
// sound but leaves long strings out: see boundedLoops and shortened.
func (e *emitter) text(t text, name string) (Node, error) {
	if e.c.notation != nil {
		return e.c.marked(t)
	}
	if t.min == 0 && t.max == Unbounded {
		return e.quoted(t.dfa)
	}
	kind := t.dfa.loops()
	switch {
	case kind == loopsAtEnd:
		w := endWriter{e: e, t: t}
		return w.node(name)
	case t.product() <= maxTextProduct, t.max <= shortText && t.min <= shortText && t.product() <= maxShortProduct:
	case kind == loopsAlone:
		w := loopWriter{e: e, t: t}
		return w.node(name)
	default:
		t = t.shortened()
	}
	d, err := e.c.language([]text{t})
	if err != nil {
		return nil, err
	}
	return e.quoted(d)
}

// maxTextProduct is how many edges an automaton may get for the sake of a bound
// on its texts' length.
const maxTextProduct = 20_000

// Where texts are short, bounds on single loops would leave out much, and more
// is spent to be exact.
const (
	shortText       = 64
	maxShortProduct = 200_000
)

// product is about how many edges the automaton has that counts characters.
func (t text) product() int {
	each, most := countedDFA{t.dfa, t.min, t.max}.size()
	return min(most, maxShortProduct) * each
}

// fewMore is how many characters texts have above the least length at any rate.
const fewMore = 16

// shortened lowers the upper bound to what can be counted with states.
func (t text) shortened() text {
	one := text{dfa: t.dfa, min: 1, max: 1}.product()
	most := max(maxTextProduct/one, shortText)
	if most*one > maxShortProduct {
		most = maxShortProduct / one
	}
	most = max(most, t.min+fewMore, t.dfa.shortest()+fewMore)
	if t.max == Unbounded || most < t.max {
		t.max = most
	}
	return t
}

// A loopKind says what cycles an automaton has.
type loopKind uint8

const (
	loopsNone   loopKind = iota
	loopsAtEnd           // states with no way on but back to themselves
	loopsAlone           // states that lead back to themselves and on
	loopsOthers          // longer cycles
)

func (d *DFA) loops() loopKind {
	kind := loopsNone
	straight := &DFA{States: make([]State, len(d.States))}
	for i, s := range d.States {
		loops := 0
		for _, e := range s.Edges {
			if e.To == int32(i) {
				loops++
			} else {
				straight.States[i].Edges = append(straight.States[i].Edges, e)
			}
		}
		switch {
		case loops == 0:
		case loops == len(s.Edges):
			kind = max(kind, loopsAtEnd)
		default:
			kind = loopsAlone
		}
	}
	if straight.longest() == Unbounded {
		return loopsOthers
	}
	return kind
}

// groups is the edges of a state by where they lead.
func (d *DFA) groups(state int32) []edgeGroup {
	var out []edgeGroup
	for _, e := range d.States[state].Edges {
		i := slices.IndexFunc(out, func(g edgeGroup) bool { return g.to == e.To })
		if i < 0 {
			i = len(out)
			out = append(out, edgeGroup{to: e.To})
		}
		out[i].set = append(out[i].set, Range{e.Lo, e.Hi})
	}
	return out
}

type edgeGroup struct {
	set runeSet
	to  int32
}

// A textState is a state of the language and how many characters were read.
type textState struct {
	state int32
	read  int
}

// An endWriter spells texts that come to an end or to a loop without exit: there
// the rest of the length is counted.
type endWriter struct {
	e *emitter
	t text
	stateGraph[textState]
}

func (w *endWriter) node(name string) (Node, error) {
	w.id(textState{})
	if err := w.grow(w.e.c.limits.Product, errStates, w.expand); err != nil {
		return nil, err
	}
	return sequence(Literal(`"`), w.graph.node(&w.e.ruleList, name), Literal(`"`)), nil
}

func (w *endWriter) expand(i int) error {
	s, t := w.states[i], w.t
	least, most := max(t.min-s.read, 0), t.max
	if most != Unbounded {
		most -= s.read
	}
	if t.dfa.States[s.state].Accept && least == 0 {
		w.graph[i].final = Seq{}
	}
	groups := t.dfa.groups(s.state)
	if err := w.e.c.meter.spend(50 + len(t.dfa.States[s.state].Edges)); err != nil || most == 0 {
		return err
	}
	for _, g := range groups {
		char, err := w.e.char(g.set)
		if err != nil {
			return err
		}
		if g.to == s.state {
			w.graph[i].final = repeated(char, least, most)
		} else {
			w.graph[i].edges = append(w.graph[i].edges, graphEdge{char, w.id(textState{g.to, s.read + 1})})
		}
	}
	return nil
}

// maxLoop is how often a loop with a way on is taken at most, where the bound on
// the whole length is too great to be counted exactly.
const maxLoop = 256

// A loopWriter spells texts whose only cycles are single states. Each such loop
// is bounded by itself, so that the whole length keeps the bounds whatever way
// is taken: the last loop by what the longest way to it leaves, the others by
// maxLoop or less.
type loopWriter struct {
	e               *emitter
	t               text
	most            int     // of the loops that have a way on
	order           []int32 // states, each behind those that lead to it
	nearest, widest []int   // least and most characters on the ways to a state
}

func (w *loopWriter) node(name string) (Node, error) {
	w.sort()
	for w.most = min(maxLoop, max(w.t.max, w.t.min)); ; w.most /= 2 {
		w.measure()
		if w.fits() {
			break
		}
		if w.most == 0 {
			return nil, errStates
		}
	}
	// State i of the language is states 2i, where it is entered, and 2i+1,
	// where its loop is done.
	g := make(graph, 2*len(w.t.dfa.States))
	for i := range w.t.dfa.States {
		if err := w.expand(g, int32(i)); err != nil {
			return nil, err
		}
	}
	return sequence(Literal(`"`), g.node(&w.e.ruleList, name), Literal(`"`)), nil
}

func (w *loopWriter) sort() {
	seen := make([]bool, len(w.t.dfa.States))
	var visit func(int32)
	visit = func(state int32) {
		seen[state] = true
		for _, e := range w.t.dfa.States[state].Edges {
			if !seen[e.To] {
				visit(e.To)
			}
		}
		w.order = append(w.order, state)
	}
	visit(0)
	slices.Reverse(w.order)
}

// measure finds how many characters stand before each state.
func (w *loopWriter) measure() {
	n := len(w.t.dfa.States)
	w.nearest, w.widest = slices.Repeat([]int{maxCount}, n), make([]int, n)
	w.nearest[0] = 0
	for _, state := range w.order {
		groups := w.t.dfa.groups(state)
		after := w.widest[state]
		for _, g := range groups {
			if g.to == state {
				after += w.most
			}
		}
		for _, g := range groups {
			if g.to != state {
				w.nearest[g.to] = min(w.nearest[g.to], w.nearest[state]+1)
				w.widest[g.to] = max(w.widest[g.to], after+1)
			}
		}
	}
}

// fits tells whether every way keeps the upper bound, so that there is always
// something left for the last loop.
func (w *loopWriter) fits() bool {
	return w.t.max == Unbounded || slices.Max(w.widest) <= w.t.max
}

func (w *loopWriter) expand(g graph, state int32) error {
	enter, leave := &g[2*state], &g[2*state+1]
	var loop Node
	for _, group := range w.t.dfa.groups(state) {
		char, err := w.e.char(group.set)
		if err != nil {
			return err
		}
		if group.to == state {
			loop = char
		} else {
			leave.edges = append(leave.edges, graphEdge{char, int(2 * group.to)})
		}
	}
	label, least, most := Node(Seq{}), max(w.t.min-w.nearest[state], 0), w.t.max
	if most != Unbounded {
		most -= w.widest[state]
	}
	if loop != nil && len(leave.edges) > 0 {
		label = repeated(loop, 0, w.most)
	}
	if len(leave.edges) > 0 {
		enter.edges = []graphEdge{{label, int(2*state + 1)}}
	}
	if !w.t.dfa.States[state].Accept || most != Unbounded && most < least {
		return nil
	}
	switch {
	case loop != nil:
		enter.final = repeated(loop, least, most)
	case least == 0:
		enter.final = Seq{}
	}
	return nil
}

// char spells one character of a set.
func (e *emitter) char(set runeSet) (Node, error) {
	set = normalizeRunes(set)
	switch plain := intersectRunes(set, plainRunes); {
	case slices.Equal(set, plain) && len(set) == 1 && set[0].Lo == set[0].Hi:
		return Literal(string(set[0].Lo)), nil
	case slices.Equal(set, plain):
		return Class(set), nil
	case slices.Equal(set, anyRune):
		return AnyChar(), nil
	}
	var key []byte
	for _, r := range set {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(r.Lo)), uint64(r.Hi))
	}
	if d := e.chars[string(key)]; d != nil {
		return d, nil
	}
	one := &DFA{States: []State{{Edges: edgesTo(set, 1)}, {Accept: true}}}
	d, err := spellChar(e.c.meter, one)
	e.chars[string(key)] = d
	return d, err
}
