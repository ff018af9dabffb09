package grammar

import (
	"slices"
	"strings"
)

// This file takes the form of an answer to a grammar.

// finish takes an answer's form: what is left open becomes as the template writes
// it, and markers become tokens.
func (f *former) finish(n Node) Node {
	switch n := n.(type) {
	case inset:
		return n.body
	case gap:
		return f.finish(n.spelled)
	case maybe:
		return f.finish(n.spelled)
	case Literal:
		return f.e.markers(string(n))
	case Seq:
		parts := make([]Node, len(n))
		for i, p := range n {
			parts[i] = f.settle(p)
		}
		parts = []Node{sequence(parts...)}
		if joined, ok := parts[0].(Seq); ok {
			parts = slices.Clone(joined)
		}
		for i, p := range parts {
			parts[i] = f.finish(p)
		}
		return sequence(parts...)
	case Alt:
		parts := make([]Node, len(n))
		for i, p := range n {
			parts[i] = f.finish(p)
		}
		return alternatives(distinct(parts)...)
	case Repeat:
		return repeated(f.finish(n.Body), n.Min, n.Max)
	case Bag:
		items := slices.Clone(n.Items)
		for i := range items {
			items[i].Body = f.finish(items[i].Body)
		}
		n.Items, n.Sep = items, f.finish(n.Sep)
		return n
	}
	return n
}

// settle is finish for what may join with its neighbours to a marker.
func (f *former) settle(n Node) Node {
	switch n := n.(type) {
	case gap:
		return f.settle(n.spelled)
	case maybe:
		return f.settle(n.spelled)
	}
	return n
}

// markers is a text in which the preserved texts stand as tokens.
func (e *Envelope) markers(text string) Node {
	var parts []Node
	for from, i := 0, 0; ; i++ {
		if i == len(text) {
			return sequence(append(parts, Literal(text[from:]))...)
		}
		for _, marker := range e.preserved {
			if strings.HasPrefix(text[i:], marker) {
				parts = append(parts, Literal(text[from:i]), Token{Text: marker})
				from = i + len(marker)
				i = from - 1
				break
			}
		}
	}
}
