package grammar

import (
	"slices"
	"strings"
)

// A formula says which keys an object has: a key, the absence of one, or a
// combination. Formulas are simplified when they are made and never changed.
type formula struct {
	op    formulaOp
	name  string // of formulaHas and formulaLacks
	parts []*formula
	key   string // equal formulas have equal keys
}

type formulaOp uint8

const (
	formulaConst formulaOp = iota
	formulaHas
	formulaLacks
	formulaAnd
	formulaOr
)

var (
	formulaTrue  = &formula{key: "1"}
	formulaFalse = &formula{key: "0"}
)

func hasKey(name string) *formula {
	return &formula{op: formulaHas, name: name, key: "+" + quote(name)}
}

func lacksKey(name string) *formula {
	return &formula{op: formulaLacks, name: name, key: "-" + quote(name)}
}

func allOf(fs ...*formula) *formula { return joinFormulas(formulaAnd, formulaTrue, formulaFalse, fs) }

func anyOf(fs ...*formula) *formula { return joinFormulas(formulaOr, formulaFalse, formulaTrue, fs) }

func joinFormulas(op formulaOp, neutral, absorbing *formula, fs []*formula) *formula {
	var parts []*formula
	for _, f := range fs {
		switch {
		case f == absorbing:
			return absorbing
		case f == neutral:
		case f.op == op:
			parts = append(parts, f.parts...)
		default:
			parts = append(parts, f)
		}
	}
	slices.SortFunc(parts, func(a, b *formula) int { return strings.Compare(a.key, b.key) })
	parts = slices.CompactFunc(parts, func(a, b *formula) bool { return a.key == b.key })
	switch {
	case len(parts) == 0:
		return neutral
	case len(parts) == 1:
		return parts[0]
	case contradict(parts):
		return absorbing
	}
	f := &formula{op: op, parts: parts}
	keys := make([]string, len(parts))
	for i, p := range parts {
		keys[i] = p.key
	}
	f.key = "(" + strings.Join(keys, string("&|"[op-formulaAnd])) + ")"
	return f
}

// contradict tells whether a key is among the parts both ways.
func contradict(parts []*formula) bool {
	has := map[string]bool{}
	for _, p := range parts {
		if p.op == formulaHas {
			has[p.name] = true
		}
	}
	return slices.ContainsFunc(parts, func(p *formula) bool { return p.op == formulaLacks && has[p.name] })
}

// negate is the objects for which f is not true.
func (f *formula) negate() *formula {
	switch f.op {
	case formulaHas:
		return lacksKey(f.name)
	case formulaLacks:
		return hasKey(f.name)
	case formulaConst:
		if f == formulaTrue {
			return formulaFalse
		}
		return formulaTrue
	}
	parts := make([]*formula, len(f.parts))
	for i, p := range f.parts {
		parts[i] = p.negate()
	}
	if f.op == formulaAnd {
		return anyOf(parts...)
	}
	return allOf(parts...)
}

// given is what is left of f once it is known whether a key is present.
func (f *formula) given(name string, present bool) *formula {
	switch f.op {
	case formulaConst:
		return f
	case formulaHas, formulaLacks:
		if f.name != name {
			return f
		}
		if present == (f.op == formulaHas) {
			return formulaTrue
		}
		return formulaFalse
	}
	if !f.mentions(name) {
		return f
	}
	parts := make([]*formula, len(f.parts))
	for i, p := range f.parts {
		parts[i] = p.given(name, present)
	}
	if f.op == formulaAnd {
		return allOf(parts...)
	}
	return anyOf(parts...)
}

func (f *formula) mentions(name string) bool {
	return f.name == name && f.op != formulaConst || slices.ContainsFunc(f.parts, func(p *formula) bool { return p.mentions(name) })
}

// requires tells whether f is plainly an and with this key in it.
func (f *formula) requires(name string) bool {
	has := func(p *formula) bool { return p.op == formulaHas && p.name == name }
	return has(f) || f.op == formulaAnd && slices.ContainsFunc(f.parts, has)
}

// split separates the keys that f plainly requires from the rest of f, which
// says nothing more about them.
func (f *formula) split() (required map[string]bool, rest *formula) {
	required = map[string]bool{}
	for done := false; !done; {
		parts := f.parts
		if f.op != formulaAnd {
			parts = []*formula{f}
		}
		done = true
		var others []*formula
		for _, p := range parts {
			if p.op == formulaHas {
				required[p.name] = true
			} else {
				others = append(others, p)
			}
		}
		for i, p := range others {
			p.names(func(name string) {
				if required[name] {
					others[i], done = others[i].given(name, true), false
				}
			})
		}
		f = allOf(others...)
	}
	return required, f
}

// names calls yield for the names in f, some more than once.
func (f *formula) names(yield func(string)) {
	if f.op == formulaHas || f.op == formulaLacks {
		yield(f.name)
	}
	for _, p := range f.parts {
		p.names(yield)
	}
}
