package grammar

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/b3os/b3infer/grammar/grammartest"
)

// An envelopeCase is what common/chat says of a template of llama.cpp's collection
// for one kind of answer. Package libllama's tests write the file.
type envelopeCase struct {
	Template                     string
	Required, Parallel, Thinking bool
	NoTools                      bool
	Envelope                     struct {
		Parser, Generation, Example string
		Preserved                   []string
	}
	Error string
}

func envelopeCases(t testing.TB) []envelopeCase {
	t.Helper()
	var cases []envelopeCase
	grammartest.ReadJSON(t, filepath.Join("testdata", "envelope", "parsers.json.gz"), &cases)
	return cases
}

// find is the case of a template.
func findEnvelope(t testing.TB, cases []envelopeCase, template string, required, parallel, thinking bool) envelopeCase {
	t.Helper()
	i := slices.IndexFunc(cases, func(c envelopeCase) bool {
		return c.Template == template && !c.NoTools && c.Required == required && c.Parallel == parallel && c.Thinking == thinking
	})
	if i < 0 {
		t.Fatalf("no template %s", template)
	}
	return cases[i]
}

// parse is the envelope as text alone, without markers.
func (c envelopeCase) parse() (*Envelope, error) {
	e, err := ParseEnvelope([]byte(c.Envelope.Parser), c.Envelope.Generation, nil)
	if err == nil {
		e.Learn(c.Envelope.Example)
	}
	return e, err
}

