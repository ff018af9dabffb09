package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// validator compiles a schema with another implementation.
func validator(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

func isValid(v *jsonschema.Schema, text string) bool {
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	return err == nil && v.Validate(instance) == nil
}

// A schemaMaker draws random schemas that use all keywords together.
type schemaMaker struct{ t *rapid.T }

func (m schemaMaker) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(m.t, label)
}

func (m schemaMaker) chance(percent int) bool {
	return rapid.IntRange(0, 99).Draw(m.t, "chance") < percent
}

var (
	someNames    = []string{"a", "b", "c", "ab", "x"}
	somePatterns = []string{"^a", "b$", "^[ab]+$", "[0-9]", "^x?y*$", "^(?:a|bb){1,3}$", `\bab\b`, "^.{2,3}$", `^\S+$`, `\s`, `^\w+$`}
	someNumbers  = []string{"0", "1", "2", "3", "5", "-1", "1.5", "10", "-2.5", "0.1", "100"}
	someValues   = []string{`null`, `true`, `false`, `0`, `1`, `2.5`, `-3`, `""`, `"a"`, `"ab"`, `"b"`, `[]`, `[1]`, `["a",true]`, `{}`, `{"a":1}`, `{"a":"a","b":null}`}
	someTypes    = []string{`"null"`, `"boolean"`, `"integer"`, `"number"`, `"string"`, `"array"`, `"object"`}
)

// schema draws a schema as text. Depth bounds the schemas inside.
func (m schemaMaker) schema(depth int) string {
	switch n := rapid.IntRange(0, 19).Draw(m.t, "kind"); {
	case n == 0:
		return "true"
	case n == 1 && depth < 3:
		return "false"
	case n == 2:
		return `{"$ref":"#/$defs/d"}`
	}
	var parts []string
	for range rapid.IntRange(1, 3).Draw(m.t, "keywords") {
		if part := m.keyword(depth); part != "" {
			parts = append(parts, part)
		}
	}
	return "{" + strings.Join(distinctKeys(parts), ",") + "}"
}

// distinctKeys keeps the first of the members with the same key.
func distinctKeys(parts []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, p := range strings.Split(strings.Join(parts, "\x00"), "\x00") {
		key, _, _ := strings.Cut(p, ":")
		if p != "" && !seen[key] {
			seen[key] = true
			out = append(out, p)
		}
	}
	return out
}

func (m schemaMaker) list(depth int) string {
	var out []string
	for range rapid.IntRange(1, 3).Draw(m.t, "branches") {
		out = append(out, m.schema(depth-1))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (m schemaMaker) members(names []string, depth int) string {
	var out []string
	for range rapid.IntRange(1, 3).Draw(m.t, "members") {
		name := rapid.SampledFrom(names).Draw(m.t, "name")
		quoted, _ := json.Marshal(name)
		out = append(out, string(quoted)+":"+m.schema(depth-1))
	}
	return "{" + strings.Join(distinctKeys(out), ",") + "}"
}

func (m schemaMaker) nameList() string {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(someNames), 0, 2, rapid.ID).Draw(m.t, "names")
	text, _ := json.Marshal(append([]string{}, names...))
	return string(text)
}

func (m schemaMaker) valueList() string {
	return "[" + strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(someValues), 1, 4, rapid.ID).Draw(m.t, "values"), ",") + "]"
}

func (m schemaMaker) count() string { return m.pick("count", "0", "1", "2", "3") }

