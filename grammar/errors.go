package grammar

import (
	"errors"
	"fmt"
)

// ErrNoGBNF is returned for grammars that GBNF cannot spell: large bags,
// Uniques, and tokens whose text does not stand in angle brackets.
var ErrNoGBNF = errors.New("the grammar has no GBNF form")

// Unenforceable says that a part of a schema is valid and cannot be kept to:
// no grammar for it is known, no value satisfies it, or it is above a limit.
type Unenforceable struct {
	Path    string // JSON pointer to the schema that is to blame; empty for the root
	Keyword string // keyword in that schema, if one is to blame
	Reason  string
}

func (e *Unenforceable) Error() string { return describe(e.Pointer(), e.Reason) }

// Pointer is the JSON pointer to the keyword, or to the schema where no keyword
// is to blame.
func (e *Unenforceable) Pointer() string { return pointerTo(e.Path, e.Keyword) }

// InvalidSchema says that a text is not a JSON Schema, or refers to what is not
// in it.
type InvalidSchema struct {
	Path    string // JSON pointer to the schema that is to blame; empty for the root
	Keyword string // keyword in that schema, if one is to blame
	Reason  string
}

func (e *InvalidSchema) Error() string { return describe(e.Pointer(), e.Reason) }

// Pointer is the JSON pointer to the keyword, or to the schema where no keyword
// is to blame.
func (e *InvalidSchema) Pointer() string { return pointerTo(e.Path, e.Keyword) }

func pointerTo(path, keyword string) string {
	if keyword == "" {
		return path
	}
	return path + "/" + escapePointer(keyword)
}

func describe(pointer, reason string) string {
	if pointer == "" {
		return "schema: " + reason
	}
	return fmt.Sprintf("schema at %s: %s", pointer, reason)
}

// A SyntaxError says where a GBNF text is wrong.
type SyntaxError struct {
	Line   int // counted from 1
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("grammar, line %d: %s", e.Line, e.Reason) }
