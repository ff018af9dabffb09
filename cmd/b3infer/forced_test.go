//go:build cgo

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/llama"
)

// The tools of forced calls: their arguments are bounded, so that also a model that
// draws its tokens at random comes to an end.
var forcedTools = []engine.Tool{
	{Name: "get_weather", Description: "Tells the weather.", Parameters: `{"type":"object","properties":{
		"city":{"type":"string","minLength":1,"maxLength":12},"days":{"type":"integer","minimum":1,"maximum":14},"unit":{"enum":["celsius","fahrenheit"]}},
		"required":["city","days"],"additionalProperties":false}`},
	{Name: "order", Description: "Orders things.", Parameters: `{"type":"object","properties":{
		"items":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"object","properties":{
			"sku":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{4}$"},"count":{"type":"integer","minimum":1,"maximum":99}},
			"required":["sku","count"],"additionalProperties":false}},
		"gift":{"type":"boolean"}},"required":["items"],"additionalProperties":false}`},
	{Name: "now", Description: "Tells the time.", Parameters: `{"type":"object","properties":{},"additionalProperties":false}`},
}

// forcedCases are the ways to ask for a call.
var forcedCases = []struct {
	name     string
	strict   bool
	thinking bool
	choice   engine.ToolChoice
}{
	{"required", false, false, engine.ToolChoice{Mode: engine.ToolRequired}},
	{"named", false, false, engine.ToolChoice{Mode: engine.ToolNamed, Name: "order"}},
	{"strict", true, false, engine.ToolChoice{Mode: engine.ToolRequired}},
	{"thinking", true, true, engine.ToolChoice{Mode: engine.ToolRequired}},
}

// forcedSeeds is how many answers there are of each kind.
const forcedSeeds = 8

// TestForcedCalls has a model with random weights call tools, in the notation of every
// template that has calls. Nothing but the form of the answer can bring that about.
func TestForcedCalls(t *testing.T) {
	model := loadModel(t, testModelPath(t, "tiny.gguf"))
	schemas := compiledTools(t, forcedTools)
	var all forcedCount
	eachTemplate(t, func(t *testing.T, source string) {
		one := forceCalls(t, newForcedEngine(t, model, source), schemas)
		if one.answers > 0 && one.complete*100 < one.answers*90 {
			t.Errorf("only %d of %d answers are complete", one.complete, one.answers)
		}
		all.answers += one.answers
		all.complete += one.complete
		if one.answers > 0 {
			all.templates++
		}
	})
	t.Logf("%d templates with calls: %d of %d answers complete within 512 tokens", all.templates, all.complete, all.answers)
	if all.complete*100 < all.answers*95 || all.templates == 0 {
		t.Errorf("only %d of %d answers are complete", all.complete, all.answers)
	}
}

// eachTemplate runs a test with every template of llama.cpp's, with -short a few.
func eachTemplate(t *testing.T, test func(t *testing.T, source string)) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("LLAMA_DIR"), "models", "templates", "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Skip("no templates: LLAMA_DIR is not set (source the env file of scripts/build-llama)")
	}
	for i, file := range files {
		if testing.Short() && i%8 > 0 {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jinja"), func(t *testing.T) { test(t, string(source)) })
	}
}

// newForcedEngine runs a model with another template than its own.
func newForcedEngine(t *testing.T, model llama.Model, template string) *engine.Engine {
	t.Helper()
	e, err := engine.New(model, engine.Params{
		Cells: 8192, Parallel: 32, Threads: 1, Template: template, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// compiledTools are the tools' schemas as another library reads them.
func compiledTools(t *testing.T, tools []engine.Tool) map[string]*jsonschema.Schema {
	schemas := make(map[string]*jsonschema.Schema)
	for _, tool := range tools {
		schemas[tool.Name] = compileSchema(t, tool.Parameters)
	}
	return schemas
}

// A forcedCount counts answers, and those that were not cut.
type forcedCount struct{ templates, answers, complete int }

func forceCalls(t *testing.T, e *engine.Engine, schemas map[string]*jsonschema.Schema) forcedCount {
	var count forcedCount
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, c := range forcedCases {
		for seed := range int64(forcedSeeds) {
			r := &engine.Request{
				Messages: []engine.Message{{Role: engine.RoleUser, Content: []string{"What is the weather?"}}},
				OneCall:  true, Choice: c.choice, Thinking: c.thinking, ThinkingBudget: 40, MaxTokens: 512,
				Sampling: engine.Sampling{Seed: &seed},
			}
			for _, tool := range forcedTools {
				tool.Strict = c.strict
				r.Tools = append(r.Tools, tool)
			}
			p, err := e.Prepare(t.Context(), r)
			if err != nil {
				if !strings.Contains(err.Error(), "calls") && !strings.Contains(err.Error(), "does not take") {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			group.Go(func() {
				complete := checkForced(t, e, p, c.choice, schemas)
				mu.Lock()
				defer mu.Unlock()
				count.answers++
				if complete {
					count.complete++
				}
			})
		}
	}
	group.Wait()
	return count
}

// checkForced checks an answer, and tells whether it is complete.
func checkForced(t *testing.T, e *engine.Engine, p *engine.Prepared, choice engine.ToolChoice, schemas map[string]*jsonschema.Schema) bool {
	var name, arguments, content string
	calls, ended := 0, false
	var finish engine.Finish
	for ev, err := range e.Generate(t.Context(), p) {
		if err != nil {
			t.Error(err)
			return false
		}
		switch ev := ev.(type) {
		case engine.CallStart:
			calls++
			name, arguments, ended = ev.Name, "", false
		case engine.CallArguments:
			arguments += ev.Text
		case engine.CallEnd:
			ended = true
		case engine.Text:
			if !ev.Reasoning {
				content += ev.Text
			}
		case engine.Finish:
			finish = ev
		}
	}
	if finish.Reason == engine.FinishLength {
		if content != "" {
			t.Errorf("a call that was cut left the text %q", content)
		}
		return false
	}
	schema := schemas[name]
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
	switch {
	case finish.Reason != engine.FinishCalls, calls != 1, !ended, content != "":
		t.Errorf("%d calls, finished by %s, with the text %q", calls, finish.Reason, content)
	case schema == nil, choice.Name != "" && choice.Name != name:
		t.Errorf("a call of %q", name)
	case err != nil || !json.Valid([]byte(arguments)):
		t.Errorf("%s: arguments %q: %v", name, arguments, err)
	default:
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: arguments %s: %v", name, arguments, err)
		}
	}
	return true
}

func compileSchema(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
