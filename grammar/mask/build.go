package mask

import "github.com/b3os/b3infer/grammar"

// A builder makes the states of one rule, from its end to its start: what spells
// a node is built in front of a state that is there already. A state's number
// here is its place in drafts; a state that is finished elsewhere in the program
// is the complement of its number there.
type builder struct {
	p       *program
	drafts  []draft
	loops   []loop
	bags    []bag
	endings map[utf8Key]int32
}

// A draft is a state in the making.
type draft struct {
	bytes  []byteEdge
	calls  []callEdge
	tokens []tokenEdge
	jumps  []int32 // the state is also all of these
	param  int32
	kind   stateKind
	flags  stateFlags
	run    run
}

func (b *builder) add(d draft) int32 {
	b.drafts = append(b.drafts, d)
	return int32(len(b.drafts) - 1)
}

// build makes the states of a rule.
func (p *program) build(id int32) {
	r := p.rules[id]
	b := &builder{p: p}
	end := b.add(draft{flags: flagFinal | endFlag(r.change)})
	if r.key.tail != noTail {
		end = b.add(draft{bytes: []byteEdge{{end, byte(r.key.tail), byte(r.key.tail)}}})
	}
	var start int32
	switch n := r.node.(type) {
	case grammar.Ref:
		start = b.node(p.grammar.Rules[n].Body, end)
	case *grammar.DFA:
		start = b.dfa(n, end)
	case grammar.Repeat:
		start = b.loop(n, end)
	case grammar.Bag:
		start = b.bag(n, end)
	case grammar.Unique:
		start = b.node(n.Body, end)
	case grammar.Item:
		start = b.node(n.Body, end)
	}
	b.mark()
	if p.remembers && contains(r.node, p.memorize) {
		for i := range b.drafts {
			b.drafts[i].flags |= flagMemorizes
		}
	}
	p.rules[id].start = b.finish(start)
}

// node is the state from which the node's texts lead to k.
func (b *builder) node(n grammar.Node, k int32) int32 {
	some := b.some(n, k)
	if some == k || !b.isNullable(n) || b.tookTail(some, k) {
		return some
	}
	return b.add(draft{jumps: []int32{some, k}})
}

// tookTail tells whether a state calls a rule that has taken the byte of k
// along, and with it the way past the rule.
func (b *builder) tookTail(some, k int32) bool {
	if some < 0 || !b.leadsByOne(k) || len(b.drafts[some].calls) != 1 {
		return false
	}
	call, taken := b.drafts[some].calls[0], b.drafts[k].bytes[0]
	e := b.p.entries[call.entry]
	r := b.p.rules[e.rule]
	if call.to != taken.to || r.key.tail != int16(taken.lo) {
		return false
	}
	if _, counted := r.node.(grammar.Repeat); counted {
		need, _ := roundsOf(e.register)
		return need == 0
	}
	return b.isNullable(r.node)
}

// ownKey is the key of a rule that nothing else calls.
func (b *builder) ownKey() ruleKey { return ruleKey{ownKey(len(b.p.rules)), noTail} }

// some is the state from which the node's texts but the empty one lead to k. If
// there are no others it is k itself.
func (b *builder) some(n grammar.Node, k int32) int32 {
	if isEmptyText(n) {
		return k
	}
	switch n := n.(type) {
	case grammar.Literal:
		return b.literal(string(n), k)
	case grammar.Class:
		return b.class(n, k)
	case grammar.Seq:
		return b.seq(n, k)
	case grammar.Alt:
		return b.alt(n, k)
	case grammar.Repeat:
		return b.repeat(n, k)
	case grammar.Ref:
		return b.ref(n, k)
	case *grammar.DFA:
		return b.lexeme(n, k)
	case grammar.Bag, grammar.Unique, grammar.Item:
		return b.call(b.ownKey(), n, 0, k)
	case grammar.Token:
		return b.token(n, k)
	}
	panic("mask: a node of no known type")
}

func (b *builder) isNullable(n grammar.Node) bool {
	return grammar.IsNullable(n, b.p.nullable)
}

func (b *builder) literal(text string, k int32) int32 {
	edges := make([]byteEdge, len(text))
	for i := len(text) - 1; i >= 0; i-- {
		edges[i] = byteEdge{k, text[i], text[i]}
		k = b.add(draft{bytes: edges[i : i+1 : i+1]})
	}
	return k
}

func (b *builder) class(c grammar.Class, k int32) int32 {
	edges := make([]grammar.Edge, len(c))
	for i, r := range c {
		edges[i] = grammar.Edge{Lo: r.Lo, Hi: r.Hi, To: k}
	}
	return b.add(draft{bytes: b.utf8(edges)})
}

