package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A former turns a template's parser into the form of the answers that are asked
// for. Parsers are ordered and greedy, grammars are sets: where a parser would
// read a text otherwise than it was meant, the form must not have the text.
type former struct {
	e         *Envelope
	peg       *peg
	call      Call
	reasoning bool
	meter     *meter
	untils    map[string]*DFA
	rules     ruleList
	tools     map[string]*arguments
	asks      Node // Call.Answer, once grafted
	relaxed   []Unenforceable
}

// A spot is a place in the parser and what the way there tells.
type spot struct {
	pegPlace
	depth     int
	tool      string   // whose call it is in
	param     string   // whose argument it is in
	value     *term    // what the argument may be
	tag       string   // the tag of the text it is in
	forbidden []string // how the text must not begin
	separator bool     // only what stands between arguments is wanted
	after     bool     // behind a call
	thought   bool     // behind the reasoning
	quiet     bool     // among reasoning: no content
	free      bool     // in an answer without calls: options are the model's choice
}

// node is the texts of the parser's node, and those after which the answer may end
// at once, inside or behind free content. Nil has no text.
func (f *former) node(at spot) (full, stopped Node, err error) {
	n, facts := &f.peg.Parsers[at.id], &f.peg.facts[at.id]
	if at.depth++; at.depth > maxPegDepth {
		return nil, nil, fmt.Errorf("parser of the chat template: %w", errPegDepth)
	}
	if err := f.meter.spend(20); err != nil {
		return nil, nil, err
	}
	if at.tool == "" && len(facts.names) == 1 {
		at.tool = facts.names[0]
		if err := f.bare(at); err != nil {
			return nil, nil, err
		}
	}
	if at.separator && len(facts.args) > 0 && n.Type != "sequence" {
		return Seq{}, nil, nil
	}
	switch n.Type {
	case "epsilon", "start", "end", "and", "not":
		return Seq{}, nil, nil
	case "literal":
		return Literal(n.Literal), nil, nil
	case "sequence":
		return f.sequence(at)
	case "choice":
		return f.choice(at, n)
	case "repetition":
		return f.repetition(at, n)
	case "tag":
		return f.tagged(at, n)
	case "space":
		return f.space(at), nil, nil
	case "any":
		return Class(anyRune), nil, nil
	case "chars":
		full, err = f.chars(at, n)
	case "string", "until":
		full, err = f.text(at, n.Delimiters)
	case "gbnf":
		if n.Grammar != "" {
			return nil, nil, errors.New("parser of the chat template: it has a grammar of its own")
		}
		return Seq{}, nil, nil
	case "rule", "ref", "atomic", "ac":
		at.pegPlace = f.peg.enter(at.pegPlace)
		if n.Trigger && !facts.content && !facts.reasoning {
			full, err = f.callRule(at)
			return full, nil, err
		}
		return f.node(at)
	default:
		return nil, nil, fmt.Errorf("parser of the chat template: unexpected %q", n.Type)
	}
	return full, nil, err
}

// callRule makes a rule of calls. No generation prompt reaches into them, so they
// are finished at once.
func (f *former) callRule(at spot) (Node, error) {
	n, _, err := f.node(at)
	if n == nil || err != nil {
		return nil, err
	}
	id := f.rules.reserve("calls")
	f.rules.rules[id].Body = f.finish(n)
	return inset{Ref(id)}, nil
}

func (f *former) sequence(at spot) (full, stopped Node, err error) {
	parts := f.peg.parts(at.pegPlace)
	var done, stops []Node
	fails := false
	next := at
	for i := 0; i < len(parts); i++ {
		next.pegPlace = parts[i]
		n, facts := &f.peg.Parsers[next.id], f.peg.facts[next.id]
		if n.Type == "not" {
			next.forbidden = append(slices.Clip(next.forbidden), f.peg.literalUnder(n.Child))
			continue
		}
		if i+1 < len(parts) && f.peg.skips(next.id, parts[i+1].id) {
			continue
		}
		var c, stop Node
		if i+1 < len(parts) && f.listed(next, parts[i+1].id) {
			c, err = f.separated(next, parts[i+1])
			i++
		} else {
			inner := next
			inner.thought = next.thought && !facts.call
			c, stop, err = f.node(inner)
		}
		if err != nil {
			return nil, nil, err
		}
		if stop != nil {
			stops = append(stops, sequence(append(slices.Clip(done), stop)...))
		}
		if fails = c == nil; fails {
			break
		}
		done = append(done, c)
		next.after = next.after || facts.call
		next.thought = (next.thought || facts.reasoning) && !facts.call
	}
	if len(stops) > 0 {
		stopped = either(stops...)
	}
	if fails {
		return nil, stopped, nil
	}
	return sequence(done...), stopped, nil
}

// listed tells whether arguments stand at a place and, each behind a separator, in
// the node behind.
func (f *former) listed(at spot, behind int) bool {
	return at.tool != "" && at.param == "" && f.isArgument(at.id) &&
		f.isArgument(behind) && f.peg.Parsers[behind].Type == "repetition"
}

// isArgument tells whether a node is arguments alone.
func (f *former) isArgument(id int) bool {
	return len(f.peg.facts[id].args) > 0 && !f.peg.facts[id].call
}

