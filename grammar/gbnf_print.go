package grammar

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
)

// GBNF prints the grammar in llama.cpp's dialect. The error is ErrNoGBNF where
// that has no form for it.
func (g *Grammar) GBNF() (string, error) {
	p := printer{lexemes: map[*DFA]Node{}}
	for _, r := range g.Rules {
		p.reserve(r.Name)
	}
	for i, r := range g.Rules {
		body, err := p.plain(r.Body)
		if err != nil {
			return "", err
		}
		p.rules[i].Body = body
	}
	for i := len(g.Rules); i < len(p.rules); i++ { // splitting may add rules
		p.rules[i].Body = p.split(p.rules[i].Body)
	}
	var b strings.Builder
	for _, r := range p.rules {
		b.WriteString(r.Name)
		b.WriteString(" ::= ")
		p.write(&b, r.Body, levelAlt)
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// A printer first rewrites nodes into those that GBNF has, which may take
// further rules, and then writes them.
type printer struct {
	ruleList
	lexemes map[*DFA]Node
}

// maxRepeat is the most repetitions that llama.cpp expands.
const maxRepeat = 2000

// maxBagInGBNF is the most items of a bag whose orders are written out.
const maxBagInGBNF = 4

func (p *printer) plain(n Node) (Node, error) {
	switch n := n.(type) {
	case Seq:
		parts, err := p.plainAll(n)
		return sequence(parts...), err
	case Alt:
		parts, err := p.plainAll(n)
		return Alt(parts), err
	case Repeat:
		body, err := p.plain(n.Body)
		if err != nil {
			return nil, err
		}
		return p.repeat(body, n.Min, n.Max), nil
	case *DFA:
		return p.lexeme(n), nil
	case Bag:
		return p.bag(n)
	case Unique, Item:
		return nil, ErrNoGBNF
	case Token:
		if !strings.HasPrefix(n.Text, "<") || strings.IndexByte(n.Text, '>') != len(n.Text)-1 || strings.ContainsAny(n.Text, "\r\n") {
			return nil, ErrNoGBNF
		}
	}
	return n, nil
}

func (p *printer) plainAll(nodes []Node) ([]Node, error) {
	out := make([]Node, len(nodes))
	for i, n := range nodes {
		var err error
		if out[i], err = p.plain(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rule gives the node a rule of its own unless it is as short as a reference.
func (p *printer) rule(n Node, name string) Node {
	switch n.(type) {
	case Ref, Class, Literal:
		return n
	}
	id := p.reserve(name)
	p.rules[id].Body = n
	return Ref(id)
}

// repeat splits counts that llama.cpp would refuse, or would take as no limit.
// What is counted gets a rule, since llama.cpp multiplies counts by the rules
// in what they repeat.
func (p *printer) repeat(body Node, least, most int) Node {
	if least > 1 || most > 1 {
		body = p.rule(body, "repeat")
	}
	if least <= maxRepeat && most <= maxRepeat {
		return Repeat{body, least, most}
	}
	if most == Unbounded {
		return sequence(p.blocks(body, least, true), Repeat{body, 0, Unbounded})
	}
	return sequence(p.blocks(body, least, true), p.blocks(body, most-least, false))
}

// split is the node with all counts split that need it.
func (p *printer) split(n Node) Node {
	switch n := n.(type) {
	case Seq:
		parts := make([]Node, len(n))
		for i, part := range n {
			parts[i] = p.split(part)
		}
		return sequence(parts...)
	case Alt:
		parts := make(Alt, len(n))
		for i, part := range n {
			parts[i] = p.split(part)
		}
		return parts
	case Repeat:
		body := p.split(n.Body)
		if max(n.Min, n.Max) <= maxRepeat {
			return Repeat{body, n.Min, n.Max}
		}
		return p.repeat(body, n.Min, n.Max)
	}
	return n
}

// blocks is n repetitions, or up to n, in blocks of blocks.
func (p *printer) blocks(body Node, n int, exactly bool) Node {
	count := func(body Node, n int) Node {
		if exactly {
			return repeated(body, n, n)
		}
		return repeated(body, 0, n)
	}
	if n <= maxRepeat {
		return count(body, n)
	}
	block := p.rule(count(body, maxRepeat), "block")
	return sequence(p.blocks(block, n/maxRepeat, exactly), count(body, n%maxRepeat))
}

func (p *printer) bag(b Bag) (Node, error) {
	if len(b.Items) > maxBagInGBNF {
		return nil, ErrNoGBNF
	}
	sep, err := p.plain(b.Sep)
	if err != nil {
		return nil, err
	}
	items := make([]Node, len(b.Items))
	for i, item := range b.Items {
		if items[i], err = p.plain(item.Body); err != nil {
			return nil, err
		}
	}
	orders := make(graph, 1<<len(items)) // a state for each set of used items
	for used := range orders {
		count, complete := 0, true
		for i, item := range b.Items {
			if used&(1<<i) != 0 {
				count++
			} else if item.Required {
				complete = false
			}
		}
		if complete && count >= b.Min {
			orders[used].final = Seq{}
		}
		for i, item := range items {
			if used&(1<<i) != 0 || b.Max != Unbounded && count >= b.Max {
				continue
			}
			if used > 0 {
				item = sequence(sep, item)
			}
			orders[used].edges = append(orders[used].edges, graphEdge{item, used | 1<<i})
		}
	}
	return orders.node(&p.ruleList, "bag"), nil
}

// fewTexts is how many texts of a language are written out.
const fewTexts = 16

// lexeme gives a language its rule.
func (p *printer) lexeme(d *DFA) Node {
	if n, ok := p.lexemes[d]; ok {
		return n
	}
	known := wellKnown()[d]
	name := cmp.Or(known.name, "text")
	id := p.reserve(name)
	p.lexemes[d] = Ref(id)
	switch texts, few := d.texts(fewTexts); {
	case d == AnyString():
		p.rules[id].Body = sequence(Literal(`"`), Repeat{p.lexeme(AnyChar()), 0, Unbounded}, Literal(`"`))
	case known.body != nil:
		p.rules[id].Body = known.body
	case few:
		alt := make([]Node, len(texts))
		for i, s := range texts {
			alt[i] = Literal(s)
		}
		p.rules[id].Body = alternatives(alt...)
	default:
		body := d.graph().node(&p.ruleList, p.rules[id].Name)
		p.rules[id].Body = body
	}
	return Ref(id)
}

// A lexemeForm is how a language that is in most grammars is best read.
type lexemeForm struct {
	name string
	body Node // nil if it is built when it is printed
}

var wellKnown = sync.OnceValue(func() map[*DFA]lexemeForm {
	form := func(gbnf string) Node {
		g, err := ParseGBNF("root ::= " + gbnf)
		if err != nil {
			panic(err)
		}
		return g.Rules[0].Body
	}
	return map[*DFA]lexemeForm{
		AnyString():  {name: "string"},
		AnyChar():    {"char", form(`[^"\\\x00-\x1F] | "\\" (["\\bfnrt] | "u00" ("0" [0-7bef] | "1" [0-9a-f]))`)},
		AnyNumber():  {"number", form(`"-"? ("0" | [1-9] [0-9]{0,17}) ("." [0-9]{1,17})? ([eE] [+\-]? ([0-9]{1,2} | "1" [0-9]{2} | "2" [0-8] [0-9]))?`)},
		AnyInteger(): {"integer", form(`"0" | "-"? [1-9] [0-9]{0,17}`)},
	}
})

// graph is the automaton with one edge for each pair of states.
func (d *DFA) graph() graph {
	g := make(graph, len(d.States))
	for i, s := range d.States {
		if s.Accept {
			g[i].final = Seq{}
		}
		for j, e := range s.Edges {
			first := true
			for _, before := range s.Edges[:j] {
				first = first && before.To != e.To
			}
			if first {
				g[i].edges = append(g[i].edges, graphEdge{edgeClass(s.Edges[j:], e.To), int(e.To)})
			}
		}
	}
	return g
}

// edgeClass is the characters that lead to a state.
func edgeClass(edges []Edge, to int32) Node {
	var set runeSet
	for _, e := range edges {
		if e.To == to {
			set = append(set, Range{e.Lo, e.Hi})
		}
	}
	if len(set) == 1 && set[0].Lo == set[0].Hi {
		return Literal(string(set[0].Lo))
	}
	return Class(normalizeRunes(set))
}

// Levels of binding, loosest first.
const (
	levelAlt = iota
	levelSeq
	levelPart // of a sequence
	levelAtom // what is repeated
)

func (p *printer) write(b *strings.Builder, n Node, level int) {
	switch n := n.(type) {
	case Literal:
		writeLiteral(b, string(n))
	case Class:
		b.WriteString(n.String())
	case Ref:
		b.WriteString(p.rules[n].Name)
	case Token:
		if n.Not {
			b.WriteByte('!')
		}
		b.WriteString(n.Text)
	case Repeat: // one after the other they need no brackets
		p.write(b, n.Body, levelAtom)
		b.WriteString(quantifier(n))
	case Seq:
		p.writeList(b, n, " ", level > levelSeq, levelPart)
	case Alt:
		p.writeList(b, n, " | ", level > levelAlt, levelSeq)
	}
}

func (p *printer) writeList(b *strings.Builder, parts []Node, sep string, group bool, level int) {
	if len(parts) == 0 {
		b.WriteString(`""`)
		return
	}
	if group {
		b.WriteByte('(')
	}
	for i, part := range parts {
		if i > 0 {
			b.WriteString(sep)
		}
		p.write(b, part, level)
	}
	if group {
		b.WriteByte(')')
	}
}

func quantifier(r Repeat) string {
	switch {
	case r.Min == 0 && r.Max == 1:
		return "?"
	case r.Min == 0 && r.Max == Unbounded:
		return "*"
	case r.Min == 1 && r.Max == Unbounded:
		return "+"
	case r.Max == Unbounded:
		return fmt.Sprintf("{%d,}", r.Min)
	case r.Min == r.Max:
		return fmt.Sprintf("{%d}", r.Min)
	}
	return fmt.Sprintf("{%d,%d}", r.Min, r.Max)
}
