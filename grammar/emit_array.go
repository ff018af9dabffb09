package grammar

import (
	"errors"
	"slices"
)

var (
	errUnique   = errors.New("asks for unique items out of more than a few values")
	errContains = errors.New("counts contained items in too many ways")
)

// array spells arrays.
func (e *emitter) array(a *array, t *term, name string) (Node, error) {
	if a.unique && (a.max == Unbounded || a.max > 1) {
		n, err := e.uniqueArray(a)
		if err == nil || !errors.Is(err, errUnique) {
			return n, err
		}
		if err := e.relax(err, t, "uniqueItems"); err != nil {
			return nil, err
		}
	}
	var inner Node
	var err error
	if len(a.contains) > 0 {
		inner, err = e.containing(a, name)
		if errors.Is(err, errContains) {
			err = e.blame(err, t, "contains")
		}
	} else {
		inner, err = e.items(a, name)
	}
	return sequence(Literal("["), inner, Literal("]")), err
}

// relax is compiler.relax for the schema of a term.
func (e *emitter) relax(err error, t *term, keyword string) error {
	s := t.origin()
	if s == nil {
		return err
	}
	return e.c.relax(err, s, keyword)
}

// items spells what stands between the brackets where only places matter.
func (e *emitter) items(a *array, name string) (Node, error) {
	comma := Literal(e.c.comma)
	n := len(a.prefix)
	var tail Node = Seq{}
	if a.max == Unbounded || a.max > n {
		rest, err := e.value(a.rest.term, name+"-item")
		if err != nil {
			return nil, err
		}
		more := func(placed int) Node {
			most := a.max
			if most != Unbounded {
				most -= placed
			}
			return repeated(sequence(comma, rest), max(a.min-placed, 0), most)
		}
		if n > 0 {
			tail = more(n)
		} else if tail = sequence(rest, more(1)); a.min == 0 {
			tail = optional(tail)
		}
	}
	for i := n - 1; i >= 0; i-- {
		v, err := e.value(a.prefix[i].term, name+"-item")
		if err != nil {
			return nil, err
		}
		if tail = sequence(v, tail); i > 0 {
			tail = sequence(comma, tail)
		}
		if i >= a.min {
			tail = optional(tail)
		}
	}
	return tail, nil
}

// maxContaining bounds the states of an array that counts items.
const maxContaining = 1024

// A containState is how far an array that counts its items has come.
type containState struct {
	place  int
	counts [maxContains]int
}

// maxContains is the most conditions that one array can count for.
const maxContains = 4

// containing spells arrays that must contain items: a state for each place that
// matters and each count.
func (e *emitter) containing(a *array, name string) (Node, error) {
	if len(a.contains) > maxContains {
		return nil, errContains
	}
	w := containWriter{e: e, a: a, name: name, ids: map[containState]int{}}
	w.places = max(len(a.prefix), a.min, a.max, 1)
	for _, k := range a.contains {
		w.places = max(w.places, k.from)
	}
	w.id(containState{})
	for i := 0; i < len(w.states); i++ {
		if err := w.expand(i); err != nil {
			return nil, err
		}
		if len(w.states) > maxContaining {
			return nil, errContains
		}
	}
	return w.graph.node(&e.ruleList, name), nil
}

type containWriter struct {
	e      *emitter
	a      *array
	name   string
	places int // from this place on all are alike
	ids    map[containState]int
	states []containState
	graph  graph
}

func (w *containWriter) id(s containState) int {
	id, ok := w.ids[s]
	if !ok {
		id = len(w.states)
		w.ids[s] = id
		w.states = append(w.states, s)
		w.graph = append(w.graph, graphState{})
	}
	return id
}

func (w *containWriter) expand(i int) error {
	s, a := w.states[i], w.a
	enough := s.place >= a.min
	for j, k := range a.contains {
		enough = enough && s.counts[j] >= k.min
	}
	if enough {
		w.graph[i].final = Seq{}
	}
	if a.max != Unbounded && s.place >= a.max {
		return nil
	}
	for claims := uint(0); claims < 1<<len(a.contains); claims++ {
		t, next := w.claim(s, claims)
		if t == nil || t == w.e.c.none {
			continue
		}
		v, err := w.e.value(t, w.name+"-item")
		if err != nil {
			return err
		}
		if s.place > 0 {
			v = sequence(Literal(w.e.c.comma), v)
		}
		edge := graphEdge{v, w.id(next)}
		w.graph[i].edges = append(w.graph[i].edges, edge)
	}
	return w.e.c.meter.spend(100)
}

