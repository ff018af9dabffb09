package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/b3os/b3infer/grammar"
	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
	"github.com/google/go-cmp/cmp"
)

const citySchema = `{"type":"object","properties":{"city":{"enum":["Rome","Oslo"]},"days":{"type":"integer","minimum":1,"maximum":9}},"required":["city","days"],"additionalProperties":false}`

var cityTool = Tool{Name: "get_weather", Description: "Tells.", Parameters: citySchema, Param: "tools.0.function.parameters"}

// cityCall is a call as the fake's template has them.
const cityCall = `<tool_call>{"name": "get_weather", "arguments": {"city":"Rome","days":2}}</tool_call>`

// isCity checks what citySchema asks for.
func isCity(text string) error {
	var v struct {
		City string
		Days int
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	if v.City != "Rome" && v.City != "Oslo" || v.Days < 1 || v.Days > 9 {
		return fmt.Errorf("%q is not what the schema asks for", text)
	}
	return nil
}

// A model that draws its tokens at random says what it was asked for.
func TestForms(t *testing.T) {
	call := func(change func(*Request)) func(*Request) {
		return func(r *Request) {
			r.Tools = []Tool{cityTool}
			change(r)
		}
	}
	tests := []struct {
		name   string
		change func(*Request)
		value  bool // the content is a value
		calls  int  // at least so many calls; -1: at most one
	}{
		{"schema", func(r *Request) { r.Format = Format{Schema: citySchema, Strict: true} }, true, 0},
		{"required", call(func(r *Request) { r.Choice.Mode = ToolRequired }), false, 1},
		{"named", call(func(r *Request) { r.Choice = ToolChoice{ToolNamed, "get_weather"} }), false, 1},
		{"required, one call", call(func(r *Request) { r.Choice.Mode, r.OneCall = ToolRequired, true }), false, 1},
		{"strict", call(func(r *Request) { r.Tools[0].Strict = true }), false, 0},
		{"schema, no calls", call(func(r *Request) { r.Format.Schema, r.Choice.Mode = citySchema, ToolNone }), true, 0},
	}
	for _, tt := range tests {
		for _, thinking := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, thinking %v", tt.name, thinking), func(t *testing.T) {
				e, _ := newEngine(t, llamatest.Options{MeanAnswer: 20}, Params{})
				var wg sync.WaitGroup
				for seed := range int64(40) {
					wg.Go(func() {
						r := user("hi")
						r.Thinking, r.MaxTokens, r.Sampling.Seed = thinking, 300, &seed
						tt.change(r)
						a := ask(t, e, r)
						checkForm(t, r, a, tt.value, tt.calls)
					})
				}
				wg.Wait()
			})
		}
	}
}

