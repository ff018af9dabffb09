package grammar

import "slices"

// A wide is a language that is worked out when it is asked for: most are never
// needed.
type wide struct {
	make func() (*DFA, error)
	dfa  *DFA
}

var anyText = text{dfa: allTexts, max: Unbounded}

// outer is what the language of the text may have.
func (t text) outer() (*DFA, error) {
	if t.wide == nil {
		return t.dfa, nil
	}
	if t.wide.dfa != nil {
		return t.wide.dfa, nil
	}
	d, err := t.wide.make()
	t.wide.dfa = d
	return d, err
}

// joinWide is the wide language of two texts combined.
func (c *compiler) joinWide(a, b text, op setOp) *wide {
	if a.wide == nil && b.wide == nil {
		return nil
	}
	return &wide{make: func() (*DFA, error) {
		x, err := a.outer()
		if err != nil {
			return nil, err
		}
		y, err := b.outer()
		if err != nil {
			return nil, err
		}
		return combine(c.meter, x, y, op, c.limits.Product)
	}}
}

// intersectTexts, uniteTexts and complementTexts are the set operations on
// unions of texts.

func (c *compiler) intersectTexts(as, bs []text) ([]text, error) {
	var out []text
	for _, a := range as {
		for _, b := range bs {
			dfa, err := combine(c.meter, a.dfa, b.dfa, opAnd, c.limits.Product)
			if err != nil {
				return nil, err
			}
			t := text{dfa, max(a.min, b.min), minBound(a.max, b.max), c.joinWide(a, b, opAnd)}
			empty, err := t.certainlyEmpty()
			if err != nil {
				return nil, err
			}
			if !empty {
				out = append(out, t)
			}
			if len(out) > c.limits.Branches {
				return nil, errBranches
			}
		}
	}
	return out, nil
}

// minBound is the smaller of two upper bounds.
func minBound(a, b int) int {
	if a == Unbounded || b != Unbounded && b < a {
		return b
	}
	return a
}

// certainlyEmpty tells whether no text can be in the language, as far as the
// bounds tell.
func (t text) certainlyEmpty() (bool, error) {
	if t.max != Unbounded && t.max < t.min {
		return true, nil
	}
	if !t.dfa.isEmpty() && (t.max == Unbounded || t.dfa == allTexts || t.dfa.shortest() <= t.max) {
		return false, nil
	}
	if t.wide == nil {
		return true, nil
	}
	outer, err := t.outer()
	return err == nil && (outer.isEmpty() || t.max != Unbounded && outer.shortest() > t.max), err
}

// tighten drops bounds that the language keeps by itself.
func (t text) tighten() text {
	if t.dfa == allTexts || t.wide != nil || t.dfa.isEmpty() {
		return t
	}
	if t.min > 0 && t.dfa.shortest() >= t.min {
		t.min = 0
	}
	if n := t.dfa.longest(); t.max != Unbounded && n != Unbounded && n <= t.max {
		t.max = Unbounded
	}
	return t
}

func (c *compiler) uniteTexts(as, bs []text) ([]text, error) {
	out := slices.Clone(as)
next:
	for _, b := range bs {
		for i, a := range out {
			m, ok, err := c.mergeTexts(a, b)
			if err != nil {
				return nil, err
			}
			if ok {
				out[i] = m
				continue next
			}
		}
		out = append(out, b)
	}
	return out, nil
}

// mergeTexts finds one text for two: of languages without bounds, or of one
// language with bounds that touch.
func (c *compiler) mergeTexts(a, b text) (text, bool, error) {
	a, b = a.tighten(), b.tighten()
	if a.min == 0 && b.min == 0 && a.max == Unbounded && b.max == Unbounded {
		dfa, err := combine(c.meter, a.dfa, b.dfa, opOr, c.limits.Product)
		return text{dfa, 0, Unbounded, c.joinWide(a, b, opOr)}, true, err
	}
	if a.min > b.min {
		a, b = b, a
	}
	if a.wide != nil || b.wide != nil || !a.dfa.equal(b.dfa) || a.max != Unbounded && a.max+1 < b.min {
		return text{}, false, nil
	}
	longest := max(a.max, b.max)
	if a.max == Unbounded || b.max == Unbounded {
		longest = Unbounded
	}
	return text{dfa: a.dfa, min: a.min, max: longest}, true, nil
}

func (c *compiler) complementTexts(texts []text) ([]text, error) {
	out := []text{anyText}
	for _, t := range texts {
		others, err := c.complementText(t.tighten())
		if err != nil {
			return nil, err
		}
		if out, err = c.intersectTexts(out, others); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *compiler) complementText(t text) ([]text, error) {
	outer, err := t.outer()
	if err != nil {
		return nil, err
	}
	dfa, err := combine(c.meter, allTexts, outer, opMinus, c.limits.Product)
	if err != nil {
		return nil, err
	}
	var out []text
	others := text{dfa: dfa, max: Unbounded}
	if t.wide != nil {
		others.wide = &wide{make: func() (*DFA, error) {
			return combine(c.meter, allTexts, t.dfa, opMinus, c.limits.Product)
		}}
	}
	if !dfa.isEmpty() || t.wide != nil {
		out = append(out, others)
	}
	if t.min > 0 {
		out = append(out, text{dfa: allTexts, max: t.min - 1})
	}
	if t.max != Unbounded {
		out = append(out, text{dfa: allTexts, min: t.max + 1, max: Unbounded})
	}
	return out, nil
}

// language is the texts that are in the union for certain, as one automaton with
// their bounds as states.
func (c *compiler) language(texts []text) (*DFA, error) {
	var sets []*DFA
	for _, t := range texts {
		t = t.tighten()
		bounds, err := c.lengths(t.min, t.max)
		if err != nil {
			return nil, err
		}
		dfa, err := combine(c.meter, t.dfa, bounds, opAnd, c.limits.Product)
		if err != nil {
			return nil, err
		}
		sets = append(sets, dfa)
	}
	return unionOf(c.meter, sets, c.limits.Product)
}

// lengths is the texts of a length from least to most.
func (c *compiler) lengths(least, most int) (*DFA, error) {
	if least == 0 && most == Unbounded {
		return allTexts, nil
	}
	n := max(least, most)
	if n > c.limits.DFA {
		return nil, errStates
	}
	states := make([]State, n+1)
	for i := range states {
		states[i].Accept = i >= least
		if i < n {
			states[i].Edges = edgesTo(anyRune, int32(i+1))
		} else if most == Unbounded {
			states[i].Edges = edgesTo(anyRune, int32(i))
		}
	}
	return &DFA{states}, c.meter.spend(2 * n)
}
