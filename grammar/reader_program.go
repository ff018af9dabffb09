package grammar

import (
	"bytes"
	"slices"
	"strings"
)

// A program is a parser of answers made ready to run: nodes that only stand for
// another are gone. It has an op for each node of the peg, at the same number.
type program struct {
	ops []op
	ids bool // calls have ids
}

type opKind uint8

const (
	opFail opKind = iota
	opEpsilon
	opStart
	opEnd
	opLiteral
	opSequence
	opChoice
	opRepeat
	opAhead
	opNotAhead
	opAny
	opSpace
	opChars
	opString
	opUntil
	opTag
)

// An op is one node.
type op struct {
	kind     opKind
	tag      readTag // of opTag
	solid    bool    // the literal is not blank
	quote    byte    // that ends the string
	min, max int     // of repetitions and characters

	call     bool // a call stands in it
	texts    bool // content or reasoning stands in it
	endsCall bool // a call ends where it ends

	text     []byte
	children []int32
	class    Class
	until    *finder
}

// A readTag is what a part of an answer means.
type readTag uint8

const (
	readNothing readTag = iota
	readContent
	readReasoning
	readOpen // a call begins
	readID
	readName // of the tool
	readJSON // arguments, as one JSON value
	readArgName
	readValue  // of an argument, JSON or Python
	readString // of an argument, not quoted
	readEnd    // a call ends
	// Gemma's notation of arguments:
	readGemmaDict
	readGemmaArray
	readGemmaMember
	readGemmaValue
	readGemmaKey
	readGemmaText
	readGemmaRaw
	readGemmaQuoted
)

// streams tells whether the text in a tag is told as it comes.
func (t readTag) streams() bool {
	switch t {
	case readContent, readReasoning, readJSON, readValue, readString, readGemmaText, readGemmaRaw:
		return true
	}
	return false
}

var tagMeanings = map[string]readTag{
	tagContent: readContent, tagReasoning: readReasoning, tagOpen: readOpen, tagToolID: readID, tagToolName: readName,
	tagToolArgs: readJSON, tagArgName: readArgName, tagValue: readValue, tagStringValue: readString,
}

var gemmaRules = map[string]readTag{
	gemmaDict: readGemmaDict, "gemma4-array": readGemmaArray, "gemma4-dict-kv": readGemmaMember, "gemma4-value": readGemmaValue,
	"gemma4-dict-key": readGemmaKey, "gemma4-dict-key-name": readGemmaText, "gemma4-string": readGemmaQuoted,
	"gemma4-string-content": readGemmaText, "gemma4-number": readGemmaRaw, "gemma4-bool": readGemmaRaw, "gemma4-null": readGemmaRaw,
}

// meaning is what a node means by itself.
func (p *peg) meaning(id int) readTag {
	switch n := &p.Parsers[id]; n.Type {
	case "tag":
		tag := tagMeanings[n.Tag]
		if tag == readJSON && p.find(n.Child, func(n *pegNode) bool { return n.Tag == tagArgName || gemmaRules[n.Name] != 0 }) >= 0 {
			return readNothing
		}
		return tag
	case "rule":
		return gemmaRules[n.Name]
	}
	return readNothing
}

// compile makes the program of a parser.
func (p *peg) compile() *program {
	c := &program{ops: make([]op, len(p.Parsers)+1)} // the last one fails
	tags := make([]readTag, len(p.Parsers))
	for id := range p.Parsers {
		tags[id] = p.meaning(id)
		c.ids = c.ids || tags[id] == readID
	}
	for id := range p.Parsers {
		n, facts, o := &p.Parsers[id], &p.facts[id], &c.ops[id]
		o.call, o.texts = facts.call, facts.content || facts.reasoning
		if o.tag = tags[id]; o.tag != readNothing {
			o.kind, o.children = opTag, []int32{p.standsFor(n.Child, tags)}
			continue
		}
		p.compileNode(n, o, tags)
	}
	return c
}

func (p *peg) compileNode(n *pegNode, o *op, tags []readTag) {
	o.min, o.max = n.MinCount, n.MaxCount
	switch n.Type {
	case "epsilon":
		o.kind = opEpsilon
	case "start":
		o.kind = opStart
	case "end":
		o.kind = opEnd
	case "literal":
		o.kind, o.text, o.solid = opLiteral, []byte(n.Literal), strings.Trim(n.Literal, blanks) != ""
	case "sequence", "choice":
		o.kind = opSequence
		if n.Type == "choice" {
			o.kind = opChoice
		}
		for _, child := range n.Children {
			to := p.standsFor(child, tags)
			o.children = append(o.children, to)
			o.endsCall = o.endsCall || o.kind == opSequence && int(to) < len(tags) && tags[to] == readOpen
		}
	case "and", "not", "repetition":
		o.kind = map[string]opKind{"and": opAhead, "not": opNotAhead, "repetition": opRepeat}[n.Type]
		o.children = []int32{p.standsFor(n.Child, tags)}
	case "any":
		o.kind = opAny
	case "space":
		o.kind = opSpace
	case "chars":
		o.kind, o.class = opChars, n.class()
	case "string":
		if len(n.Delimiter) == 1 {
			o.kind, o.quote = opString, n.Delimiter[0]
		}
	case "until":
		o.kind, o.until = opUntil, newFinder(n.Delimiters)
	}
}

// standsFor is the node that does what the node does.
func (p *peg) standsFor(id int, tags []readTag) int32 {
	for range 2 * maxPegDepth {
		n := &p.Parsers[id]
		switch n.Type {
		case "rule", "ref", "atomic", "tag", "ac", "gbnf", "schema":
			if tags[id] != readNothing {
				return int32(id)
			}
			id = n.Child
		default:
			return int32(id)
		}
	}
	return int32(len(p.Parsers))
}

// A finder looks for the first of some texts.
type finder struct {
	texts [][]byte
	first [256]bool // how they begin
}

func newFinder(texts []string) *finder {
	f := &finder{}
	for _, text := range texts {
		if text != "" {
			f.texts = append(f.texts, []byte(text))
			f.first[text[0]] = true
		}
	}
	return f
}

// next is where in text one of the texts begins, found, or may begin, at the end.
func (f *finder) next(text []byte) (at int, found bool) {
	for i, b := range text {
		if !f.first[b] {
			continue
		}
		rest := text[i:]
		if slices.ContainsFunc(f.texts, func(t []byte) bool { return bytes.HasPrefix(rest, t) }) {
			return i, true
		}
		if slices.ContainsFunc(f.texts, func(t []byte) bool { return bytes.HasPrefix(t, rest) }) {
			return i, false
		}
	}
	return len(text), false
}
