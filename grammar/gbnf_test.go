package grammar

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleTexts are texts that llama.cpp's sample grammars have, and that they do not.
var sampleTexts = map[string]struct{ yes, no []string }{
	"arithmetic.gbnf": {[]string{"1 +2= 3\n", "a*(b -3)= 7\n"}, []string{"", "1+2", "1+2=x+1\n"}},
	"c.gbnf":          {[]string{"", "int f(int x){return x+1;}", "float  g(){if(a<b){x = 1;}else{// no\n}}"}, []string{"int f("}},
	"chess.gbnf":      {[]string{"1. e4 e5\n2. Nf3 Nc6\n", "1. O-O-O+ exd5=Q#\n1. a1 b2\n"}, []string{"1. e4 e5\n", "1. e9 e5\n2. a1 a1\n"}},
	"english.gbnf":    {[]string{"Hello, world!", "a b"}, []string{"", " a", "é"}},
	"japanese.gbnf":   {[]string{"ひらがな", "カタ 漢字。"}, []string{"a", ""}},
	"json.gbnf":       {[]string{`{}`, `{"a": [1,2.5e3], "b" :null}`, `{"a":"\u00e9\n"}`}, []string{`[]`, `{"a":1,}`, "{\"a\":\"\n\"}"}},
	"json_arr.gbnf":   {[]string{"[\n1,\n2]"}, []string{"[1]", "{}"}},
	"list.gbnf":       {[]string{"- a\n- b c\n"}, []string{"", "- a", "- \u2028\n"}},
}

