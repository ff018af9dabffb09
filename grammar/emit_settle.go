package grammar

import (
	"cmp"
	"slices"
)

// This file says which names the members of an object have.

// maxNamed is how many free names are few enough to stand as declared ones.
const maxNamed = 64

// settle declares the names of classes that are finite, and lets what is owed
// be paid by a declared key or by a free one.
func (e *emitter) settle(o *object) ([]*object, error) {
	n := *o
	n.keys, n.index = slices.Clone(o.keys), nil
	n.classes = nil
	for _, cl := range o.classes {
		names, ok := cl.dfa.texts(maxNamed)
		if !ok {
			n.classes = append(n.classes, cl)
			continue
		}
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(e.rank(a), e.rank(b)) })
		for _, name := range names {
			if n.find(name) < 0 {
				n.keys = append(n.keys, key{name, cl.term, cl.evaluated})
			}
		}
	}
	if e.c.notation != nil {
		slices.SortStableFunc(n.keys, func(a, b key) int { return cmp.Compare(a.name, b.name) })
	} else if e.mode == spellOnceAnywhere {
		slices.SortStableFunc(n.keys, func(a, b key) int { return cmp.Compare(e.rank(a.name), e.rank(b.name)) })
	}
	var err error
	if n.owed, err = e.distinctDebts(o.owed); err != nil {
		return nil, err
	}
	out := []*object{&n}
	for range n.owed {
		var paid []*object
		for _, p := range out {
			more, err := e.pay(p)
			if err != nil {
				return nil, err
			}
			paid = append(paid, more...)
		}
		if out = paid; len(out) > e.c.limits.Branches {
			return nil, errBranches
		}
	}
	return out, nil
}

// distinctDebts leaves out what is owed where another debt pays it too.
func (e *emitter) distinctDebts(owed []class) ([]class, error) {
	var out []class
	for i, a := range owed {
		implied := false
		for j, b := range owed {
			if i == j || a.term != e.c.all && a.term != b.term {
				continue
			}
			beyond, err := combine(e.c.meter, b.dfa, a.dfa, opMinus, e.c.limits.Product)
			if err != nil {
				return nil, err
			}
			same := a.term == b.term && a.dfa.equal(b.dfa)
			implied = implied || beyond.isEmpty() && (!same || j < i)
		}
		if !implied {
			out = append(out, a)
		}
	}
	return out, nil
}

// rank is where in the schema a text comes first.
func (e *emitter) rank(text string) int {
	if r, ok := e.ranks[text]; ok {
		return r
	}
	return len(e.ranks)
}

// pay takes the first owed member of the object: a declared key may be it, or
// else it moves to the end of the list, to be paid by a free key.
func (e *emitter) pay(o *object) ([]*object, error) {
	debt, others := o.owed[0], o.owed[1:]
	var out []*object
	for i, k := range o.keys {
		if !debt.dfa.match(k.name) {
			continue
		}
		t := e.c.and(k.term, debt.term)
		if t == e.c.none {
			continue
		}
		p := *o
		p.owed = others
		p.keys = slices.Clone(o.keys)
		p.keys[i].term = t
		p.needs = allOf(o.needs, hasKey(k.name))
		if p.needs != formulaFalse {
			out = append(out, &p)
		}
	}
	free, err := e.free(o)
	if err != nil {
		return nil, err
	}
	for _, cl := range free {
		dfa, err := combine(e.c.meter, cl.dfa, debt.dfa, opAnd, e.c.limits.Product)
		if err != nil {
			return nil, err
		}
		if t := e.c.and(cl.term, debt.term); t != e.c.none && !dfa.isEmpty() {
			p := *o
			p.owed = append(slices.Clone(others), class{dfa: dfa, term: t})
			out = append(out, &p)
		}
	}
	return out, nil
}

// free is the object's classes without the names of its keys.
func (e *emitter) free(o *object) ([]class, error) {
	if len(o.classes) == 0 {
		return nil, nil
	}
	undeclared, err := e.undeclared(o.keys)
	if err != nil {
		return nil, err
	}
	var out []class
	for _, cl := range o.classes {
		if cl.dfa, err = combine(e.c.meter, cl.dfa, undeclared, opAnd, e.c.limits.Product); err != nil {
			return nil, err
		}
		if !cl.dfa.isEmpty() {
			out = append(out, cl)
		}
	}
	return out, nil
}

// undeclared is the names that a free key may have.
func (e *emitter) undeclared(keys []key) (*DFA, error) {
	if e.mode != spellOnceAnywhere {
		return e.c.undeclared(keys)
	}
	if e.unnamed == nil {
		var named []key
		namesIn(e.c.doc.root.value, func(name string) { named = append(named, key{name: name}) })
		var err error
		if e.unnamed, err = e.c.undeclared(named); err != nil {
			return nil, err
		}
	}
	others, err := e.c.undeclared(keys) // patterns have names too
	if err != nil {
		return nil, err
	}
	return combine(e.c.meter, e.unnamed, others, opAnd, e.c.limits.Product)
}

// namesIn calls yield for all texts of a schema that can be the name of a key,
// and for some others.
func namesIn(v *value, yield func(string)) {
	for i := range v.items {
		if item := &v.items[i]; item.kind == kindString {
			yield(item.text)
		}
		namesIn(&v.items[i], yield)
	}
	for i := range v.members {
		m := &v.members[i]
		if yield(m.key); m.key == "const" && m.value.kind == kindString {
			yield(m.value.text)
		}
		namesIn(&m.value, yield)
	}
}
