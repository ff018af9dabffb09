package grammar

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const gemma = "google-gemma-4-31B-it"

// gemmaCalls gives, for a strict tool's schema, the grammar of one call in Gemma's
// notation, and the envelope that reads it.
func gemmaCalls(t testing.TB) (*Envelope, func(schema string, strict bool) (*Grammar, error)) {
	t.Helper()
	e, err := findEnvelope(t, envelopeCases(t), gemma, true, false, false).parse()
	if err != nil {
		t.Fatal(err)
	}
	return e, func(schema string, strict bool) (*Grammar, error) {
		return e.Grammar(Call{Mode: Required, Tools: []Tool{{Name: "get_weather", Schema: []byte(schema), Strict: strict}}})
	}
}

// gemmaCall is a call with arguments in Gemma's notation. For the eye, marks are ~.
func gemmaCall(arguments string) string {
	return "<|tool_call>call:get_weather" + strings.ReplaceAll(arguments, "~", `<|"|>`) + "<tool_call|>"
}

func TestNotation(t *testing.T) {
	_, compile := gemmaCalls(t)
	for _, tt := range []struct{ schema, yes, not string }{
		{
			`{"properties":{"text":{"type":"string"},"n":{"type":"number"},"ok":{"type":["boolean","null"]}},"required":["text"],"additionalProperties":false}`,
			`{text:~~} {text:~a"b\c{}:,~} {n:-1.5e3,ok:null,text:~a~} {ok:true,text:~<|"|~} {text:~<|"<|~}`,
			`{} {text:a} {text:"a"} {text:~a} {"text":~a~} {text:~a~~} {text:~a~,n:1} {n:01,text:~~} {ok:True,text:~~} {text: ~a~} {text:~a~,} {text:~a~,other:1}`,
		},
		{ // objects in arrays, values of several kinds
			`{"properties":{"items":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"object","properties":{"sku":{"pattern":"^[A-Z]{2}$","type":"string"},` +
				`"count":{"enum":[1,"two",null]}},"required":["sku"],"additionalProperties":false}}},"required":["items"],"additionalProperties":false}`,
			`{items:[{sku:~AB~}]} {items:[{count:1,sku:~AB~},{count:~two~,sku:~CD~}]} {items:[{count:null,sku:~AB~}]}`,
			`{items:[]} {items:[{}]} {items:[{sku:~ab~}]} {items:[{count:2,sku:~AB~}]} {items:[{count:two,sku:~AB~}]} {items:[{sku:~AB~},{sku:~AB~},{sku:~AB~}]} {items:[{sku:~AB~},]}`,
		},
		{ // lengths, in characters; formats; constants
			`{"properties":{"a":{"type":"string","minLength":2,"maxLength":3},"b":{"type":"string","format":"date"},"c":{"const":{"z":["\"\n",{}],"y":0}}},"additionalProperties":false}`,
			"{} {a:~ab~} {a:~äöü~} {a:~\"\\\"~} {b:~2024-02-29~} {a:~<|\"~,c:{y:0,z:[~\"\n~,{}]}}",
			"{a:~a~} {a:~abcd~} {b:~2023-02-29~} {c:{z:[~\"\n~,{}],y:0}} {c:{y:0,z:[~\\\"\\n~,{}]}}",
		},
		{ // free keys
			`{"properties":{"b":{"type":"integer"}},"patternProperties":{"^x":{"type":"string"}},"additionalProperties":{"type":"boolean"},"maxProperties":2}`,
			`{} {b:1} {b:1,c:true} {xa:~v~,"q",{:false} {Ä:true} {<|"|>:true}`,
			`{c:1} {xa:true} {b:1,c:true,d:true} {:true} {c::true} {c}:true} {xa:v}`,
		},
		{ // no item twice: of few texts, of tuples of them, of many texts
			`{"properties":{"few":{"type":"array","uniqueItems":true,"items":{"enum":["a","b",1,""]}},` +
				`"pair":{"type":"array","uniqueItems":true,"maxItems":2,"prefixItems":[{"enum":["a","b"]},{"enum":["a","b"]}]},` +
				`"many":{"type":"array","uniqueItems":true,"items":{"type":"string"}}},"additionalProperties":false}`,
			`{} {few:[]} {few:[~b~,1,~~,~a~]} {few:[1],many:[~~,~a~,~aa~],pair:[~b~,~a~]} {pair:[~a~]}`,
			`{few:[~a~,~a~]} {few:[~c~]} {many:[~a~,~a~]} {pair:[~b~,~b~]} {pair:[~a~,~b~,~c~]}`,
		},
		{ // recursion; any value
			`{"properties":{"of":{"type":"array","items":{"$ref":"#"}},"any":{}},"required":["of"],"additionalProperties":false}`,
			`{of:[]} {any:{a:[1,~x~,{}],b:null},of:[{of:[]},{any:~~,of:[]}]}`,
			`{of:[{}]} {of:[],any:1} {any:"x",of:[]}`,
		},
		{ // keys that cannot be written are left out
			`{"properties":{"a:b":{},"c":{"type":"null"}," d":{},"":{},"e}":{}},"additionalProperties":false}`,
			`{} {c:null}`, `{a:b:1} { d:1} {:1} {e}:1}`,
		},
	} {
		g, err := compile(tt.schema, true)
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		for _, arguments := range splitCases(tt.yes) {
			if err := g.Check([]byte(gemmaCall(arguments))); err != nil {
				t.Errorf("%s\nrefuses %s: %v", tt.schema, arguments, err)
			}
		}
		for _, arguments := range splitCases(tt.not) {
			if g.Match([]byte(gemmaCall(arguments))) {
				t.Errorf("%s\nadmits %s", tt.schema, arguments)
			}
		}
	}
}

