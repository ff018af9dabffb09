package grammar

import (
	"strings"
)

// emit spells the values of a term as a grammar, or says errEmpty. Where best effort gives up the
// uniqueness of some arrays, it begins again.
func (c *compiler) emit(root *term) (*Grammar, error) {
	root = c.target(root)
	e := &emitter{c: c}
	for again := true; again; {
		e = &emitter{c: c, known: map[spelledTerm]Node{}, ranks: map[string]int{}, chars: map[string]*DFA{}}
		e.rankTexts(c.doc.root.value)
		id := e.reserve("root")
		e.known[spelledTerm{term: root}] = Ref(id)
		body, err := e.body(root, "root")
		if err != nil {
			return nil, err
		}
		e.rules[id].Body = body
		if again, err = e.checkUnique(); err != nil {
			return nil, err
		}
	}
	g := &Grammar{Rules: e.rules, relaxed: c.relaxed}
	if !g.trim() {
		return nil, errEmpty
	}
	return g, nil
}

// An emitter writes the rules of a grammar.
type emitter struct {
	ruleList
	c       *compiler
	mode    spelling
	known   map[spelledTerm]Node
	ranks   map[string]int  // where in the schema a text comes first
	chars   map[string]*DFA // one escaped or plain character of a class
	uniques []uniqueCheck
	unnamed *DFA // names that are nowhere in the schema, once they are needed
}

// A spelledTerm is a term and how its values are spelled.
type spelledTerm struct {
	term *term
	mode spelling
}

// value is the node of a term: a reference to its rule, or, for what nests no
// further, the node itself.
func (e *emitter) value(t *term, hint string) (Node, error) {
	t = e.c.target(t)
	key := spelledTerm{t, e.mode}
	if n, ok := e.known[key]; ok {
		return n, nil
	}
	if len(e.rules) > e.c.limits.Rules {
		return nil, errRules
	}
	s, err := e.c.shapeOf(t)
	if err != nil {
		return nil, err
	}
	if !s.has(kindArray) && !s.has(kindObject) {
		n, err := e.body(t, hint)
		e.known[key] = n
		return n, err
	}
	hint = ruleName(t, hint)
	id := e.reserve(hint)
	e.known[key] = Ref(id)
	body, err := e.body(t, hint)
	e.rules[id].Body = body
	return Ref(id), err
}

// ruleName is a name that a reader of the schema recognizes.
func ruleName(t *term, hint string) string {
	if t.op == termAll {
		return "value"
	}
	if s := t.schema; s != nil {
		for _, prefix := range []string{"/$defs/", "/definitions/", "/components/schemas/"} {
			if name, ok := strings.CutPrefix(s.path, prefix); ok && !strings.Contains(name, "/") {
				return sanitize(name)
			}
		}
	}
	return hint
}

// sanitize makes a part of a rule name: letters, digits and hyphens, not long.
func sanitize(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 128 && (hasRune(wordRunes, r) && r != '_') {
			return r
		}
		return '-'
	}, name)
	if name = name[:min(len(name), 32)]; name == "" || name == "root" {
		return "x"
	}
	return name
}

// body spells the values of all kinds. Errors name the schema that the term is
// from.
func (e *emitter) body(t *term, name string) (Node, error) {
	s, err := e.c.shapeOf(t)
	var alt []Node
	if err == nil {
		alt, err = e.scalars(s)
	}
	if err == nil {
		var nested []Node
		nested, err = e.arrays(s.arrays, t, name)
		alt = append(alt, nested...)
	}
	if err == nil {
		var nested []Node
		nested, err = e.objects(s.objects, t, name)
		alt = append(alt, nested...)
	}
	return alternatives(alt...), e.blame(err, t, "")
}

// blame is compiler.blame for the schema of a term.
func (e *emitter) blame(err error, t *term, keyword string) error {
	if s := t.origin(); s != nil {
		return e.c.blame(err, s, keyword)
	}
	return err
}

// scalars spells what does not nest.
func (e *emitter) scalars(s *shape) ([]Node, error) {
	var alt []Node
	for k, has := range s.basic {
		if has {
			alt = append(alt, Literal(kindNames[k]))
		}
	}
	if s.has(kindNumber) {
		d, err := e.numbers(s.numbers)
		if err != nil {
			return nil, err
		}
		alt = append(alt, lexeme(d))
	}
	for _, t := range s.strings {
		n, err := e.text(t.tighten(), "text")
		if err != nil {
			return nil, err
		}
		alt = append(alt, n)
	}
	return alt, nil
}

// A numbered is a set of numbers and how they are spelled.
type numbered struct {
	set  *DFA
	mode spelling
}

// numbers spells a set of numbers, once.
func (e *emitter) numbers(set *DFA) (*DFA, error) {
	key := numbered{set, e.mode}
	if d := e.c.written[key]; d != nil {
		return d, nil
	}
	d, err := spellNumbers(e.c.meter, set, e.mode, e.c.limits.Product)
	e.c.written[key] = d
	return d, err
}

// quoted spells the strings of a language, once for each.
func (e *emitter) quoted(d *DFA) (Node, error) {
	spelled := e.c.spelled[d]
	if spelled == nil {
		var err error
		if spelled, err = spellStrings(e.c.meter, d, e.c.limits.Product); err != nil {
			return nil, err
		}
		e.c.spelled[d] = spelled
	}
	return lexeme(spelled), nil
}

// lexeme is the node of a language: a literal if it has one text.
func lexeme(d *DFA) Node {
	if text, ok := d.only(); ok {
		return Literal(text)
	}
	return d
}

// rankTexts notes the order in which texts come in the schema.
func (e *emitter) rankTexts(v *value) {
	note := func(text string) {
		if _, ok := e.ranks[text]; !ok {
			e.ranks[text] = len(e.ranks)
		}
	}
	if v.kind == kindString {
		note(v.text)
	}
	for i := range v.items {
		e.rankTexts(&v.items[i])
	}
	for i := range v.members {
		note(v.members[i].key)
		e.rankTexts(&v.members[i].value)
	}
}
