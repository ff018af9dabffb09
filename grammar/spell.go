package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
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
var escapes = func() (spellings ['\\' + 1]string) {
	for r := range ' ' {
		spellings[r] = fmt.Sprintf(`\u%04x`, r)
	}
	for r, s := range map[rune]string{
		'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '"': `\"`, '\\': `\\`,
	} {
		spellings[r] = s
	}
	return spellings
}()

// escapable is how many characters have an escape.
const escapable = 34

// escapeOrder is the characters that have an escape, in the order of that.
var escapeOrder = func() (rs []rune) {
	for r, spelling := range escapes {
		if spelling != "" {
			rs = append(rs, rune(r))
		}
	}
	slices.SortFunc(rs, func(a, b rune) int { return strings.Compare(escapes[a], escapes[b]) })
	return rs
}()

// plainRunes are the characters that stand for themselves in a string.
var plainRunes = intersectRunes(anyRune, runeSet{{' ', '!'}, {'#', '['}, {']', anyRune[1].Hi}})

// spellStrings is the language of the JSON strings whose contents d accepts.
func spellStrings(m *meter, d *DFA, limit int) (*DFA, error) {
	switch {
	case d.isAll():
		return AnyString(), nil
	case d.isEmpty():
		return noText, nil
	}
	states, err := spellQuoted(m, d)
	if err != nil {
		return nil, err
	}
	if len(states) > limit {
		return nil, errStates
	}
	return &DFA{states}, nil
}

// spellQuoted rewrites an automaton over contents into one over spellings. The
// result is as good as minimal if d is.
func spellQuoted(m *meter, d *DFA) ([]State, error) {
	s := speller{in: d, suffixes: map[string]int32{}, uniform: map[uniformEscapes]int32{}, insides: map[uint64][]State{}}
	s.out = make([]State, len(d.States)+2, len(d.States)+2+escapable)
	s.out[0].Edges = []Edge{{'"', '"', 1}}
	s.out[len(d.States)+1].Accept = true
	for i := range d.States {
		s.state(int32(i))
		if err := m.spend(40 + 4*len(d.States[i].Edges)); err != nil {
			return nil, err
		}
	}
	return s.out, nil
}

// A speller writes the states of a spelling: the opening quote, a state for each
// one of in, the end, then the insides of escapes.
type speller struct {
	in       *DFA
	out      []State
	suffixes map[string]int32         // the states inside of escapes, by what they lead to
	uniform  map[uniformEscapes]int32 // of these, where all escapes lead to one state
	insides  map[uint64][]State       // how those look, by the set of escapes
	edges    edgeList
	arena    edgeArena
}

// uniformEscapes is a set of escapes, by their place in escapeOrder, that lead to
// one state.
type uniformEscapes struct {
	set uint64
	to  int32
}

const allEscapes = 1<<escapable - 1

// An escapeEnd is what is left of an escape and the state behind it.
type escapeEnd struct {
	text string
	to   int32
}

func (s *speller) state(i int32) {
	edges := s.edges[:0]
	var targets [escapable]int32 // of the escapes, 0 for none
	for _, e := range s.in.States[i].Edges {
		for _, r := range plainRunes {
			if lo, hi := max(e.Lo, r.Lo), min(e.Hi, r.Hi); lo <= hi {
				edges.add(Edge{lo, hi, e.To + 1})
			}
		}
		if e.Lo > '\\' {
			continue
		}
		for k, r := range escapeOrder {
			if e.Lo <= r && r <= e.Hi {
				targets[k] = e.To + 1
			}
		}
	}
	if s.in.States[i].Accept {
		edges.add(Edge{'"', '"', int32(len(s.in.States) + 1)})
	}
	if to := s.escapes(&targets); to != 0 {
		edges.add(Edge{'\\', '\\', to})
	}
	s.edges = edges
	s.out[i+1].Edges = s.arena.keep(edges.sorted())
}