func checkForm(t *testing.T, r *Request, a answer, value bool, least int) {
	t.Helper()
	if a.err != nil {
		t.Error(a.err)
		return
	}
	if a.finish.Reason == FinishLength {
		return // it has come as far as the tokens went
	}
	if value {
		if err := isCity(a.content); err != nil {
			t.Error(err)
		}
	}
	if len(a.calls) < least || r.OneCall && len(a.calls) > 1 {
		t.Errorf("%d calls", len(a.calls))
	}
	for _, c := range a.calls {
		if err := isCity(c.arguments); err != nil || c.name != "get_weather" || !c.complete {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if wants := len(a.calls) > 0; wants != (a.finish.Reason == FinishCalls) {
		t.Errorf("%d calls, finished by %s", len(a.calls), a.finish.Reason)
	}
}

// Where the form leaves no choice but one token's text, that token stands, whatever the
// model has drawn of it. With logprobs the drawn ones stand, and a bias is for those too.
func TestFormsAreSpelledAsTheTokenizerDoes(t *testing.T) {
	e, m := newEngine(t, llamatest.Options{MeanAnswer: 20}, Params{})
	tokens := func(text string) []llama.Token {
		out, err := m.Tokenize(nil, []llama.Part{{Text: []byte(text)}}, false)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	banned := int(tokens("user")[0])
	tests := []struct {
		name        string
		change      func(*Request)
		least, most int // answers of 40 that have more tokens than their texts
	}{
		{"a form", func(*Request) {}, 0, 0},
		{"logprobs", func(r *Request) { r.Logprobs = true }, 1, 40},
		{"a banned token", func(r *Request) { r.Sampling.Bias = map[int]float64{banned: -100} }, 40, 40},
	}
	for _, tt := range tests {
		more := 0
		for seed := range int64(40) {
			r := user("hi")
			r.Format, r.Sampling.Seed = Format{Schema: `{"enum":["user","users"]}`, Strict: true}, &seed
			tt.change(r)
			a := ask(t, e, r)
			if a.err != nil {
				t.Fatal(a.err)
			}
			if a.finish.Usage.Answer > len(tokens(a.content))+1 { // the end token
				more++
			}
		}
		if more < tt.least || more > tt.most {
			t.Errorf("%s: %d of 40 answers have more tokens than their texts", tt.name, more)
		}
	}
}

// What the model wants to say is said where the form allows it.
func TestFormsLeaveTheModelItsChoice(t *testing.T) {
	oslo := strings.NewReplacer("Rome", "Oslo", "2}", "7}").Replace(cityCall)
	tests := []struct {
		name, says string
		change     func(*Request)
		want       answer
	}{
		{
			"a call of its own", "Let me see." + cityCall, func(r *Request) {},
			answer{content: "Let me see.", calls: []call{{name: "get_weather", arguments: `{"city":"Rome","days":2}`, complete: true}}, finish: Finish{Reason: FinishCalls}},
		},
		{
			"two calls", cityCall + oslo, func(r *Request) {},
			answer{calls: []call{
				{name: "get_weather", arguments: `{"city":"Rome","days":2}`, complete: true},
				{name: "get_weather", arguments: `{"city":"Oslo","days":7}`, complete: true},
			}, finish: Finish{Reason: FinishCalls}},
		},
		{
			"one of two calls", cityCall + oslo, func(r *Request) { r.OneCall = true; r.Choice.Mode = ToolRequired },
			answer{calls: []call{{name: "get_weather", arguments: `{"city":"Rome","days":2}`, complete: true}}, finish: Finish{Reason: FinishCalls}},
		},
		{
			"text", "No call.", func(r *Request) { r.Tools[0].Strict = true },
			answer{content: "No call.", finish: Finish{Reason: FinishStop}},
		},
		{
			"reasoning and a call", "So.\n</think>\n\n" + cityCall, func(r *Request) { r.Thinking = true; r.Tools[0].Strict = true },
			answer{reasoning: "So.", calls: []call{{name: "get_weather", arguments: `{"city":"Rome","days":2}`, complete: true}}, finish: Finish{Reason: FinishCalls}},
		},
		{
			"a value in place of a call", `{"city":"Oslo","days":3}`, func(r *Request) { r.Format.Schema = citySchema },
			answer{content: `{"city":"Oslo","days":3}`, finish: Finish{Reason: FinishStop}},
		},
		{
			"a call in place of a value", cityCall, func(r *Request) { r.Format.Schema = citySchema },
			answer{calls: []call{{name: "get_weather", arguments: `{"city":"Rome","days":2}`, complete: true}}, finish: Finish{Reason: FinishCalls}},
		},
		{
			"what does not parse is text", `<tool_call>{"name": "get_weather", "arguments": {"city": }}</tool_call>`, func(r *Request) {},
			answer{content: `<tool_call>{"name": "get_weather", "arguments": {"city": }}</tool_call>`, finish: Finish{Reason: FinishStop}},
		},
		{
			"a call that ends early is text", `<tool_call>{"name": "get_weather", "arguments": {"city": `, func(r *Request) {},
			answer{content: `<tool_call>{"name": "get_weather", "arguments": {"city": `, finish: Finish{Reason: FinishStop}},
		},
		{
			"a stop text", "I stop here." + cityCall, func(r *Request) { r.Stop = []string{"stop"} },
			answer{content: "I ", finish: Finish{Reason: FinishStop, Stop: "stop"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := newEngine(t, llamatest.Options{Script: says(tt.says)}, Params{})
			r := user("hi")
			r.Tools = []Tool{cityTool}
			tt.change(r)
			got := ask(t, e, r)
			got.finish = Finish{Reason: got.finish.Reason, Stop: got.finish.Stop}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(answer{}, call{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A call that the tokens do not suffice for is told as far as it has come.
func TestCutCall(t *testing.T) {
	for _, mode := range []ToolMode{ToolAuto, ToolRequired} {
		e, _ := newEngine(t, llamatest.Options{Script: says(cityCall)}, Params{})
		r := user("hi")
		r.Tools, r.Choice.Mode, r.MaxTokens = []Tool{cityTool}, mode, 40
		a := ask(t, e, r)
		if a.err != nil || a.finish.Reason != FinishLength || a.content != "" {
			t.Errorf("got %+v", a)
		}
		if len(a.calls) != 1 || a.calls[0].complete || !strings.HasPrefix(`{"city":"Rome","days":2}`, a.calls[0].arguments) {
			t.Errorf("mode %d: got %+v", mode, a.calls)
		}
	}
}

// Reasoning that goes on for too long is ended, so that the form gets its tokens.
func TestThinkingLeavesRoomForTheForm(t *testing.T) {
	e, _ := newEngine(t, llamatest.Options{Script: says(strings.Repeat("hm ", 1000))}, Params{})
	r := user("hi")
	r.Thinking, r.MaxTokens = true, 200
	r.Format.Schema = citySchema
	a := ask(t, e, r)
	if a.err != nil || a.finish.Reason != FinishStop || isCity(a.content) != nil {
		t.Errorf("got %+v", a)
	}
	if n := a.finish.Usage.Reasoning; n < 100 || n > 110 {
		t.Errorf("%d tokens of reasoning", n)
	}
	r = user("hi")
	r.Thinking, r.MaxTokens, r.ThinkingBudget = true, 200, 20
	if a := ask(t, e, r); a.err != nil || len(a.reasoning) > 30 || a.content == "" {
		t.Errorf("got %+v", a)
	}
}

func TestFormErrors(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 40) + `{}` + strings.Repeat(`}}`, 40)
	long := `{"description":"` + strings.Repeat("x", 1<<16) + `"}`
	tests := []struct {
		name   string
		change func(*Request)
		want   Error
	}{
		{"required without tools", func(r *Request) { r.Choice.Mode = ToolRequired }, Error{Code: CodeInvalid, Param: "tool_choice"}},
		{"another name", func(r *Request) { r.Tools = []Tool{cityTool}; r.Choice = ToolChoice{ToolNamed, "other"} }, Error{Code: CodeInvalid, Param: "tool_choice"}},
		{"invalid schema", func(r *Request) { r.Format = Format{Schema: `{"type":"objekt"}`, Param: "format.schema"} }, Error{Code: CodeInvalid, Param: "format.schema.type"}},
		{"invalid schema of a tool", func(r *Request) {
			r.Tools = []Tool{cityTool, {Name: "b", Parameters: `{"properties":{"a":{"minimum":"1"}}}`, Param: "tools.1"}}
		}, Error{Code: CodeInvalid, Param: "tools.1.properties.a.minimum"}},
		{"unenforceable", func(r *Request) {
			r.Format = Format{Schema: `{"type":"object","properties":{"a/b":{"type":"string","pattern":"(a)\\1"}}}`, Strict: true, Param: "s"}
		}, Error{Code: CodeUnsupported, Param: "s.properties.a/b.pattern"}},
		{"unenforceable in a strict tool", func(r *Request) {
			r.Tools = []Tool{{Name: "b", Strict: true, Parameters: `{"type":"object","properties":{"a":{"type":"string","pattern":"(a)\\1"}}}`, Param: "t"}}
		}, Error{Code: CodeUnsupported, Param: "t.properties.a.pattern"}},
		{"too long", func(r *Request) { r.Format = Format{Schema: long, Param: "s"} }, Error{Code: CodeUnsupported, Param: "s"}},
		{"too long, a free tool", func(r *Request) { r.Tools = []Tool{{Name: "b", Parameters: long, Param: "t"}} }, Error{Code: CodeUnsupported, Param: "t"}},
		{"too deep", func(r *Request) { r.Tools = []Tool{{Name: "b", Parameters: deep, Param: "t"}} }, Error{Code: CodeUnsupported}},
	}
	e, _ := newEngine(t, llamatest.Options{}, Params{})
	for _, tt := range tests {
		r := user("hi")
		tt.change(r)
		_, err := e.Prepare(t.Context(), r)
		var got *Error
		switch {
		case !errors.As(err, &got):
			t.Errorf("%s: got %v", tt.name, err)
		case got.Code != tt.want.Code, tt.want.Param != "" && got.Param != tt.want.Param:
			t.Errorf("%s: got %+v", tt.name, got)
		}
	}
}

// Preempted and left answers keep their form, and leave nothing behind.
func TestFormsUnderPressure(t *testing.T) {
	e, _ := newEngine(t, llamatest.Options{}, Params{Cells: 256, Parallel: 8})
	var wg sync.WaitGroup
	for seed := range int64(60) {
		wg.Go(func() {
			r := user(strings.Repeat("x ", int(seed)))
			r.Sampling.Seed = &seed
			r.Format = Format{Schema: `{"type":"array","items":{"enum":["abcdefgh"]},"minItems":9,"maxItems":9}`, Strict: true}
			p, err := e.Prepare(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			if seed%5 == 0 {
				for range e.Generate(t.Context(), p) {
					return // left at once
				}
			}
			a := fold(e.Generate(t.Context(), p))
			want := "[" + strings.Join(slices.Repeat([]string{`"abcdefgh"`}, 9), ",") + "]"
			if a.err != nil || a.content != want {
				t.Errorf("got %+v", a)
			}
		})
	}
	wg.Wait()
}

func TestNoCallsWhereNoneAreWanted(t *testing.T) {
	e, _ := newEngine(t, llamatest.Options{Script: says("So: " + cityCall)}, Params{})
	r := user("hi")
	r.Tools, r.Choice.Mode, r.MaxTokens = []Tool{cityTool}, ToolNone, 100
	a := ask(t, e, r)
	if a.err != nil || len(a.calls) > 0 || !strings.HasPrefix(a.content, "So: ") || strings.Contains(a.content, "<tool_call>") {
		t.Errorf("got %+v", a)
	}
}

// goesOn is a template whose prompt behind the results of calls goes on with the
// assistant's turn, without reasoning.
type goesOn struct{ llama.Chat }

func (c goesOn) Render(in llama.ChatInput) (llama.Prompt, error) {
	p, err := c.Chat.Render(in)
	if in.Messages[len(in.Messages)-1].Role == "tool" {
		p.Generation, p.Thinking = "", false
	}
	return p, err
}

func TestEnvelopeBehindResults(t *testing.T) {
	model := llamatest.New(llamatest.Options{})
	defer model.Close()
	fake, err := model.NewChat(llama.ChatParams{})
	if err != nil {
		t.Fatal(err)
	}
	chat := goesOn{fake}
	f := newForms(model.Vocab(), chat)
	r := user("hi")
	r.Thinking, r.Tools = true, []Tool{cityTool}
	for _, want := range []grammar.Piece{{Kind: grammar.Reasoning, Text: "So"}, {Kind: grammar.Content, Text: "So"}} {
		p, err := chat.Render(r.chatInput(time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		e, err := f.envelope(r, &p)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Read().Push("So"); !slices.Equal(got, []grammar.Piece{want}) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		r.Messages = append(r.Messages, Message{Role: RoleTool, CallID: "1", Content: []string{"ok"}})
	}
}
