package grammar

import "slices"

// A shape is a set of JSON values in normal form: for each kind, the values of
// that kind. Lists are unions.
type shape struct {
	basic   [kindTrue + 1]bool // null, false, true
	numbers *DFA               // of plain decimals; see numbers.go
	strings []text
	arrays  []*array
	objects []*object
	// fewer are the kinds of which the shape may lack values that the schema
	// admits, more those of which it may have values that the schema does not.
	fewer, more kindSet
}

// A kindSet is a set of kinds.
type kindSet uint8

func (k kind) set() kindSet                { return 1 << k }
func (s kindSet) has(k kind) bool          { return s&k.set() != 0 }
func (s *kindSet) add(k kind)              { *s |= k.set() }
func (s *kindSet) addIf(cond bool, k kind) { *s |= map[bool]kindSet{true: k.set()}[cond] }

// A text is the strings of a language with a length in code points from min to
// max, which may be Unbounded. Where it is not certain what the language has, dfa
// is what it has for certain and wide is what it may have.
type text struct {
	dfa      *DFA
	min, max int
	wide     *wide // nil where dfa is exact
}

// An array is the arrays whose first items are in prefix, whose others are in
// rest, and so on.
type array struct {
	prefix   []item
	rest     item
	min, max int // length; max may be Unbounded
	contains []contained
	unique   bool
	marks    []*term // items in one of these count as evaluated wherever they are
}

// An item is what a place in an array holds. Evaluated places are out of reach
// of unevaluatedItems.
type item struct {
	term      *term
	evaluated bool
}

// contained asks for at least min and at most max items in term, not counting
// the first from ones.
type contained struct {
	term     *term
	from     int
	min, max int
}

// An object is the objects whose members are as keys say, or, for other keys,
// as the first class says that the key is in; keys in none do not occur.
type object struct {
	keys     []key
	classes  []class // disjoint
	min, max int     // number of members; max may be Unbounded
	needs    *formula
	owed     []class // each asks for at least one member of its class

	index map[string]int // of the first len(index) keys; a copy that gets further keys must not share it
}

type key struct {
	name      string
	term      *term
	evaluated bool
}

// A class is the keys of a language and the values that they have.
type class struct {
	dfa       *DFA
	term      *term
	evaluated bool
}

// full is every value. The caller may change the shape, not what it points to.
func (c *compiler) full() *shape {
	if c.every == nil {
		c.every = &shape{
			basic:   [...]bool{true, true, true},
			numbers: plainNumbers(),
			strings: []text{anyText},
			arrays:  []*array{c.anyArray()},
			objects: []*object{c.anyObject()},
		}
	}
	s := *c.every
	return &s
}

func emptyShape() *shape { return &shape{numbers: noText} }

func (c *compiler) anyArray() *array {
	return &array{rest: item{term: c.all}, max: Unbounded}
}

func (c *compiler) anyObject() *object {
	return &object{classes: []class{{dfa: allTexts, term: c.all}}, max: Unbounded, needs: formulaTrue}
}

// has tells whether the shape has values of a kind.
func (s *shape) has(k kind) bool {
	switch k {
	case kindNumber:
		return !s.numbers.isEmpty()
	case kindString:
		return len(s.strings) > 0
	case kindArray:
		return len(s.arrays) > 0
	case kindObject:
		return len(s.objects) > 0
	}
	return s.basic[k]
}

// isEmpty tells whether the shape has values of no kind.
func (s *shape) isEmpty() bool {
	for k := range kind(kinds) {
		if s.has(k) {
			return false
		}
	}
	return true
}

// drop takes all values of a kind out.
func (s *shape) drop(k kind) {
	switch k {
	case kindNumber:
		s.numbers = noText
	case kindString:
		s.strings = nil
	case kindArray:
		s.arrays = nil
	case kindObject:
		s.objects = nil
	default:
		s.basic[k] = false
	}
	s.fewer &^= k.set()
	s.more &^= k.set()
}

// keep takes all kinds out but those.
func (s *shape) keep(set kindSet) {
	for k := range kind(kinds) {
		if !set.has(k) {
			s.drop(k)
		}
	}
}

// intersect is the values in both shapes.
func (c *compiler) intersect(a, b *shape) (*shape, error) {
	out := &shape{}
	for k := range kind(kinds) {
		// What one shape leaves out is missed only where the other may have it.
		out.fewer.addIf(a.fewer.has(k) && (b.has(k) || b.fewer.has(k)) || b.fewer.has(k) && a.has(k), k)
		out.more.addIf(a.more.has(k) || b.more.has(k), k)
	}
	for k := range out.basic {
		out.basic[k] = a.basic[k] && b.basic[k]
	}
	var err error
	if out.numbers, err = combine(c.meter, a.numbers, b.numbers, opAnd, c.limits.Product); err != nil {
		return nil, err
	}
	if out.strings, err = c.intersectTexts(a.strings, b.strings); err != nil {
		return nil, err
	}
	if out.arrays, err = pairwise(c, a.arrays, b.arrays, c.intersectArrays); err != nil {
		return nil, err
	}
	objects, err := pairwise(c, a.objects, b.objects, c.intersectObjects)
	out.objects = uniteBy(nil, objects, c.uniteObjects)
	return out, err
}

