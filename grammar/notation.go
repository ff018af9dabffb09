package grammar

import "strings"

// A notation is how values are written where it is not JSON: as Gemma 4 writes the
// arguments of calls. Keys and strings stand as they are, without escapes, keys with
// nothing around them and strings between marks:
//
//	{city:<|"|>Rom<|"|>,days:[1,2],more:{}}
//
// All else is as in JSON. Keys are sorted, since the templates sort them.
type notation struct {
	mark   string // the text around strings, which none of them has
	marker Node   // the mark in a grammar: a token, or text
	keys   *DFA   // the keys that can be written
}

// marked is strings between marks.
func (c *compiler) marked(t text) (Node, error) {
	n, key := c.notation, countedDFA{t.dfa, t.min, t.max}
	d := c.between[key]
	if d == nil {
		var err error
		if d, err = c.bare(t, []string{n.mark}); err != nil {
			return nil, err
		}
		c.between[key] = d
	}
	return sequence(n.marker, lexeme(d), n.marker), nil
}

// spelledValue is a value that has no keys, of which the text is known.
func (c *compiler) spelledValue(text string) Node {
	if c.notation == nil {
		return Literal(text)
	}
	var parts []Node
	for i, part := range strings.Split(text, c.notation.mark) {
		if i > 0 {
			parts = append(parts, c.notation.marker)
		}
		parts = append(parts, Literal(part))
	}
	return sequence(parts...)
}

// spelledValues is any of some values that have no keys.
func (c *compiler) spelledValues(texts []string) (Node, error) {
	if c.notation == nil {
		return trie(c.meter, texts, c.limits.Product)
	}
	var alt []Node
	for _, text := range texts {
		alt = append(alt, c.spelledValue(text))
	}
	return alternatives(alt...), nil
}

// key is a key and the colon behind it.
func (c *compiler) key(name string) string {
	if c.notation == nil {
		return quote(name) + c.colon
	}
	return name + c.colon
}

// writable is the objects without the keys that cannot be written. If there are no
// such objects the error is errKey.
func (c *compiler) writable(o *object) (*object, error) {
	if c.notation == nil {
		return o, nil
	}
	keys := c.notation.keys
	out := *o
	out.keys, out.index, out.classes, out.owed = nil, nil, nil, nil
	for _, k := range o.keys {
		if !keys.match(k.name) {
			k.term = c.none
			out.needs = out.needs.given(k.name, false)
		}
		out.keys = append(out.keys, k)
	}
	for _, cl := range o.classes {
		var err error
		if cl.dfa, err = combine(c.meter, cl.dfa, keys, opAnd, c.limits.Product); err != nil {
			return nil, err
		}
		if !cl.dfa.isEmpty() {
			out.classes = append(out.classes, cl)
		}
	}
	for _, debt := range o.owed {
		var err error
		if debt.dfa, err = combine(c.meter, debt.dfa, keys, opAnd, c.limits.Product); err != nil {
			return nil, err
		}
		if debt.dfa.isEmpty() {
			return nil, errKey
		}
		out.owed = append(out.owed, debt)
	}
	if out.needs == formulaFalse {
		return nil, errKey
	}
	return &out, nil
}

// The rules of common/chat's parser for Gemma's notation.
const (
	gemmaDict    = "gemma4-dict"
	gemmaString  = "gemma4-string"
	gemmaKeyName = "gemma4-dict-key-name"
)

// findNotation reads from the parser how it has arguments, if that is no JSON.
func (e *Envelope) findNotation() *notation {
	rule := func(name string) int {
		return e.peg.find(e.peg.Root, func(n *pegNode) bool { return n.Type == "rule" && n.Name == name })
	}
	text, name := rule(gemmaString), rule(gemmaKeyName)
	if rule(gemmaDict) < 0 || text < 0 || name < 0 {
		return nil
	}
	mark := e.peg.literalUnder(text)
	chars := &e.peg.Parsers[e.peg.Parsers[name].Child]
	if mark == "" || chars.Type != "chars" {
		return nil
	}
	return &notation{mark: mark, marker: e.markers(mark), keys: keyTexts(runeSet(chars.class()))}
}

// keyTexts are the texts of some characters that do not begin with a blank, which
// would be taken for none of the key's.
func keyTexts(set runeSet) *DFA {
	first := intersectRunes(set, invertRunes(runeSet{{'\t', '\r'}, {' ', ' '}}))
	return knownDFA(trimStates([]State{{Edges: edgesTo(first, 1)}, {Accept: true, Edges: edgesTo(set, 1)}}))
}
