package grammar

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestUnique has arrays without repetitions out of many values.
func TestUnique(t *testing.T) {
	tests := []struct {
		name, schema string
		yes, no      []string
	}{
		{"strings", `{"items":{"type":"string"},"uniqueItems":true,"type":"array"}`,
			[]string{`[]`, `["a"]`, `["a","b",""]`, `["a","\\","\""]`}, []string{`["a","a"]`, `["","b",""]`, `["a",1]`}},
		{"counted", `{"type":"array","items":{"type":"string","pattern":"^[a-z]$"},"uniqueItems":true,"minItems":2,"maxItems":3}`,
			[]string{`["a","b"]`, `["c","a","b"]`}, []string{`["a"]`, `["a","b","a"]`, `["a","b","c","d"]`}},
		{"used up", `{"type":"array","items":{"type":["string","boolean"],"pattern":"^(a|[b-z]b)*$","minLength":2,"maxLength":3},"uniqueItems":true,"minItems":52}`,
			nil, []string{`["aa","aa"]`, `[]`}},
		{"numbers", `{"type":"array","items":{"type":"number"},"uniqueItems":true}`,
			[]string{`[1,10,1.5,-1,0]`, `[123456789012345,-1234567.00000001]`},
			[]string{`[1,1]`, `[1,1.0]`, `[1.5,1.50]`, `[10,1e1]`, `[0,-0]`, `[1,2,1]`, `[9007199254740992,9007199254740993]`}},
		{"anything", `{"type":"array","uniqueItems":true}`,
			[]string{`[null,true,false,0,"",[],{},"null",[null],{"a":0},{"a":false}]`, `[[[]],[[],[]]]`},
			[]string{`[null,null]`, `[[1],[1]]`, `[{"a":1},{"a":1}]`, `[{"a":1,"b":2},{"b":2,"a":1}]`, `[{"a":1,"a":2},{"a":2}]`}},
		{"objects", `{"type":"array","uniqueItems":true,"items":{"properties":{"b":{"type":"integer"},"a":{"type":"string"}},"required":["b"],"type":"object"}}`,
			[]string{`[{"b":1},{"b":2},{"b":1,"a":"x"},{"b":1,"a":"x","z":null}]`},
			[]string{`[{"b":1},{"b":1}]`, `[{"b":1,"a":"x"},{"a":"x","b":1}]`, `[{"b":1,"y":0,"z":0},{"b":1,"z":0,"y":0}]`}},
		{"kinds of object", `{"type":"array","uniqueItems":true,"items":{"anyOf":[
				{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"string"}},"additionalProperties":false},
				{"type":"object","properties":{"y":{"type":"string","maxLength":5},"z":{"type":"null"}}}]}}`,
			[]string{`[{"x":1,"y":""},{"y":""},{"y":"","z":null},{"y":"a","k":7}]`},
			[]string{`[{"y":""},{"y":""}]`, `[{"x":1,"y":""},{"y":"","x":1}]`}},
		{"tuple", `{"type":"array","uniqueItems":true,"prefixItems":[{"type":"boolean"},{"type":"boolean"}]}`,
			[]string{`[true,false]`, `[false]`, `[true,false,1,"true"]`}, []string{`[true,true]`, `[true,false,true]`}},
		{"contained", `{"type":"array","uniqueItems":true,"items":{"type":["string","integer"]},"contains":{"type":"integer"}}`,
			[]string{`["a",1]`, `[2,1]`}, []string{`["a"]`, `[1,1]`, `["a","a",1]`}},
		{"nested", `{"type":"array","uniqueItems":true,"items":{"type":"array","uniqueItems":true,"items":{"type":"string"}},"maxItems":1}`,
			[]string{`[["a","b"]]`, `[]`}, []string{`[["a","a"]]`, `[["a"],["b"]]`}},
		{"beside others", `{"type":"array","items":{"type":"array","uniqueItems":true,"items":{"type":"string"}}}`,
			[]string{`[["a","b"],["a","b"],["a"]]`}, []string{`[["a"],["a","a"]]`}},
		{"members", `{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"integer"},"minProperties":3}`,
			[]string{`{"a":0,"b":1,"c":2}`, `{"b":1,"c":2,"d":3,"e":4}`}, []string{`{"b":1,"c":2}`, `{"b":1,"c":2,"b":3}`, `{"a":0,"b":1,"b":1}`}},
		{"members of a pattern", `{"type":"object","patternProperties":{"^[a-z][0-9]$":{}},"additionalProperties":false,"minProperties":2,"maxProperties":3}`,
			[]string{`{"a0":0,"b0":1}`, `{"a1":0,"b2":1,"a2":[]}`}, []string{`{"a1":0}`, `{"a1":0,"a1":1}`, `{"a1":0,"a2":1,"a3":2,"a4":3}`, `{"a":0,"b":1}`}},
		{"members of a great pattern", `{"type":"object","patternProperties":{"^[a-z]{2}$":{}},"additionalProperties":false,"minProperties":676}`,
			nil, []string{`{"aa":1}`}},
		{"tree", `{"type":"object","properties":{"name":{"type":"string"},"of":{"type":"array","uniqueItems":true,"items":{"$ref":"#"}}},"required":["name"],"additionalProperties":false}`,
			[]string{`{"name":"a","of":[{"name":"b"},{"name":"c","of":[{"name":"b"}]}]}`},
			[]string{`{"name":"a","of":[{"name":"b"},{"name":"b"}]}`, `{"name":"a","of":[{"name":"b"},{"name":"c","of":[{"name":"b"},{"name":"b"}]}]}`}},
	}
	for _, test := range tests {
		g, err := FromSchema([]byte(test.schema), Options{Strict: true, Unique: true})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if _, err := g.GBNF(); !errors.Is(err, ErrNoGBNF) {
			t.Errorf("%s as GBNF: %v", test.name, err)
		}
		got, want := map[string]bool{}, map[string]bool{}
		for _, text := range test.yes {
			got[text], want[text] = g.Match([]byte(text)), true
		}
		for _, text := range test.no {
			got[text], want[text] = g.Match([]byte(text)), false
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// TestCountTexts counts the texts that there are, or many.
func TestCountTexts(t *testing.T) {
	for source, want := range map[string]int{
		`{"pattern":"^[a-z]{2}$"}`: 26 * 26, `{"pattern":"^(ab)*$","maxLength":7,"minLength":3}`: 2, `{"pattern":"^a*$","maxLength":9}`: 10,
		`{}`: manyTexts, `{"maxLength":1}`: manyTexts, `{"pattern":"^a*$"}`: manyTexts, `{"pattern":"^a?b?$"}`: 4, `{"maxLength":0}`: 1,
	} {
		c := newCompiler(Options{Unique: true})
		doc, err := c.parse([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		c.doc = doc
		s, err := c.shapeOf(c.schemaTerm(doc.root, &scope{anchors: map[string]*schema{}}))
		if err != nil || len(s.strings) != 1 {
			t.Fatalf("%s: %v %v", source, s, err)
		}
		if got := s.strings[0].count(); got != want {
			t.Errorf("%s: got %d, want %d", source, got, want)
		}
	}
}

// TestTooFewItems has arrays that could run out of different items.
func TestTooFewItems(t *testing.T) {
	const want = "schema at /uniqueItems: asks for unique items and may run out of values for them"
	for _, schema := range []string{
		`{"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false}}`,
		`{"type":"array","uniqueItems":true,"prefixItems":[{"type":"string"},{"const":"x"}]}`,
		`{"type":"array","uniqueItems":true,"items":{"type":"string"},"contains":{"const":"x"}}`,
		`{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"array","maxItems":0}}`,
	} {
		_, err := FromSchema([]byte(schema), Options{Strict: true, Unique: true})
		if diff := cmp.Diff(want, errText(err)); diff != "" {
			t.Errorf("%s: %s", schema, diff)
		}
		g, err := FromSchema([]byte(schema), Options{Unique: true})
		if err != nil || len(g.Relaxed()) != 1 {
			t.Errorf("%s: best effort: %v %v", schema, g.Relaxed(), err)
		}
	}
}

// TestUniqueMismatch says where an item comes again.
func TestUniqueMismatch(t *testing.T) {
	g, err := FromSchema([]byte(`{"type":"array","uniqueItems":true,"items":{"type":["string","integer"]}}`), Options{Unique: true})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`["ab","ab"]`: "byte 9: expected an item that differs from the others",
		`[12,12]`:     "byte 6: expected [0-9]",
		`["a",12,"b"`: `byte 11: expected "," or "]"`,
	} {
		if diff := cmp.Diff(want, errText(g.Check([]byte(text)))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// TestOneSpelling shuffles the keys of items: in a Unique no other text of a
// value is admitted beside it.
func TestOneSpelling(t *testing.T) {
	shuffled := 0
	rapid.Check(t, func(t *rapid.T) {
		m := schemaMaker{t}
		schema := `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"d":` + m.schema(1) + `},"type":"array","uniqueItems":true,"items":` +
			`{"type":["object","array"],"anyOf":` + m.list(3) + `}}`
		g, err := FromSchema([]byte(schema), Options{Strict: true, Unique: true})
		if err != nil {
			return
		}
		w := newWalker(g, rapid.Uint64().Draw(t, "seed"), 100)
		for range 10 {
			array, err := parseJSON([]byte(w.text()), 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range array.items {
				other := shuffleKeys(item, w.rand)
				if other.compact() == item.compact() {
					continue
				}
				shuffled++
				if text := "[" + item.compact() + "," + other.compact() + "]"; g.Match([]byte(text)) {
					t.Fatalf("%s\nadmits %s", schema, text)
				}
			}
		}
	})
	if shuffled < 50 && !testing.Short() {
		t.Errorf("only %d items had another spelling", shuffled)
	}
}

func shuffleKeys(v value, r *rand.Rand) value {
	out := value{kind: v.kind, text: v.text}
	for _, item := range v.items {
		out.items = append(out.items, shuffleKeys(item, r))
	}
	for _, i := range r.Perm(len(v.members)) {
		out.members = append(out.members, member{v.members[i].key, shuffleKeys(v.members[i].value, r)})
	}
	return out
}
