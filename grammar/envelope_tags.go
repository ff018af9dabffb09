package grammar

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// This file writes arguments one by one, each in its tag.

// The reasons for which arguments cannot be written one by one.
var (
	errTagPresence = errors.New("ties members to each other, which arguments in any order cannot be held to")
	errNoTag       = errors.New("asks for a member that the chat template cannot write: its name or each of its values")
)

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

// A textForm is how a string stands in a tag.
type textForm struct {
	quoted    bool     // as a JSON string
	forbidden []string // what may not begin in it, besides delimiters
	delimited []string // what ends it
}

// value is a value of an argument as it stands in its tag, nil if none can stand there.
func (a *arguments) value(rules *ruleList, name string, t *term, form textForm) (Node, error) {
	text, err := a.isText(name)
	if err != nil {
		return nil, err
	}
	kinds := ^kindString.set()
	if text {
		kinds = kindString.set()
	}
	t, err = a.only(t, kinds)
	switch {
	case err != nil:
		return nil, err
	case t.shape.isEmpty():
		return nil, nil
	case text && !form.quoted:
		return a.raw(t, form)
	}
	return a.inset(rules, "arg-"+sanitize(name), t)
}

// raw is the strings of a term as they are, as far as they have no delimiter; nil if
// there is none.
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
		if !d.isEmpty() {
			alt = append(alt, lexeme(d))
		}
	}
	if len(alt) == 0 {
		return nil, nil
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

func (f *former) kindsOf(at spot) []string {
	a, err := f.toolOf(at.tool)
	if err != nil {
		return nil
	}
	return a.kinds(at.param)
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
	v, err := a.value(&f.rules, at.param, at.value, form)
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
	type argument struct {
		name string
		term *term
	}
	known := map[argument]Node{}
	body := func(k key) (Node, error) {
		// common/chat trims names, and takes the empty one for the one before.
		if !slices.Contains(f.peg.facts[at.id].args, k.name) || k.name == "" || strings.TrimSpace(k.name) != k.name {
			return nil, nil
		}
		if n, ok := known[argument{k.name, k.term}]; ok {
			return n, nil
		}
		next := at
		next.param, next.value = k.name, k.term
		n, _, err := f.node(next)
		known[argument{k.name, k.term}] = n
		return n, err
	}
	n, err := a.bags(body, sep, least)
	return n, f.toolError(at.tool, a, err)
}

// bags is the arguments of any of the objects that can be written. A body is a
// member in its tag, or nil.
func (a *arguments) bags(body func(key) (Node, error), sep Node, least int) (Node, error) {
	var alt []Node
	var unwritable error
	for _, o := range a.objects {
		for _, part := range o.decided() {
			n, err := a.bag(part, body, sep, least)
			switch {
			case errors.Is(err, errNoTag):
				unwritable = err
			case err != nil:
				return nil, a.c.blame(err, a.c.doc.root, "")
			default:
				alt = append(alt, n)
			}
		}
	}
	if len(alt) == 0 {
		return nil, a.c.blame(cmp.Or(unwritable, errNoTag), a.c.doc.root, "")
	}
	return either(alt...), nil
}

// maxDecided bounds the parts of an object whose members depend on each other.
const maxDecided = 64

// decided splits an object into parts in which no member depends on another: of
// those that did it says whether they are there. An object with too many parts is
// left as it is.
func (o *object) decided() []*object {
	var out []*object
	for open := []*object{o}; len(open) > 0; {
		p := open[len(open)-1]
		open = open[:len(open)-1]
		_, rest := p.needs.split()
		switch {
		case rest == formulaTrue:
			out = append(out, p)
		case rest != formulaFalse:
			var name string
			rest.names(func(n string) { name = n })
			open = append(open, p.given(name, false), p.given(name, true))
		}
		if len(open)+len(out) > maxDecided {
			return []*object{o}
		}
	}
	return out
}

// given is the objects that have a member, or those that lack it.
func (o *object) given(name string, present bool) *object {
	n := *o
	n.needs = o.needs.given(name, present)
	if present {
		n.needs = allOf(n.needs, hasKey(name))
	} else {
		n.keys, n.index = slices.DeleteFunc(slices.Clone(o.keys), func(k key) bool { return k.name == name }), nil
	}
	return &n
}

// bag is the arguments of an object. Beyond what a Bag holds they come in the
// schema's order.
func (a *arguments) bag(o *object, body func(key) (Node, error), sep Node, least int) (Node, error) {
	required, rest := o.needs.split()
	if rest != formulaTrue {
		if err := a.c.relax(errTagPresence, a.c.doc.root, ""); err != nil {
			return nil, err
		}
	}
	b := Bag{Sep: sep, Max: o.max}
	needed := 0
	for _, k := range o.keys {
		if k.term == a.c.none {
			continue
		}
		n, err := body(k)
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if required[k.name] {
			needed++
		}
		b.Items = append(b.Items, BagItem{n, required[k.name]})
		delete(required, k.name)
	}
	b.Min = max(o.min, least, needed)
	switch {
	case len(required) > 0, len(o.owed) > 0, b.Min > len(b.Items), o.max != Unbounded && b.Min > o.max:
		return nil, errNoTag
	case len(b.Items) == 0:
		return Seq{}, nil
	case b.Max == Unbounded, b.Max > len(b.Items):
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
