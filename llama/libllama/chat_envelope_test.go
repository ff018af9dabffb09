//go:build cgo

package libllama

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/b3os/b3infer/grammar/grammartest"
	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

var update = flag.Bool("update", false, "rewrite the files of package grammar that come from llama.cpp")

// envelopeFolder is where package grammar, which knows no llama.cpp, has the
// templates' parsers and the answers that it makes of them.
var envelopeFolder = filepath.Join("..", "..", "grammar", "testdata", "envelope")

// The tools of all envelopes in tests, as grammar.Skeleton makes them of the schemas
// in package grammar's tests.
var envelopeTools = []llama.ChatTool{
	{Name: "get_weather", Description: "d", Parameters: `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"number"}}}`},
	{Name: "now", Description: "d", Parameters: `{"type":"object","properties":{}}`},
}

// An envelopeCase is what common/chat says of a template for one kind of answer.
type envelopeCase struct {
	Template                     string
	Required, Parallel, Thinking bool
	NoTools                      bool `json:",omitempty"`
	Envelope                     llama.Envelope
	Error                        string
}

func envelopeCases(t *testing.T) []envelopeCase {
	t.Helper()
	sources := testTemplates(t)
	var cases, plain []envelopeCase
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		chat := newTestTemplate(t, sources[name])
		for i := range 8 {
			c := envelopeCase{Template: name, Required: i&1 > 0, Parallel: i&2 > 0, Thinking: i&4 > 0}
			cases = append(cases, c.fill(chat))
		}
		for _, thinking := range []bool{false, true} {
			plain = append(plain, envelopeCase{Template: name, Thinking: thinking, NoTools: true}.fill(chat))
		}
	}
	return append(cases, plain...)
}

// fill asks the template.
func (c envelopeCase) fill(chat llama.Chat) envelopeCase {
	in := llama.EnvelopeInput{Tools: envelopeTools, Required: c.Required, Parallel: c.Parallel, Thinking: c.Thinking}
	if c.NoTools {
		in.Tools = nil
	}
	var err error
	if c.Envelope, err = chat.Envelope(in); err != nil {
		c.Error = err.Error()
	}
	return c
}

// sortedJSON is a JSON text with the keys of objects in order: common/chat writes
// the rules in none.
func sortedJSON(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}

// TestEnvelopesAreAsStored holds the parsers that package grammar is tested with
// against llama.cpp.
func TestEnvelopesAreAsStored(t *testing.T) {
	cases := envelopeCases(t)
	for i := range cases {
		cases[i].Envelope.Parser = sortedJSON(t, cases[i].Envelope.Parser)
	}
	grammartest.HoldJSON(t, filepath.Join(envelopeFolder, "parsers.json.gz"), cases, *update)
}

// A walked answer is a random text of a grammar that package grammar made of a case:
// Mode is auto, required or named, the last for get_weather.
type walked struct {
	Case int
	Mode string
	Text string
}

// TestWalkedCallsParse reads random answers of the grammars of calls with
// common/chat's own parsers: what was meant as a call is one, with arguments that
// the schemas allow.
func TestWalkedCallsParse(t *testing.T) {
	cases := envelopeCases(t)
	var answers []walked
	grammartest.ReadJSON(t, filepath.Join(envelopeFolder, "walks.json.gz"), &answers)
	if len(answers) < 4000 {
		t.Fatalf("only %d answers", len(answers))
	}
	calls := 0
	for _, a := range answers {
		c := cases[a.Case]
		parsed, err := parseAnswer(c.Envelope, a.Text)
		if err != nil && a.Mode == "answer" {
			// A parser of bare JSON calls takes any object for one. What does not parse is text.
			parsed, err = parsedAnswer{content: a.Text}, nil
		}
		if err != nil {
			t.Errorf("%s: %q: %v", c.Template, a.Text, err)
			continue
		}
		calls += len(parsed.calls)
		if a.Mode == "answer" {
			if why := wrongAnswer(parsed, c); why != "" {
				t.Errorf("%s, thinking %v: %q: %s: %+v", c.Template, c.Thinking, a.Text, why, parsed)
			}
			continue
		}
		if why := wrongCalls(parsed.calls, a.Mode, c.Parallel); why != "" {
			t.Errorf("%s, %s: %q: %s: %+v", c.Template, a.Mode, a.Text, why, parsed.calls)
		}
	}
	t.Logf("%d answers with %d calls", len(answers), calls)
}

// TestFakeEnvelope reads an answer with the parser that llamatest's fake makes.
func TestFakeEnvelope(t *testing.T) {
	model := llamatest.New(llamatest.Options{})
	defer model.Close()
	chat, err := model.NewChat(llama.ChatParams{})
	if err != nil {
		t.Fatal(err)
	}
	for _, thinking := range []bool{false, true} {
		e, err := chat.Envelope(llama.EnvelopeInput{Tools: envelopeTools, Required: true, Parallel: true, Thinking: thinking})
		if err != nil {
			t.Fatal(err)
		}
		answer := `<tool_call>{"name": "now", "arguments": {}}</tool_call><tool_call>{"name": "get_weather", "arguments": {"city":"a"}}</tool_call>`
		if thinking {
			answer = "So.\n</think>\n\n" + answer
		}
		got, err := parseAnswer(e, answer)
		want := []llama.ChatCall{{Name: "now", Arguments: "{}"}, {Name: "get_weather", Arguments: `{"city":"a"}`}}
		if err != nil || !slices.Equal(got.calls, want) {
			t.Errorf("thinking %v: got %+v, %v", thinking, got, err)
		}
	}
}

