package grammar

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzSchema looks for schemas that make the compiler panic, hang or contradict
// itself.
func FuzzSchema(f *testing.F) {
	files, err := filepath.Glob("testdata/gbnf/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	f.Add([]byte(`{"$ref":"#/a~1b/%25","a/b":{"%":{"$dynamicRef":"#x","$id":"y"}}}`))
	f.Add([]byte(`{"items":[{"$recursiveRef":"#"}],"dependencies":{"a":["b"],"c":{"not":{}}},"unevaluatedItems":false}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		limits := Limits{Work: 200_000}
		strict, strictErr := FromSchema(schema, Options{Strict: true, Limits: limits})
		var u *Unenforceable
		var i *InvalidSchema
		if strictErr != nil && !errors.As(strictErr, &u) && !errors.As(strictErr, &i) {
			t.Fatalf("%T: %v", strictErr, strictErr)
		}
		if _, err := FromSchema(schema, Options{Limits: limits}); errors.As(err, &i) && strictErr == nil {
			t.Fatalf("strict compiles, best effort: %v", err)
		}
		if _, err := FromSchema(schema, Options{Strict: true, Unique: true, Limits: limits}); err != nil && strictErr == nil {
			t.Fatalf("strict compiles, with Unique: %v", err)
		}
		if strictErr != nil {
			return
		}
		text := newWalker(strict, 1, 100).text()
		if err := strict.Check([]byte(text)); err != nil && len(text) < 1000 {
			t.Fatalf("walked to %s, but %v", text, err)
		}
	})
}

// FuzzRegex compares patterns with Go's regexp where the dialects agree.
func FuzzRegex(f *testing.F) {
	for _, pattern := range []string{
		`^a*$`, `a{2,3}|b`, `^(?:x|y)+z?$`, `[^a-c]\x41`, `(a|ab)(c|bcd)$`, `^$|^a$`, `\bfoo\b`, `^(?!a)b`, `(?<n>a)`, `[\w-.]+`, `a{,3}`, `\p{L}\d`,
	} {
		f.Add(pattern, "aabbc")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		d, err := compilePattern(&meter{left: 100_000}, pattern, 500)
		if err != nil || strings.ContainsAny(pattern, `\.[{?`) || strings.ToValidUTF8(text, "") != text {
			return
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return
		}
		if got, want := d.inner.match(text), re.MatchString(text); got != want {
			t.Fatalf("%q on %q: %v, regexp says %v", pattern, text, got, want)
		}
	})
}

// FuzzGBNF looks for grammars that make the parser panic or that are others
// once they are printed.
func FuzzGBNF(f *testing.F) {
	for _, text := range sampleGrammars(f) {
		f.Add(text)
	}
	f.Add("root ::= (\"a\"{2,} | [^b-d\\n]? .)* <[12]> !<x> # comment\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		g, err := ParseGBNF(text)
		var syntax *SyntaxError
		if err != nil {
			if !errors.As(err, &syntax) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		printed, err := g.GBNF()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseGBNF(printed)
		if err != nil {
			t.Fatalf("%v in\n%s", err, printed)
		}
		if great(g) {
			return
		}
		sample := newWalker(g, 1, 50).text()
		if len(sample) < 500 && g.Match([]byte(sample)) != again.Match([]byte(sample)) {
			t.Fatalf("%q is of one only:\n%s", sample, printed)
		}
	})
}

// great tells whether a grammar counts so far, or so deep, that walking it takes
// long.
func great(g *Grammar) bool {
	product, token := 1, false
	for _, r := range g.Rules {
		walk(r.Body, func(n Node) {
			if r, ok := n.(Repeat); ok {
				product *= max(r.Min, 1)
			}
			_, isToken := n.(Token)
			token = token || isToken
		})
	}
	return product > 1000 || product <= 0 || token
}

// sampleGrammars are grammars as llama.cpp ships them.
func sampleGrammars(tb testing.TB) map[string]string {
	files, err := filepath.Glob("testdata/samples/*.gbnf")
	if err != nil || len(files) == 0 {
		tb.Fatal("no sample grammars", err)
	}
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		out[filepath.Base(file)] = string(text)
	}
	return out
}
