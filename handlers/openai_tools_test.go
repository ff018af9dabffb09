package handlers

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/llama/llamatest"
)

// These tests are the official SDK against the real engine on the fake model.

var citySchema = map[string]any{
	"type":                 "object",
	"properties":           map[string]any{"city": map[string]any{"enum": []string{"Eugene", "Bend"}}},
	"required":             []string{"city"},
	"additionalProperties": false,
}

// weather is the question and the tool for it.
func weather() openai.ChatCompletionNewParams {
	params := question()
	params.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage("What is the weather in Eugene and in Bend?")}
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name:        "get_weather",
		Description: openai.String("The weather of a city."),
		Parameters:  citySchema,
	})}
	return params
}

const (
	callEugene = `<tool_call>{"name": "get_weather", "arguments": {"city":"Eugene"}}</tool_call>`
	callBend   = `<tool_call>{"name": "get_weather", "arguments": {"city":"Bend"}}</tool_call>`
)

// streamed is what the SDK makes of a stream.
func streamed(t *testing.T, client *openai.Client, params openai.ChatCompletionNewParams) (*openai.ChatCompletion, []string) {
	t.Helper()
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	var sum openai.ChatCompletionAccumulator
	var finished []string
	for stream.Next() {
		if !sum.AddChunk(stream.Current()) {
			t.Fatalf("the SDK refuses %s", stream.Current().RawJSON())
		}
		if call, ok := sum.JustFinishedToolCall(); ok {
			finished = append(finished, call.Arguments)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return &sum.ChatCompletion, finished
}

// said is an answer without the ids of its calls, which must differ.
func said(t *testing.T, c *openai.ChatCompletion) spoken {
	t.Helper()
	message := c.Choices[0].Message
	s := spoken{Content: message.Content, Finish: c.Choices[0].FinishReason}
	var ids []string
	for _, call := range message.ToolCalls {
		s.Calls = append(s.Calls, spokenCall{"", call.Type, call.Function.Name, call.Function.Arguments})
		ids = append(ids, call.ID)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != len(message.ToolCalls) || slices.Contains(ids, "") {
		t.Errorf("the ids are %q", ids)
	}
	return s
}

func TestContractC151_C163_SDKCalls(t *testing.T) {
	eugene := spokenCall{Type: "function", Name: "get_weather", Arguments: `{"city":"Eugene"}`}
	bend := spokenCall{Type: "function", Name: "get_weather", Arguments: `{"city":"Bend"}`}
	for _, c := range []struct {
		name, says string
		change     func(*openai.ChatCompletionNewParams)
		want       spoken
	}{
		{"two_calls", callEugene + callBend, func(*openai.ChatCompletionNewParams) {},
			spoken{Calls: []spokenCall{eugene, bend}, Finish: "tool_calls"}},
		{"text_and_call", "I will look. " + callBend, func(*openai.ChatCompletionNewParams) {},
			spoken{Content: "I will look. ", Calls: []spokenCall{bend}, Finish: "tool_calls"}},
		{"no_call", "It rains.", func(*openai.ChatCompletionNewParams) {}, spoken{Content: "It rains.", Finish: "stop"}},
		{"not_a_call", `<tool_call>{"name": "get_weather", "arguments": {"city"}}</tool_call>`, func(*openai.ChatCompletionNewParams) {},
			spoken{Content: `<tool_call>{"name": "get_weather", "arguments": {"city"}}</tool_call>`, Finish: "stop"}},
		{"C123_required", callEugene, func(p *openai.ChatCompletionNewParams) {
			p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
		}, spoken{Calls: []spokenCall{eugene}, Finish: "tool_calls"}},
		{"C123_named", callBend, func(p *openai.ChatCompletionNewParams) {
			p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "get_weather"})
		}, spoken{Calls: []spokenCall{bend}, Finish: "tool_calls"}},
		{"strict", callBend, func(p *openai.ChatCompletionNewParams) {
			p.Tools[0].OfFunction.Function.Strict = openai.Bool(true)
		}, spoken{Calls: []spokenCall{bend}, Finish: "tool_calls"}},
		{"C149_cut", callEugene, func(p *openai.ChatCompletionNewParams) {
			p.MaxTokens = openai.Int(40)
			p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
		}, spoken{Finish: "length"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := sdk(t, serve(t, newEngine(t, answering(c.says), engine.Params{})))
			params := weather()
			c.change(&params)
			whole, err := client.Chat.Completions.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			got := said(t, whole)
			if c.want.Finish != "length" {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			} else if len(got.Calls) != 1 || got.Finish != "length" || !strings.HasPrefix(eugene.Arguments, got.Calls[0].Arguments) {
				t.Errorf("got %+v", got)
			}
			sum, finished := streamed(t, &client, params)
			if diff := cmp.Diff(got, said(t, sum)); diff != "" {
				t.Errorf("the stream, -whole +streamed:\n%s", diff)
			}
			if len(finished) != len(got.Calls) {
				t.Errorf("the SDK sees %d calls end: %q", len(finished), finished)
			}
		})
	}
}

// A conversation of two turns: the model calls, the client answers, the model uses
// what it was told.
func TestContractC120_SDKToolLoop(t *testing.T) {
	script := llamatest.Options{Script: func(prompt string) (string, bool) {
		if strings.Contains(prompt, "<|im_start|>tool ") {
			return "It is 52F in Eugene and 40F in Bend.", strings.Contains(prompt, "52F") && strings.Contains(prompt, "40F")
		}
		return callEugene + callBend, true
	}}
	client := sdk(t, serve(t, newEngine(t, script, engine.Params{})))
	for _, stream := range []bool{false, true} {
		params := weather()
		ask := func() *openai.ChatCompletion {
			if stream {
				sum, _ := streamed(t, &client, params)
				return sum
			}
			answer, err := client.Chat.Completions.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		first := ask().Choices[0].Message
		params.Messages = append(params.Messages, first.ToParam())
		for _, call := range first.ToolCalls {
			var arguments struct{ City string }
			if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil {
				t.Fatal(err)
			}
			result := map[string]string{"Eugene": "52F", "Bend": "40F"}[arguments.City]
			params.Messages = append(params.Messages, openai.ToolMessage(result, call.ID))
		}
		want := spoken{Content: "It is 52F in Eugene and 40F in Bend.", Finish: "stop"}
		if diff := cmp.Diff(want, said(t, ask())); diff != "" {
			t.Errorf("stream %v, -want +got:\n%s", stream, diff)
		}
	}
}

// A model that speaks at random answers in the form that it is asked for.
func TestContractC125_C126_SDKFormats(t *testing.T) {
	client := sdk(t, serve(t, newEngine(t, llamatest.Options{MeanAnswer: 20}, engine.Params{})))
	schema := func(strict param.Opt[bool], schema any) openai.ChatCompletionNewParamsResponseFormatUnion {
		return openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "city", Strict: strict, Schema: schema},
		}}
	}
	object := openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}}
	for _, c := range []struct {
		name   string
		format openai.ChatCompletionNewParamsResponseFormatUnion
		bound  bool // to the cities
	}{
		{"C125_json_object", object, false},
		{"C125_json_schema", schema(openai.Bool(true), citySchema), true},
		{"C126_strict_unset", schema(param.Opt[bool]{}, citySchema), true},
		{"C126_strict_null", schema(param.Null[bool](), citySchema), true},
		{"C126_no_schema", schema(param.Opt[bool]{}, nil), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := 0
			for seed := range int64(10) {
				params := question()
				params.ResponseFormat, params.Seed, params.MaxTokens = c.format, openai.Int(seed), openai.Int(400)
				answer, err := client.Chat.Completions.New(t.Context(), params)
				if err != nil {
					t.Fatal(err)
				}
				if answer.Choices[0].FinishReason == "length" {
					continue
				}
				whole++
				content := answer.Choices[0].Message.Content
				var city struct{ City string }
				if err := json.Unmarshal([]byte(content), &city); err != nil || !strings.HasPrefix(content, "{") {
					t.Errorf("%v: %q", err, content)
				}
				if c.bound && city.City != "Eugene" && city.City != "Bend" {
					t.Errorf("got %q", content)
				}
			}
			if whole < 5 {
				t.Errorf("only %d of 10 answers came to their end", whole)
			}
		})
	}
}

