package grammar

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A manner is how a template writes what its parser leaves open: blanks, options
// and attributes, by their place.
type manner struct {
	texts        map[string][]string // of blanks and free texts
	taken        map[string]bool     // which options are used
	chosen       map[string]int      // which of several ways, where all are the same call
	several      bool                // whether the example has several calls
	comma, colon string              // in arguments that are JSON; empty if not known
}

// Learn reads a turn as the template writes it in a conversation's history, with
// calls of tools that the envelope was made for, and the generation prompt in
// front. Grammars then write calls in that manner, so that the next turn's prompt
// starts with the tokens that were generated. What an example leaves open stays
// without blanks and options. Learn reports whether it could read the example. It
// must not be called once the envelope is in use.
func (e *Envelope) Learn(example string) bool {
	l := learner{peg: e.peg, text: example}
	whole := func(id int) bool {
		l.events = nil
		_, ok := l.match(pegPlace{id: id}, 0, 0)
		return ok
	}
	ok := whole(e.peg.Root)
	if !ok {
		ok = l.anywhere()
	}
	if !ok {
		return false
	}
	e.manner = manner{texts: map[string][]string{}, taken: map[string]bool{}, chosen: map[string]int{}}
	for _, ev := range l.events {
		e.manner.note(ev)
	}
	return true
}

// note adds what one event tells. Where an option is used at times and not used at
// others, it is used.
func (m *manner) note(ev event) {
	switch ev.kind {
	case eventText:
		if !slices.Contains(m.texts[ev.key], ev.text) {
			m.texts[ev.key] = append(m.texts[ev.key], ev.text)
		}
	case eventOption:
		m.taken[ev.key] = m.taken[ev.key] || ev.text != ""
	case eventCalls:
		m.taken[ev.key] = m.taken[ev.key] || ev.number > 0
		m.several = m.several || ev.number > 0
	case eventChoice:
		if _, known := m.chosen[ev.key]; !known {
			m.chosen[ev.key] = ev.number
		}
	case eventJSON:
		if found := jsonManner.FindStringSubmatch(ev.text); found != nil && m.colon == "" {
			m.colon, m.comma = found[1], found[2]
		}
	}
}

// jsonManner finds the colon and the comma of an object's first member.
var jsonManner = regexp.MustCompile(`^\{"[^"\\]*"( ?: ?)(?:"[^"\\]*"|[0-9]+)(?:( ?, ?)")?`)

type eventKind uint8

const (
	eventText   eventKind = iota // a blank or a free text
	eventOption                  // what an option had; empty if nothing
	eventCalls                   // how many more calls a repetition had than it needs
	eventChoice                  // which way was taken
	eventJSON                    // arguments
)

// An event is what a learner reads at a place.
type event struct {
	kind      eventKind
	key, text string
	number    int
}

// A learner matches an example as common/chat's parser would, and notes what it
// reads where the parser leaves a choice.
type learner struct {
	peg    *peg
	text   string
	events []event
	steps  int
}

// maxLearnSteps bounds the reading of an example.
const maxLearnSteps = 1_000_000

// anywhere looks for the calls alone.
func (l *learner) anywhere() bool {
	id := l.peg.find(l.peg.Root, func(n *pegNode) bool { return n.Trigger })
	if id < 0 {
		return false
	}
	for at := range l.text {
		l.events = nil
		if end, ok := l.match(pegPlace{id: id}, at, 0); ok && end > at {
			return true
		}
	}
	return false
}

