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

// The reasons for which arguments cannot be written one by one.
var (
	errTagPresence = errors.New("ties members to each other, which arguments in any order cannot be held to")
	errNoTag       = errors.New("asks for a member that the chat template cannot write")
)

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

// isText tells whether an argument may be a string. Then it can be nothing else in
// a tag: the parser takes all that stands there as one.
func (a *arguments) isText(name string) (bool, error) {
	for _, o := range a.objects {
		if i := o.find(name); i >= 0 {
			s, err := a.c.shapeOf(o.keys[i].term)
			if err != nil {
				return false, err
			}
			if s.has(kindString) {
				return true, nil
			}
		}
	}
	return false, nil
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

// whole is the arguments as one JSON object.
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

// A textForm is how a string stands in a tag.
type textForm struct {
	quoted    bool     // as a JSON string
	forbidden []string // what may not begin in it, besides delimiters
	delimited []string // what ends it
}

// value is one argument as it stands in its tag.
func (a *arguments) value(rules *ruleList, name string, form textForm) (Node, error) {
	text, err := a.isText(name)
	if err != nil {
		return nil, err
	}
	kinds := ^kindString.set()
	if text {
		kinds = kindString.set()
	}
	var alt []Node
	for _, o := range a.objects {
		i := o.find(name)
		if i < 0 {
			continue
		}
		t, err := a.only(o.keys[i].term, kinds)
		if err != nil {
			return nil, err
		}
		var n Node
		if text && !form.quoted {
			n, err = a.raw(t, form)
		} else {
			n, err = a.inset(rules, "arg-"+sanitize(name), t)
		}
		if err != nil {
			return nil, err
		}
		alt = append(alt, n)
	}
	return either(alt...), nil
}

// raw is the strings of a term as they are, as far as they have no delimiter.
func (a *arguments) raw(t *term, form textForm) (Node, error) {
	var alt []Node
	if texts := t.shape.strings; len(texts) == 1 && texts[0].dfa.isAll() && texts[0].min == 0 && texts[0].max == Unbounded {
		d, err := a.until(slices.Concat(form.forbidden, form.delimited))
		return inset{lexeme(d)}, err
	}
	for _, s := range t.shape.strings {
		d, err := a.c.bare(s, slices.Concat(form.forbidden, form.delimited))
		if err != nil {
			return nil, a.c.blame(err, t.origin(), "")
		}
		alt = append(alt, lexeme(d))
	}
	return inset{alternatives(alt...)}, nil
}

// kinds are the JSON Schema types of an argument.
func (a *arguments) kinds(name string) []string {
	var out []string
	for _, o := range a.objects {
		i := o.find(name)
		if i < 0 {
			continue
		}
		s, err := a.c.shapeOf(o.keys[i].term)
		if err != nil {
			continue // value reports it
		}
		for k := range kind(kinds) {
			if s.has(k) && k != kindString && !slices.Contains(out, schemaKinds[k]) {
				out = append(out, schemaKinds[k])
			}
		}
	}
	return out
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
	a.until = func(delimiters []string) (*DFA, error) { return f.until(delimiters, true) }
	f.tools[name] = a
	return a, nil
}

func (f *former) kindsOf(at spot) []string {
	a, err := f.toolOf(at.tool)
	if err != nil {
		return nil
	}
	return a.kinds(at.param)
}

// arguments are all arguments of a call.
func (f *former) arguments(at spot, n *pegNode) (Node, error) {
	a, err := f.toolOf(at.tool)
	if err != nil {
		return nil, err
	}
	if f.peg.find(n.Child, func(n *pegNode) bool { return n.Type == "schema" }) < 0 {
		if a.c.notation = f.e.notation(n.Child); a.c.notation != nil {
			whole, err := a.whole(&f.rules)
			return whole, f.toolError(at.tool, a, err)
		}
		// A tagged tool without arguments.
		next := at
		next.pegPlace = at.into(n.Child)
		full, _, err := f.node(next)
		if len(a.required()) > 0 {
			err = &ToolError{at.tool, a.c.blame(errNoTag, a.c.doc.root, "required")}
		}
		return full, err
	}
	whole, err := a.whole(&f.rules)
	return whole, f.toolError(at.tool, a, err)
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

// required are the arguments that no call goes without.
func (a *arguments) required() []string {
	var names []string
	for _, o := range a.objects {
		for _, k := range o.keys {
			if required, _ := o.needs.split(); required[k.name] {
				names = append(names, k.name)
			}
		}
	}
	return names
}

// value is the value of a tagged argument.
func (f *former) value(at spot, n *pegNode) (Node, error) {
	a, err := f.toolOf(at.tool)
	if err != nil {
		return nil, err
	}
	form := textForm{quoted: n.Tag == tagValue, forbidden: at.forbidden}
	if !form.quoted {
		form.delimited = f.delimiters(n.Child)
	}
	v, err := a.value(&f.rules, at.param, form)
	return v, f.toolError(at.tool, a, err)
}

// list is arguments in any order, each as the node under at has it.
func (f *former) list(at spot) (Node, error) { return f.bags(at, Seq{}, 0) }

// separated is arguments in any order with separators, as the repetition behind
// has them.
func (f *former) separated(at spot, behind pegPlace) (Node, error) {
	sep := at
	sep.pegPlace = behind.into(f.peg.Parsers[behind.id].Child)
	sep.separator = true
	n, _, err := f.node(sep)
	if err != nil {
		return nil, err
	}
	return f.bags(at, n, 1)
}

// bags is the arguments of any of the tool's objects.
func (f *former) bags(at spot, sep Node, least int) (Node, error) {
	a, err := f.toolOf(at.tool)
	if err != nil {
		return nil, err
	}
	bodies := map[string]Node{}
	for _, name := range a.names() {
		if !slices.Contains(f.peg.facts[at.id].args, name) {
			continue
		}
		next := at
		next.param = name
		n, _, err := f.node(next)
		if err != nil {
			return nil, err
		}
		bodies[name] = n
	}
	var alt []Node
	for _, o := range a.objects {
		n, err := a.bag(o, bodies, sep, least)
		if err != nil {
			return nil, f.toolError(at.tool, a, a.c.blame(err, a.c.doc.root, ""))
		}
		alt = append(alt, n)
	}
	return either(alt...), f.toolError(at.tool, a, nil)
}

// bag is the arguments of an object. Beyond what a Bag holds they come in the
// schema's order.
func (a *arguments) bag(o *object, bodies map[string]Node, sep Node, least int) (Node, error) {
	required, rest := o.needs.split()
	if rest != formulaTrue || len(o.owed) > 0 {
		if err := a.c.relax(errTagPresence, a.c.doc.root, ""); err != nil {
			return nil, err
		}
	}
	b := Bag{Sep: sep, Max: o.max}
	needed := 0
	for _, k := range o.keys {
		if body := bodies[k.name]; body != nil && k.term != a.c.none {
			if required[k.name] {
				needed++
			}
			b.Items = append(b.Items, BagItem{body, required[k.name]})
		} else if required[k.name] {
			return nil, errNoTag
		}
		delete(required, k.name)
	}
	if len(required) > 0 {
		return nil, errNoTag
	}
	b.Min = max(o.min, min(least, len(b.Items)), needed)
	switch {
	case b.Min > len(b.Items), o.max != Unbounded && b.Min > o.max:
		return nil, errNoTag
	case len(b.Items) == 0:
		return Seq{}, nil
	case b.Max == Unbounded:
		b.Max = len(b.Items)
	}
	if len(b.Items) <= MaxBag {
		return b, nil
	}
	if b.Min > max(least, needed) || b.Max < len(b.Items) {
		return nil, errTagPresence
	}
	return chain(b), nil
}

// chain is the items of a bag in order. Without a required one the first has to be
// there if one has to.
func chain(b Bag) Node {
	if empty, ok := b.Sep.(Seq); ok && len(empty) == 0 {
		var parts []Node
		for _, item := range b.Items {
			if !item.Required {
				item.Body = optional(item.Body)
			}
			parts = append(parts, item.Body)
		}
		return sequence(parts...)
	}
	first := max(slices.IndexFunc(b.Items, func(i BagItem) bool { return i.Required }), 0)
	var parts []Node
	for i, item := range b.Items {
		n := sequence(b.Sep, item.Body)
		switch {
		case i < first:
			n = optional(sequence(item.Body, b.Sep))
		case i == first:
			n = item.Body
		case !item.Required:
			n = optional(n)
		}
		parts = append(parts, n)
	}
	return sequence(parts...)
}
