//go:build cgo

package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/b3os/b3infer/engine"
)

// oddTools are schemas that are hard to hold arguments to where each stands in its
// own tag: free names, members that depend on each other, keys that need escapes.
var oddTools = []string{
	`{"type":"object","minProperties":1,"maxProperties":2,"additionalProperties":{"type":"boolean"},"propertyNames":{"maxLength":3}}`,
	`{"type":"object","minProperties":1,"maxProperties":1,"patternProperties":{"^.{3}":false},"additionalProperties":{"type":["null","integer"],"minimum":0,"maximum":9}}`,
	`{"type":"object","propertyNames":{"pattern":"^k[0-9]$"},"minProperties":1,"maxProperties":2,"additionalProperties":{"type":"boolean"}}`,
	`{"type":"object","patternProperties":{"^x[0-9]$":{"type":"boolean"}},"minProperties":1,"additionalProperties":false}`,
	`{"type":"object","required":["a"],"additionalProperties":{"type":"boolean"},"maxProperties":1}`,
	`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}],"additionalProperties":{"type":"boolean"},"maxProperties":2}`,
	`{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"boolean"},"c":{"type":"boolean"}},"additionalProperties":false,"oneOf":[{"required":["a"]},{"required":["b","c"]}]}`,
	`{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"boolean"},"c":{"type":"boolean"}},"additionalProperties":false,"minProperties":1,"dependentRequired":{"a":["b"],"b":["c"]}}`,
	`{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"boolean"}},"additionalProperties":false,"not":{"required":["a","b"]},"minProperties":1}`,
	`{"type":"object","additionalProperties":false,"anyOf":[{"required":["kind","x"],"properties":{"kind":{"const":"one"},"x":{"type":"boolean"}}},
		{"required":["kind","x"],"properties":{"kind":{"const":"two"},"x":{"enum":[7]}}}],"properties":{"kind":{},"x":{}}}`,
	`{"type":"object","anyOf":[{"properties":{"kind":{"enum":[1]},"x":{"type":"boolean"}},"required":["kind","x"],"additionalProperties":false},
		{"properties":{"kind":{"enum":[2]},"y":{"enum":[7]}},"required":["kind","y"],"additionalProperties":false}]}`,
	`{"type":"object","properties":{"a":{"enum":[1,2]},"b":{"enum":[3,4]}},"required":["a","b"],"additionalProperties":false,"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":{"const":3}}}}`,
	`{"type":"object","properties":{"a":{"enum":["1",true]},"b":{"enum":["x","null"]}},"required":["a","b"],"additionalProperties":false}`,
	`{"enum":[{"a":1,"b":2},{"a":3,"b":4}]}`,
	`{"const":{}}`,
	`{"const":{"a":1}}`,
	`{"type":"object","maxProperties":0}`,
	`{"type":"object","properties":{" a ":{"type":"boolean"},"":{"type":"boolean"},"b":{"type":"boolean"}},"additionalProperties":false,"minProperties":1}`,
	`{"type":"object","properties":{"a\"b":{"type":"boolean"},"c>d":{"type":"boolean"},"e=f":{"type":"boolean"}},"additionalProperties":false,"minProperties":2}`,
	`{"type":"object","properties":{"a\nb":{"type":"boolean"},"ä€":{"type":"boolean"},"</parameter>":{"type":"boolean"}},"additionalProperties":false,"minProperties":1}`,
	`{"type":"object","properties":{"__proto__":{"type":"boolean"},"'":{"type":"boolean"},"a\\":{"type":"boolean"},"{":{"type":"boolean"}},"additionalProperties":false,"minProperties":1}`,
	`{"type":"object","properties":{"s":{"enum":["\n</parameter>"," x ","","</tool_call>","a\nb"]}},"required":["s"],"additionalProperties":false}`,
	`{"type":"object","properties":{"s":{"enum":["\n</parameter>"]},"t":{"enum":["</"]}},"additionalProperties":false}`,
	`{"type":"object","properties":{"s":{"type":["string","integer"],"maxLength":3,"maximum":9,"minimum":0}},"required":["s"],"additionalProperties":false}`,
	`{"type":"object","properties":{"s":{"type":"string","pattern":"^[ \\n<>/a-z]{1,6}$"}},"required":["s"],"additionalProperties":false}`,
}

// TestOddForcedCalls holds every template to a tool's schema also where the schema is
// odd: the call is valid, or the schema is refused. A free call takes any schema.
func TestOddForcedCalls(t *testing.T) {
	model := loadModel(t, testModelPath(t, "tiny.gguf"))
	var all oddCount
	eachTemplate(t, func(t *testing.T, source string) {
		e := newForcedEngine(t, model, source)
		cutCalls(t, e)
		one := callOddTools(t, e)
		all.valid += one.valid
		all.cut += one.cut
		all.refused += one.refused
	})
	t.Logf("%d calls valid, %d cut, %d tools refused", all.valid, all.cut, all.refused)
	if all.valid < 9*(all.refused+all.cut) || all.valid == 0 {
		t.Error("too few calls are made")
	}
}

// An oddCount says what became of the calls.
type oddCount struct{ valid, cut, refused int }

func callOddTools(t *testing.T, e *engine.Engine) oddCount {
	var count oddCount
	var mu sync.Mutex
	var group sync.WaitGroup
	for i, schema := range oddTools {
		seed := int64(i)
		r := engine.Request{
			Messages: []engine.Message{{Role: engine.RoleUser, Content: []string{"Call it."}}},
			Tools:    []engine.Tool{{Name: "odd", Parameters: schema, Strict: i%2 == 0}},
			OneCall:  true, Choice: engine.ToolChoice{Mode: engine.ToolRequired}, MaxTokens: 128, Sampling: engine.Sampling{Seed: &seed},
		}
		free := r
		free.Choice, free.Tools = engine.ToolChoice{}, []engine.Tool{{Name: "odd", Parameters: schema}}
		if _, err := e.Prepare(t.Context(), &free); err != nil && !strings.Contains(err.Error(), "cannot write") {
			t.Errorf("a free call of %s: %v", schema, err)
		}
		p, err := e.Prepare(t.Context(), &r)
		switch {
		case err != nil && strings.Contains(err.Error(), "cannot write tool calls"):
			return count // the template has none
		case err != nil:
			t.Logf("%s: %v", schema, err)
			count.refused++
			continue
		}
		schemas := compiledTools(t, r.Tools)
		group.Go(func() {
			valid := checkForced(t, e, p, r.Choice, schemas)
			mu.Lock()
			defer mu.Unlock()
			if valid {
				count.valid++
			} else {
				count.cut++
			}
		})
	}
	group.Wait()
	return count
}

// cutCalls ends calls where the tokens do, within their opening marks: these are no text.
func cutCalls(t *testing.T, e *engine.Engine) {
	schemas := compiledTools(t, forcedTools)
	for tokens := 1; tokens < 12; tokens += 2 {
		r := &engine.Request{
			Messages: []engine.Message{{Role: engine.RoleUser, Content: []string{"Call it."}}}, Tools: forcedTools,
			OneCall: true, Choice: engine.ToolChoice{Mode: engine.ToolRequired}, MaxTokens: tokens,
		}
		p, err := e.Prepare(t.Context(), r)
		if err != nil {
			return // the template has no calls
		}
		checkForced(t, e, p, r.Choice, schemas)
	}
}
