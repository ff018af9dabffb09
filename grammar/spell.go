package grammar

import (
	"fmt"
	"strings"
	"sync"
)

// This file says how JSON values are spelled: compact, with one spelling for
// each string, so that a key or a literal cannot come in disguise.

// maxDepthOfInstances is far above what any answer reaches.
const maxDepthOfInstances = 1000

// Compact respells a JSON text as grammars spell it: no white space, one form
// for each string. The order of keys and the form of numbers stay.
func Compact(text []byte) ([]byte, error) {
	v, err := parseJSON(text, maxDepthOfInstances)
	if err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	var b strings.Builder
	v.spell(&b, ",", ":")
	return []byte(b.String()), nil
}

// spell writes the value.
func (v *value) spell(b *strings.Builder, comma, colon string) {
	switch v.kind {
	case kindNull, kindFalse, kindTrue:
		b.WriteString(kindNames[v.kind])
	case kindNumber:
		b.WriteString(v.text)
	case kindString:
		spellString(b, v.text)
	case kindArray:
		b.WriteByte('[')
		for i := range v.items {
			if i > 0 {
				b.WriteString(comma)
			}
			v.items[i].spell(b, comma, colon)
		}
		b.WriteByte(']')
	case kindObject:
		b.WriteByte('{')
		for i := range v.members {
			if i > 0 {
				b.WriteString(comma)
			}
			spellString(b, v.members[i].key)
			b.WriteString(colon)
			v.members[i].value.spell(b, comma, colon)
		}
		b.WriteByte('}')
	}
}

var kindNames = [kinds]string{"null", "false", "true", "number", "string", "array", "object"}

// compact is the value in compact spelling.
func (v *value) compact() string {
	var b strings.Builder
	v.spell(&b, ",", ":")
	return b.String()
}

// spellString writes a string with its quotes.
func spellString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		if r >= ' ' && r != '"' && r != '\\' {
			b.WriteRune(r)
		} else {
			b.WriteString(escapes[r])
		}
	}
	b.WriteByte('"')
}

// quote is a string as a grammar spells it.
func quote(s string) string {
	var b strings.Builder
	spellString(&b, s)
	return b.String()
}

// escapes spells the characters that stand in a string only escaped.
var escapes = func() map[rune]string {
	m := map[rune]string{'"': `\"`, '\\': `\\`}
	for r := rune(0); r < ' '; r++ {
		m[r] = fmt.Sprintf(`\u%04x`, r)
	}
	for r, s := range map[rune]string{'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`} {
		m[r] = s
	}
	return m
}()

// plainRunes are the characters that stand for themselves in a string.
var plainRunes = intersectRunes(anyRune, runeSet{{' ', '!'}, {'#', '['}, {']', anyRune[1].Hi}})

// spellStrings is the language of the JSON strings whose contents d accepts.
func spellStrings(m *meter, d *DFA, limit int) (*DFA, error) {
	if d.isAll() {
		return AnyString(), nil
	}
	s := speller{in: d, out: []State{{Edges: []Edge{{'"', '"', 1}}}}}
	s.out = append(s.out, make([]State, len(d.States)+1)...)
	end := int32(len(d.States) + 1)
	s.out[end].Accept = true
	for i := range d.States {
		s.state(int32(i), end)
		if err := m.spend(8 + 4*len(d.States[i].Edges)); err != nil {
			return nil, err
		}
		if len(s.out) > 8*limit {
			return nil, errStates
		}
	}
	return finishDFA(m, s.out, limit)
}

// A speller rewrites an automaton over contents into one over spellings. State
// i of the one is state i+1 of the other.
type speller struct {
	in  *DFA
	out []State
}

func (s *speller) state(i, end int32) {
	n := edgeList{}
	escaped := map[string]int32{} // suffix of an escape and where it leads
	for _, e := range s.in.States[i].Edges {
		for _, r := range intersectRunes(runeSet{{e.Lo, e.Hi}}, plainRunes) {
			n.add(Edge{r.Lo, r.Hi, e.To + 1})
		}
		for r := e.Lo; r <= min(e.Hi, '\\'); r++ {
			if spelling := escapes[r]; spelling != "" {
				escaped[spelling[1:]] = e.To + 1
			}
		}
	}
	if s.in.States[i].Accept {
		n.add(Edge{'"', '"', end})
	}
	if len(escaped) > 0 {
		n.add(Edge{'\\', '\\', s.suffixes(escaped)})
	}
	s.out[i+1].Edges = n.sorted()
}

// suffixes makes the state from which each of the texts leads to its target.
func (s *speller) suffixes(texts map[string]int32) int32 {
	id := int32(len(s.out))
	s.out = append(s.out, State{})
	var n edgeList
	deeper := map[byte]map[string]int32{}
	for text, to := range texts {
		if len(text) == 1 {
			n.add(Edge{rune(text[0]), rune(text[0]), to})
			continue
		}
		if deeper[text[0]] == nil {
			deeper[text[0]] = map[string]int32{}
		}
		deeper[text[0]][text[1:]] = to
	}
	for c, rest := range deeper {
		n.add(Edge{rune(c), rune(c), s.suffixes(rest)})
	}
	s.out[id].Edges = n.sorted()
	return id
}

// AnyString is the language of all JSON strings.
var AnyString = sync.OnceValue(func() *DFA {
	s := speller{in: allTexts, out: make([]State, 3)}
	s.out[0].Edges = []Edge{{'"', '"', 1}}
	s.out[2].Accept = true
	s.state(0, 2)
	return mustDFA(finishDFA(unmetered(), s.out, len(s.out)))
})

// AnyChar is the language of single characters as they stand in a JSON string.
var AnyChar = sync.OnceValue(func() *DFA {
	one := &DFA{States: []State{{Edges: edgesTo(anyRune, 1)}, {Accept: true}}}
	quoted := mustDFA(spellStrings(unmetered(), one, 100))
	// Without its quotes: start behind the first, accept before the second.
	states := make([]State, len(quoted.States))
	for i, s := range quoted.States {
		for _, e := range s.Edges {
			if quoted.States[e.To].Accept {
				states[i].Accept = true
			} else {
				states[i].Edges = append(states[i].Edges, e)
			}
		}
	}
	first := states[0].Edges[0].To
	states[0] = states[first]
	return mustDFA(finishDFA(unmetered(), states, 100))
})

// mustDFA is for automata that are part of the program.
func mustDFA(d *DFA, err error) *DFA {
	if err != nil {
		panic(err)
	}
	return d
}