// Calls that are asked for come, and no more than are allowed.
func TestContractC123_C124_SDKForcedCalls(t *testing.T) {
	client := sdk(t, serve(t, newEngine(t, llamatest.Options{MeanAnswer: 20}, engine.Params{})))
	for seed := range int64(20) {
		params := weather()
		params.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
		params.ParallelToolCalls = openai.Bool(false)
		params.Seed, params.MaxTokens = openai.Int(seed), openai.Int(200)
		answer, err := client.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		got := said(t, answer)
		if len(got.Calls) != 1 || got.Finish != "tool_calls" || got.Content != "" || !json.Valid([]byte(got.Calls[0].Arguments)) {
			t.Errorf("seed %d: got %+v", seed, got)
		}
	}
}

func TestContractC335_SDKToolErrors(t *testing.T) {
	client := sdk(t, serve(t, newEngine(t, answering("Hi"), engine.Params{})))
	parameters := func(schema map[string]any, strict bool) func(*openai.ChatCompletionNewParams) {
		return func(p *openai.ChatCompletionNewParams) {
			p.Tools[0].OfFunction.Function.Parameters = schema
			p.Tools[0].OfFunction.Function.Strict = openai.Bool(strict)
		}
	}
	format := func(schema map[string]any) func(*openai.ChatCompletionNewParams) {
		return func(p *openai.ChatCompletionNewParams) {
			p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "x", Strict: openai.Bool(true), Schema: schema},
			}
		}
	}
	property := func(keyword string, v any) map[string]any {
		return map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string", keyword: v}}}
	}
	var deep any = map[string]any{}
	for range 40 {
		deep = map[string]any{"not": deep}
	}
	for _, c := range []struct {
		name        string
		change      func(*openai.ChatCompletionNewParams)
		code, param string
	}{
		{"custom_tool", func(p *openai.ChatCompletionNewParams) {
			p.Tools = append(p.Tools, openai.ChatCompletionToolUnionParam{OfCustom: &openai.ChatCompletionCustomToolParam{
				Custom: openai.ChatCompletionCustomToolCustomParam{Name: "x"}}})
		}, "unsupported_parameter", "tools.1.type"},
		{"allowed_tools", func(p *openai.ChatCompletionNewParams) {
			p.ToolChoice.OfAllowedTools = &openai.ChatCompletionAllowedToolChoiceParam{}
		}, "unsupported_parameter", "tool_choice.type"},
		{"C123_unknown_name", func(p *openai.ChatCompletionNewParams) {
			p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "f"})
		}, "invalid_request", "tool_choice.function.name"},
		{"C099_size", parameters(property("pattern", strings.Repeat("x", 1<<16)), false), "unsupported_parameter", "tools.0.function.parameters"},
		{"C100_depth", format(map[string]any{"properties": deep}), "unsupported_parameter", "response_format.json_schema.schema"},
		{"C101_invalid", parameters(property("pattern", 5), false), "invalid_request", "tools.0.function.parameters.properties.a.pattern"},
		{"unresolved", format(property("$ref", "#/$defs/x")), "invalid_request", "response_format.json_schema.schema.properties.a.$ref"},
		{"C101_unenforceable", parameters(property("pattern", `(a)\1`), true), "unsupported_parameter",
			"tools.0.function.parameters.properties.a.pattern"},
		{"C101_unenforceable_format", format(property("pattern", `(a)\1`)), "unsupported_parameter",
			"response_format.json_schema.schema.properties.a.pattern"},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := weather()
			c.change(&params)
			_, err := client.Chat.Completions.New(t.Context(), params)
			got, ok := errors.AsType[*openai.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			want := []any{400, c.code, c.param, badRequest}
			if diff := cmp.Diff(want, fieldsOf(got)[:4]); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", got.Message, diff)
			}
		})
	}
	for name, change := range map[string]func(*openai.ChatCompletionNewParams){
		"unenforceable, best effort": parameters(property("pattern", `(a)\1`), false),
		"annotations":                parameters(property("x-order", 1), true),
	} {
		params := weather()
		change(&params)
		if _, err := client.Chat.Completions.New(t.Context(), params); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
