package grammar

import "slices"

func (a *array) equal(b *array) bool {
	return a.rest == b.rest && a.min == b.min && a.max == b.max && a.unique == b.unique &&
		slices.Equal(a.prefix, b.prefix) && slices.Equal(a.contains, b.contains) && slices.Equal(a.marks, b.marks)
}

// at is what the place i holds.
func (a *array) at(i int) item {
	if i < len(a.prefix) {
		return a.prefix[i]
	}
	return a.rest
}

// intersectArrays is the arrays in both, or nil if there are plainly none.
func (c *compiler) intersectArrays(a, b *array) (*array, error) {
	out := &array{
		rest:     c.bothItems(a.rest, b.rest),
		min:      max(a.min, b.min),
		max:      minBound(a.max, b.max),
		unique:   a.unique || b.unique,
		contains: slices.Concat(a.contains, b.contains),
		marks:    slices.Concat(a.marks, b.marks),
	}
	for i := range max(len(a.prefix), len(b.prefix)) {
		out.prefix = append(out.prefix, c.bothItems(a.at(i), b.at(i)))
	}
	slices.SortFunc(out.contains, compareContained)
	out.contains = slices.Compact(out.contains)
	out.shorten()
	if out.max != Unbounded && out.min > out.max {
		return nil, nil
	}
	return out, c.meter.spend(10 + len(out.prefix))
}

func compareContained(a, b contained) int {
	return slices.Compare([]int{int(a.term.id), a.from, a.min, a.max}, []int{int(b.term.id), b.from, b.min, b.max})
}

func (c *compiler) bothItems(a, b item) item {
	return item{c.and(a.term, b.term), a.evaluated || b.evaluated}
}

// shorten lowers max to the first place that nothing can fill.
func (a *array) shorten() {
	for i := range a.prefix {
		if a.prefix[i].term.op == termNone {
			a.max = minBound(a.max, i)
		}
	}
	if a.rest.term.op == termNone {
		a.max = minBound(a.max, len(a.prefix))
	}
	if a.max != Unbounded && a.max < len(a.prefix) {
		a.prefix = a.prefix[:a.max]
	}
}

// complementArray is the arrays that are not as a says: too short, too long, or
// with an item that is not as it should be.
func (c *compiler) complementArray(a *array) ([]*array, error) {
	if a.unique {
		return nil, errComplement
	}
	var out []*array
	add := func(change func(*array)) {
		b := c.anyArray()
		change(b)
		out = append(out, b)
	}
	if a.min > 0 {
		add(func(b *array) { b.max = a.min - 1 })
	}
	if a.max != Unbounded {
		add(func(b *array) { b.min = a.max + 1 })
	}
	for i, it := range a.prefix {
		if it.term != c.all {
			add(func(b *array) {
				b.prefix = slices.Repeat([]item{{term: c.all}}, i)
				b.prefix = append(b.prefix, item{term: c.not(it.term)})
				b.min = i + 1
			})
		}
	}
	if a.rest.term != c.all {
		wrong := contained{term: c.not(a.rest.term), from: len(a.prefix), min: 1, max: Unbounded}
		add(func(b *array) { b.contains = []contained{wrong} })
	}
	for _, k := range a.contains {
		if k.min > 0 {
			add(func(b *array) { b.contains = []contained{{k.term, k.from, 0, k.min - 1}} })
		}
		if k.max != Unbounded {
			add(func(b *array) { b.contains = []contained{{k.term, k.from, k.max + 1, Unbounded}} })
		}
	}
	return out, nil
}
