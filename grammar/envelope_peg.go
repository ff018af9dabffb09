package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// A pegNode is a node of common/chat's serialized parser (common_peg_arena).
type pegNode struct {
	Type       string
	Literal    string
	Children   []int
	Child      int
	MinCount   int `json:"min_count"`
	MaxCount   int `json:"max_count"`
	Ranges     []struct{ Start, End rune }
	Negated    bool
	Delimiter  string
	Delimiters []string
	Name       string
	Tag        string
	Trigger    bool
	Grammar    string
}

// A peg is a serialized parser. Its nodes are numbers.
type peg struct {
	Parsers []pegNode
	Rules   map[string]int
	Root    int
	facts   []pegFacts
	program *program
}

// pegFacts is what is under a node.
type pegFacts struct {
	known                    bool
	call, content, reasoning bool
	names                    []string  // of tools
	args                     []string  // names of tagged arguments
	edges                    [2]string // how the node begins and ends, once edged
	edged                    [2]bool
}

// The tags of common_chat_peg_builder.
const (
	tagReasoning   = "reasoning"
	tagContent     = "content"
	tagOpen        = "tool-open"
	tagToolID      = "tool-id"
	tagToolName    = "tool-name"
	tagToolArgs    = "tool-args"
	tagArg         = "tool-arg"
	tagArgName     = "tool-arg-name"
	tagValue       = "tool-arg-value"
	tagStringValue = "tool-arg-string-value"
)

const (
	maxPegNodes = 200_000
	maxPegDepth = 200
)

var errPegDepth = errors.New("is nested too deeply or in circles")

// parsePeg reads a serialized parser and checks that its numbers are in range.
func parsePeg(text []byte) (*peg, error) {
	p := &peg{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, err
	}
	if len(p.Parsers) > maxPegNodes {
		return nil, fmt.Errorf("has more than %d nodes", maxPegNodes)
	}
	exists := func(id int) bool { return id >= 0 && id < len(p.Parsers) }
	for i := range p.Parsers {
		n := &p.Parsers[i]
		if n.Type == "ref" {
			id, ok := p.Rules[n.Name]
			if !ok {
				return nil, fmt.Errorf("has no rule %q", n.Name)
			}
			n.Child = id
		}
		if !exists(n.Child) || slices.ContainsFunc(n.Children, func(id int) bool { return !exists(id) }) {
			return nil, fmt.Errorf("node %d leads nowhere", i)
		}
		if n.MaxCount < n.MinCount && n.MaxCount != Unbounded || n.MinCount < 0 {
			return nil, fmt.Errorf("node %d has wrong bounds", i)
		}
	}
	if !exists(p.Root) {
		return nil, errors.New("has no root")
	}
	p.facts = make([]pegFacts, len(p.Parsers))
	if err := p.learn(p.Root, 0); err != nil {
		return nil, err
	}
	for id := range p.Parsers { // now, since several goroutines will ask
		if p.facts[id].known {
			p.edge(id, false)
			p.edge(id, true)
		}
	}
	p.program = p.compile()
	return p, nil
}

// under is the nodes that a node is made of.
func (n *pegNode) under() []int {
	switch n.Type {
	case "sequence", "choice":
		return n.Children
	case "repetition", "rule", "ref", "atomic", "tag", "ac", "gbnf", "schema":
		return []int{n.Child}
	}
	return nil
}

// learn works out the facts of a node and of those under it. Nodes that stand
// in a circle are values, which have none.
func (p *peg) learn(id, depth int) error {
	f := &p.facts[id]
	if f.known {
		return nil
	}
	if depth > maxPegDepth {
		return errPegDepth
	}
	f.known = true
	n := &p.Parsers[id]
	switch n.Tag {
	case tagToolName:
		f.call, f.names = true, []string{p.literalUnder(n.Child)}
	case tagArgName:
		f.args = []string{p.literalUnder(n.Child)}
	case tagContent:
		f.content = true
	case tagReasoning:
		f.reasoning = true
	}
	for _, child := range n.under() {
		if err := p.learn(child, depth+1); err != nil {
			return err
		}
		c := p.facts[child]
		f.call = f.call || c.call
		f.content = f.content || c.content
		f.reasoning = f.reasoning || c.reasoning
		f.names = appendNew(f.names, c.names)
		f.args = appendNew(f.args, c.args)
	}
	return nil
}