// splitCases separates objects by the blanks between them.
func splitCases(text string) []string {
	parts := strings.Split(text, "} {")
	for i := range parts {
		if i > 0 {
			parts[i] = "{" + parts[i]
		}
		if i < len(parts)-1 {
			parts[i] += "}"
		}
	}
	return parts
}

// TestNotationRefuses: what needs a key that cannot be written is refused, whether
// or not the tool is strict, with the schema that needs it.
func TestNotationRefuses(t *testing.T) {
	_, compile := gemmaCalls(t)
	for _, tt := range []struct{ schema, pointer string }{
		{`{"properties":{"a:b":{}},"required":["a:b"]}`, "/required"},
		{`{"properties":{"x":{"type":"object","required":[" y"]}},"required":["x"]}`, "/properties/x/required"},
		{`{"properties":{"x":{"enum":[{"":1}]}},"required":["x"]}`, "/properties/x/required"},
		{`{"properties":{"x":{"items":{"type":"object","patternProperties":{"^:":{}},"additionalProperties":false,"minProperties":1}}},"required":["x"]}`, ""},
	} {
		for _, strict := range []bool{false, true} {
			_, err := compile(tt.schema, strict)
			var refused *Unenforceable
			var tool *ToolError
			if tt.pointer == "" { // an empty array is left
				if err != nil {
					t.Errorf("%s: %v", tt.schema, err)
				}
			} else if !errors.As(err, &refused) || !errors.As(err, &tool) || refused.Pointer() != tt.pointer {
				t.Errorf("%s: %v", tt.schema, err)
			}
		}
	}
	g, err := compile(`{"anyOf":[{"required":["a:"]},{"required":["b"],"properties":{"b":{"type":"null"}}}],"additionalProperties":false,"properties":{"a:":{},"b":{}}}`, true)
	if err != nil || !g.Match([]byte(gemmaCall(`{b:null}`))) || g.Match([]byte(gemmaCall(`{}`))) {
		t.Errorf("of two ways to need a key: %v", err)
	}
}

