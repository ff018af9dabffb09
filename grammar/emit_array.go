package grammar

import "errors"

var errContains = errors.New("counts contained items in too many ways")

// arrays spells a union of arrays.
func (e *emitter) arrays(as []*array, t *term, name string) ([]Node, error) {
	defer e.enter(e.modeOf(len(as), func(i, j int) bool { return e.c.arraysApart(as[i], as[j], apartDepth) }))()
	var alt []Node
	for _, a := range as {
		n, err := e.array(a, t, name)
		if err != nil {
			return nil, e.blame(err, t, "")
		}
		alt = append(alt, n)
	}
	return alt, nil
}

// array spells arrays.
func (e *emitter) array(a *array, t *term, name string) (Node, error) {
	if a.unique && (a.max == Unbounded || a.max > 1) && !e.c.repeats[a] {
		n, err := e.uniqueArray(a, t, name)
		if err == nil || !errors.Is(err, errUnique) {
			return n, err
		}
		if err := e.relax(err, t, "uniqueItems"); err != nil {
			return nil, err
		}
	}
	return e.plainArray(a, t, name, func(n Node, _ int) Node { return n })
}

// An itemWrapper makes an item of a value that stands in places up to last,
// which may be Unbounded.
type itemWrapper func(v Node, last int) Node

// plainArray spells arrays by their places and by what they contain.
func (e *emitter) plainArray(a *array, t *term, name string, wrap itemWrapper) (Node, error) {
	var inner Node
	var err error
	if len(a.contains) > 0 {
		inner, err = e.containing(a, name, wrap)
		if errors.Is(err, errContains) {
			err = e.blame(err, t, "contains")
		}
	} else {
		inner, err = e.items(a, name, wrap)
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

// lastPlace is the last place of an array, or Unbounded.
func (a *array) lastPlace() int {
	if a.max == Unbounded {
		return Unbounded
	}
	return a.max - 1
}

// items spells what stands between the brackets where only places matter.
func (e *emitter) items(a *array, name string, wrap itemWrapper) (Node, error) {
	comma := Literal(e.c.comma)
	n := len(a.prefix)
	var tail Node = Seq{}
	if a.max == Unbounded || a.max > n {
		rest, err := e.value(a.rest.term, name+"-item")
		if err != nil {
			return nil, err
		}
		rest = wrap(rest, a.lastPlace())
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
		if tail = sequence(wrap(v, i), tail); i > 0 {
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
func (e *emitter) containing(a *array, name string, wrap itemWrapper) (Node, error) {
	if len(a.contains) > maxContains {
		return nil, errContains
	}
	w := containWriter{e: e, a: a, name: name, wrap: wrap}
	w.places = max(len(a.prefix), a.min, a.max, 1)
	for _, k := range a.contains {
		w.places = max(w.places, k.from)
	}
	w.id(containState{})
	if err := w.grow(maxContaining, errContains, w.expand); err != nil {
		return nil, err
	}
	return w.graph.node(&e.ruleList, name), nil
}

type containWriter struct {
	e      *emitter
	a      *array
	name   string
	wrap   itemWrapper
	places int // from this place on all are alike
	stateGraph[containState]
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
		last := s.place
		if last == w.places {
			last = a.lastPlace()
		}
		if v = w.wrap(v, last); s.place > 0 {
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