func appendNew(list, more []string) []string {
	if len(list) == 0 {
		return more
	}
	list = slices.Clip(list)
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// literalUnder is the text of a node that is one literal.
func (p *peg) literalUnder(id int) string {
	for range maxPegDepth {
		n := &p.Parsers[id]
		if n.Type == "literal" {
			return n.Literal
		}
		under := n.under()
		if len(under) == 0 {
			break
		}
		id = under[0]
	}
	return ""
}

// hasTag tells whether a tag stands under a node.
func (p *peg) hasTag(id int, tag string) bool {
	return p.find(id, func(n *pegNode) bool { return n.Tag == tag }) >= 0
}

// find is the first node under id for which is holds, or -1.
func (p *peg) find(id int, is func(*pegNode) bool) int {
	seen := map[int]bool{}
	var visit func(id int) int
	visit = func(id int) int {
		if seen[id] {
			return -1
		}
		seen[id] = true
		n := &p.Parsers[id]
		if is(n) {
			return id
		}
		for _, child := range n.under() {
			if at := visit(child); at >= 0 {
				return at
			}
		}
		return -1
	}
	return visit(id)
}

// skips tells whether a node is text in front of calls that is no content: the parser
// drops it.
func (p *peg) skips(id, behind int) bool {
	isText := func(n *pegNode) bool { return n.Type == "until" }
	f := &p.facts[id]
	return !f.call && !f.content && !f.reasoning && p.find(id, isText) >= 0 &&
		p.find(behind, func(n *pegNode) bool { return n.Trigger }) >= 0
}

// edge is how a node begins or ends, as far as it is the same for all tools: the
// text of a literal, or what stands there.
func (p *peg) edge(id int, last bool) string {
	side := 0
	if last {
		side = 1
	}
	f := &p.facts[id]
	if f.edged[side] {
		return f.edges[side]
	}
	f.edged[side] = true // a circle has no edge of its own
	f.edges[side] = p.findEdge(&p.Parsers[id], last)
	return f.edges[side]
}

func (p *peg) findEdge(n *pegNode, last bool) string {
	switch n.Tag {
	case tagToolName, tagToolID, tagToolArgs, tagArgName, tagValue, tagStringValue, tagReasoning, tagContent:
		return "<" + n.Tag + ">"
	}
	switch n.Type {
	case "literal":
		return n.Literal
	case "until", "chars", "string", "schema", "any":
		return "<" + n.Type + ">"
	}
	under := n.under()
	if last && n.Type == "sequence" {
		under = slices.Clone(under)
		slices.Reverse(under)
	}
	for _, child := range under {
		if e := p.edge(child, last); e != "" {
			return e
		}
	}
	return ""
}

// A pegPlace is a node and what stands around it: where it is, in terms that are
// the same for all tools.
type pegPlace struct {
	id           int
	before, next string
	argument     string // how the value of the argument around it is written
}

// into is the place of a node's child.
func (at pegPlace) into(id int) pegPlace {
	at.id = id
	return at
}

// key names the place.
func (at pegPlace) key() string { return at.before + "\x00" + at.next + "\x00" + at.argument }

// parts are the places of a sequence's children.
func (p *peg) parts(at pegPlace) []pegPlace {
	children := p.Parsers[at.id].Children
	out := make([]pegPlace, len(children))
	for i, child := range children {
		out[i] = at.into(child)
		for _, b := range slices.Backward(children[:i]) {
			if e := p.edge(b, true); e != "" {
				out[i].before = e
				break
			}
		}
		for _, n := range children[i+1:] {
			if e := p.edge(n, false); e != "" {
				out[i].next = e
				break
			}
		}
	}
	return out
}

// enter is the place of a child that stands for its parent. Inside an argument it
// matters how the value is written.
func (p *peg) enter(at pegPlace) pegPlace {
	n := &p.Parsers[at.id]
	if n.Tag == tagArg {
		at.argument = tagValue
		if p.hasTag(n.Child, tagStringValue) {
			at.argument = tagStringValue
		}
	}
	return at.into(n.Child)
}
