package mask

import (
	"github.com/b3os/b3infer/grammar"
)

// ruleFacts is what the way a rule is built depends on, once it is known.
type ruleFacts struct {
	known, inline, open bool
	weight              int
}

// fact looks a rule of the grammar up. While a rule's facts are being worked out
// it counts as neither, and as heavy.
func (p *program) fact(r grammar.Ref) ruleFacts {
	if !p.facts[r].known {
		p.facts[r] = ruleFacts{known: true, weight: maxInlineWeight + 1}
		body := p.grammar.Rules[r].Body
		p.facts[r].weight = p.weight(body)
		p.facts[r].inline = p.facts[r].weight <= maxInlineWeight
		p.facts[r].open = p.endsOpen(body)
	}
	return p.facts[r]
}

// Rules and automata up to these sizes are copied to where they stand, rather
// than called. What is called keeps one inner mask for all places, what is
// copied has no exits.
const (
	maxInlineWeight = 12
	maxInlineStates = 8
)

// weight is about how many states a node takes. What calls rules is too heavy.
func (p *program) weight(n grammar.Node) int {
	const heavy = maxInlineWeight + 1
	switch n := n.(type) {
	case grammar.Literal:
		return len(n)
	case grammar.Class, grammar.Token:
		return 1
	case grammar.Seq:
		return p.weightOf(n)
	case grammar.Alt:
		return p.weightOf(n)
	case grammar.Repeat:
		if n.Min <= 1 && (n.Max == grammar.Unbounded || n.Max == 1) {
			return 1 + p.weight(n.Body)
		}
	case grammar.Ref:
		return p.fact(n).weight
	case *grammar.DFA:
		if isSmall(n) {
			return len(n.States)
		}
	}
	return heavy
}

func (p *program) weightOf(parts []grammar.Node) int {
	sum := 0
	for _, part := range parts {
		sum = min(sum+p.weight(part), maxInlineWeight+1)
	}
	return sum
}

func isSmall(d *grammar.DFA) bool { return len(d.States) <= maxInlineStates }

// endsOpen tells whether a node's texts may go on with more characters of many
// kinds where they may also end.
func (p *program) endsOpen(n grammar.Node) bool {
	switch n := n.(type) {
	case grammar.Seq:
		for i := len(n) - 1; i >= 0; i-- {
			if p.endsOpen(n[i]) {
				return true
			}
			if !grammar.IsNullable(n[i], p.nullable) {
				return false
			}
		}
	case grammar.Alt:
		for _, part := range n {
			if p.endsOpen(part) {
				return true
			}
		}
	case grammar.Repeat:
		return n.Max != 1 && readsCharacter(n.Body) || p.endsOpen(n.Body)
	case grammar.Ref:
		return p.fact(n).open
	case *grammar.DFA:
		return endsInLetters(n)
	}
	return false
}

// readsCharacter tells whether one of a node's texts is a character of a class.
func readsCharacter(n grammar.Node) bool {
	if alt, ok := n.(grammar.Alt); ok {
		for _, part := range alt {
			if readsCharacter(part) {
				return true
			}
		}
	}
	return isCharacter(n)
}

// isCharacter tells whether a node is a class of characters, or one as it stands
// in a string.
func isCharacter(n grammar.Node) bool {
	switch n := n.(type) {
	case grammar.Class:
		return true
	case *grammar.DFA:
		return isSmall(n)
	}
	return false
}

// manyLetters is from how many letters on a place counts as open.
const manyLetters = 8

// endsInLetters tells whether an automaton accepts in a state that many letters
// lead on from.
func endsInLetters(d *grammar.DFA) bool {
	for _, s := range d.States {
		letters := 0
		for _, e := range s.Edges {
			letters += max(0, int(min(e.Hi, 'z')-max(e.Lo, 'a'))+1)
		}
		if s.Accept && letters >= manyLetters {
			return true
		}
	}
	return false
}

// isEmptyText tells whether a node has the empty text and no other.
func isEmptyText(n grammar.Node) bool {
	all := func(parts []grammar.Node) bool {
		for _, p := range parts {
			if !isEmptyText(p) {
				return false
			}
		}
		return true
	}
	switch n := n.(type) {
	case grammar.Literal:
		return n == ""
	case grammar.Seq:
		return all(n)
	case grammar.Alt:
		return all(n)
	case grammar.Repeat:
		return n.Max == 0 || isEmptyText(n.Body)
	}
	return false
}
