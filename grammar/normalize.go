package grammar

import "slices"

// shapeOf works out a term's normal form.
func (c *compiler) shapeOf(t *term) (*shape, error) {
	if t.shape != nil {
		return t.shape, nil
	}
	if t.busy {
		return nil, errCycle
	}
	if len(c.terms) > c.limits.Terms {
		return nil, errTerms
	}
	if err := c.meter.spend(100); err != nil {
		return nil, err
	}
	t.busy = true
	defer func() { t.busy = false }()
	s, err := c.derive(t)
	if err != nil {
		return nil, err
	}
	t.shape = s
	return s, nil
}

func (c *compiler) derive(t *term) (*shape, error) {
	switch t.op {
	case termAll:
		return c.full(), nil
	case termNone:
		return emptyShape(), nil
	case termValue:
		return c.valueShape([]*value{t.value})
	case termAnd:
		return c.deriveAnd(t)
	case termOr:
		return c.uniteTerms(t.parts)
	case termNot:
		return c.deriveNot(t, c.full())
	}
	return c.schemaShape(t)
}

// deriveAnd intersects the parts. Complements come last, so that only what is
// left needs one.
func (c *compiler) deriveAnd(t *term) (*shape, error) {
	acc := c.full()
	for _, complements := range []bool{false, true} {
		for _, p := range t.parts {
			if complements != (p.op == termNot) {
				continue
			}
			s, err := c.shapeWithin(p, acc)
			if err == nil {
				acc, err = c.intersect(acc, s)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return acc, nil
}

// shapeWithin is the term's shape as far as within has values of a kind.
func (c *compiler) shapeWithin(t *term, within *shape) (*shape, error) {
	if t.op == termNot && t.shape == nil {
		return c.deriveNot(t, within)
	}
	return c.shapeOf(t)
}

func (c *compiler) deriveNot(t *term, within *shape) (*shape, error) {
	part := t.parts[0]
	if part.op == termNot {
		s, err := c.shapeOf(part.parts[0])
		if err != nil {
			return nil, err
		}
		return s.forget(), nil
	}
	s, err := c.shapeOf(part)
	if err != nil {
		return nil, err
	}
	out, err := c.complement(s, within)
	origin := part.origin()
	if err == nil || origin == nil {
		return out, err
	}
	if err := c.relax(err, origin, ""); err != nil {
		return nil, err
	}
	out = c.full()
	out.more = allKinds
	return out, nil
}

const allKinds kindSet = 1<<kinds - 1

func (c *compiler) uniteTerms(terms []*term) (*shape, error) {
	acc := emptyShape()
	for _, t := range terms {
		s, err := c.shapeOf(t)
		if err == nil {
			acc, err = c.union(acc, s)
		}
		if err != nil {
			return nil, err
		}
	}
	return acc, nil
}

// apartTerms tells whether two terms certainly have no value in common.
func (c *compiler) apartTerms(a, b *term, depth int) bool {
	if a == c.none || b == c.none {
		return true
	}
	if a == c.all || b == c.all || a == b || depth == 0 {
		return false
	}
	sa, err := c.shapeOf(a)
	if err != nil {
		return false
	}
	sb, err := c.shapeOf(b)
	return err == nil && c.apart(sa, sb, depth)
}

// apartDepth is how deep apart looks into nested values.
const apartDepth = 4

// apart tells whether two shapes certainly have no value in common.
func (c *compiler) apart(a, b *shape, depth int) bool {
	for k := range kind(kinds) {
		certain := !a.has(k) && !a.fewer.has(k) || !b.has(k) && !b.fewer.has(k)
		if !certain && (a.fewer.has(k) || b.fewer.has(k) || !c.kindApart(k, a, b, depth)) {
			return false
		}
	}
	return true
}

func (c *compiler) kindApart(k kind, a, b *shape, depth int) bool {
	switch k {
	case kindNumber:
		both, err := combine(c.meter, a.numbers, b.numbers, opAnd, c.limits.Product)
		return err == nil && both.isEmpty()
	case kindString:
		both, err := c.intersectTexts(a.strings, b.strings)
		return err == nil && len(both) == 0
	case kindArray:
		return allPairs(a.arrays, b.arrays, func(x, y *array) bool { return c.arraysApart(x, y, depth) })
	case kindObject:
		return allPairs(a.objects, b.objects, func(x, y *object) bool { return c.objectsApart(x, y, depth) })
	}
	return false
}

func allPairs[T any](as, bs []*T, holds func(a, b *T) bool) bool {
	return !slices.ContainsFunc(as, func(a *T) bool {
		return slices.ContainsFunc(bs, func(b *T) bool { return !holds(a, b) })
	})
}

func (c *compiler) arraysApart(a, b *array, depth int) bool {
	least := max(a.min, b.min)
	if most := minBound(a.max, b.max); most != Unbounded && most < least {
		return true
	}
	for i := range min(least, max(len(a.prefix), len(b.prefix))+1) {
		if c.apartTerms(a.at(i).term, b.at(i).term, depth-1) {
			return true
		}
	}
	return false
}

func (c *compiler) objectsApart(a, b *object, depth int) bool {
	if most := minBound(a.max, b.max); most != Unbounded && most < max(a.min, b.min) {
		return true
	}
	needs := allOf(a.needs, b.needs)
	if needs == formulaFalse {
		return true
	}
	for _, k := range slices.Concat(a.keys, b.keys) {
		if needs.requires(k.name) && c.apartTerms(a.at(c, k.name).term, b.at(c, k.name).term, depth-1) {
			return true
		}
	}
	return false
}
