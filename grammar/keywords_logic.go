package grammar

import "math/bits"

func (b *shaper) allOf(v *value) error {
	terms, err := b.subterms("allOf", v)
	if err != nil {
		return err
	}
	for _, t := range terms {
		if err := b.narrowWithin(t); err != nil {
			return err
		}
	}
	return nil
}

func (b *shaper) anyOf(v *value) error {
	terms, err := b.subterms("anyOf", v)
	if err != nil {
		return err
	}
	if !b.c.doc.annotated {
		return b.narrow(b.c.uniteTerms(terms))
	}
	return b.narrow(b.annotatedUnion(terms))
}

// maxAnnotated is the most branches of an anyOf of which all combinations are
// told apart.
const maxAnnotated = 5

// annotatedUnion is a union in which a value that several terms admit is among
// the ones that all of these have evaluated. Of many terms it only looks at one
// at a time, and says that it may lack values.
func (b *shaper) annotatedUnion(terms []*term) (*shape, error) {
	if len(terms) > maxAnnotated {
		s, err := b.c.uniteTerms(terms)
		if err != nil {
			return nil, err
		}
		out := *s
		out.fewer.addIf(s.has(kindArray), kindArray)
		out.fewer.addIf(s.has(kindObject), kindObject)
		return &out, nil
	}
	acc := emptyShape()
	for subset := uint(1); subset < 1<<len(terms); subset++ {
		s := b.c.full()
		for rest := subset; rest != 0; rest &= rest - 1 {
			part, err := b.c.shapeOf(terms[bits.TrailingZeros(rest)])
			if err == nil {
				s, err = b.c.intersect(s, part)
			}
			if err != nil {
				return nil, err
			}
		}
		var err error
		if acc, err = b.c.union(acc, s); err != nil {
			return nil, err
		}
	}
	return acc, nil
}

// oneOf is the union of the branches, each without those of the others that it
// may have values in common with.
func (b *shaper) oneOf(v *value) error {
	terms, err := b.subterms("oneOf", v)
	if err != nil {
		return err
	}
	shapes := make([]*shape, len(terms))
	for i, t := range terms {
		if shapes[i], err = b.c.shapeOf(t); err != nil {
			return err
		}
		// Only what the schema admits otherwise can make branches overlap.
		if shapes[i], err = b.c.intersect(b.acc, shapes[i]); err != nil {
			return err
		}
	}
	s, err := b.exactlyOne(shapes)
	if err == nil {
		b.acc = s
		return nil
	}
	if err := b.c.relax(err, b.s, "oneOf"); err != nil {
		return err
	}
	s, err = b.c.uniteTerms(terms)
	if err != nil {
		return err
	}
	return b.narrow(b.loosened(s), nil)
}

func (b *shaper) exactlyOne(shapes []*shape) (*shape, error) {
	overlaps := make([][]*shape, len(shapes))
	for i, s := range shapes {
		for j, other := range shapes[:i] {
			if !b.c.apart(s, other, apartDepth) {
				overlaps[i] = append(overlaps[i], other)
				overlaps[j] = append(overlaps[j], s)
			}
		}
	}
	acc := emptyShape()
	for i, s := range shapes {
		for _, other := range overlaps[i] {
			not, err := b.c.complement(other, s)
			if err == nil {
				s, err = b.c.intersect(s, not)
			}
			if err != nil {
				return nil, err
			}
		}
		var err error
		if acc, err = b.c.union(acc, s); err != nil {
			return nil, err
		}
	}
	return acc, b.c.meter.spend(len(shapes) * len(shapes))
}

func (b *shaper) not(v *value) error { return b.narrowTo(b.c.not(b.c.child(b.t, v))) }

// condition is (if and then) or (not if and else).
func (b *shaper) condition(v *value) error {
	c := b.c
	branch := func(keyword string) *term {
		if v := b.s.get(keyword); v != nil {
			return c.child(b.t, v)
		}
		return c.all
	}
	cond, then, otherwise := c.child(b.t, v), branch("then"), branch("else")
	if then == c.all && otherwise == c.all && !c.doc.annotated {
		return nil
	}
	yes, err := b.both(cond, then)
	if err != nil {
		return err
	}
	no, err := b.both(c.not(cond), otherwise)
	if err != nil {
		return err
	}
	return b.narrow(c.union(yes, no))
}

// both is acc as far as two terms have it.
func (b *shaper) both(x, y *term) (*shape, error) {
	part := *b
	err := part.narrowTo(x)
	if err == nil {
		err = part.narrowTo(y)
	}
	return part.acc, err
}