// TestNotationWalks is soundness: what a grammar in Gemma's notation admits is read
// as an instance of the schema.
func TestNotationWalks(t *testing.T) {
	e, compile := gemmaCalls(t)
	compiled := 0
	rapid.Check(t, func(t *rapid.T) {
		schema := schemaMaker{t}.document()
		v, err := validator(schema)
		if err != nil {
			t.Skip(err)
		}
		g, err := compile(string(schema), true)
		if err != nil {
			var u *Unenforceable
			var i *InvalidSchema
			if !errors.As(err, &u) && !errors.As(err, &i) {
				t.Fatalf("%s: %v", schema, err)
			}
			return
		}
		compiled++
		w := newWalker(g, rapid.Uint64().Draw(t, "seed"), 100)
		for range 10 {
			text := w.text()
			if err := g.Check([]byte(text)); err != nil {
				t.Fatalf("%s\nwalked to %s\nbut %v", schema, text, err)
			}
			r := e.Read()
			arguments, ended := "", false
			for _, p := range append(r.Push(text), r.Close(false)...) {
				ended = p.Kind == CallEnd
				if p.Kind == CallArguments {
					arguments += p.Text
				}
			}
			if !ended || !isValid(v, arguments) {
				t.Fatalf("%s\nadmits %s\nwhich is %s", schema, text, arguments)
			}
		}
	})
	if compiled == 0 {
		t.Error("no schema was compiled")
	}
}

// TestNotationMarks: where the marks are tokens, strings stand between these.
func TestNotationMarks(t *testing.T) {
	c := findEnvelope(t, envelopeCases(t), gemma, true, false, false)
	if !slices.Contains(c.Envelope.Preserved, `<|"|>`) {
		t.Fatalf("preserved are %q", c.Envelope.Preserved)
	}
	e, err := ParseEnvelope([]byte(c.Envelope.Parser), c.Envelope.Generation, c.Envelope.Preserved)
	if err != nil {
		t.Fatal(err)
	}
	g, err := e.Grammar(Call{Mode: Required, Tools: []Tool{{Name: "get_weather", Strict: true, Schema: []byte(
		`{"properties":{"a":{"const":"<|tool_call>"},"b":{"enum":["","x","<|\"|>"]},"c":{"type":"array","items":{"enum":["u","v"]},"uniqueItems":true}},` +
			`"required":["a","b","c"],"additionalProperties":false}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := g.GBNF()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"{a:" <|"|> "<|tool_call>" <|"|> ",b:" <|"|>`, `<|"|> "u" <|"|>`, `"call:get_weather"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, `<|\"|>`) {
		t.Errorf("a mark as text in\n%s", text)
	}
}

// TestNotationLongTexts: bounds on the length of texts keep to the limits on work.
func TestNotationLongTexts(t *testing.T) {
	_, compile := gemmaCalls(t)
	for _, tt := range []struct {
		bounds  string
		yes, no int // characters
	}{
		{`"maxLength":100`, 100, 101},
		{`"maxLength":6000`, 6000, 6001},
		{`"maxLength":1000000`, 6000, -1},
		{`"minLength":300`, 300, 299},
		{`"minLength":3000,"maxLength":20000`, 5000, 2999},
		{`"pattern":"^x+<?","minLength":5,"maxLength":2000`, 2000, 2001},
	} {
		g, err := compile(`{"properties":{"a":{"type":"string",`+tt.bounds+`}},"required":["a"]}`, true)
		if err != nil {
			t.Errorf("%s: %v", tt.bounds, err)
			continue
		}
		for _, n := range []int{tt.yes, tt.no} {
			if n >= 0 && g.Match([]byte(gemmaCall("{a:~"+strings.Repeat("x", n)+"~}"))) != (n == tt.yes) {
				t.Errorf("%s: %d characters", tt.bounds, n)
			}
		}
	}
}