var envelopeTools = []Tool{
	{Name: "get_weather", Strict: true, Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"},` +
		`"days":{"type":"integer","minimum":1,"maximum":9}},"required":["city"],"additionalProperties":false}`)},
	{Name: "now", Strict: true, Schema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`)},
}

// envelopeAnswer is a value that an answer may have to be.
var envelopeAnswer = sync.OnceValue(func() *Grammar {
	g, err := FromSchema([]byte(`{"type":"object","properties":{"unit":{"enum":["a","b"]},`+
		`"count":{"type":"integer","minimum":1,"maximum":9}},"required":["unit","count"],"additionalProperties":false}`), Options{Strict: true})
	if err != nil {
		panic(err)
	}
	return g
})

// callsOf is what may be asked for with a case's parser.
func (c envelopeCase) callsOf() map[string]Call {
	call := Call{Tools: envelopeTools, Parallel: c.Parallel, Thinking: c.Thinking}
	answer := call
	answer.Answer = envelopeAnswer()
	switch {
	case c.NoTools:
		answer.Tools = nil
		return map[string]Call{"answer": answer}
	case !c.Required:
		return map[string]Call{"auto": call, "answer": answer}
	}
	call.Mode = Required
	named := call
	named.Mode, named.Name = Named, "get_weather"
	return map[string]Call{"required": call, "named": named}
}

// withoutCalls are the templates that cannot write calls.
var withoutCalls = []string{
	"HuggingFaceTB-SmolLM3-3B", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "google-gemma-2-2b-it",
	"ibm-granite-granite-3.3-2B-Instruct", "llama-cpp-rwkv-world", "microsoft-Phi-3.5-mini-instruct",
}

// TestEnvelopes makes the grammars of all kinds of answers of all templates, and
// walks through them. Package libllama's tests read the answers with common/chat.
func TestEnvelopes(t *testing.T) {
	type walked struct {
		Case int
		Mode string
		Text string
	}
	var answers []walked
	for i, c := range envelopeCases(t) {
		e, err := c.parse()
		if err != nil {
			t.Errorf("%s: %v", c.Template, err)
			continue
		}
		for _, mode := range []string{"auto", "required", "named", "answer"} {
			call, ok := c.callsOf()[mode]
			if !ok {
				continue
			}
			g, err := e.Grammar(call)
			if slices.Contains(withoutCalls, c.Template) && mode != "answer" {
				if !errors.Is(err, ErrNoCalls) {
					t.Errorf("%s has no calls: %v", c.Template, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", c.Template, mode, err)
				continue
			}
			for seed := range uint64(8) {
				text := newWalker(g, seed, 200).text()
				if err := g.Check([]byte(text)); err != nil {
					t.Errorf("%s, %s: %q: %v", c.Template, mode, text, err)
				}
				answers = append(answers, walked{i, mode, text})
			}
		}
	}
	grammartest.HoldJSON(t, filepath.Join("testdata", "envelope", "walks.json.gz"), answers, *update)
}

// families has a template of each form of calls.
var families = []string{
	"Qwen-Qwen3-0.6B", "meta-llama-Llama-3.3-70B-Instruct", "mistralai-Mistral-Nemo-Instruct-2407",
	"mistralai-Ministral-3-14B-Reasoning-2512", "deepseek-ai-DeepSeek-V3.1", "Kimi-K2-Instruct", "openai-gpt-oss-120b",
	"Qwen3.5-4B", "GLM-4.6", "deepseek-ai-DeepSeek-V3.2", "MiniMax-M3", "openbmb-MiniCPM5-1B", "Kimi-K3", "LFM2.5-8B-A1B",
	"google-gemma-4-31B-it",
}

func TestEnvelopeGoldens(t *testing.T) {
	cases := envelopeCases(t)
	for _, template := range families {
		c := findEnvelope(t, cases, template, true, true, true)
		e, err := c.parse()
		if err != nil {
			t.Fatal(err)
		}
		g, err := e.Grammar(c.callsOf()["required"])
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.GBNF()
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		path := filepath.Join("testdata", "envelope", template+".gbnf")
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || text != string(want) {
			t.Errorf("%s: %v; got\n%s", path, err, text)
		}
	}
}

// TestEnvelopeAccepts tries answers written by hand, with one call only.
func TestEnvelopeAccepts(t *testing.T) {
	const (
		qwen3   = "Qwen-Qwen3-0.6B"
		qwen35  = "Qwen3.5-4B"
		nemo    = "mistralai-Mistral-Nemo-Instruct-2407"
		llama3  = "meta-llama-Llama-3.3-70B-Instruct"
		gptOSS  = "openai-gpt-oss-120b"
		lfm     = "LFM2.5-8B-A1B"
		hermes  = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rom\", \"days\": 2}}\n</tool_call>"
		thought = "<think>\nSo.\n</think>\n\n"
		coder   = "<tool_call>\n<function=get_weather>\n<parameter=days>\n2\n</parameter>\n<parameter=city>\n\"R\"\n</parameter>\n</function>\n</tool_call>"
	)
	cases := envelopeCases(t)
	for _, tt := range []struct {
		template, mode, answer string
		thinking, want         bool
	}{
		{qwen3, "required", hermes, false, true},
		{qwen3, "required", strings.Replace(hermes, "2", "12", 1), false, false},
		{qwen3, "required", "Sure. " + hermes, false, false},
		{qwen3, "required", hermes + "\n" + hermes, false, false},
		{qwen3, "required", thought + hermes, true, true},
		{qwen3, "required", thought + hermes, false, false},
		{qwen3, "required", hermes, true, true},
		{qwen3, "required", "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", false, true},
		{qwen3, "named", "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", false, false},
		{qwen3, "auto", "Sure. " + hermes, false, true},
		{qwen3, "auto", "It rains.", false, true},
		{qwen3, "auto", "", false, true},
		{qwen3, "auto", "Sure. <tool_call>\n", false, false},
		{qwen3, "auto", "Sure. <tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>", false, false},
		{qwen35, "required", coder, false, true},
		{qwen35, "required", strings.Replace(coder, "<parameter=city>\n\"R\"\n</parameter>\n", "", 1), false, false},
		{qwen35, "required", strings.Replace(coder, "=days>\n2", "=city>\nX", 1), false, false},
		{qwen35, "required", strings.Replace(coder, "\n2\n", "\n\"2\"\n", 1), false, false},
		{qwen35, "required", coder + "\n" + coder, false, false},
		{qwen35, "required", "So.\n</think>\n\n" + coder, true, true},
		{nemo, "required", `[TOOL_CALLS][{"name": "now", "arguments": {}, "id": "abcdefghi"}]`, false, true},
		{nemo, "required", `[TOOL_CALLS][{"name": "now", "arguments": {}, "id": "a"}]`, false, false},
		{llama3, "named", `{"name": "get_weather", "parameters": {"city": "Rom"}}`, false, true},
		{llama3, "named", `{"name": "get_weather", "parameters": {"town": "Rom"}}`, false, false},
		{gptOSS, "required", ` to=functions.now<|channel|>commentary json<|message|>{}`, false, true},
		{gptOSS, "required", `<|channel|>final<|message|>Hi`, false, false},
		{gptOSS, "auto", `<|channel|>final<|message|>Hi`, false, true},
		{gptOSS, "required", `<|channel|>analysis<|message|>So.<|end|><|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}`, true, true},
		{lfm, "required", `<|tool_call_start|>[get_weather(days=1, city="Rom")]<|tool_call_end|>`, false, true},
		{lfm, "required", `<|tool_call_start|>[get_weather(days=1)]<|tool_call_end|>`, false, false},
		{lfm, "required", `<|tool_call_start|>[get_weather(city=Rom)]<|tool_call_end|>`, false, false},
	} {
		c := findEnvelope(t, cases, tt.template, tt.mode != "auto", false, tt.thinking)
		e, err := c.parse()
		if err != nil {
			t.Fatal(err)
		}
		g, err := e.Grammar(c.callsOf()[tt.mode])
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Check([]byte(tt.answer)); (err == nil) != tt.want {
			t.Errorf("%s, %s, thinking %v: %q: %v", tt.template, tt.mode, tt.thinking, tt.answer, err)
		}
	}
}

// TestEnvelopeMarkers: preserved texts are tokens of the envelope, never of
// arguments.
func TestEnvelopeMarkers(t *testing.T) {
	c := findEnvelope(t, envelopeCases(t), "Qwen-Qwen3-0.6B", true, false, false)
	e, err := ParseEnvelope([]byte(c.Envelope.Parser), c.Envelope.Generation, c.Envelope.Preserved)
	if err != nil {
		t.Fatal(err)
	}
	g, err := e.Grammar(Call{Mode: Required, Tools: []Tool{{Name: "now", Schema: []byte(`{"const":{"a":"<tool_call>"}}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := g.GBNF()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(text, "<tool_call> ") != 1 || !strings.Contains(text, `\"<tool_call>\"`) {
		t.Errorf("got\n%s", text)
	}
}

