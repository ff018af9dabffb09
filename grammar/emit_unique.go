package grammar

import (
	"errors"
	"slices"
)

var (
	errUnique   = errors.New("asks for unique items out of more than a few values")
	errFewItems = errors.New("asks for unique items and may run out of values for them")
)

const (
	maxUniqueItems  = MaxBag
	maxUniqueTuples = 256
)

// uniqueArray spells arrays without repetitions: of a few values as a bag of
// them, or all arrays one by one; of many as a Unique, where that is allowed.
func (e *emitter) uniqueArray(a *array, t *term, name string) (Node, error) {
	n, err := e.uniqueFew(a)
	if errors.Is(err, errUnique) && e.c.unique {
		return e.uniqueMany(a, t, name)
	}
	return n, err
}

func (e *emitter) uniqueFew(a *array) (Node, error) {
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
	return e.c.spelledValues(tuples)
}

func (e *emitter) bag(a *array, texts []string) Node {
	most := minBound(a.max, len(texts))
	b := Bag{Sep: Literal(e.c.comma), Min: a.min, Max: most}
	for _, s := range texts {
		b.Items = append(b.Items, BagItem{Body: e.c.spelledValue(s)})
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
		texts, ok := listed(n, limit)
		if out = append(out, texts...); !ok || len(out) > limit {
			return nil, errUnique
		}
	}
	return out, nil
}

// listed is the texts of a value that does not nest, if there are at most limit.
func listed(n Node, limit int) ([]string, bool) {
	switch n := n.(type) {
	case Literal:
		return []string{string(n)}, true
	case Token:
		return []string{n.Text}, true
	case *DFA:
		if n != AnyNumber() {
			return n.texts(limit)
		}
	case Seq:
		out := []string{""}
		for _, part := range n {
			ends, ok := listed(part, limit)
			if !ok || len(out)*len(ends) > limit {
				return nil, false
			}
			out = concatenated(out, ends)
		}
		return out, true
	}
	return nil, false
}

// concatenated is each text of the first list with each of the second behind it.
func concatenated(texts, ends []string) []string {
	var out []string
	for _, text := range texts {
		for _, end := range ends {
			out = append(out, text+end)
		}
	}
	return out
}

// A spelling says what the texts of values stand for. In a Unique each value
// must have one text, or two texts of one value would pass for two items.
type spelling uint8

const (
	spellFreely spelling = iota // as numbers.go and emit_object.go like it best
	// spellOnce has one text for each value of a term: numbers in shortest form
	// with digits enough for a float64, and at most one free key.
	spellOnce
	// spellOnceAnywhere has the same text for a value in all terms: moreover,
	// keys in one order for the whole schema, the free one last.
	spellOnceAnywhere
)

// enter sets the mode and gives back the function that restores it.
func (e *emitter) enter(mode spelling) func() {
	before := e.mode
	e.mode = mode
	return func() { e.mode = before }
}

// maxPairs is of how many alternatives all pairs are compared.
const maxPairs = 16

// modeOf is the mode for n alternatives: where a value may be in two of them,
// these must spell it alike.
func (e *emitter) modeOf(n int, apart func(i, j int) bool) spelling {
	if e.mode != spellOnce || n < 2 {
		return e.mode
	}
	for i := range n {
		for j := range i {
			if n > maxPairs || !apart(i, j) {
				return spellOnceAnywhere
			}
		}
	}
	return e.mode
}

// uniqueMany spells arrays without repetitions as a Unique. The number of items
// that there are is checked when all rules are there.
func (e *emitter) uniqueMany(a *array, t *term, name string) (Node, error) {
	mode := max(e.mode, spellOnce)
	if len(a.prefix) > 0 || len(a.contains) > 0 {
		mode = spellOnceAnywhere // items of different places are compared
	}
	defer e.enter(mode)()
	b := *a
	if err := e.boundUnique(&b); err != nil {
		return nil, err
	}
	if b.max != Unbounded && b.min > b.max {
		return Alt{}, nil
	}
	check := uniqueCheck{array: a, term: t}
	n, err := e.plainArray(&b, t, name, func(n Node, last int) Node {
		check.items = append(check.items, uniqueItem{n, last})
		return Item{n}
	})
	e.uniques = append(e.uniques, check)
	return Unique{n}, err
}

// boundUnique lowers the most items to how many values there are, if they are
// texts, numbers and the like, which can be counted.
func (e *emitter) boundUnique(a *array) error {
	s, err := e.c.shapeOf(a.rest.term)
	if err != nil || s.has(kindArray) || s.has(kindObject) {
		return err
	}
	numbers, err := e.numbers(s.numbers)
	if err != nil {
		return err
	}
	n, most := numbers.count(), 0
	for _, has := range s.basic {
		if has {
			n++
		}
	}
	for _, t := range s.strings { // which may have texts in common
		most = max(most, t.count())
	}
	if n += most; n < manyTexts {
		a.max = minBound(a.max, max(n, len(a.prefix)))
	}
	return nil
}

// A uniqueCheck is an array whose items must be enough.
type uniqueCheck struct {
	array *array
	term  *term
	items []uniqueItem
}

// A uniqueItem is what may stand in an array, up to the place last, which may be
// Unbounded.
type uniqueItem struct {
	node Node
	last int
}

// checkUnique makes sure that an array without repetitions never runs out of
// items: of each kind there are more than can stand before it. Best effort lets
// the others repeat; then the grammar is to be spelled again.
func (e *emitter) checkUnique() (again bool, err error) {
	if len(e.uniques) == 0 {
		return false, nil
	}
	counter := newNodeCounter(e.rules)
	for _, u := range e.uniques {
		if !slices.ContainsFunc(u.items, func(it uniqueItem) bool {
			n := counter.count(it.node)
			return n < manyTexts && (it.last == Unbounded || n <= it.last)
		}) {
			continue
		}
		if err := e.relax(errFewItems, u.term, "uniqueItems"); err != nil {
			return false, err
		}
		e.c.repeats[u.array] = true
		again = true
	}
	return again, nil
}
