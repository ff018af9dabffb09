package grammar

import "slices"

// find is the index of a key, or -1.
func (o *object) find(name string) int {
	if len(o.keys) <= 8 {
		return slices.IndexFunc(o.keys, func(k key) bool { return k.name == name })
	}
	if o.index == nil {
		o.index = make(map[string]int, len(o.keys))
	}
	for i := len(o.index); i < len(o.keys); i++ {
		o.index[o.keys[i].name] = i
	}
	if i, ok := o.index[name]; ok {
		return i
	}
	return -1
}

// at is what a key, declared or not, is to hold.
func (o *object) at(c *compiler, name string) key {
	if i := o.find(name); i >= 0 {
		return o.keys[i]
	}
	for _, cl := range o.classes {
		if cl.dfa.match(name) {
			return key{name, cl.term, cl.evaluated}
		}
	}
	return key{name: name, term: c.none}
}

// uniteObjects is the object that stands for both, or nil. Objects that differ
// in nothing but which keys they need are one.
func (c *compiler) uniteObjects(a, b *object) *object {
	if a.min != b.min || a.max != b.max || !slices.Equal(a.classes, b.classes) || !slices.Equal(a.owed, b.owed) {
		return nil
	}
	for _, k := range a.keys {
		if b.at(c, k.name) != k {
			return nil
		}
	}
	var added []key
	for _, k := range b.keys {
		if a.find(k.name) < 0 {
			if a.at(c, k.name) != k {
				return nil
			}
			added = append(added, k)
		}
	}
	return &object{
		keys: slices.Concat(a.keys, added), classes: a.classes,
		min: a.min, max: a.max, needs: anyOf(a.needs, b.needs), owed: a.owed,
	}
}

// intersectObjects is the objects in both, or nil if there are plainly none.
func (c *compiler) intersectObjects(a, b *object) (*object, error) {
	out := &object{
		min:   max(a.min, b.min),
		max:   minBound(a.max, b.max),
		needs: allOf(a.needs, b.needs),
		owed:  slices.Concat(a.owed, b.owed),
	}
	for _, k := range a.keys {
		out.keys = append(out.keys, c.bothKeys(k, b.at(c, k.name)))
	}
	for _, k := range b.keys {
		if a.find(k.name) < 0 {
			out.keys = append(out.keys, c.bothKeys(a.at(c, k.name), k))
		}
	}
	if err := c.meter.spend(10 + 10*len(out.keys)); err != nil {
		return nil, err
	}
	if err := c.intersectClasses(out, a.classes, b.classes); err != nil {
		return nil, err
	}
	for _, k := range out.keys {
		if k.term == c.none {
			out.needs = out.needs.given(k.name, false)
		}
	}
	if out.needs == formulaFalse || out.max != Unbounded && out.min > out.max {
		return nil, nil
	}
	for _, debt := range out.owed {
		if !c.payable(out, debt) {
			return nil, nil
		}
	}
	return out, nil
}

// payable tells whether a member of the object may be what is owed. Only objects
// without free keys are looked at closely.
func (c *compiler) payable(o *object, debt class) bool {
	return len(o.classes) > 0 || slices.ContainsFunc(o.keys, func(k key) bool {
		return k.term != c.none && debt.dfa.match(k.name) && c.and(k.term, debt.term) != c.none
	})
}

func (c *compiler) bothKeys(a, b key) key {
	return key{a.name, c.and(a.term, b.term), a.evaluated || b.evaluated}
}

func (c *compiler) intersectClasses(out *object, as, bs []class) error {
	for _, a := range as {
		for _, b := range bs {
			dfa, err := combine(c.meter, a.dfa, b.dfa, opAnd, c.limits.Product)
			if err != nil {
				return err
			}
			term := c.and(a.term, b.term)
			if dfa.isEmpty() || term == c.none {
				continue
			}
			out.classes = append(out.classes, class{dfa, term, a.evaluated || b.evaluated})
			if len(out.classes) > c.limits.Branches {
				return errBranches
			}
		}
	}
	return nil
}

// complementObject is the objects that are not as o says: with the wrong keys,
// too few or too many of them, or with a member that is not as it should be.
func (c *compiler) complementObject(o *object) ([]*object, error) {
	var out []*object
	add := func(change func(*object)) {
		p := c.anyObject()
		change(p)
		out = append(out, p)
	}
	if o.needs != formulaTrue {
		add(func(p *object) {
			p.needs = o.needs.negate()
			p.needs.names(func(name string) {
				if p.find(name) < 0 {
					p.keys = append(p.keys, key{name: name, term: c.all})
				}
			})
		})
	}
	if o.min > 0 {
		add(func(p *object) { p.max = o.min - 1 })
	}
	if o.max != Unbounded {
		add(func(p *object) { p.min = o.max + 1 })
	}
	for _, k := range o.keys {
		if k.term != c.all {
			add(func(p *object) {
				p.keys = []key{{name: k.name, term: c.not(k.term)}}
				p.needs = hasKey(k.name)
			})
		}
	}
	wrong, err := c.wrongMembers(o)
	for _, cl := range wrong {
		add(func(p *object) { p.owed = []class{cl} })
	}
	for _, cl := range o.owed {
		others, err := combine(c.meter, allTexts, cl.dfa, opMinus, c.limits.Product)
		if err != nil {
			return nil, err
		}
		add(func(p *object) {
			p.classes = []class{{dfa: cl.dfa, term: c.not(cl.term)}, {dfa: others, term: c.all}}
		})
	}
	return out, err
}

// wrongMembers is, for the keys that o does not declare, which values they may
// not have.
func (c *compiler) wrongMembers(o *object) ([]class, error) {
	var out []class
	others, err := c.undeclared(o.keys)
	if err != nil {
		return nil, err
	}
	for _, cl := range o.classes {
		free, err := combine(c.meter, others, cl.dfa, opAnd, c.limits.Product)
		if err != nil {
			return nil, err
		}
		if cl.term != c.all && !free.isEmpty() {
			out = append(out, class{dfa: free, term: c.not(cl.term)})
		}
		if others, err = combine(c.meter, others, cl.dfa, opMinus, c.limits.Product); err != nil {
			return nil, err
		}
	}
	if !others.isEmpty() {
		out = append(out, class{dfa: others, term: c.all})
	}
	return out, nil
}
