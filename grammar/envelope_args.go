package grammar

import (
	"errors"
	"fmt"
	"slices"
)

// An arguments is the arguments of one tool, compiled as far as all ways to write
// them have in common.
type arguments struct {
	c       *compiler
	root    *term            // the schema's objects
	objects []*object        // settled: see emitter.settle
	insets  map[string]inset // what was emitted, by what it is
	until   func(delimiters []string) (*DFA, error)
}

// schemaKinds are JSON Schema's names of the kinds of values.
var schemaKinds = map[kind]string{
	kindNull: "null", kindFalse: "boolean", kindTrue: "boolean", kindNumber: "number",
	kindString: "string", kindArray: "array", kindObject: "object",
}

func newArguments(t Tool, m manner, l Limits) (*arguments, error) {
	c := newCompiler(Options{Strict: t.Strict, Unique: true, Comma: m.comma, Colon: m.colon, Limits: l})
	text := t.Schema
	if len(text) == 0 {
		text = []byte(`{"type":"object"}`)
	}
	doc, err := c.parse(text)
	if err != nil {
		return nil, err
	}
	c.doc = doc
	a := &arguments{c: c, insets: map[string]inset{}}
	root := c.schemaTerm(doc.root, &scope{anchors: map[string]*schema{}})
	if a.root, err = a.only(root, kindObject.set()); err != nil {
		return nil, c.blame(err, doc.root, "")
	}
	e := &emitter{c: c, known: map[spelledTerm]Node{}, ranks: map[string]int{}, chars: map[string]*DFA{}}
	e.rankTexts(doc.root.value)
	for _, o := range a.root.shape.objects {
		settled, err := e.settle(o)
		if err != nil {
			return nil, c.blame(err, doc.root, "")
		}
		a.objects = append(a.objects, settled...)
	}
	if len(a.objects) == 0 {
		return nil, &Unenforceable{Reason: "no object satisfies the schema"}
	}
	return a, nil
}

// only is the values of some kinds that a term has.
func (a *arguments) only(t *term, kinds kindSet) (*term, error) {
	s, err := a.c.shapeOf(t)
	if err != nil {
		return nil, err
	}
	narrowed := *s
	narrowed.keep(kinds)
	return a.c.intern(fmt.Sprintf("only%d %d", t.id, kinds), &term{op: termAnd, parts: []*term{t}, shape: &narrowed}), nil
}

// names are the declared arguments, in the schema's order.
func (a *arguments) names() []string {
	var names []string
	for _, o := range a.objects {
		for _, k := range o.keys {
			if k.term != a.c.none && !slices.Contains(names, k.name) {
				names = append(names, k.name)
			}
		}
	}
	return names
}

// skeleton is a schema with the same arguments and plain types.
func (a *arguments) skeleton() []byte {
	out := []byte(`{"type":"object","properties":{`)
	for i, name := range a.names() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, quote(name)...)
		if text, err := a.isText(name); err == nil && text {
			out = append(out, `:{"type":"string"}`...)
		} else {
			out = append(out, `:{"type":"number"}`...)
		}
	}
	return append(out, "}}"...)
}

// whole is the arguments as one object.
func (a *arguments) whole(rules *ruleList) (Node, error) {
	return a.inset(rules, "args", a.root)
}

// inset emits a term, once.
func (a *arguments) inset(rules *ruleList, name string, t *term) (Node, error) {
	key := fmt.Sprint(t.id)
	if known, ok := a.insets[key]; ok {
		return known, nil
	}
	g, err := a.c.emit(t)
	if errors.Is(err, errEmpty) {
		return nil, a.c.unsatisfied(t)
	}
	if err != nil {
		return nil, a.c.blame(err, a.c.doc.root, "")
	}
	n := inset{rules.graft(g, name)}
	a.insets[key] = n
	return n, nil
}

// graft adds a grammar's rules and is its root.
func (l *ruleList) graft(g *Grammar, name string) Node {
	ids := make([]Ref, len(g.Rules))
	for i := range g.Rules {
		rule := name
		if i > 0 {
			rule += "-" + g.Rules[i].Name
		}
		ids[i] = Ref(l.reserve(rule))
	}
	for i, id := range ids {
		l.rules[id].Body = renumber(g.Rules[i].Body, ids)
	}
	return ids[0]
}

// renumber is a node with other numbers for the rules.
func renumber(n Node, ids []Ref) Node {
	list := func(parts []Node) []Node {
		out := make([]Node, len(parts))
		for i, p := range parts {
			out[i] = renumber(p, ids)
		}
		return out
	}
	switch n := n.(type) {
	case Ref:
		return ids[n]
	case Seq:
		return Seq(list(n))
	case Alt:
		return Alt(list(n))
	case Repeat:
		n.Body = renumber(n.Body, ids)
		return n
	case Unique:
		return Unique{renumber(n.Body, ids)}
	case Item:
		return Item{renumber(n.Body, ids)}
	case Bag:
		n.Items, n.Sep = slices.Clone(n.Items), renumber(n.Sep, ids)
		for i := range n.Items {
			n.Items[i].Body = renumber(n.Items[i].Body, ids)
		}
		return n
	}
	return n
}

// toolOf is the arguments of a tool.
func (f *former) toolOf(name string) (*arguments, error) {
	if a := f.tools[name]; a != nil {
		return a, nil
	}
	i := slices.IndexFunc(f.call.Tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("parser of the chat template: it has no tool %q", name)
	}
	a, err := newArguments(f.call.Tools[i], f.e.manner, f.call.Limits)
	if err != nil {
		return nil, &ToolError{name, err}
	}
	a.c.notation = f.e.notation
	a.until = func(delimiters []string) (*DFA, error) { return f.until(delimiters, true) }
	f.tools[name] = a
	return a, nil
}

// arguments are all arguments of a call.
func (f *former) arguments(at spot, n *pegNode) (Node, error) {
	a, err := f.toolOf(at.tool)
	if err != nil {
		return nil, err
	}
	if f.isBare(n.Child) {
		next := at
		next.pegPlace = at.into(n.Child)
		full, _, err := f.node(next)
		return full, err
	}
	whole, err := a.whole(&f.rules)
	return whole, f.toolError(at.tool, a, err)
}

// isBare tells whether a node has no place for arguments.
func (f *former) isBare(id int) bool {
	return f.e.notation == nil && len(f.peg.facts[id].args) == 0 &&
		f.peg.find(id, func(n *pegNode) bool { return n.Type == "schema" }) < 0
}

// bare sees to it that a tool without a place for arguments may be called without.
func (f *former) bare(at spot) error {
	if !f.isBare(at.id) {
		return nil
	}
	a, err := f.toolOf(at.tool)
	if err != nil {
		return err
	}
	_, err = a.bags(func(key) (Node, error) { return nil, nil }, Seq{}, 0)
	return f.toolError(at.tool, a, err)
}

// toolError notes what a tool's grammar does not enforce, or makes the error one of
// the tool.
func (f *former) toolError(name string, a *arguments, err error) error {
	for _, r := range a.c.relaxed {
		if !slices.Contains(f.relaxed, r) {
			f.relaxed = append(f.relaxed, r)
		}
	}
	if err != nil {
		return &ToolError{name, err}
	}
	return nil
}