// TestChain: arguments beyond what a Bag holds come in order.
func TestChain(t *testing.T) {
	item := func(text string, required bool) BagItem { return BagItem{Literal(text), required} }
	for _, tt := range []struct {
		bag      Bag
		yes, not []string
	}{
		{
			Bag{Items: []BagItem{item("a", false), item("b", true), item("c", false)}, Sep: Literal(","), Min: 1},
			[]string{"b", "a,b", "b,c", "a,b,c"}, []string{"", "a", "b,a", "a,c", ",b"},
		},
		{
			Bag{Items: []BagItem{item("a", false), item("b", false)}, Sep: Seq{}},
			[]string{"", "a", "b", "ab"}, []string{"ba", "aa"},
		},
	} {
		g := &Grammar{Rules: []Rule{{"root", chain(tt.bag)}}}
		for _, text := range tt.yes {
			if !g.Match([]byte(text)) {
				t.Errorf("%q is not in %v", text, tt.bag)
			}
		}
		for _, text := range tt.not {
			if g.Match([]byte(text)) {
				t.Errorf("%q is in %v", text, tt.bag)
			}
		}
	}
}

func TestEnvelopeErrors(t *testing.T) {
	c := findEnvelope(t, envelopeCases(t), "Qwen3.5-4B", true, false, false)
	e, err := c.parse()
	if err != nil {
		t.Fatal(err)
	}
	var toolErr *ToolError
	var refused *Unenforceable
	strict := func(schema string) Call {
		return Call{Mode: Required, Tools: []Tool{{Name: "get_weather", Strict: true, Schema: []byte(schema)}}}
	}
	for _, schema := range []string{
		`{"properties":{"city":{"type":"string"}},"required":["town"]}`,
		`{"properties":{"city":{},"days":{}},"required":["city"],"dependentRequired":{"city":["town"]}}`,
		`{"type":"array"}`,
	} {
		if _, err := e.Grammar(strict(schema)); !errors.As(err, &toolErr) || !errors.As(err, &refused) {
			t.Errorf("%s: %v", schema, err)
		}
	}
	if _, err := e.Grammar(Call{Mode: Named, Name: "f", Tools: envelopeTools}); err == nil {
		t.Error("a tool that is not there")
	}
	other := *e
	other.generation = "elsewhere"
	if _, err := other.Grammar(strict("{}")); err == nil {
		t.Error("another generation prompt")
	}
	for _, text := range []string{"", "{}", `{"parsers":[{"type":"sequence","children":[1]}],"root":0}`, `{"parsers":[{"type":"ref","name":"a"}],"root":0}`} {
		if _, err := ParseEnvelope([]byte(text), "", nil); err == nil {
			t.Errorf("read %q", text)
		}
	}
}

func TestSkeleton(t *testing.T) {
	got, err := Skeleton([]Tool{
		{Name: "f", Schema: []byte(`{"properties":{"b":{"enum":["x",1]},"a":{"type":["array","null"]},"c":{"$ref":"#/$defs/s"},"d":false},` +
			`"required":["b"],"$defs":{"s":{"pattern":"^x"}}}`)},
		{Name: "g"},
	}, Limits{})
	want := []string{`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"},"c":{"type":"string"}}}`, `{"type":"object","properties":{}}`}
	if err != nil || len(got) != 2 || string(got[0].Schema) != want[0] || string(got[1].Schema) != want[1] {
		t.Errorf("got %+v, %v", got, err)
	}
	var toolErr *ToolError
	var invalid *InvalidSchema
	if _, err := Skeleton([]Tool{{Name: "f", Schema: []byte(`{`)}}, Limits{}); !errors.As(err, &toolErr) || !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
}

// FuzzEnvelope looks for parsers that make reading them panic or hang.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"parsers":[{"type":"tag","tag":"tool-name","child":1},{"type":"literal","literal":"now"}],"rules":{},"root":0}`), "", "now")
	f.Add([]byte(`{"parsers":[{"type":"sequence","children":[1,0]},{"type":"tag","tag":"tool-name","child":2},{"type":"literal","literal":"now"}],"rules":{},"root":0}`), "n", "")
	f.Fuzz(func(t *testing.T, parser []byte, generation, example string) {
		e, err := ParseEnvelope(parser, generation, []string{"now"})
		if err != nil {
			return
		}
		e.Learn(example)
		if g, err := e.Grammar(Call{Tools: envelopeTools, Parallel: true, Thinking: true, Limits: Limits{Work: 200_000}}); err == nil {
			_ = newWalker(g, 1, 100).text()
		}
	})
}