// keyword draws one or more members of a schema, NUL between them.
func (m schemaMaker) keyword(depth int) string {
	scalar := []func() string{
		func() string { return `"type":` + m.pick("type", someTypes...) },
		func() string { return `"type":[` + m.pick("type", someTypes...) + `,"object"]` },
		func() string { return `"enum":` + m.valueList() },
		func() string { return `"const":` + m.pick("value", someValues...) },
		func() string { return `"minimum":` + m.pick("bound", someNumbers...) },
		func() string { return `"maximum":` + m.pick("bound", someNumbers...) },
		func() string { return `"exclusiveMinimum":` + m.pick("bound", someNumbers...) },
		func() string { return `"exclusiveMaximum":` + m.pick("bound", someNumbers...) },
		func() string { return `"multipleOf":` + m.pick("divisor", "1", "2", "3", "0.5", "0.1", "7") },
		func() string { return `"minLength":` + m.count() },
		func() string { return `"maxLength":` + m.count() },
		func() string { return `"pattern":` + quote(m.pick("pattern", somePatterns...)) },
		func() string {
			return "\"type\":\"string\"\x00\"format\":" + quote(m.pick("format", "date", "time", "ipv4", "uuid", "email", "hostname", "duration"))
		},
		func() string { return `"minItems":` + m.count() },
		func() string { return `"maxItems":` + m.count() },
		func() string { return `"uniqueItems":true` },
		func() string { return `"minProperties":` + m.count() },
		func() string { return `"maxProperties":` + m.count() },
		func() string { return `"required":` + m.nameList() },
		func() string {
			return `"dependentRequired":{` + m.pick("name", `"a"`, `"b"`, `"x"`) + `:` + m.nameList() + `}`
		},
	}
	nested := []func() string{
		func() string { return `"properties":` + m.members(someNames, depth) },
		func() string {
			return `"properties":` + m.members(someNames, depth) + "\x00\"required\":" + m.nameList()
		},
		func() string { return `"patternProperties":` + m.members(somePatterns, depth) },
		func() string { return `"additionalProperties":` + m.schema(depth-1) },
		func() string { return `"propertyNames":` + m.schema(depth-1) },
		func() string { return `"dependentSchemas":` + m.members(someNames, depth) },
		func() string { return `"items":` + m.schema(depth-1) },
		func() string { return `"prefixItems":` + m.list(depth) },
		func() string { return `"contains":` + m.schema(depth-1) },
		func() string {
			return `"contains":` + m.schema(depth-1) + "\x00\"minContains\":" + m.count() + "\x00\"maxContains\":" + m.count()
		},
		func() string { return `"allOf":` + m.list(depth) },
		func() string { return `"anyOf":` + m.list(depth) },
		func() string { return `"oneOf":` + m.list(depth) },
		func() string { return `"not":` + m.schema(depth-1) },
		func() string {
			return `"if":` + m.schema(depth-1) + "\x00\"then\":" + m.schema(depth-1) + "\x00\"else\":" + m.schema(depth-1)
		},
		func() string { return `"unevaluatedProperties":` + m.schema(depth-1) },
		func() string { return `"unevaluatedItems":` + m.schema(depth-1) },
	}
	if depth > 0 && m.chance(60) {
		return rapid.SampledFrom(nested).Draw(m.t, "keyword")()
	}
	return rapid.SampledFrom(scalar).Draw(m.t, "keyword")()
}

// document is a schema with a definition that others refer to, in a dialect
// that the other implementation is told.
func (m schemaMaker) document() []byte {
	root := m.schema(3)
	if root[0] != '{' {
		root = `{"allOf":[` + root + `]}`
	}
	return []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"d":` + m.schema(1) + `},` + strings.TrimPrefix(root, "{"))
}

// TestWalksAreValid is soundness: whatever a strict grammar admits, the schema
// admits too.
func TestWalksAreValid(t *testing.T) {
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		schema := schemaMaker{t}.document()
		v, err := validator(schema)
		if err != nil {
			t.Skip(err)
		}
		g, err := FromSchema(schema, Options{Strict: true, Unique: true})
		if err != nil {
			var u *Unenforceable
			var i *InvalidSchema
			if !errors.As(err, &u) && !errors.As(err, &i) {
				t.Fatalf("%s: %v", schema, err)
			}
			counts[err.Error()[strings.LastIndex(err.Error(), ":"):]]++
			return
		}
		counts["compiled"]++
		w := newWalker(g, rapid.Uint64().Draw(t, "seed"), 60)
		for range 10 {
			text := w.text()
			if err := g.Check([]byte(text)); err != nil {
				t.Fatalf("%s\nwalked to %s\nbut %v", schema, text, err)
			}
			if !isValid(v, text) {
				t.Fatalf("%s\nadmits %s", schema, text)
			}
		}
	})
	t.Log(counts)
}

// TestInstances is the other side: what the schema refuses, the grammar
// refuses, and best effort never refuses more than strict does.
func TestInstances(t *testing.T) {
	instance := rapid.SampledFrom(someValues)
	missed, valid := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		schema := schemaMaker{t}.document()
		v, err := validator(schema)
		if err != nil {
			t.Skip(err)
		}
		strict, strictErr := FromSchema(schema, Options{Strict: true, Unique: true})
		loose, err := FromSchema(schema, Options{Unique: true})
		if strictErr == nil && err != nil {
			t.Fatalf("%s: strict compiles, best effort does not: %v", schema, err)
		}
		if strictErr != nil {
			return
		}
		for range 10 {
			text := randomInstance(t, instance)
			admitted, ok := strict.Match([]byte(text)), isValid(v, text)
			if admitted && !ok {
				t.Fatalf("%s\nadmits %s", schema, text)
			}
			if admitted && !loose.Match([]byte(text)) {
				t.Fatalf("%s\nadmits %s when strict alone", schema, text)
			}
			if ok {
				valid++
			}
			if ok && !admitted {
				missed++
			}
		}
	})
	t.Logf("of %d valid instances %d are not admitted, mostly for the order of keys", valid, missed)
}

func randomInstance(t *rapid.T, scalar *rapid.Generator[string]) string {
	switch rapid.IntRange(0, 3).Draw(t, "instance") {
	case 0:
		return "[" + strings.Join(rapid.SliceOfN(scalar, 0, 4).Draw(t, "items"), ",") + "]"
	case 1:
		names := rapid.SliceOfNDistinct(rapid.SampledFrom(someNames), 0, 3, rapid.ID).Draw(t, "keys")
		var members []string
		for _, name := range names {
			members = append(members, fmt.Sprintf("%q:%s", name, scalar.Draw(t, "value")))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	return scalar.Draw(t, "value")
}
