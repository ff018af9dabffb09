package handlers

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/b3os/b3infer/engine"
)

// How a wire type is written: a struct with json tags. An optional field is a
// pointer, a slice, a map or one of the types below, so that null and absence
// look the same; a required one is a pointer too, and its absence a fault that
// the type's own check finds. Unions implement UnmarshalJSONFrom by the kind
// of the next value. What the type says is checked here, what it does not say
// (ranges, required fields, rules across fields) in the dialect's toRequest.

// A fault is what is wrong with a request's body. Its text follows the path in
// the message: "temperature" "must be between 0 and 2".
type fault struct {
	code engine.Code
	path string // dotted, with numeric indexes; empty for the body itself
	text string
}

func (f *fault) Error() string { return strings.TrimSpace(f.path + " " + f.text) }

// invalid is a fault in the value at path.
func invalid(path, format string, args ...any) *fault {
	return &fault{engine.CodeInvalid, path, fmt.Sprintf(format, args...)}
}

func missing(path string) *fault { return invalid(path, "is required") }

func unsupported(path string) *fault {
	return &fault{engine.CodeUnsupported, path, "is not supported on this node"}
}

// within puts a fault of an element under the path of its list.
func (f *fault) within(list string, index int) *fault {
	return f.under(list + "." + strconv.Itoa(index))
}

// under puts a fault of a value under the value's path.
func (f *fault) under(path string) *fault {
	if path != "" && f.path != "" {
		path += "."
	}
	return &fault{f.code, path + f.path, f.text}
}

// public is the fault as an error for the client.
func (f *fault) public() *engine.Error {
	path := clip(f.path)
	subject := path
	if subject == "" {
		subject = "the body"
	}
	return &engine.Error{Code: f.code, Message: subject + " " + f.text, Param: path}
}

// maxEcho bounds what of a client's own text comes back in an error.
const maxEcho = 256

func clip(s string) string {
	if len(s) <= maxEcho {
		return s
	}
	return strings.ToValidUTF8(s[:maxEcho], "") + "…"
}

// decode reads a body into a wire type. It refuses what is not JSON, duplicate
// keys, invalid UTF-8, unknown keys at any depth and values of another type. A
// body that is null is one of those.
func decode(body []byte, into any, opts ...json.Options) error {
	err := json.Unmarshal(body, into, opts...)
	switch {
	case err != nil:
		return decodeFault(err).public()
	case jsontext.Value(body).Kind() == 'n':
		return invalid("", "must be an object").public()
	}
	return nil
}

// strict makes decode refuse unknown keys.
var strict = json.RejectUnknownMembers(true)

// decodeFault says an error of package json in our words.
func decodeFault(err error) *fault {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		path := dotted(e.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return invalid(path, "is given twice")
		}
		return &fault{engine.CodeInvalid, path, fmt.Sprintf("is not valid JSON: %s at byte %d", clip(e.Err.Error()), e.ByteOffset)}
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return invalid("", "cannot be read: %s", clip(err.Error()))
	}
	path := dotted(e.JSONPointer)
	if f, ok := errors.AsType[*fault](e.Err); ok {
		return f.under(path)
	}
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		return unsupported(path)
	case errors.Is(e.Err, strconv.ErrRange):
		return invalid(path, "is out of range")
	}
	return invalid(path, "must be %s", typeWords(e.GoType))
}

// dotted is a JSON pointer as param has it: messages.1.content.
func dotted(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
		if b.Len() > maxEcho {
			break
		}
	}
	return b.String()
}

// typeWords names the JSON that a Go type is read from.
func typeWords(t reflect.Type) string {
	if t == nil {
		return "of another type"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	}
	return "of another type"
}

// text is a string that may not be null.
type text string

func (t *text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != '"' {
		return invalid("", "must be a string")
	}
	return json.UnmarshalDecode(d, (*string)(t))
}

// integer is a whole number, also where it is written as 1.0 or 1e3, as JSON
// Schema has it. Beyond 64 bits it is refused.
type integer int64

func (i *integer) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, inside, err := readInteger(d)
	if err == nil && !inside {
		return invalid("", "is out of range")
	}
	*i = integer(n)
	return err
}

// limit is an integer for which too large and very large are the same: beyond
// 64 bits it is the largest or smallest there is.
type limit int64

func (l *limit) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, _, err := readInteger(d)
	*l = limit(n)
	return err
}

// readInteger reads a whole number and tells whether it fits 64 bits; one that
// does not becomes the nearest that does.
func readInteger(d *jsontext.Decoder) (n int64, inside bool, err error) {
	if d.PeekKind() != '0' {
		return 0, false, invalid("", "must be an integer")
	}
	literal, err := d.ReadValue()
	if err != nil {
		return 0, false, err
	}
	n, err = strconv.ParseInt(string(literal), 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return n, err == nil, nil
	}
	f, err := strconv.ParseFloat(string(literal), 64)
	switch {
	case err == nil && f != math.Trunc(f):
		return 0, false, invalid("", "must be an integer")
	case f >= math.MaxInt64:
		return math.MaxInt64, false, nil
	case f <= math.MinInt64:
		return math.MinInt64, false, nil
	}
	return int64(f), true, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// isSet tells whether v is there and not null.
func isSet(v jsontext.Value) bool { return v != nil && v.Kind() != 'n' }

// value is *s, or "" for nil.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
