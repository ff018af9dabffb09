package grammar

import "slices"

func (b *shaper) object() error {
	if !b.acc.has(kindObject) {
		return nil
	}
	o := &object{needs: formulaTrue}
	var err error
	if o.min, o.max, err = b.countsOf("minProperties", "maxProperties"); err != nil {
		return err
	}
	if err := b.patternProperties(o); err != nil {
		if err := b.c.relax(err, b.s, "patternProperties"); err != nil {
			return err
		}
		o.classes = b.c.anyObject().classes
		b.acc = b.loosened(b.acc)
	}
	if err := b.properties(o); err != nil {
		return err
	}
	if err := b.apply("propertyNames", func(v *value) error { return b.propertyNames(o, v) }); err != nil {
		return err
	}
	if err := b.required(o); err != nil {
		return err
	}
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		if err := b.dependentRequired(o, keyword); err != nil {
			return err
		}
	}
	out := *b.acc
	out.objects, err = pairwise(b.c, b.acc.objects, []*object{o}, b.c.intersectObjects)
	b.acc = &out
	return err
}

// maxClasses is the most ways in which keys can match the patterns of a schema.
const maxClasses = 64

// patternProperties splits the keys into classes by the patterns that they
// match. The class of those that match none is additionalProperties.
func (b *shaper) patternProperties(o *object) error {
	rest := class{dfa: allTexts, term: b.c.all}
	if v := b.s.get("additionalProperties"); v != nil {
		rest = class{allTexts, b.c.child(b.t, v), true}
	}
	patterns := b.s.get("patternProperties")
	if patterns == nil {
		o.classes = []class{rest}
		return nil
	}
	unmatched := allTexts
	for i := range patterns.members {
		m := &patterns.members[i]
		p, err := b.c.pattern(m.key)
		if err != nil {
			if err := b.c.relax(err, b.s, "patternProperties"); err != nil {
				return err
			}
			rest.term = b.c.all // any key may be one that matches
			b.acc = b.loosened(b.acc)
			continue
		}
		outer, err := text{dfa: p.inner, wide: p.wide}.outer()
		if err != nil {
			return err
		}
		matched := class{p.inner, b.c.child(b.t, &m.value), true}
		if o.classes, err = b.split(o.classes, matched, unmatched, outer); err != nil {
			return err
		}
		if unmatched, err = combine(b.c.meter, unmatched, outer, opMinus, b.c.limits.Product); err != nil {
			return err
		}
		b.lacksObjects(p.wide != nil)
	}
	rest.dfa = unmatched
	if !unmatched.isEmpty() {
		o.classes = append(o.classes, rest)
	}
	return nil
}

// lacksObjects notes that objects are left out of which it is not certain that
// they are valid.
func (b *shaper) lacksObjects(lacks bool) {
	out := *b.acc
	out.fewer.addIf(lacks, kindObject)
	b.acc = &out
}

// split divides classes by whether they match a further pattern, and adds the
// class of those keys that match it alone. Keys that only may match it, being
// in outer, are in no class.
func (b *shaper) split(classes []class, matched class, unmatched, outer *DFA) ([]class, error) {
	c := b.c
	var out []class
	add := func(x *DFA, op setOp, by *DFA, t *term) error {
		dfa, err := combine(c.meter, x, by, op, c.limits.Product)
		if err == nil && !dfa.isEmpty() {
			out = append(out, class{dfa, t, true})
		}
		return err
	}
	for _, cl := range classes {
		if err := add(cl.dfa, opAnd, matched.dfa, c.and(cl.term, matched.term)); err != nil {
			return nil, err
		}
		if err := add(cl.dfa, opMinus, outer, cl.term); err != nil {
			return nil, err
		}
	}
	if len(out) > maxClasses {
		return nil, errBranches
	}
	return out, add(unmatched, opAnd, matched.dfa, matched.term)
}

func (b *shaper) properties(o *object) error {
	v := b.s.get("properties")
	if v == nil {
		return nil
	}
	for i := range v.members {
		m := &v.members[i]
		terms, err := b.patterned(m.key)
		if err != nil {
			return err
		}
		t := b.c.and(append(terms, b.c.child(b.t, &m.value))...)
		o.keys = append(o.keys, key{m.key, t, true})
		if err := b.c.meter.spend(10); err != nil {
			return err
		}
	}
	return nil
}

// patterned are the schemas of the patterns that a key may match.
func (b *shaper) patterned(name string) ([]*term, error) {
	v := b.s.get("patternProperties")
	if v == nil {
		return nil, nil
	}
	var out []*term
	for i := range v.members {
		m := &v.members[i]
		p := b.c.patterns[m.key]
		if p == nil {
			continue // relaxed
		}
		outer, err := text{dfa: p.inner, wide: p.wide}.outer()
		if err != nil {
			return nil, err
		}
		if outer.match(name) {
			out = append(out, b.c.child(b.t, &m.value))
		}
	}
	return out, nil
}

