package mask

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/b3os/b3infer/grammar"
)

// A unit is a grammar that the laws are tested on.
type unit struct {
	name    string
	grammar *grammar.Grammar
}

// unitSchemas use what grammars of schemas are made of.
var unitSchemas = map[string]string{
	"any":              `true`,
	"any object":       `{"type":"object"}`,
	"strings":          `{"type":"object","properties":{"name":{"type":"string"},"type":{"type":"string"}},"required":["name"],"additionalProperties":false}`,
	"open object":      `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"]}`,
	"open typed":       `{"type":"object","properties":{"abc":{"type":"null"},"abd":{"type":"null"}},"additionalProperties":{"type":"boolean"}}`,
	"optional":         `{"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"integer"},"abc":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false}`,
	"enum":             `{"enum":["red","green","blue","reddish","a\"b",1,12,null,[1,2],{"a":1}]}`,
	"lengths":          `{"type":"string","minLength":2,"maxLength":5}`,
	"long":             `{"type":"string","minLength":3,"maxLength":10000}`,
	"longest":          `{"type":"string","minLength":5000,"maxLength":9000}`,
	"many lengths":     `{"type":"array","items":{"type":"string","maxLength":40},"maxItems":3}`,
	"pattern":          `{"type":"string","pattern":"^[a-z]+(-[a-z]+)*$"}`,
	"pattern and more": `{"type":"string","pattern":"ab"}`,
	"pattern counted":  `{"type":"string","pattern":"^a{2,4}b*$","maxLength":30}`,
	"date":             `{"type":"string","format":"date-time"}`,
	"email":            `{"type":"string","format":"email"}`,
	"uuid":             `{"type":"array","items":{"type":"string","format":"uuid"}}`,
	"integers":         `{"type":"array","items":{"type":"integer"}}`,
	"numbers":          `{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":4}`,
	"range":            `{"type":"array","items":{"type":"integer","minimum":-5,"maximum":120}}`,
	"many items":       `{"type":"array","items":{"type":"integer"},"minItems":100,"maxItems":5000}`,
	"tuple":            `{"prefixItems":[{"type":"boolean"},{"type":"string"},{"enum":[1,2]}],"type":"array","items":false}`,
	"nested":           `{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":["string","null"]}},"required":["x"]}}}}`,
	"recursive":        `{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"name":{"type":"string"},"items":{"type":"array","items":{"$ref":"#/$defs/t"}}},"required":["name"],"additionalProperties":false}}}`,
	"any of":           `{"anyOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"]},{"type":"object","properties":{"kind":{"const":"b"},"y":{"type":"string"}},"required":["kind"]},{"type":"array","items":{"type":"string"}}]}`,
	"pattern keys":     `{"type":"object","patternProperties":{"^a":{"type":"integer"},"b$":{"type":["integer","string"]}},"additionalProperties":false}`,
	"unique":           `{"type":"array","items":{"enum":["a","b","ab",1,12]},"uniqueItems":true,"minItems":2}`,
	"unique strings":   `{"type":"array","items":{"type":"string"},"uniqueItems":true}`,
	"unique short":     `{"type":"array","items":{"type":"string","maxLength":2},"uniqueItems":true,"minItems":3}`,
	"unique letters":   `{"type":"array","items":{"type":"string","pattern":"^(a|ab|abc|red|green)?[ab]?[ab]?[12]?$"},"uniqueItems":true}`,
	"unique integers":  `{"type":"array","items":{"type":"integer","minimum":0,"maximum":120},"uniqueItems":true,"maxItems":20}`,
	"unique numbers":   `{"type":"array","items":{"type":["number","string"]},"uniqueItems":true}`,
	"unique objects":   `{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"additionalProperties":false},"uniqueItems":true}`,
	"unique or not":    `{"anyOf":[{"type":"array","items":{"type":"integer"},"uniqueItems":true},{"type":"array","items":{"type":["integer","boolean"]}}]}`,
	"unique inside":    `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"uniqueItems":true,"minItems":1},"b":{"type":"array","items":{"type":"string","maxLength":3},"uniqueItems":true}},"required":["a"]}`,
	"unique prefix":    `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":["integer","null"]},"uniqueItems":true}`,
	"contains":         `{"type":"array","items":{"type":["integer","string"]},"contains":{"const":1},"minContains":2}`,
	"max properties":   `{"type":"object","properties":{"a":{},"b":{}},"maxProperties":2}`,
	"escapes":          `{"type":"string","pattern":"^[\\n\"\\\\a]*$"}`,
}