// escapes is the state behind the backslash, or 0 if there is no escape.
func (s *speller) escapes(targets *[escapable]int32) int32 {
	var u uniformEscapes
	for k, to := range targets {
		if to == 0 {
			continue
		}
		if u.to != 0 && to != u.to {
			return s.suffix(escapeEnds(targets))
		}
		u.set |= 1 << k
		u.to = to
	}
	if u.set == 0 {
		return 0
	}
	id, ok := s.uniform[u]
	if !ok {
		id = s.sameEscapes(u)
		s.uniform[u] = id
	}
	return id
}

func escapeEnds(targets *[escapable]int32) []escapeEnd {
	var ends []escapeEnd
	for k, to := range targets {
		if to != 0 {
			ends = append(ends, escapeEnd{escapes[escapeOrder[k]][1:], to})
		}
	}
	return ends
}

// sameEscapes is the state from which each escape of a set leads to one target.
func (s *speller) sameEscapes(u uniformEscapes) int32 {
	insides := s.insides[u.set]
	if insides == nil {
		insides = insidesOf(u.set)
		s.insides[u.set] = insides
	}
	base := int32(len(s.out))
	for _, state := range insides {
		edges := s.arena.keep(state.Edges)
		for i, e := range edges {
			if edges[i].To = u.to; e.To >= 0 {
				edges[i].To = base + e.To
			}
		}
		s.out = append(s.out, State{Edges: edges})
	}
	return base
}

// insidesOf is the insides of a set of escapes. They end in state -1.
func insidesOf(set uint64) []State {
	if set == allEscapes {
		return allInsides()
	}
	return makeInsides(set)
}

var allInsides = sync.OnceValue(func() []State { return makeInsides(allEscapes) })

func makeInsides(set uint64) []State {
	s := speller{suffixes: map[string]int32{}}
	var targets [escapable]int32
	for k := range targets {
		targets[k] = -int32(set >> k & 1)
	}
	s.suffix(escapeEnds(&targets))
	return s.out
}

// suffix is the state from which each of the ends leads to its target.
func (s *speller) suffix(ends []escapeEnd) int32 {
	var key []byte
	for _, end := range ends {
		key = binary.AppendUvarint(append(key, end.text...), uint64(end.to))
	}
	if id, ok := s.suffixes[string(key)]; ok {
		return id
	}
	id := int32(len(s.out))
	s.suffixes[string(key)] = id
	s.out = append(s.out, State{})
	var edges edgeList
	for len(ends) > 0 {
		c, same := ends[0].text[0], 1
		for same < len(ends) && ends[same].text[0] == c {
			same++
		}
		to := ends[0].to
		if len(ends[0].text) > 1 {
			deeper := slices.Clone(ends[:same])
			for i := range deeper {
				deeper[i].text = deeper[i].text[1:]
			}
			to = s.suffix(deeper)
		}
		edges.add(Edge{rune(c), rune(c), to})
		ends = ends[same:]
	}
	s.out[id].Edges = edges.sorted()
	return id
}

// AnyString is the language of all JSON strings.
var AnyString = sync.OnceValue(func() *DFA {
	states, err := spellQuoted(unmetered(), allTexts)
	return mustDFA(&DFA{states}, err)
})

// AnyChar is the language of single characters as they stand in a JSON string.
var AnyChar = sync.OnceValue(func() *DFA {
	one := &DFA{States: []State{{Edges: edgesTo(anyRune, 1)}, {Accept: true}}}
	return mustDFA(spellChar(unmetered(), one))
})

// spellChar is the spellings of one character without quotes around it.
func spellChar(m *meter, one *DFA) (*DFA, error) {
	quoted, err := spellQuoted(m, one)
	if err != nil {
		return nil, err
	}
	// Start behind the opening quote, accept before the closing one.
	states := make([]State, len(quoted))
	for i, s := range quoted {
		for _, e := range s.Edges {
			if quoted[e.To].Accept {
				states[i].Accept = true
			} else {
				states[i].Edges = append(states[i].Edges, e)
			}
		}
	}
	states[0] = states[quoted[0].Edges[0].To]
	return finishDFA(m, states, len(states))
}

// mustDFA is for automata that are part of the program.
func mustDFA(d *DFA, err error) *DFA {
	if err != nil {
		panic(err)
	}
	return d
}