// pairwise intersects two unions. Meeting is nil where two do not meet.
func pairwise[T any](c *compiler, as, bs []*T, meet func(a, b *T) (*T, error)) ([]*T, error) {
	var out []*T
	for _, a := range as {
		for _, b := range bs {
			m, err := meet(a, b)
			if err != nil {
				return nil, err
			}
			if m != nil {
				out = append(out, m)
			}
			if len(out) > c.limits.Branches {
				return nil, errBranches
			}
		}
	}
	return out, nil
}

// union is the values in either shape.
func (c *compiler) union(a, b *shape) (*shape, error) {
	out := &shape{fewer: a.fewer | b.fewer, more: a.more | b.more}
	for k := range out.basic {
		out.basic[k] = a.basic[k] || b.basic[k]
	}
	var err error
	if out.numbers, err = combine(c.meter, a.numbers, b.numbers, opOr, c.limits.Product); err != nil {
		return nil, err
	}
	if out.strings, err = c.uniteTexts(a.strings, b.strings); err != nil {
		return nil, err
	}
	out.arrays = uniteBy(a.arrays, b.arrays, func(x, y *array) *array {
		if x.equal(y) {
			return x
		}
		return nil
	})
	out.objects = uniteBy(a.objects, b.objects, c.uniteObjects)
	if max(len(out.arrays), len(out.objects), len(out.strings)) > c.limits.Branches {
		return nil, errBranches
	}
	return out, nil
}

// uniteBy appends what is in bs to as; merge gives the one that stands for
// both of a pair, or nil.
func uniteBy[T any](as, bs []*T, merge func(a, b *T) *T) []*T {
	out := slices.Clone(as)
next:
	for _, b := range bs {
		for i, a := range out {
			if m := merge(a, b); m != nil {
				out[i] = m
				continue next
			}
		}
		out = append(out, b)
	}
	return out
}

// complement is the values that the shape s does not have, of the kinds that
// within has.
func (c *compiler) complement(s, within *shape) (*shape, error) {
	out := c.full()
	for k := range kind(kinds) {
		if !within.has(k) {
			out.drop(k)
		} else if s.fewer.has(k) {
			return nil, errComplement
		}
	}
	for k := range out.basic {
		out.basic[k] = out.basic[k] && !s.basic[k]
	}
	var err error
	if out.numbers, err = combine(c.meter, out.numbers, s.numbers, opMinus, c.limits.Product); err != nil {
		return nil, err
	}
	if out.has(kindString) {
		if out.strings, err = c.complementTexts(s.strings); err != nil {
			return nil, err
		}
	}
	if err := c.complementNested(out, s); err != nil {
		return nil, err
	}
	c.restoreMore(out, s, within)
	return out, nil
}

// complementNested takes the arrays and objects of s from out.
func (c *compiler) complementNested(out, s *shape) error {
	for _, a := range s.arrays {
		if !out.has(kindArray) {
			break
		}
		others, err := c.complementArray(a)
		if err != nil {
			return err
		}
		if out.arrays, err = pairwise(c, out.arrays, others, c.intersectArrays); err != nil {
			return err
		}
	}
	for _, o := range s.objects {
		if !out.has(kindObject) {
			break
		}
		others, err := c.complementObject(o)
		if err != nil {
			return err
		}
		if out.objects, err = pairwise(c, out.objects, others, c.intersectObjects); err != nil {
			return err
		}
	}
	return nil
}

// restoreMore gives the complement back what s may have had too much of: a
// best-effort grammar admits more, never less.
func (c *compiler) restoreMore(out, s, within *shape) {
	full := c.full()
	for k := range kind(kinds) {
		if !s.more.has(k) || !within.has(k) {
			continue
		}
		switch k {
		case kindNumber:
			out.numbers = full.numbers
		case kindString:
			out.strings = full.strings
		case kindArray:
			out.arrays = full.arrays
		case kindObject:
			out.objects = full.objects
		default:
			out.basic[k] = true
		}
		out.more.add(k)
	}
}

// forget clears what was evaluated: annotations do not pass through not.
func (s *shape) forget() *shape {
	out := *s
	out.arrays = nil
	for _, a := range s.arrays {
		b := *a
		b.prefix = slices.Clone(a.prefix)
		for i := range b.prefix {
			b.prefix[i].evaluated = false
		}
		b.rest.evaluated, b.marks = false, nil
		out.arrays = append(out.arrays, &b)
	}
	out.objects = nil
	for _, o := range s.objects {
		b := *o
		b.keys, b.classes = slices.Clone(o.keys), slices.Clone(o.classes)
		for i := range b.keys {
			b.keys[i].evaluated = false
		}
		for i := range b.classes {
			b.classes[i].evaluated = false
		}
		out.objects = append(out.objects, &b)
	}
	return &out
}