// unitTexts are grammars in GBNF.
var unitTexts = map[string]string{
	"empty":            `root ::= ""`,
	"maybe":            `root ::= "a"?`,
	"words":            `root ::= word (" " word)* "."` + "\n" + `word ::= [a-z]+`,
	"open tail":        `root ::= name? ";" name ";"` + "\n" + `name ::= [a-z]+ | [a-z]* "1"`,
	"nullable tail":    `root ::= ("x" name ";")+` + "\n" + `name ::= [a-z]*`,
	"nullable parts":   `root ::= a b c d` + "\n" + `a ::= "a"*` + "\n" + `b ::= "b"? a` + "\n" + `c ::= b b | "c"` + "\n" + `d ::= (a c)? "d"?`,
	"ambiguous":        `root ::= s+` + "\n" + `s ::= "a" | "aa" | "a" s "b" | "(" s* ")"`,
	"right recursion":  `root ::= "a" root | "b"`,
	"middle":           `root ::= "(" root ")" root | ""`,
	"counted":          `root ::= (("ab"{2,3} "x"?){1,2} ";"){2,}`,
	"counted open":     `root ::= x{3,200} "b" x*` + "\n" + `x ::= [ab]`,
	"counted exits":    `root ::= (x [12c])+` + "\n" + `x ::= [ab]{2,5}`,
	"counted limits":   `root ::= ([ab]{3,90} [12c])+`,
	"counted words":    `root ::= word{2,3}` + "\n" + `word ::= [a-z]{1,3} " "?`,
	"ambiguous rounds": `root ::= word{2,7}` + "\n" + `word ::= [a-z]{1,3} " "?`,
	"nullable rounds":  `root ::= (a b){2,4} "c"` + "\n" + `a ::= "a"?` + "\n" + `b ::= "b"*`,
	"characters":       `root ::= [^"\x00-\x1f日]* ("日本" | [\U0001F600-\U0001F64F] | "é")`,
	"token":            `root ::= "a"? <tool_call> [a-z]* </tool_call> <think>?`,
	"not token":        `root ::= (!<tool_call>)* <tool_call> "a"+`,
	"numbered":         `root ::= <[260]> "x" !<[97]> [a-z]?`,
	"unknown token":    `root ::= <nowhere> !<nowhere> "a"`,
	"text token":       `root ::= "a" <[97]> <[300]>`,
}