// claim is the item that counts for the claimed conditions, and the state after
// it; nil where no such item is wanted. Where a count has no upper limit, an
// item that is not claimed may be of either kind.
func (w *containWriter) claim(s containState, claims uint) (*term, containState) {
	c := w.e.c
	terms := []*term{w.a.at(s.place).term}
	next := s
	next.place = min(s.place+1, w.places)
	for j, k := range w.a.contains {
		claimed := claims&(1<<j) != 0
		limit := k.max
		if limit == Unbounded {
			limit = k.min
		}
		switch {
		case claimed && (s.place < k.from || s.counts[j] >= limit):
			return nil, s
		case claimed:
			terms = append(terms, k.term)
			next.counts[j]++
		case k.max != Unbounded && s.place >= k.from:
			terms = append(terms, c.not(k.term))
		}
	}
	return c.and(terms...), next
}

const (
	maxUniqueItems  = MaxBag
	maxUniqueTuples = 256
)

// uniqueArray spells arrays without repetitions, where the items come from a
// few values: as a bag of them, or all arrays one by one.
func (e *emitter) uniqueArray(a *array) (Node, error) {
	if len(a.prefix) == 0 && len(a.contains) == 0 {
		texts, err := e.finite(a.rest.term, maxUniqueItems)
		if err != nil {
			return nil, err
		}
		return sequence(Literal("["), e.bag(a, texts), Literal("]")), nil
	}
	if len(a.contains) > 0 || a.max == Unbounded {
		return nil, errUnique
	}
	tuples, err := e.uniqueTuples(a)
	if err != nil {
		return nil, err
	}
	d, err := trie(e.c.meter, tuples, e.c.limits.Product)
	return d, err
}

func (e *emitter) bag(a *array, texts []string) Node {
	most := minBound(a.max, len(texts))
	b := Bag{Sep: Literal(e.c.comma), Min: a.min, Max: most}
	for _, s := range texts {
		b.Items = append(b.Items, BagItem{Body: Literal(s)})
	}
	return b
}

// uniqueTuples lists the arrays without repetitions.
func (e *emitter) uniqueTuples(a *array) ([]string, error) {
	tuples, out := [][]string{{}}, []string(nil)
	for place := 0; ; place++ {
		if place >= a.min {
			for _, items := range tuples {
				out = append(out, e.spellArray(items))
			}
		}
		if place == a.max || len(tuples) == 0 {
			return out, nil
		}
		texts, err := e.finite(a.at(place).term, maxUniqueItems)
		if err != nil {
			return nil, err
		}
		var longer [][]string
		for _, items := range tuples {
			for _, s := range texts {
				if !slices.Contains(items, s) {
					longer = append(longer, append(slices.Clone(items), s))
				}
			}
		}
		if tuples = longer; len(tuples)+len(out) > maxUniqueTuples {
			return nil, errUnique
		}
	}
}

func (e *emitter) spellArray(items []string) string {
	s := "["
	for i, item := range items {
		if i > 0 {
			s += e.c.comma
		}
		s += item
	}
	return s + "]"
}

// finite lists the spellings of a term's values, each value once, in the order
// in which their texts come in the schema.
func (e *emitter) finite(t *term, limit int) ([]string, error) {
	s, err := e.c.shapeOf(t)
	if err != nil {
		return nil, err
	}
	if s.has(kindArray) || s.has(kindObject) {
		return nil, errUnique
	}
	nodes, err := e.scalars(s)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range nodes {
		texts, ok := []string(nil), false
		switch n := n.(type) {
		case Literal:
			texts, ok = []string{string(n)}, true
		case *DFA:
			if n != AnyNumber() {
				texts, ok = n.texts(limit)
			}
		}
		if out = append(out, texts...); !ok || len(out) > limit {
			return nil, errUnique
		}
	}
	return out, nil
}