// match is the end of what the node reads from at on.
func (l *learner) match(at pegPlace, pos, depth int) (end int, ok bool) {
	if l.steps++; depth > 2*maxPegDepth || l.steps > maxLearnSteps {
		return 0, false
	}
	n, rest := &l.peg.Parsers[at.id], l.text[pos:]
	switch n.Type {
	case "literal":
		return pos + len(n.Literal), strings.HasPrefix(rest, n.Literal)
	case "sequence":
		for _, part := range l.peg.parts(at) {
			if pos, ok = l.match(part, pos, depth+1); !ok {
				return 0, false
			}
		}
		return pos, true
	case "choice":
		for i, child := range n.Children {
			if end, ok := l.try(at.into(child), pos, depth); ok {
				if l.peg.sameCall(n) {
					l.events = append(l.events, event{kind: eventChoice, key: l.peg.option(at), number: i})
				}
				return end, true
			}
		}
		return 0, false
	case "repetition":
		return l.repeat(at, n, pos, depth)
	case "and", "not":
		before := len(l.events)
		_, ok := l.match(at.into(n.Child), pos, depth+1)
		l.events = l.events[:before]
		return pos, ok == (n.Type == "and")
	case "any":
		_, size := utf8.DecodeRuneInString(rest)
		return pos + size, size > 0
	case "space":
		blank := len(rest) - len(strings.TrimLeft(rest, " \t\n\v\f\r"))
		l.events = append(l.events, event{kind: eventText, key: at.key(), text: rest[:blank]})
		return pos + blank, true
	case "chars":
		end, ok := l.chars(n, pos)
		l.free(at, pos, end)
		return end, ok
	case "string":
		return pos + quotedLen(rest, n.Delimiter), true
	case "until":
		end := pos + firstOf(rest, n.Delimiters)
		l.free(at, pos, end)
		return end, true
	case "schema":
		return l.json(pos)
	case "rule", "ref", "atomic", "tag", "ac", "gbnf":
		return l.match(l.peg.enter(at), pos, depth+1)
	}
	return pos, true // epsilon, start; the end is not the end of the example
}

// try is match without traces of failure.
func (l *learner) try(at pegPlace, pos, depth int) (end int, ok bool) {
	before := len(l.events)
	if end, ok = l.match(at, pos, depth+1); !ok {
		l.events = l.events[:before]
	}
	return end, ok
}

func (l *learner) repeat(at pegPlace, n *pegNode, pos, depth int) (end int, ok bool) {
	start, count := pos, 0
	for n.MaxCount == Unbounded || count < n.MaxCount {
		next, ok := l.try(at.into(n.Child), pos, depth)
		if !ok || next == pos {
			break
		}
		pos = next
		count++
	}
	switch {
	case n.MinCount == 0 && n.MaxCount == 1:
		l.events = append(l.events, event{kind: eventOption, key: l.peg.option(at), text: l.text[start:pos]})
	case l.peg.facts[n.Child].call:
		l.events = append(l.events, event{kind: eventCalls, key: l.peg.option(at), number: count - n.MinCount})
	}
	return pos, count >= n.MinCount
}

// sameCall tells whether the ways of a choice differ neither in the tool nor in the
// argument.
func (p *peg) sameCall(n *pegNode) bool {
	for _, id := range n.Children {
		f, first := &p.facts[id], &p.facts[n.Children[0]]
		if !slices.Equal(f.names, first.names) || len(f.args) > 0 || f.reasoning || f.content {
			return false
		}
	}
	return true
}

// option names the place of an option.
func (p *peg) option(at pegPlace) string { return at.key() + "\x00" + p.edge(at.id, false) }

// free notes a free text of a call's form.
func (l *learner) free(at pegPlace, pos, end int) {
	l.events = append(l.events, event{kind: eventText, key: at.key(), text: l.text[pos:end]})
}

func (l *learner) chars(n *pegNode, pos int) (end int, ok bool) {
	count := 0
	for n.MaxCount == Unbounded || count < n.MaxCount {
		r, size := utf8.DecodeRuneInString(l.text[pos:])
		if size == 0 || !hasRune(n.class(), r) {
			break
		}
		pos += size
		count++
	}
	return pos, count >= n.MinCount
}

// class is the characters of a node of the type chars.
func (n *pegNode) class() Class {
	var set runeSet
	for _, r := range n.Ranges {
		set = append(set, Range{r.Start, r.End})
	}
	set = intersectRunes(anyRune, normalizeRunes(set))
	if n.Negated {
		set = invertRunes(set)
	}
	return Class(set)
}

func (l *learner) json(pos int) (end int, ok bool) {
	d := json.NewDecoder(strings.NewReader(l.text[pos:]))
	var v json.RawMessage
	if d.Decode(&v) != nil {
		return 0, false
	}
	end = pos + int(d.InputOffset())
	l.events = append(l.events, event{kind: eventJSON, text: string(bytes.TrimSpace(v))})
	return end, true
}

// quotedLen is how long the inside of a string is.
func quotedLen(s, quote string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if strings.HasPrefix(s[i:], quote) {
			return i
		}
	}
	return len(s)
}

// firstOf is where the first of the texts begins in s, or the end of s.
func firstOf(s string, texts []string) int {
	first := len(s)
	for _, text := range texts {
		if at := strings.Index(s, text); at >= 0 && text != "" {
			first = min(first, at)
		}
	}
	return first
}