// unitNodes are grammars of nodes that neither schemas nor GBNF have.
var unitNodes = map[string]grammar.Node{
	"bag": grammar.Seq{grammar.Literal("<"), grammar.Bag{Items: []grammar.BagItem{
		{Body: grammar.Literal("a"), Required: true}, {Body: grammar.Literal("ab")},
		{Body: grammar.Class{{Lo: 'a', Hi: 'd'}}, Required: true}, {Body: grammar.Repeat{Body: grammar.Literal("x"), Min: 1, Max: 3}},
	}, Sep: grammar.Literal(","), Min: 2, Max: 3}, grammar.Literal(">")},
	"bag of strings": grammar.Bag{Items: []grammar.BagItem{
		{Body: grammar.AnyString()}, {Body: grammar.AnyInteger(), Required: true}, {Body: grammar.Literal("null")},
	}, Sep: grammar.Literal(", "), Max: grammar.Unbounded},
	"tagged": grammar.Seq{grammar.Token{Text: "<tool_call>"}, grammar.Repeat{Body: grammar.Seq{
		grammar.Literal("<p>"), grammar.Repeat{Body: grammar.Class{{Lo: 0x20, Hi: 0x3b}, {Lo: 0x3d, Hi: 0xd7ff}, {Lo: 0xe000, Hi: 0x10ffff}}, Max: grammar.Unbounded}, grammar.Literal("</p>"),
	}, Min: 1, Max: grammar.Unbounded}, grammar.Token{Text: "</tool_call>"}},
	"unique of texts": listOfItems(grammar.Item{Body: listOfItems(grammar.Item{Body: grammar.AnyString()})}),
	"unique unique":   listOfItems(grammar.Item{Body: listOfItems(grammar.Item{Body: grammar.AnyInteger()})}),
	"unique alone": grammar.Unique{Body: grammar.Seq{
		grammar.Item{Body: grammar.Class{{Lo: 'a', Hi: 'd'}}},
		grammar.Repeat{Body: grammar.Seq{grammar.Literal(", "), grammar.Item{Body: grammar.Seq{
			grammar.Class{{Lo: 'a', Hi: 'd'}}, grammar.Repeat{Body: grammar.Literal("x"), Min: 0, Max: grammar.Unbounded},
		}}}, Max: 30},
	}},
	"unique markers": grammar.Seq{grammar.Literal("["), grammar.Unique{Body: grammar.Repeat{Body: grammar.Item{Body: grammar.Seq{
		grammar.Token{Text: "<tool_call>"}, grammar.Repeat{Body: grammar.Class{{Lo: 'a', Hi: 'c'}}, Max: grammar.Unbounded}, grammar.Token{Text: "</tool_call>"},
	}}, Max: grammar.Unbounded}}, grammar.Literal("]")},
	"shared rounds": grammar.Seq{
		grammar.Repeat{Body: grammar.AnyChar(), Min: 2, Max: 3}, grammar.Literal(";"),
		grammar.Repeat{Body: grammar.AnyChar(), Min: 0, Max: 4}, grammar.Literal(";"),
	},
}

// listOfItems is a list in brackets, of items that differ.
func listOfItems(item grammar.Item) grammar.Node {
	return grammar.Seq{grammar.Literal("["), grammar.Unique{Body: grammar.Repeat{Body: grammar.Seq{
		item, grammar.Repeat{Body: grammar.Seq{grammar.Literal(","), item}, Max: grammar.Unbounded},
	}, Max: 1}}, grammar.Literal("]")}
}

// units are all grammars for the laws.
func units(t testing.TB) []unit {
	var out []unit
	for name, schema := range unitSchemas {
		g, err := grammar.FromSchema([]byte(schema), grammar.Options{Strict: true, Unique: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, unit{name, g})
	}
	texts := map[string]string{}
	files, err := filepath.Glob("../testdata/samples/*.gbnf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sample grammars: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	for name, text := range unitTexts {
		texts[name] = text
	}
	for name, text := range texts {
		g, err := grammar.ParseGBNF(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, unit{name, g})
	}
	out = append(out, unit{"unique in parts", &grammar.Grammar{Rules: []grammar.Rule{
		{Name: "root", Body: grammar.Seq{grammar.Literal("["), grammar.Unique{Body: grammar.Repeat{Body: grammar.Ref(1), Max: grammar.Unbounded}}, grammar.Literal("]")}},
		{Name: "part", Body: grammar.Seq{grammar.Literal("x"), grammar.Repeat{Body: grammar.Item{Body: grammar.Repeat{Body: grammar.Class{{Lo: 'a', Hi: 'b'}}, Min: 1, Max: 3}}, Max: 1}}},
	}}})
	for name, node := range unitNodes {
		out = append(out, unit{name, &grammar.Grammar{Rules: []grammar.Rule{{Name: "root", Body: node}}}})
	}
	return out
}
