package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/b3os/b3infer/grammar"
	"github.com/b3os/b3infer/grammar/mask"
	"github.com/b3os/b3infer/llama"
)

// modes are package grammar's names of the choices.
var modes = map[ToolMode]grammar.Mode{
	ToolAuto: grammar.Auto, ToolNone: grammar.Auto, ToolRequired: grammar.Required, ToolNamed: grammar.Named,
}

// grammar is the answers that the request allows, in an envelope.
func (r *Request) grammar(e *envelope) (*grammar.Grammar, error) {
	call := grammar.Call{
		Tools: grammarTools(r.callable()), Mode: modes[r.Choice.Mode], Name: r.Choice.Name,
		Parallel: !r.OneCall, Thinking: e.thinking,
	}
	if r.Format.Schema != "" && call.Mode == grammar.Auto {
		var err error
		options := grammar.Options{Strict: r.Format.Strict, Unique: true}
		if call.Answer, err = grammar.FromSchema([]byte(r.Format.Schema), options); err != nil {
			return nil, &formatError{err}
		}
	}
	return e.Grammar(call)
}

// A formatError is an error in the schema of Request.Format.
type formatError struct{ err error }

func (e *formatError) Error() string { return "format: " + e.err.Error() }

func (e *formatError) Unwrap() error { return e.err }

// flag is a truth value in a key.
func flag(values ...bool) []byte {
	out := make([]byte, len(values))
	for i, v := range values {
		if v {
			out[i] = 1
		}
	}
	return out
}

// envelopeKey names all that the form of answers depends on, but for what is asked of
// them.
func (r *Request) envelopeKey(p *llama.Prompt) mask.Key {
	parts := [][]byte{flag(r.OneCall, r.Thinking, p.Thinking, r.Choice.Mode == ToolRequired || r.Choice.Mode == ToolNamed)}
	for _, t := range r.callable() {
		parts = append(parts, []byte(t.Name), []byte(t.Parameters), flag(t.Strict))
	}
	return mask.NewKey(parts...)
}

// formKey names the grammar that the request asks for in an envelope.
func (r *Request) formKey(envelope mask.Key) mask.Key {
	return mask.NewKey(envelope[:], flag(r.Format.Strict, r.Choice.Mode == ToolNamed),
		[]byte(r.Choice.Name), []byte(r.Format.Schema))
}

// blame is the error for a form that cannot be had: for the part of the request that
// is the cause, if there is one.
func (r *Request) blame(err error) error {
	param := ""
	var inFormat *formatError
	var inTool *grammar.ToolError
	switch {
	case errors.Is(err, grammar.ErrNoCalls):
		return r.noCalls("cannot write tool calls")
	case errors.Is(err, mask.ErrTooComplex):
		return r.tooComplex(err)
	case errors.As(err, &inFormat):
		param = r.Format.Param
	case errors.As(err, &inTool):
		for _, t := range r.Tools {
			if t.Name == inTool.Name {
				param = t.Param
			}
		}
	}
	var invalid *grammar.InvalidSchema
	var unenforceable *grammar.Unenforceable
	switch {
	case errors.As(err, &invalid):
		return &Error{Code: CodeInvalid, Message: sentence(invalid), Param: under(param, invalid.Pointer())}
	case errors.As(err, &unenforceable):
		return &Error{Code: CodeUnsupported, Message: sentence(unenforceable), Param: under(param, unenforceable.Pointer())}
	}
	return fmt.Errorf("form of the answer: %w", err)
}

// sentence is an error as people read it.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// under is the path of what a JSON pointer leads to in the parameter.
func under(param, pointer string) string {
	var path strings.Builder
	path.WriteString(param)
	for _, name := range strings.Split(pointer, "/")[1:] {
		path.WriteByte('.')
		path.WriteString(strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	return path.String()
}

// tooComplex is the error for a form that masks cannot be computed for.
func (r *Request) tooComplex(err error) error {
	param := r.Format.Param
	if param == "" {
		param = "tools"
	}
	switch {
	case errors.Is(err, mask.ErrTooComplex):
		return &Error{Code: CodeUnsupported, Message: "The schema is too complex to hold an answer to", Param: param, Err: err}
	case errors.Is(err, mask.ErrDeadEnd):
		return &Error{Code: CodeUnsupported, Message: "The model's vocabulary cannot spell an answer that the schema allows", Param: param, Err: err}
	}
	return fmt.Errorf("form of the answer: %w", err)
}

// invalid is the error of a text that is no JSON Schema.
func invalid(schema []byte) error {
	var invalid *grammar.InvalidSchema
	if _, err := grammar.FromSchema(schema, grammar.Options{Unique: true}); errors.As(err, &invalid) {
		return invalid
	}
	return nil
}
