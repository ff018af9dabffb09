package handlers

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/b3os/b3infer/engine"
)

// The API's limits of a JSON Schema. The engine has the same ones; here they are
// checked before the prompt is made, since a schema above them often makes a
// prompt that is too long, which would be the wrong thing to say.
const (
	maxSchemaBytes = 64 << 10 // of the compact serialization
	maxSchemaDepth = 32       // nested objects and arrays, the schema itself is 1
)

// schema is the text of a JSON Schema as the client wrote it; empty for null.
type schema string

func (s *schema) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case 'n':
		return d.SkipValue()
	case '{':
		text, err := d.ReadValue()
		*s = schema(text)
		return err
	}
	return invalid("", "must be a JSON Schema, which is an object here")
}

// checkSchemas finds schemas above the limits.
func checkSchemas(r *engine.Request) *fault {
	for _, t := range r.Tools {
		if f := checkSchema(t.Param, t.Parameters); f != nil {
			return f
		}
	}
	return checkSchema(r.Format.Param, r.Format.Schema)
}

func checkSchema(path, text string) *fault {
	if n := compactLen(text); n > maxSchemaBytes {
		return &fault{engine.CodeUnsupported, path, fmt.Sprintf("has %d bytes in compact form; at most %d are supported", n, maxSchemaBytes)}
	}
	if n := depthOf(text); n > maxSchemaDepth {
		return &fault{engine.CodeUnsupported, path, fmt.Sprintf("is nested %d levels deep; at most %d are supported", n, maxSchemaDepth)}
	}
	return nil
}

// compactLen is the length of a JSON text without white space and needless
// escapes. Where that cannot be above maxSchemaBytes, it is the text's own length.
func compactLen(text string) int {
	if len(text) <= maxSchemaBytes {
		return len(text)
	}
	compact := jsontext.Value(text)
	_ = compact.Format() // the text was read as JSON, so it is valid
	return len(compact)
}

// depthOf is how deep the objects and arrays of a JSON text are nested.
func depthOf(text string) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
