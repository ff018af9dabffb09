package mask

import "github.com/b3os/b3infer/grammar"

// dfa copies an automaton, with its ends at k. Inside a rule of its own, states
// from which exactly the rest of a free string follows are that state of all
// grammars.
func (b *builder) dfa(d *grammar.DFA, k int32) int32 {
	own := b.drafts[k].flags&flagFinal != 0 && len(b.drafts) == 1
	number := make([]int32, len(d.States))
	for i, s := range d.States {
		switch {
		case i > 0 && s.Accept && len(s.Edges) == 0:
			number[i] = k
		case own && b.p.stringRest != noState && isStringRest(d, int32(i)):
			number[i] = ^b.p.stringRest
		default:
			number[i] = b.add(draft{})
		}
	}
	var edges []grammar.Edge
	for i, s := range d.States {
		if number[i] == k || number[i] < 0 {
			continue
		}
		edges = edges[:0]
		for _, e := range s.Edges {
			edges = append(edges, grammar.Edge{Lo: e.Lo, Hi: e.Hi, To: number[e.To]})
		}
		bytes := b.utf8(edges)
		here := &b.drafts[number[i]]
		here.bytes = bytes
		if s.Accept {
			here.jumps = []int32{k}
		}
	}
	return number[0]
}

// isStringRest tells whether a state accepts what may follow the opening quote
// of any JSON string.
func isStringRest(d *grammar.DFA, state int32) bool {
	free := grammar.AnyString()
	paired := map[int32]int32{}
	var same func(a, b int32) bool
	same = func(a, b int32) bool {
		if before, ok := paired[a]; ok {
			return before == b
		}
		paired[a] = b
		x, y := d.States[a], free.States[b]
		if x.Accept != y.Accept || len(x.Edges) != len(y.Edges) {
			return false
		}
		for i, e := range x.Edges {
			if f := y.Edges[i]; e.Lo != f.Lo || e.Hi != f.Hi || !same(e.To, f.To) {
				return false
			}
		}
		return true
	}
	return same(state, free.States[0].Edges[0].To)
}

// newSharedProgram is the rules that most grammars call: strings of any and of
// bounded length, and numbers.
func newSharedProgram(v *Vocabulary) *program {
	p := newProgram(v)
	for _, d := range []*grammar.DFA{grammar.AnyString(), grammar.AnyNumber(), grammar.AnyInteger()} {
		p.opened(p.entry(p.rule(ruleKey{d, noTail}, d), 0))
		if d == grammar.AnyString() {
			p.stringRest = p.bytesOf(p.rules[0].start)[0].to
		}
	}
	chars := grammar.Repeat{Body: grammar.AnyChar(), Max: grammar.Unbounded}
	key := ruleKey{loopKey{dfa: grammar.AnyChar()}, '"'}
	p.opened(p.entry(p.rule(key, chars), repeatRegister(0, grammar.Unbounded)))
	p.opened(p.entry(p.rule(key, chars), repeatRegister(1, grammar.Unbounded)))
	return p
}