func TestSampleGrammars(t *testing.T) {
	samples := sampleGrammars(t)
	for name, test := range sampleTexts {
		g, err := ParseGBNF(samples[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		printed, err := g.GBNF()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again, err := ParseGBNF(printed)
		if err != nil {
			t.Errorf("%s printed: %v\n%s", name, err, printed)
			continue
		}
		for _, g := range []*Grammar{g, again} {
			for _, text := range test.yes {
				if err := g.Check([]byte(text)); err != nil {
					t.Errorf("%s refuses %q: %v", name, text, err)
				}
			}
			for _, text := range test.no {
				if g.Match([]byte(text)) {
					t.Errorf("%s accepts %q", name, text)
				}
			}
		}
	}
	if len(sampleTexts) != len(samples) {
		t.Errorf("%d of %d samples are tested", len(sampleTexts), len(samples))
	}
}

// parseTexts are grammars with texts that they have, and that they do not.
var parseTexts = []struct {
	text    string
	yes, no []string
}{
	{"root ::= \"a\"* b? \nb ::= [b-d]{2}", []string{"", "aabc", "dd"}, []string{"ab", "abcd", "e"}},
	{"# nothing\nroot ::= # a comment\n  \"a\" |\n  \"b\"\n\n", []string{"a", "b"}, []string{"ab", ""}},
	{"root ::= (\n \"a\"\n \"b\"\n)+\r\n", []string{"ab", "abab"}, []string{"a"}},
	{`root ::= "a"{2,3} "b"{ 2 , } "c"{0}`, []string{"aabb", "aaabbbb"}, []string{"abb", "aab", "aabbc"}},
	{`root ::= "\x41\u00e9\U0001F600\t\r\n\\\"\[\]\-"`, []string{"Aé\U0001F600\t\r\n\\\"[]-"}, []string{"A"}},
	{`root ::= [^\]\-a-c"] [a-] [\x41-\x43]`, []string{"d-B", "xaA"}, []string{"]-B", "bab"}},
	{`root ::= . .`, []string{"é\n"}, []string{"a", "\xff\xff"}},
	{`root ::= "" | [] [^] x` + "\nx ::= ", []string{""}, []string{"a"}},
	{"root ::= (){2}? (\"\")? \"a\"{1,1}{2} (\"b\"{0}){3}", []string{"aa"}, []string{"a", "aab"}},
	{`root ::= "a"*+{3}? "b"+*{2,} "c"?{2}+`, []string{"", "aabcc", "ccccc"}, []string{"ba", "cb"}},
	{"root ::= a\na ::= \"x\"\na ::= \"y\"", []string{"y"}, []string{"x"}},
	{"root ::= [a-z]{1500,3000}", []string{strings.Repeat("q", 1500), strings.Repeat("q", 3000)}, []string{strings.Repeat("q", 1499), strings.Repeat("q", 3001)}},
	{"root ::= \"a\" | root2 \"b\"\nroot2 ::= \"x\" root2", []string{"a"}, []string{"xb"}},
}

func TestParseGBNF(t *testing.T) {
	for _, test := range parseTexts {
		g, err := ParseGBNF(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		for _, text := range test.yes {
			if err := g.Check([]byte(text)); err != nil {
				t.Errorf("%s refuses %.40q: %v", test.text, text, err)
			}
		}
		for _, text := range test.no {
			if g.Match([]byte(text)) {
				t.Errorf("%s accepts %.40q", test.text, text)
			}
		}
	}
}

// parseErrors are grammars that are refused.
var parseErrors = []struct {
	text string
	want SyntaxError
}{
	{"", SyntaxError{1, "the rule root is not defined"}},
	{"a ::= \"x\"", SyntaxError{1, "the rule root is not defined"}},
	{"root ::= \"x\"\n  nope", SyntaxError{2, "expected ::= behind the name of a rule"}},
	{"root ::= a\n", SyntaxError{1, "the rule a is not defined"}},
	{"root ::= \"a", SyntaxError{1, "unexpected end"}},
	{"root ::= [a", SyntaxError{1, "unexpected end"}},
	{"root ::= [z-a]", SyntaxError{1, "the range z-a is out of order"}},
	{"root ::= (\"a\"", SyntaxError{1, "expected )"}},
	{"root ::= \"a\")", SyntaxError{1, `unexpected ')'`}},
	{"root ::= *", SyntaxError{1, "nothing to repeat"}},
	{"root ::= \"\"*", SyntaxError{1, "nothing to repeat"}},
	{"root ::= (\"a\"){0}*", SyntaxError{1, "nothing to repeat"}},
	{"root ::= \"a\"{3,2}", SyntaxError{1, "the numbers of a repetition are out of order"}},
	{"root ::= \"a\"{x}", SyntaxError{1, "expected a number of repetitions"}},
	{`root ::= "\q"`, SyntaxError{1, "unknown escape"}},
	{`root ::= "\ud800"`, SyntaxError{1, "the escape is no character"}},
	{"root ::= <[x]>", SyntaxError{1, "expected the id of a token between <[ and ]>"}},
	{"root ::= \"a\"?\n\nx ::= y \"a\"\ny ::= x", SyntaxError{3, "the rule x begins with itself"}},
	{"root ::= \"a\" root", SyntaxError{1, "no text satisfies the grammar"}},
	{"root ::= " + strings.Repeat("(", 300), SyntaxError{1, "brackets are nested too deep"}},
	{"root ::= \"\xff\"", SyntaxError{1, "the text is not UTF-8"}},
}

func TestParseGBNFErrors(t *testing.T) {
	for _, test := range parseErrors {
		_, err := ParseGBNF(test.text)
		var got *SyntaxError
		if !errors.As(err, &got) {
			t.Errorf("%.40q: got %v", test.text, err)
		} else if diff := cmp.Diff(test.want, *got); diff != "" {
			t.Errorf("%.40q: %s", test.text, diff)
		}
	}
}

func TestTokens(t *testing.T) {
	text := "root ::= <think> !</think>* <[42]>\n"
	g, err := ParseGBNF(text)
	if err != nil {
		t.Fatal(err)
	}
	want := Seq{Token{Text: "<think>"}, Repeat{Token{Text: "</think>", Not: true}, 0, Unbounded}, Token{Text: "<[42]>"}}
	if diff := cmp.Diff(Node(want), g.Rules[0].Body); diff != "" {
		t.Error(diff)
	}
	if got, err := g.GBNF(); got != text || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if g.Match([]byte("<think></think>")) {
		t.Error("a token matches as text")
	}
	for _, n := range []Node{Token{Text: "[TOOL]"}, Bag{Items: make([]BagItem, 5), Sep: Literal(","), Max: Unbounded}} {
		g := &Grammar{Rules: []Rule{{"root", n}}}
		if _, err := g.GBNF(); !errors.Is(err, ErrNoGBNF) {
			t.Errorf("%v: %v", n, err)
		}
	}
}

func TestMismatch(t *testing.T) {
	g, err := FromSchema([]byte(`{"type":"object","properties":{"n":{"type":"integer"},"s":{"enum":["ab","ac"]}},"required":["n"],"additionalProperties":false}`), Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		text string
		want Mismatch
	}{
		{``, Mismatch{0, []string{`"{\"n\":"`}}},
		{`{"m":1}`, Mismatch{2, []string{`"n\":"`}}},
		{`{"n":"1"}`, Mismatch{5, []string{`[\-0-9]`}}},
		{`{"n":1.5}`, Mismatch{6, []string{`",\"s\":"`, `"}"`, `[0-9]`}}},
		{`{"n":1,"s":"ad"}`, Mismatch{13, []string{`[bc]`}}},
		{`{"n":1} `, Mismatch{7, []string{"the end"}}},
	}
	for _, test := range tests {
		var got *Mismatch
		if err := g.Check([]byte(test.text)); !errors.As(err, &got) {
			t.Errorf("%s: %v", test.text, err)
		} else if diff := cmp.Diff(test.want, *got); diff != "" {
			t.Errorf("%s: %s", test.text, diff)
		}
	}
}

// TestPrintedRuns has texts of which up to many characters may follow: they are
// counted, not nested, which parsers bound.
func TestPrintedRuns(t *testing.T) {
	for pattern, want := range map[string]string{
		"^[a-z]{1,255}$":       `root ::= "\"" [a-z]{1,255} "\""` + "\n",
		"^[a-z]{3,9}(-x)?$":    `root ::= text` + "\n" + `text ::= "\"" [a-z]{3,9} ("\"" | "-" text-2)` + "\n" + `text-2 ::= "x\""` + "\n",
		"^(ab?){0,200}$":       "",
		"^x[ab]{3,3500}$":      "root ::= text\ntext ::= \"\\\"x\" [ab]{3} block? [ab]{0,1497} \"\\\"\"\nblock ::= [ab]{0,2000}\n",
		"^(a[0-9]|b){1,200}c$": "",
	} {
		g, err := FromSchema([]byte(`{"type":"string","pattern":`+quote(pattern)+`}`), Options{Strict: true})
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if diff := cmp.Diff(want, printed(t, g)); want != "" && diff != "" {
			t.Errorf("%s: %s", pattern, diff)
		}
	}
}