// wrongAnswer says what is wrong with an answer that had to be a value or calls.
func wrongAnswer(a parsedAnswer, c envelopeCase) string {
	var value struct {
		Unit  string
		Count int
	}
	d := json.NewDecoder(bytes.NewReader([]byte(a.content)))
	d.DisallowUnknownFields()
	switch err := d.Decode(&value); {
	case len(a.calls) > 0 && a.content == "" && !c.NoTools:
		return wrongCalls(a.calls, "required", c.Parallel)
	case len(a.calls) > 0:
		return "calls beside the value"
	case err != nil:
		return err.Error()
	case d.More() || value.Unit != "a" && value.Unit != "b" || value.Count < 1 || value.Count > 9:
		return "another value"
	}
	return ""
}

// wrongCalls says what is wrong with the calls of an answer, if anything is.
func wrongCalls(calls []llama.ChatCall, mode string, parallel bool) string {
	switch {
	case mode != "auto" && len(calls) == 0:
		return "no call"
	case !parallel && len(calls) > 1:
		return "several calls"
	}
	for _, c := range calls {
		var arguments struct {
			City *string
			Days *int
		}
		d := json.NewDecoder(bytes.NewReader([]byte(c.Arguments)))
		d.DisallowUnknownFields()
		err := d.Decode(&arguments)
		days := arguments.Days
		switch {
		case err != nil:
			return err.Error()
		case c.Name == "now" && (arguments.City != nil || days != nil),
			c.Name == "get_weather" && (arguments.City == nil || days != nil && (*days < 1 || *days > 9)):
			return "wrong arguments"
		case c.Name != "get_weather" && (c.Name != "now" || mode == "named"):
			return "a call of another tool"
		}
	}
	return ""
}

// A reading is what common/chat reads in an answer. Kind is whole, cut, changed,
// framed or written.
type reading struct {
	Case               int
	Kind, Text         string
	Failed             bool `json:",omitempty"`
	Content, Reasoning string
	Calls              []llama.ChatCall `json:",omitempty"`
}

// TestReadingsAreAsStored holds what package grammar's Reader is tested with against
// common/chat: the answers of walks.json.gz, and others made of them.
func TestReadingsAreAsStored(t *testing.T) {
	cases := envelopeCases(t)
	var answers []walked
	grammartest.ReadJSON(t, filepath.Join(envelopeFolder, "walks.json.gz"), &answers)
	random := rand.New(rand.NewPCG(1, 2))
	var readings []reading
	read := func(r reading) {
		parsed, err := parseAnswer(cases[r.Case].Envelope, r.Text)
		r.Failed, r.Content, r.Reasoning, r.Calls = err != nil, parsed.content, parsed.reasoning, parsed.calls
		readings = append(readings, r)
	}
	for i, a := range answers {
		kind, text := changedAnswer(random, i, a.Text)
		read(reading{Case: a.Case, Kind: "whole", Text: a.Text})
		read(reading{Case: a.Case, Kind: kind, Text: text})
	}
	for _, template := range slices.Sorted(maps.Keys(writtenAnswers)) {
		for i, c := range cases {
			if c.Template == template && c.Parallel && !c.Required {
				for _, text := range writtenAnswers[template] {
					read(reading{Case: i, Kind: "written", Text: text})
				}
			}
		}
	}
	grammartest.HoldJSON(t, filepath.Join(envelopeFolder, "readings.json.gz"), readings, *update)
}

