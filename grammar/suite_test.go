package grammar

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files and baselines")

// suiteEnv names a file with the tests of JSON-Schema-Test-Suite, a schema a
// line: {"id": …, "schema": …, "tests": [{"data": …, "valid": bool}]}.
// scripts/grammar/suite makes it.
const suiteEnv = "B3INFER_JSON_SCHEMA_SUITE"

// wildEnv names a file of the same form with schemas of the wild.
const wildEnv = "B3INFER_WILD_SCHEMAS"

type suiteCase struct {
	ID     string
	Schema json.RawMessage
	Tests  []struct {
		Data  json.RawMessage
		Valid bool
	}
}

// TestSuite scores the suite against a baseline that may only improve: each
// schema is exact (all valid instances and no invalid one), sound (no invalid
// one) or refused. No invalid instance is ever accepted.
func TestSuite(t *testing.T) {
	var results []string
	count := map[string]int{}
	for _, c := range readCases(t, suiteEnv) {
		result := scoreCase(t, c, Options{Strict: true, Unique: true})
		results = append(results, c.ID+" "+result)
		draft, _, _ := strings.Cut(c.ID, "/")
		count[draft+" "+result]++
	}
	t.Log(count)
	compareBaseline(t, filepath.Join("testdata", "suite-baseline.txt"), results)
}

// TestWild scores a collection of other schemas: scripts/grammar/wild.mjs makes
// one.
func TestWild(t *testing.T) {
	cases := readCases(t, wildEnv)
	for name, o := range map[string]Options{"as GBNF": {Strict: true}, "whole": {Strict: true, Unique: true}} {
		t.Run(name, func(t *testing.T) {
			count := map[string]int{}
			for _, c := range cases {
				count[scoreCase(t, c, o)]++
				count["walks"] += walkCase(t, c, o)
			}
			t.Log(count)
		})
	}
}

// walkCase counts texts of the grammar that another implementation finds valid:
// all of them, where it knows the schema.
func walkCase(t *testing.T, c suiteCase, o Options) int {
	g, err := FromSchema(c.Schema, o)
	if err != nil {
		return 0
	}
	v, err := validator(c.Schema)
	if err != nil {
		return 0
	}
	w := newWalker(g, 1, 300)
	for range walksOfCase {
		if text := w.text(); !isValid(v, text) {
			t.Errorf("%s admits %s under %.500s", c.ID, text, c.Schema)
		}
	}
	return walksOfCase
}

const walksOfCase = 5

// readCases reads the file that an environment variable names.
func readCases(t *testing.T, env string) []suiteCase {
	path := os.Getenv(env)
	if path == "" {
		t.Skipf("%s is not set: no schemas to score", env)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []suiteCase
	for lines := json.NewDecoder(f); lines.More(); {
		var c suiteCase
		if err := lines.Decode(&c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

func scoreCase(t *testing.T, c suiteCase, o Options) string {
	g, err := FromSchema(c.Schema, o)
	if err != nil {
		var u *Unenforceable
		var i *InvalidSchema
		if !errors.As(err, &u) && !errors.As(err, &i) {
			t.Errorf("%s: %T: %v", c.ID, err, err)
		}
		if testing.Verbose() {
			t.Logf("%s refused: %v: %.300s", c.ID, err, c.Schema)
		}
		return "refused"
	}
	reread := throughGBNF(t, c.ID, g)
	result := "exact"
	for _, test := range c.Tests {
		text, err := Compact(test.Data)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		err = g.Check(text)
		if again := reread.Check(text); (err == nil) != (again == nil) {
			t.Errorf("%s on %s: %v, but as GBNF %v", c.ID, text, err, again)
		}
		if err == nil && !test.Valid {
			t.Errorf("%s accepts %s under %s", c.ID, text, c.Schema)
			return "unsound"
		}
		if err != nil && test.Valid {
			if testing.Verbose() {
				t.Logf("%s misses %s (%v) under %.300s", c.ID, text, err, c.Schema)
			}
			result = "sound"
		}
	}
	return result
}

// throughGBNF is the grammar printed and read again, if it has a GBNF form.
func throughGBNF(t *testing.T, id string, g *Grammar) *Grammar {
	printed, err := g.GBNF()
	if errors.Is(err, ErrNoGBNF) {
		return g
	}
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	reread, err := ParseGBNF(printed)
	if err != nil {
		t.Fatalf("%s: %v in\n%s", id, err, printed)
	}
	return reread
}

// compareBaseline fails where a result is worse than the one on file.
func compareBaseline(t *testing.T, path string, results []string) {
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(results, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rank := map[string]int{"refused": 1, "sound": 2, "exact": 3}
	got := map[string]int{}
	for _, line := range results {
		id, result, _ := strings.Cut(line, " ")
		got[id] = rank[result]
	}
	for line := range strings.Lines(string(text)) {
		id, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		if got[id] < rank[want] {
			t.Errorf("%s was %s and is now worse", id, want)
		}
		if got[id] > rank[want] {
			fmt.Printf("%s is better than %s: run with -update\n", id, want)
		}
	}
}
