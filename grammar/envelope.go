package grammar

import (
	"errors"
	"fmt"
	"slices"
)

// A Tool is a function that a model may call.
type Tool struct {
	Name   string
	Schema []byte // of its arguments, which are an object whatever the schema says
	// Strict refuses what of the schema cannot be enforced; see Options.Strict.
	Strict bool
}

// A Mode says whether an answer has to be a call.
type Mode uint8

const (
	Auto     Mode = iota // text or Call.Answer, and behind text possibly calls
	Required             // a call of any tool
	Named                // a call of the tool Call.Name
)

// A Call says which answers are wanted.
type Call struct {
	Tools    []Tool
	Mode     Mode
	Name     string // of the tool, for Named
	Parallel bool   // several calls are allowed
	Thinking bool   // reasoning is allowed in front
	// Answer is what an answer without calls has to be, where free text will not do;
	// there is no text in front of calls then. Nil is free text.
	Answer *Grammar
	Limits Limits // for each tool
}

// ErrNoCalls is returned for templates that cannot write tool calls.
var ErrNoCalls = errors.New("the chat template has no tool calls")

// A ToolError is an error in one of the tools.
type ToolError struct {
	Name string
	Err  error // *InvalidSchema or *Unenforceable, as from FromSchema
}

func (e *ToolError) Error() string { return fmt.Sprintf("tool %q: %v", e.Name, e.Err) }

func (e *ToolError) Unwrap() error { return e.Err }

// An Envelope is the form of a template's answers, with or without tool calls, but
// for the arguments: what common/chat's parser of the answer says. It may be used by
// any number of goroutines.
type Envelope struct {
	peg        *peg
	generation string
	preserved  []string  // longest first
	notation   *notation // of arguments; nil for JSON
	manner     manner
}

// ParseEnvelope reads common/chat's serialized parser of answers
// (common_chat_params.parser), made for the tools that Skeleton gives or for none.
// The generation prompt is the start of the assistant's turn, which the parser reads
// first and grammars leave out. Preserved are the texts that stand as Token in
// grammars, since they may be tokens of their own in the vocabulary; without them
// a grammar is text alone. The error says what is wrong with the parser.
func ParseEnvelope(parser []byte, generationPrompt string, preserved []string) (*Envelope, error) {
	p, err := parsePeg(parser)
	if err != nil {
		return nil, fmt.Errorf("parser of the chat template: %w", err)
	}
	preserved = slices.DeleteFunc(slices.Clone(preserved), func(s string) bool { return s == "" })
	slices.SortFunc(preserved, func(a, b string) int { return len(b) - len(a) })
	e := &Envelope{peg: p, generation: generationPrompt, preserved: preserved}
	e.notation = e.findNotation()
	return e, nil
}

// Calls tells whether the template can write calls of the tools.
func (e *Envelope) Calls() bool { return e.peg.facts[e.peg.Root].call }

// Grammar is the answers that call asks for, behind the generation prompt. Its
// tools are those that the envelope was made for, or some of them. The error is
// ErrNoCalls, a *ToolError, or says what of the template is not understood.
func (e *Envelope) Grammar(call Call) (*Grammar, error) {
	if !e.Calls() && (call.Answer == nil || call.Mode != Auto) {
		return nil, ErrNoCalls
	}
	if call.Mode == Named && !slices.ContainsFunc(call.Tools, func(t Tool) bool { return t.Name == call.Name }) {
		return nil, fmt.Errorf("there is no tool %q", call.Name)
	}
	body, f, err := e.answer(call, call.Thinking)
	if body == nil && err == nil && !call.Thinking {
		// The prompt leaves the reasoning open all the same.
		body, f, err = e.answer(call, true)
	}
	if err != nil {
		return nil, err
	}
	if body == nil {
		return nil, fmt.Errorf("parser of the chat template: it does not read the generation prompt %q", e.generation)
	}
	f.rules.rules[0].Body = f.finish(body)
	g := &Grammar{Rules: f.rules.rules, relaxed: f.relaxed}
	if !g.trim() {
		return nil, fmt.Errorf("%w as asked for", ErrNoCalls)
	}
	if rule := g.leftRecursive(); rule >= 0 {
		return nil, fmt.Errorf("parser of the chat template: left recursion in %s", g.Rules[rule].Name)
	}
	return g, nil
}

// answer is what may follow the generation prompt, or nil.
func (e *Envelope) answer(call Call, reasoning bool) (Node, *former, error) {
	f := &former{e: e, peg: e.peg, call: call, reasoning: reasoning, meter: &meter{left: call.Limits.withDefaults().Work}, tools: map[string]*arguments{}, untils: map[string]*DFA{}}
	f.rules.reserve("root")
	parts, err := f.answers()
	if call.Answer != nil && call.Mode == Auto && e.Calls() && len(call.Tools) > 0 && err == nil {
		// Calls come in the place of the value, as where there has to be one.
		var calls []Node
		f.call.Mode = Required
		calls, err = f.answers()
		parts = append(parts, calls...)
	}
	if len(parts) == 0 || err != nil {
		return nil, f, err
	}
	return either(parts...), f, nil
}

// answers are what may follow the generation prompt.
func (f *former) answers() ([]Node, error) {
	full, stopped, err := f.node(spot{pegPlace: pegPlace{id: f.peg.Root}})
	if err != nil {
		return nil, err
	}
	var parts []Node
	for _, n := range []Node{full, stopped} {
		if n == nil {
			continue
		}
		if n = behind(n, f.e.generation); n != nil {
			parts = append(parts, n)
		}
	}
	return parts, nil
}

// Skeleton is the tools as common/chat may see them when it makes the parser of
// answers: the parameters in order, each a string if it may be one, else a number,
// which stands for all JSON. None is required, so that the parser takes them in
// any order; grammars see to it that required ones are there. A tool whose schema
// is not understood has its error, as from FromSchema.
func Skeleton(tools []Tool, limits Limits) ([]Tool, error) {
	out := make([]Tool, len(tools))
	for i, t := range tools {
		a, err := newArguments(t, manner{}, limits)
		if err != nil {
			return nil, &ToolError{t.Name, err}
		}
		out[i] = Tool{Name: t.Name, Schema: a.skeleton(), Strict: t.Strict}
	}
	return out, nil
}
