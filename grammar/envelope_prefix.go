package grammar

import (
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// The nodes below stand in the form of an answer until the generation prompt has
// been taken from it.

// A gap is blanks: none, or what the template writes there.
type gap struct {
	spelled Node
	blanks  bool // what is written is nobody's but the model's choice
}

// A maybe is something that may stand in a prompt. In an answer it is as spelled.
type maybe struct {
	body    Node
	spelled Node
}

// An inset is a part that is written as it is: no markers are looked for in it.
type inset struct{ body Node }

func (gap) node()   {}
func (maybe) node() {}
func (inset) node() {}

// behind is what may follow a text in a node, or nil.
func behind(n Node, text string) Node {
	for _, r := range text {
		if n = derive(n, r); n == nil {
			return nil
		}
	}
	return n
}

// derive is what may follow a character in a node (Brzozowski's derivative), or
// nil. Insets begin no prompt.
func derive(n Node, r rune) Node {
	switch n := n.(type) {
	case Literal:
		if first, size := utf8.DecodeRuneInString(string(n)); size > 0 && first == r {
			return Literal(n[size:])
		}
	case Class:
		if hasRune(n, r) {
			return Seq{}
		}
	case *DFA:
		if to := n.next(0, r); to >= 0 {
			return startAt(n, to)
		}
	case gap:
		if strings.ContainsRune(" \t\n\v\f\r", r) {
			return gap{spelled: Seq{}, blanks: true}
		}
	case maybe:
		return derive(n.body, r)
	case Alt:
		var parts []Node
		for _, p := range n {
			if d := derive(p, r); d != nil {
				parts = append(parts, d)
			}
		}
		if len(parts) > 0 {
			return either(parts...)
		}
	case Seq:
		return deriveSeq(n, r)
	case Repeat:
		if d := derive(n.Body, r); d != nil {
			most := n.Max
			if most != Unbounded {
				most--
			}
			return sequence(d, repeated(n.Body, max(n.Min-1, 0), most))
		}
	}
	return nil
}

func deriveSeq(s Seq, r rune) Node {
	var parts []Node
	for i, p := range s {
		if d := derive(p, r); d != nil {
			parts = append(parts, sequence(append([]Node{d}, s[i+1:]...)...))
		}
		if !nullable(p) {
			break
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return either(parts...)
}

// either is any of the parts, equal ones once. Other than alternatives it keeps
// maybes apart from the empty text.
func either(parts ...Node) Node {
	parts = distinct(parts)
	if len(parts) == 1 {
		return parts[0]
	}
	return Alt(parts)
}

// distinct is the nodes without those that come again.
func distinct(nodes []Node) []Node {
	var out []Node
	for _, n := range nodes {
		if !slices.ContainsFunc(out, func(other Node) bool { return reflect.DeepEqual(n, other) }) {
			out = append(out, n)
		}
	}
	return out
}

// nullable tells whether a node has the empty text.
func nullable(n Node) bool {
	switch n := n.(type) {
	case Literal:
		return n == ""
	case *DFA:
		return n.States[0].Accept
	case gap, maybe:
		return true
	case Alt:
		for _, p := range n {
			if nullable(p) {
				return true
			}
		}
	case Seq:
		for _, p := range n {
			if !nullable(p) {
				return false
			}
		}
		return true
	case Repeat:
		return n.Min == 0 || nullable(n.Body)
	}
	return false
}

// startAt is the automaton from another state on.
func startAt(d *DFA, state int32) *DFA {
	if state == 0 {
		return d
	}
	states := append([]State(nil), d.States...)
	shifted := make([]State, 0, len(states)+1)
	shifted = append(shifted, State{states[state].Accept, moved(states[state].Edges)})
	for _, s := range states {
		shifted = append(shifted, State{s.Accept, moved(s.Edges)})
	}
	return &DFA{trimStates(shifted)}
}

// moved is edges to states that have moved up by one.
func moved(edges []Edge) []Edge {
	out := make([]Edge, len(edges))
	for i, e := range edges {
		out[i] = Edge{e.Lo, e.Hi, e.To + 1}
	}
	return out
}