func (b *shaper) propertyNames(o *object, v *value) error {
	if v == nil {
		return nil
	}
	s, err := b.c.shapeOf(b.c.child(b.t, v))
	if err != nil {
		return err
	}
	allowed, err := b.c.language(s.strings)
	if err != nil {
		return err
	}
	var classes []class
	for _, cl := range o.classes {
		if cl.dfa, err = combine(b.c.meter, cl.dfa, allowed, opAnd, b.c.limits.Product); err != nil {
			return err
		}
		if !cl.dfa.isEmpty() {
			classes = append(classes, cl)
		}
	}
	o.classes = classes
	for i, k := range o.keys {
		if !allowed.match(k.name) {
			o.keys[i].term = b.c.none
		}
	}
	b.lacksObjects(s.fewer.has(kindString) || slices.ContainsFunc(s.strings, func(t text) bool { return t.wide != nil }))
	b.acc.more.addIf(s.more.has(kindString), kindObject)
	return nil
}

// declare makes sure that a key is among those of the object.
func (b *shaper) declare(o *object, name string) {
	if o.find(name) < 0 {
		o.keys = append(o.keys, o.at(b.c, name))
	}
}

// names reads a list of property names.
func (b *shaper) names(keyword string, v *value) ([]string, error) {
	if v.kind != kindArray {
		return nil, b.s.invalid(keyword, "must be an array of property names")
	}
	names := make([]string, len(v.items))
	for i, item := range v.items {
		if item.kind != kindString {
			return nil, b.s.invalid(keyword, "must be an array of property names")
		}
		names[i] = item.text
	}
	return names, b.c.meter.spend(len(names))
}

func (b *shaper) required(o *object) error {
	v := b.s.get("required")
	if v == nil {
		return nil
	}
	names, err := b.names("required", v)
	if err != nil {
		return err
	}
	needs := []*formula{o.needs}
	for _, name := range names {
		b.declare(o, name)
		needs = append(needs, hasKey(name))
	}
	o.needs = allOf(needs...)
	return nil
}

// dependentRequired reads the keyword, or the lists of names in dependencies.
func (b *shaper) dependentRequired(o *object, keyword string) error {
	v := b.s.get(keyword)
	if v == nil {
		return nil
	}
	if v.kind != kindObject {
		return b.s.invalid(keyword, "must be an object")
	}
	for _, m := range v.members {
		if keyword == "dependencies" && m.value.kind != kindArray {
			continue
		}
		names, err := b.names(keyword, &m.value)
		if err != nil {
			return err
		}
		needs := []*formula{}
		for _, name := range names {
			b.declare(o, name)
			needs = append(needs, hasKey(name))
		}
		b.declare(o, m.key)
		o.needs = allOf(o.needs, anyOf(lacksKey(m.key), allOf(needs...)))
	}
	return nil
}

func (b *shaper) dependentSchemas(v *value) error {
	if v.kind != kindObject {
		return b.s.invalid("dependentSchemas", "must be an object of schemas")
	}
	for i := range v.members {
		if err := b.dependent(&v.members[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *shaper) dependencies(v *value) error {
	for i := range v.members {
		m := &v.members[i]
		if m.value.kind == kindArray {
			continue
		}
		if err := b.dependent(m); err != nil {
			return err
		}
	}
	if b.s.res.draft >= draft2019 { // where it is no longer a keyword
		out := *b.acc
		out.fewer.addIf(out.has(kindObject), kindObject)
		b.acc = &out
	}
	return nil
}

// dependent lets the schema hold where the key is present.
func (b *shaper) dependent(m *member) error {
	with := func(needs *formula) *shape {
		o := b.c.anyObject()
		o.keys, o.needs = []key{{name: m.key, term: b.c.all}}, needs
		s := b.c.full()
		s.objects = []*object{o}
		return s
	}
	present := with(hasKey(m.key))
	present.keep(kindObject.set())
	branch := *b
	err := branch.narrowTo(b.c.child(b.t, &m.value))
	if err == nil {
		err = branch.narrow(present, nil)
	}
	if err == nil {
		err = b.narrow(with(lacksKey(m.key)), nil)
	}
	if err == nil {
		b.acc, err = b.c.union(b.acc, branch.acc)
	}
	return err
}

// unevaluatedProperties narrows the members that no keyword beside it, or in a
// branch that holds, has looked at.
func (b *shaper) unevaluatedProperties(v *value) error {
	t := b.c.child(b.t, v)
	out := *b.acc
	out.objects = nil
	for _, o := range b.acc.objects {
		n := *o
		n.keys = slices.Clone(o.keys)
		for i, k := range n.keys {
			if !k.evaluated {
				n.keys[i] = key{k.name, b.c.and(k.term, t), true}
			}
			if n.keys[i].term == b.c.none {
				n.needs = n.needs.given(k.name, false)
			}
		}
		n.classes = nil
		for _, cl := range o.classes {
			if !cl.evaluated {
				cl = class{cl.dfa, b.c.and(cl.term, t), true}
			}
			if cl.term != b.c.none {
				n.classes = append(n.classes, cl)
			}
		}
		if n.needs != formulaFalse {
			out.objects = append(out.objects, &n)
		}
	}
	b.acc = &out
	return b.c.meter.spend(10 * len(out.objects))
}
