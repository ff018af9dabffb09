package grammar

func (b *shaper) array() error {
	if !b.acc.has(kindArray) {
		return nil
	}
	a := b.c.anyArray()
	if err := b.places(a); err != nil {
		return err
	}
	var err error
	if a.min, a.max, err = b.countsOf("minItems", "maxItems"); err != nil {
		return err
	}
	if err := b.contains(a); err != nil {
		return err
	}
	if v := b.s.get("uniqueItems"); v != nil {
		a.unique = v.kind == kindTrue
	}
	a.shorten()
	out := *b.acc
	out.arrays, err = pairwise(b.c, b.acc.arrays, []*array{a}, b.c.intersectArrays)
	b.acc = &out
	return err
}

// places reads the keywords on items by their place. Before 2020-12, items could
// be the list that is now prefixItems, with additionalItems for the others.
func (b *shaper) places(a *array) error {
	prefix, rest := b.s.get("prefixItems"), b.s.get("items")
	if rest != nil && rest.kind == kindArray {
		prefix, rest = rest, b.s.get("additionalItems")
	}
	if prefix != nil {
		for i := range prefix.items {
			a.prefix = append(a.prefix, item{b.c.child(b.t, &prefix.items[i]), true})
		}
	}
	if rest != nil {
		a.rest = item{b.c.child(b.t, rest), true}
	}
	return b.c.meter.spend(len(a.prefix))
}

func (b *shaper) contains(a *array) error {
	v := b.s.get("contains")
	if v == nil {
		return nil
	}
	k := contained{term: b.c.child(b.t, v)}
	var err error
	if k.min, err = b.countOf("minContains", 1); err != nil {
		return err
	}
	if k.max, err = b.countOf("maxContains", Unbounded); err != nil {
		return err
	}
	a.contains = []contained{k}
	if b.s.res.draft >= draft2020 {
		a.marks = []*term{k.term}
	}
	return nil
}

// unevaluatedItems narrows the places that no keyword beside it, or in a branch
// that holds, has looked at.
func (b *shaper) unevaluatedItems(v *value) error {
	t := b.c.child(b.t, v)
	narrow := func(a *array, it item) item {
		if it.evaluated {
			return it
		}
		exempt := b.c.or(append([]*term{t}, a.marks...)...)
		return item{b.c.and(it.term, exempt), true}
	}
	out := *b.acc
	out.arrays = nil
	for _, a := range b.acc.arrays {
		n := *a
		n.prefix = nil
		for _, it := range a.prefix {
			n.prefix = append(n.prefix, narrow(a, it))
		}
		n.rest = narrow(a, a.rest)
		n.shorten()
		if n.max == Unbounded || n.min <= n.max {
			out.arrays = append(out.arrays, &n)
		}
	}
	b.acc = &out
	return b.c.meter.spend(10 * len(out.arrays))
}
