package grammar

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptions(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},"b":{"enum":[[1,2]]}},"required":["a","b"],"additionalProperties":{"type":"null"}}`)
	g, err := FromSchema(schema, Options{Strict: true, Comma: ", ", Colon: ": "})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"a": [1, 2], "b": [1, 2], "c": null}`: true,
		`{"a":[1,2],"b":[1,2]}`:                 false,
		`{"a": [1,2], "b": [1, 2]}`:             false,
	} {
		if got := g.Match([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestBestEffort has a schema with much that cannot be enforced. Each place is
// listed once, and the rest still holds.
func TestBestEffort(t *testing.T) {
	schema := []byte(`{
		"type": "object",
		"properties": {
			"tags": {"type": "array", "items": {"$ref": "#/$defs/name"}, "uniqueItems": true, "maxItems": 2},
			"name": {"$ref": "#/$defs/name"},
			"id": {"type": "integer", "multipleOf": 123456789, "minimum": 1},
			"not": {"type": "array", "not": {"uniqueItems": true}}
		},
		"patternProperties": {"(x)\\1": {"type": "null"}},
		"required": ["name"],
		"additionalProperties": {"type": "boolean"},
		"$defs": {"name": {"type": "string", "pattern": "^a(?=b)", "minLength": 2}}
	}`)
	g, err := FromSchema(schema, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Unenforceable{
		{"", "patternProperties", errBackReference.Error()},
		{"/$defs/name", "pattern", errLookaround.Error()},
		{"/properties/tags", "uniqueItems", errUnique.Error()},
		{"/properties/id", "multipleOf", errStates.Error()},
		{"/properties/not/not", "", errComplement.Error()},
	}
	sortByPath := cmp.Transformer("sort", func(us []Unenforceable) map[Unenforceable]bool {
		m := map[Unenforceable]bool{}
		for _, u := range us {
			m[u] = true
		}
		return m
	})
	if diff := cmp.Diff(want, g.Relaxed(), sortByPath); diff != "" || len(want) != len(g.Relaxed()) {
		t.Error(diff, g.Relaxed())
	}
	for text, want := range map[string]bool{
		`{"tags":["ab","ab"],"name":"xy","id":7,"not":[1,1],"xx":null,"y":true}`: true,
		`{"name":"x"}`:          false,
		`{"tags":["ab"]}`:       false,
		`{"name":"xy","id":0}`:  false,
		`{"name":"xy","not":1}`: false,
	} {
		if got := g.Match([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestLimits(t *testing.T) {
	schema := []byte(`{"properties":{"a":{"type":"string","pattern":"^[a-z]{3}-[0-9]{3}$"},"b":{"anyOf":[{"type":"array","minItems":1},{"type":"array","uniqueItems":true,"maxItems":1}]}}}`)
	if _, err := FromSchema(schema, Options{Strict: true}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		limits Limits
		want   Unenforceable
	}{
		{Limits{Bytes: 100}, Unenforceable{Reason: "has 165 bytes, more than 100"}},
		{Limits{Depth: 4}, Unenforceable{Reason: "is nested deeper than 4 levels"}},
		{Limits{DFA: 5}, Unenforceable{"/properties/a", "pattern", errStates.Error()}},
		{Limits{Branches: 1}, Unenforceable{"/properties/b", "anyOf", errBranches.Error()}},
		{Limits{Rules: 1}, Unenforceable{"", "", errRules.Error()}},
		{Limits{Work: 1000}, Unenforceable{"/properties/a", "pattern", errWork.Error()}},
	}
	for _, test := range tests {
		_, err := FromSchema(schema, Options{Strict: true, Limits: test.limits})
		var got *Unenforceable
		if !errors.As(err, &got) {
			t.Errorf("%+v: %v", test.limits, err)
		} else if diff := cmp.Diff(test.want, *got); diff != "" {
			t.Errorf("%+v: %s", test.limits, diff)
		}
	}
}

func TestInvalidSchemas(t *testing.T) {
	tests := []struct{ schema, want string }{
		{`{`, "schema: is no JSON text: byte 1: unexpected end"},
		{`{"type":"string","type":"null"}`, `schema: is no JSON text: byte 30: key "type" comes twice`},
		{`[]`, "schema: a schema is an object or a boolean, not array"},
		{`{"properties":{"a":1}}`, "schema at /properties/a: a schema is an object or a boolean, not number"},
		{`{"properties":[]}`, "schema at /properties: must be an object of schemas"},
		{`{"allOf":{}}`, "schema at /allOf: must be an array of schemas"},
		{`{"anyOf":[]}`, "schema at /anyOf: must have at least one schema"},
		{`{"items":{"minimum":"1"}}`, "schema at /items/minimum: must be a number"},
		{`{"multipleOf":0}`, "schema at /multipleOf: must be above 0"},
		{`{"maxLength":-1}`, "schema at /maxLength: must be a whole number, not below 0"},
		{`{"minItems":1.5}`, "schema at /minItems: must be a whole number, not below 0"},
		{`{"required":true}`, "schema at /required: must be an array of property names"},
		{`{"enum":1}`, "schema at /enum: must be an array"},
		{`{"pattern":1}`, "schema at /pattern: must be a string"},
		{`{"$ref":1}`, "schema at /$ref: must be a string"},
		{`{"$ref":"#/a~1b","a/b":7}`, "schema at /a~1b: a schema is an object or a boolean, not number"},
		{`{"type":[]}`, "schema at /type: must be the name of a type or a list of such"},
	}
	for _, test := range tests {
		for _, strict := range []bool{true, false} {
			_, err := FromSchema([]byte(test.schema), Options{Strict: strict})
			var invalid *InvalidSchema
			if diff := cmp.Diff(test.want, errText(err)); diff != "" || !errors.As(err, &invalid) {
				t.Errorf("%s: %T: %s", test.schema, err, diff)
			}
		}
	}
}
