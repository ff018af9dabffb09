package grammar

import "errors"

// errEmpty is emit's error for a term that has no values.
var errEmpty = errors.New("no value satisfies the schema")

// unsatisfied is the error for a term that has no values. To blame is what is deepest in
// it: a member or an item that all its values need, and that has none itself.
func (c *compiler) unsatisfied(t *term) error {
	blamed := c.doc.root
	for seen := map[*term]bool{}; t != nil && !seen[t]; t = c.emptyPart(t) {
		seen[t] = true
		if s := t.origin(); s != nil {
			blamed = s
		}
	}
	return &Unenforceable{Path: blamed.path, Reason: errEmpty.Error()}
}

// emptyPart is a part without values that the values of a term need. Nil is none, or that
// there are several ways to write a value, which each lack another part.
func (c *compiler) emptyPart(t *term) *term {
	s, err := c.shapeOf(t)
	if err != nil || len(s.arrays)+len(s.objects) != 1 {
		return nil
	}
	var needed []*term
	for _, o := range s.objects {
		for _, k := range o.keys {
			if o.needs.given(k.name, false) == formulaFalse {
				needed = append(needed, k.term)
			}
		}
	}
	for _, a := range s.arrays {
		needed = append(needed, a.needed()...)
	}
	for _, part := range needed {
		if _, err := c.emit(part); errors.Is(err, errEmpty) {
			return part
		}
	}
	return nil
}

// needed are the items that all of the arrays have.
func (a *array) needed() []*term {
	var terms []*term
	for i := range min(a.min, len(a.prefix)+1) {
		terms = append(terms, a.at(i).term)
	}
	for _, k := range a.contains {
		if k.min > 0 {
			terms = append(terms, k.term)
		}
	}
	return terms
}