// writtenAnswers are answers of some templates that no grammar makes.
var writtenAnswers = map[string][]string{
	"google-gemma-4-31B-it": {
		"It rains.",
		`<|tool_call>call:get_weather{city:<|"|>Rom "x" \y<|"|>,days:2}<tool_call|>`,
		`Sure.<|tool_call>call:get_weather{ city:<|"|><|"|>,a:{b:[1, -2.5e3,<|"|>z<|"|>,[],{}],c:true},d:null}<tool_call|><|tool_call>call:now{}<tool_call|>`,
		"<|channel>thought\nSo.<channel|>Sure.<|tool_call>call:now{}<tool_call|>",
		"<|tool_call>call:now{}",
		`<|tool_call>call:get_weather{city:<|"|>Ro`,
		"<|tool_call>call:now",
		"Sure.<channel|>lost<|tool_call>call:now{}<tool_call|>",
		"<|tool_call>call:now{]<tool_call|>",
	},
	"LFM2.5-8B-A1B": {
		`<|tool_call_start|>[get_weather(city='It\'s "x"\n', days=[1, True, None, 'a', "b'c", {'k': False, "l": {}}]), now()]<|tool_call_end|>`,
		`<|tool_call_start|>[get_weather(days={"Tr": true, 'None': null}, city="True")]<|tool_call_end|>`,
		`<|tool_call_start|>[get_weather(days=-1.5e-3)]<|tool_call_end|>`,
		`<|tool_call_start|>[get_weather(days=Tr`,
		`<|tool_call_start|>[get_weather(days=True)]`,
		`<|tool_call_start|>[get_weather(days=Truer)]<|tool_call_end|>`,
		`<think>So.</think>Sure.<|tool_call_start|>[now()]<|tool_call_end|>`,
	},
	"Kimi-K3": {
		`So.<|close|>think<|sep|><|open|>response<|sep|>Sure.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" id="a"<|sep|>` +
			`<|open|>argument key="days" type="object"<|sep|>{'a': {True: "x"}<|close|>argument<|sep|><|open|>argument key="city" type="string"<|sep|>"R"<|close|>argument<|sep|>` +
			`<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>`,
	},
	"openai-gpt-oss-120b": {
		"<|channel|>analysis<|message|>So.<|end|><|start|>assistant<|channel|>commentary<|message|>Sure.<|end|><|start|>assistant<|channel|>analysis<|message|> More.<|end|>" +
			"<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\" : \"Rom\"}",
		"<|channel|>final<|message|>Hi.<|end|>more",
		"<|channel|>commentary to=functions.now<|message|>{}<|call|>",
		"<|channel|>commentary to=functions.none<|message|>{}",
		"Hi.",
	},
	"meetkai-functionary-medium-v3.2": {
		"all\nSure. >>>get_weather\n{\"city\": \"Rom\"}now\n{}",
		"all\nSure. a >>> b >>>now\n{}",
		"all\nSure. >>>none\n{}",
		"now\n{} ",
	},
	"mistralai-Mistral-Nemo-Instruct-2407": {
		`Sure.[TOOL_CALLS][{"name": "now", "arguments": {}, "id": "abcdefghi"}, {"name": "get_weather", "arguments": {"city": "\u0052\"[TOOL_CALLS]"}, "id": 12}]`,
		`[TOOL_CALLS][{"name": "now", "arguments": {}}]`,
	},
	"CohereForAI-c4ai-command-r7b-12-2024-tool_use": {
		`<|START_THINKING|>So.<|END_THINKING|><|START_ACTION|>[{"tool_call_id": "0", "tool_name": "now", "parameters": {}}, {"tool_call_id": 1, "tool_name": "get_weather", "parameters": {"city": "Rom"}}]<|END_ACTION|>`,
	},
	"openbmb-MiniCPM5-1B": {
		"So.</think>Sure.<function name=\"get_weather\"><param name=\"city\"><![CDATA[a</param>\nb]]></param><param name=\"days\">[true, null]</param></function>",
		"So.</think>Sure.<function name=\"get_weather\"><param name=\"city\"><![CDATA[a</param>\nb]]>x</param></function>",
	},
	"Qwen-Qwen3-0.6B": {
		"<think>\n \n</think>\n\nSure.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": [1]}\n</tool_call>",
		"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": { \"days\" :1.0e0 ,\"days\":\"'\\u0041\" } , {\"name\":\"now\",\"arguments\":\"\"}}\n</tool_call>",
		"<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n",
		"<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\nDone.",
		"a <tool_call> b <tool_call>\nc",
	},
	"Qwen3.5-4B": {
		"So.\n</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=days>\n{\"a\": 'x'}\n</parameter>\n</function>\n</tool_call>",
		"So.\n</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\n</parameter>\n\n</parameter>\n<parameter=city>\n</parameter>x\n</parameter>\n</function>\n</tool_call>\nDone.",
	},
	"MiniMax-M3": {
		"<mm:think>So.</mm:think>Sure.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"get_weather\">]<]minimax[>[<city>Rom \"x\"]<]minimax[>[</city>]<]minimax[>[<days>2]<]minimax[>[</days>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
	},
	"muse-glimmer": {
		" to=self<|message|>So.<|eom|><|start|>assistant to=user<|message|>Sure.<|eom|><|start|>assistant to=now<|message|><atem:function_calls>\n<atem:invoke name=\"now\">\n</atem:invoke>\n</atem:function_calls>",
	},
}

// changedAnswer is an answer that was cut, changed in a place, or has other text
// around it.
func changedAnswer(random *rand.Rand, i int, text string) (kind, changed string) {
	runes := []rune(text)
	at, to := random.IntN(len(runes)+1), random.IntN(len(runes)+1)
	at, to = min(at, to), max(at, to)
	switch i % 4 {
	case 0, 1:
		return "cut", string(runes[:at])
	case 2:
		to = min(to, at+3)
		other := []string{"", string(runes[at:to]) + string(runes[at:to]), "x", `"`, "\n", "<", "True"}
		return "changed", string(runes[:at]) + other[random.IntN(len(other))] + string(runes[to:])
	}
	before := []string{"", "Sure. ", "\n\n", "a < b\n", "{"}
	behind := []string{"", "\n", "\n\nDone.", "<", "}"}
	return "framed", before[random.IntN(len(before))] + text + behind[random.IntN(len(behind))]
}
