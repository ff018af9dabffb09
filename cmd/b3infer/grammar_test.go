package main

import (
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

var compileTime = regexp.MustCompile(`"compile_ms":[0-9.]+`)

// cmpAnswers compares the answers of grammar --jsonl but for the times, of
// which it wants one in each.
func cmpAnswers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cmp-answers got want")
	}
	got := compileTime.ReplaceAllString(ts.ReadFile(args[0]), `"compile_ms":0`)
	if want := ts.ReadFile(args[1]); got != want {
		ts.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}