// seq is any part of the sequence that is not empty, then all behind it, where
// the parts before it can be empty.
func (b *builder) seq(parts grammar.Seq, k int32) int32 {
	rest := make([]int32, len(parts)+1) // where the parts from i on begin
	rest[len(parts)] = k
	nullable := 0 // parts at the start that can be empty
	for nullable < len(parts) && b.isNullable(parts[nullable]) {
		nullable++
	}
	for i := len(parts) - 1; i > 0; i-- {
		rest[i] = b.node(parts[i], rest[i+1])
	}
	var jumps []int32
	for i := 0; i <= nullable && i < len(parts); i++ {
		if !isEmptyText(parts[i]) {
			jumps = append(jumps, b.some(parts[i], rest[i+1]))
		}
	}
	return b.any(jumps)
}

// any is the state that is all of several.
func (b *builder) any(states []int32) int32 {
	if len(states) == 1 {
		return states[0]
	}
	return b.add(draft{jumps: states})
}

func (b *builder) alt(parts grammar.Alt, k int32) int32 {
	if c, ok := b.p.asClass(parts); ok {
		return b.class(c, k)
	}
	var jumps []int32
	for _, p := range parts {
		if !isEmptyText(p) {
			jumps = append(jumps, b.some(p, k))
		}
	}
	return b.any(jumps)
}

// repeat unrolls what needs no counting. Counted repetitions and repeated
// characters become rules that the register counts.
func (b *builder) repeat(r grammar.Repeat, k int32) int32 {
	least, most := r.Min, r.Max
	if c, ok := b.p.asClass(r.Body); ok {
		r.Body = c
	}
	if b.isNullable(r.Body) {
		least = 0 // rounds may be empty
	}
	switch {
	case most == 1:
		return b.some(r.Body, k)
	case most == grammar.Unbounded && least <= 1 && !(isCharacter(r.Body) && b.leadsByOne(k)):
		round := b.add(draft{})
		body := b.some(r.Body, round)
		b.drafts[round].jumps = []int32{body, k}
		return body
	}
	key, counted := b.ownKey(), r
	switch body := r.Body.(type) {
	case *grammar.DFA:
		key.node = loopKey{dfa: body}
	case grammar.Class:
		key.node = loopKey{class: body.String()}
	}
	return b.call(key, counted, repeatRegister(least, most), k)
}

// leadsByOne tells whether a state is one byte and nothing else.
func (b *builder) leadsByOne(k int32) bool {
	if k < 0 {
		return false
	}
	d := &b.drafts[k]
	return len(d.bytes) == 1 && d.bytes[0].lo == d.bytes[0].hi && d.bytes[0].to >= 0 &&
		d.kind == stateEdges && d.flags == 0 && len(d.jumps)+len(d.calls)+len(d.tokens) == 0
}

// call enters a rule and goes on at k. A rule that would end in the middle of
// plain text takes the byte that k asks for along, so that few tokens leave it.
func (b *builder) call(key ruleKey, n grammar.Node, register uint64, k int32) int32 {
	if b.leadsByOne(k) && b.p.endsOpen(n) {
		key.tail, k = int16(b.drafts[k].bytes[0].lo), b.drafts[k].bytes[0].to
	}
	entry := b.p.entry(b.p.rule(key, n), register)
	return b.add(draft{calls: []callEdge{{entry, k}}})
}

func (b *builder) ref(r grammar.Ref, k int32) int32 {
	if b.p.fact(r).inline {
		return b.some(b.p.grammar.Rules[r].Body, k)
	}
	return b.call(ruleKey{r, noTail}, r, 0, k)
}

func (b *builder) lexeme(d *grammar.DFA, k int32) int32 {
	if isSmall(d) && !d.States[0].Accept && !endsInLetters(d) {
		return b.dfa(d, k)
	}
	return b.call(ruleKey{d, noTail}, d, 0, k)
}

// token leads on by a marker, or by its text where the vocabulary has no such
// token.
func (b *builder) token(t grammar.Token, k int32) int32 {
	id, ok := b.p.vocab.mark(t)
	if !ok && !t.Not {
		return b.literal(t.Text, k)
	}
	if !ok {
		id = noToken // any token is another one
	}
	return b.add(draft{tokens: []tokenEdge{{id, k, t.Not}}})
}

const noToken = -1

// loop is a counted repetition; its bounds are in the register.
func (b *builder) loop(r grammar.Repeat, k int32) int32 {
	end := b.add(draft{kind: stateLoopEnd, param: int32(len(b.loops))})
	head := b.add(draft{kind: stateLoopHead, param: int32(len(b.loops))})
	first := len(b.drafts)
	b.loops = append(b.loops, loop{exit: k})
	b.loops[0].body = b.some(r.Body, end)
	for i := first; i < len(b.drafts); i++ {
		b.drafts[i].flags |= flagCounted
	}
	return head
}

func (b *builder) bag(g grammar.Bag, k int32) int32 {
	choose := b.add(draft{kind: stateBagChoose})
	end := b.add(draft{kind: stateBagEnd})
	out := bag{exit: k, min: g.Min, max: g.Max}
	if g.Max == grammar.Unbounded {
		out.max = len(g.Items)
	}
	for i, item := range g.Items {
		out.items = append(out.items, b.node(item.Body, end))
		if item.Required {
			out.required |= 1 << i
		}
	}
	out.separator = b.node(g.Sep, choose)
	b.bags = append(b.bags, out)
	return choose
}