func (f *former) choice(at spot, n *pegNode) (full, stopped Node, err error) {
	children := f.alternatives(at, n.Children)
	calls := slices.ContainsFunc(children, func(id int) bool { return f.peg.facts[id].call })
	var fulls, stops []Node
	for _, id := range children {
		next := at
		next.pegPlace = at.into(id)
		next.free = at.free || calls && !f.peg.facts[id].call
		c, stop, err := f.node(next)
		if err != nil {
			return nil, nil, err
		}
		if c != nil {
			fulls = append(fulls, c)
		}
		if stop != nil {
			stops = append(stops, stop)
		}
	}
	if len(fulls) > 0 {
		full = either(fulls...)
	}
	if len(stops) > 0 {
		stopped = either(stops...)
	}
	return full, stopped, nil
}

// alternatives leaves out what is not asked for: other tools, other arguments,
// and, where there is another way, content and reasoning.
func (f *former) alternatives(at spot, children []int) []int {
	facts := f.peg.facts
	children = slices.DeleteFunc(slices.Clone(children), func(id int) bool {
		return len(facts[id].names) > 0 && !slices.ContainsFunc(facts[id].names, f.wanted) ||
			at.param != "" && len(facts[id].args) > 0 && !slices.Contains(facts[id].args, at.param)
	})
	prefer := func(is func(id int) bool) {
		if slices.ContainsFunc(children, is) {
			children = slices.DeleteFunc(children, func(id int) bool { return !is(id) })
		}
	}
	prefer(func(id int) bool { return f.peg.Parsers[id].Type != "and" })
	if !f.reasoning {
		prefer(func(id int) bool { return !facts[id].reasoning })
	}
	switch {
	case f.contentless(at):
		// A whole answer stays, since its reasoning may end otherwise than the others'.
		prefer(func(id int) bool { return !facts[id].content || facts[id].call && facts[id].reasoning })
	case f.call.Answer != nil:
		prefer(func(id int) bool { return facts[id].content })
	}
	if n := &f.peg.Parsers[at.id]; at.tool != "" && f.peg.sameCall(n) {
		if i, known := f.e.manner.chosen[f.peg.option(at.pegPlace)]; known && i < len(n.Children) {
			return n.Children[i : i+1]
		}
	}
	return children
}

// wanted tells whether a tool may be called.
func (f *former) wanted(name string) bool {
	return (f.call.Mode != Named || name == f.call.Name) &&
		slices.ContainsFunc(f.call.Tools, func(t Tool) bool { return t.Name == name })
}

func (f *former) repetition(at spot, n *pegNode) (full, stopped Node, err error) {
	facts := f.peg.facts[n.Child]
	next := at
	next.pegPlace = at.into(n.Child)
	if facts.reasoning && !facts.call && n.MinCount == 0 {
		if !f.reasoning && (!facts.content || f.contentless(at)) {
			return Seq{}, nil, nil
		}
		next.quiet = at.quiet || f.reasoning && n.MaxCount != 1
	}
	switch {
	case facts.call:
		return f.calls(next, n, at.pegPlace)
	case f.isArgument(n.Child) && at.param == "":
		full, err = f.list(next)
		return full, nil, err
	case facts.content && !facts.reasoning && f.contentless(at) && n.MinCount == 0:
		return Seq{}, nil, nil
	}
	if full, stopped, err = f.node(next); full == nil || err != nil {
		return full, stopped, err
	}
	switch {
	case facts.reasoning, facts.content:
		return repeated(full, n.MinCount, 1), stopped, nil
	case n.MinCount == 0 && n.MaxCount == 1:
		return f.option(at, full), stopped, nil
	}
	return repeated(full, n.MinCount, n.MaxCount), stopped, nil
}

// option is something that the parser takes but does not need.
func (f *former) option(at spot, body Node) Node {
	switch {
	case at.free, at.thought && isBlank(body):
		return maybe{body, optional(body)}
	case at.thought:
		return maybe{body, body} // what ends the reasoning
	case f.e.manner.taken[f.peg.option(at.pegPlace)]:
		return maybe{body, body}
	}
	return maybe{body, Seq{}}
}

// isBlank tells whether a node is blanks.
func isBlank(n Node) bool {
	text, ok := n.(Literal)
	return ok && strings.TrimSpace(string(text)) == ""
}

// calls is calls in a row: the first of the answer, or those behind it.
func (f *former) calls(at spot, n *pegNode, place pegPlace) (full, stopped Node, err error) {
	// Some parsers take several calls in more than one way.
	parallel := f.call.Parallel && (!f.e.manner.several || f.e.manner.taken[f.peg.option(place)])
	if at.after && !parallel {
		return Seq{}, nil, nil
	}
	full, stopped, err = f.node(at)
	if full == nil || err != nil {
		return full, stopped, err
	}
	switch {
	case at.after:
		return repeated(full, 0, n.MaxCount), nil, nil
	case parallel:
		return repeated(full, 1, n.MaxCount), stopped, nil
	}
	return full, stopped, nil
}

func (f *former) tagged(at spot, n *pegNode) (full, stopped Node, err error) {
	next := at
	next.pegPlace = f.peg.enter(at.pegPlace)
	switch n.Tag {
	case tagContent:
		return f.content(next)
	case tagReasoning, tagToolID:
		next.tag = n.Tag
	case tagToolArgs:
		if len(f.peg.facts[n.Child].args) == 0 {
			full, err = f.arguments(at, n)
			return full, nil, err
		}
	case tagArg:
		if at.param == "" && len(f.peg.facts[n.Child].args) == 1 {
			next.param = f.peg.facts[n.Child].args[0]
		}
	case tagValue, tagStringValue:
		full, err = f.value(at, n)
		return full, nil, err
	}
	return f.node(next)
}
