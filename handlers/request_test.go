package handlers

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/b3os/b3infer/engine"
)

// withMessages is a request with these messages, as they stand in JSON.
func withMessages(messages string) string {
	return `{"model":"` + testModel + `","messages":` + messages + `}`
}

// talk is a refusal of a conversation.
func talk(name, messages, code, param, message string) refusal {
	return refusal{name, post(chatPath, withMessages(messages)), 400, wireError{message, badRequest, code, param}}
}

func TestContractParameters(t *testing.T) {
	const inv, uns = "invalid_request", "unsupported_parameter"
	runRefusals(t, serve(t, says("Hi")), []refusal{
		bad("C047_C106_unknown", `"prompt_logprobs":1`, uns, "prompt_logprobs", "prompt_logprobs is not supported on this node"),
		bad("C106_unknown_null", `"foo":null`, uns, "foo", "foo is not supported on this node"),
		bad("C140_reasoning_effort", `"reasoning_effort":"low"`, uns, "reasoning_effort", "reasoning_effort is not supported on this node"),
		bad("C138_template_kwargs", `"chat_template_kwargs":{"foo":1}`, uns, "chat_template_kwargs.foo",
			"chat_template_kwargs.foo is not supported on this node"),
		bad("stream_options", `"stream_options":{"include_obfuscation":true}`, uns, "stream_options.include_obfuscation",
			"stream_options.include_obfuscation is not supported on this node"),
		bad("case_matters", `"Temperature":1`, uns, "Temperature", "Temperature is not supported on this node"),
		bad("C046_temperature_type", `"temperature":"hot"`, inv, "temperature", "temperature must be a number"),
		bad("C127_temperature_low", `"temperature":-0.1`, inv, "temperature", "temperature must be between 0 and 2"),
		bad("temperature_high", `"temperature":2.01`, inv, "temperature", "temperature must be between 0 and 2"),
		bad("temperature_1e400", `"temperature":1e400`, inv, "temperature", "temperature is out of range"),
		bad("C109_top_p", `"top_p":1.1`, inv, "top_p", "top_p must be between 0 and 1"),
		bad("min_p", `"min_p":-1`, inv, "min_p", "min_p must be between 0 and 1"),
		bad("C133_presence", `"presence_penalty":-2.1`, inv, "presence_penalty", "presence_penalty must be between -2 and 2"),
		bad("C133_frequency", `"frequency_penalty":2.1`, inv, "frequency_penalty", "frequency_penalty must be between -2 and 2"),
		bad("repetition", `"repetition_penalty":-1`, inv, "repetition_penalty", "repetition_penalty must be between 0 and 100"),
		bad("C137_top_k", `"top_k":-2`, inv, "top_k", "top_k must be at least -1"),
		bad("top_k_fraction", `"top_k":1.5`, inv, "top_k", "top_k must be an integer"),
		bad("top_k_type", `"top_k":"1"`, inv, "top_k", "top_k must be an integer"),
		bad("C129_max_tokens_0", `"max_tokens":0`, inv, "max_tokens", "max_tokens must be at least 1"),
		bad("C129_max_tokens_negative", `"max_tokens":-1`, inv, "max_tokens", "max_tokens must be at least 1"),
		bad("max_tokens_huge_negative", `"max_tokens":-1e30`, inv, "max_tokens", "max_tokens must be at least 1"),
		bad("C129_max_completion_tokens", `"max_completion_tokens":0`, inv, "max_completion_tokens", "max_completion_tokens must be at least 1"),
		bad("C132_n", `"n":2`, uns, "n", "n must be 1 on this node"),
		bad("C132_n_0", `"n":0`, uns, "n", "n must be 1 on this node"),
		bad("C131_seed_type", `"seed":1.5`, inv, "seed", "seed must be an integer"),
		bad("seed_range", `"seed":9223372036854775808`, inv, "seed", "seed is out of range"),
		bad("seed_1e30", `"seed":1e30`, inv, "seed", "seed is out of range"),
		bad("C130_stop_type", `"stop":5`, inv, "stop", "stop must be a string or an array of strings"),
		bad("C130_stop_element", `"stop":["a",5]`, inv, "stop.1", "stop.1 must be a string"),
		bad("stop_null_element", `"stop":[null]`, inv, "stop.0", "stop.0 must be a string"),
		bad("stop_empty_text", `"stop":["a",""]`, inv, "stop.1", "stop.1 must not be empty"),
		bad("stop_17", `"stop":["`+strings.Repeat(`a","`, 16)+`a"]`, inv, "stop", "stop must have at most 16 texts"),
		bad("stream_type", `"stream":"yes"`, inv, "stream", "stream must be true or false"),
		bad("stream_options_type", `"stream_options":[]`, inv, "stream_options", "stream_options must be an object"),
		bad("include_usage_type", `"stream_options":{"include_usage":1}`, inv, "stream_options.include_usage",
			"stream_options.include_usage must be true or false"),
		bad("C142_route", `"route":"remote"`, inv, "route", "route must be local or gateway"),
		bad("user_type", `"user":1`, inv, "user", "user must be a string"),
		bad("metadata_type", `"metadata":"x"`, inv, "metadata", "metadata must be an object"),
		bad("bias_type", `"logit_bias":[]`, inv, "logit_bias", "logit_bias must be an object"),
		bad("bias_value_type", `"logit_bias":{"5":"x"}`, inv, "logit_bias.5", "logit_bias.5 must be a number"),
		bad("bias_range", `"logit_bias":{"5":100.5}`, inv, "logit_bias.5", "logit_bias.5 must be between -100 and 100"),
		bad("bias_name", `"logit_bias":{"hello":1}`, inv, "logit_bias.hello", "logit_bias.hello must be named by a token id"),
		bad("bias_negative_id", `"logit_bias":{"-5":1}`, inv, "logit_bias.-5", "logit_bias.-5 must be named by a token id"),
		bad("bias_two_names", `"logit_bias":{"05":1}`, inv, "logit_bias.05", "logit_bias.05 must be named by a token id"),
		bad("bias_huge_id", `"logit_bias":{"99999999999999999999":1}`, inv, "logit_bias.99999999999999999999",
			"logit_bias.99999999999999999999 names a token that no vocabulary has"),
		bad("C134_logprobs_type", `"logprobs":1`, inv, "logprobs", "logprobs must be true or false"),
		bad("C134_top_logprobs_type", `"logprobs":true,"top_logprobs":"1"`, inv, "top_logprobs", "top_logprobs must be an integer"),
		bad("C134_top_logprobs_low", `"logprobs":true,"top_logprobs":-1`, inv, "top_logprobs", "top_logprobs must be between 0 and 20"),
		bad("C134_top_logprobs_high", `"logprobs":true,"top_logprobs":21`, inv, "top_logprobs", "top_logprobs must be between 0 and 20"),
		bad("top_logprobs_alone", `"top_logprobs":0`, inv, "top_logprobs", "top_logprobs is only allowed with logprobs set to true"),
		bad("top_logprobs_without", `"logprobs":false,"top_logprobs":2`, inv, "top_logprobs",
			"top_logprobs is only allowed with logprobs set to true"),
	})
}

func TestContractMessages(t *testing.T) {
	// C045: the paths are dotted, and indexes are numbers.
	const inv, uns = "invalid_request", "unsupported_parameter"
	part := func(p string) string { return `[{"role":"user","content":[{"type":"text","text":"a"},` + p + `]}]` }
	call := func(c string) string { return `[{"role":"assistant","tool_calls":[` + c + `]}]` }
	runRefusals(t, serve(t, says("Hi")), []refusal{
		talk("empty", `[]`, inv, "messages", "messages must have at least one message"),
		talk("C107_null", `null`, inv, "messages", "messages must have at least one message"),
		talk("type", `"Hi"`, inv, "messages", "messages must be an array"),
		talk("element_type", `["Hi"]`, inv, "messages.0", "messages.0 must be an object"),
		talk("element_null", `[null]`, inv, "messages.0.role", "messages.0.role is required"),
		talk("C116_role_required", `[{"role":"user"},{"content":"Hi"}]`, inv, "messages.1.role", "messages.1.role is required"),
		talk("C115_role", `[{"role":"function"}]`, inv, "messages.0.role",
			"messages.0.role must be one of system, developer, user, assistant, tool"),
		talk("unknown_key", `[{"role":"user","audio":{}}]`, uns, "messages.0.audio", "messages.0.audio is not supported on this node"),
		talk("content_type", `[{"role":"user","content":5}]`, inv, "messages.0.content",
			"messages.0.content must be a string or an array of parts"),
		talk("C117_part_type", part(`{"type":"video"}`), inv, "messages.0.content.1.type",
			"messages.0.content.1.type must be text or image_url"),
		talk("C117_audio", part(`{"type":"input_audio","input_audio":{}}`), uns, "messages.0.content.1.input_audio",
			"messages.0.content.1.input_audio is not supported on this node"),
		talk("C117_part_without_text", part(`{"type":"text"}`), inv, "messages.0.content.1.text", "messages.0.content.1.text is required"),
		talk("part_without_type", part(`{"text":"b"}`), inv, "messages.0.content.1.type", "messages.0.content.1.type is required"),
		talk("part_null", part(`null`), inv, "messages.0.content.1.type", "messages.0.content.1.type is required"),
		talk("part_string", part(`"b"`), inv, "messages.0.content.1", "messages.0.content.1 must be an object"),
		talk("C088_image", part(`{"type":"image_url","image_url":{"url":"https://x/y.png"}}`), uns, "messages.0.content.1",
			"messages.0.content.1 is an image_url, which is not supported on this node"),
		talk("text_with_image", part(`{"type":"text","text":"b","image_url":{}}`), inv, "messages.0.content.1.image_url",
			"messages.0.content.1.image_url does not belong to a part of type text"),
		talk("C119_call_without_id", call(`{"type":"function","function":{"name":"f","arguments":"{}"}}`), inv,
			"messages.0.tool_calls.0.id", "messages.0.tool_calls.0.id is required"),
		talk("C119_call_type", call(`{"id":"1","type":"custom"}`), inv, "messages.0.tool_calls.0.type",
			"messages.0.tool_calls.0.type must be function"),
		talk("C119_call_without_function", call(`{"id":"1","type":"function"}`), inv, "messages.0.tool_calls.0.function",
			"messages.0.tool_calls.0.function is required"),
		talk("C119_arguments_missing", call(`{"id":"1","type":"function","function":{"name":"f"}}`), inv,
			"messages.0.tool_calls.0.function.arguments", "messages.0.tool_calls.0.function.arguments is required"),
		talk("C119_arguments_object", call(`{"id":"1","type":"function","function":{"name":"f","arguments":{}}}`), inv,
			"messages.0.tool_calls.0.function.arguments", "messages.0.tool_calls.0.function.arguments must be a string"),
		talk("C120_tool_without_call_id", `[{"role":"tool","content":"x"}]`, inv, "messages.0.tool_call_id",
			"messages.0.tool_call_id is required"),
		talk("C120_tool_without_call", `[{"role":"user"},{"role":"tool","tool_call_id":"c1","content":"x"}]`, inv,
			"messages.1.tool_call_id", "messages.1.tool_call_id names no tool call of an earlier message"),
		talk("C120_tool_before_its_call", `[{"role":"tool","tool_call_id":"1"},`+
			`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":""}}]}]`, inv,
			"messages.0.tool_call_id", "messages.0.tool_call_id names no tool call of an earlier message"),
	})
}

// What passes, and what it means to the engine.
func TestContractToRequest(t *testing.T) {
	hi := []engine.Message{{Role: engine.RoleUser, Content: []string{"Hi"}}}
	just := func(change func(*engine.Request)) *engine.Request {
		r := &engine.Request{Messages: hi}
		change(r)
		return r
	}
	for _, c := range []struct {
		name, more string
		want       *engine.Request
	}{
		{"C114_least", ``, just(func(*engine.Request) {})},
		{"C105_C146_all_null", `"temperature":null,"top_p":null,"top_k":null,"min_p":null,"presence_penalty":null,
			"frequency_penalty":null,"repetition_penalty":null,"logit_bias":null,"max_tokens":null,"max_completion_tokens":null,
			"stop":null,"seed":null,"n":null,"stream":null,"stream_options":null,"chat_template_kwargs":null,
			"response_format":null,"logprobs":null,"top_logprobs":null,"route":null,"tools":null,"tool_choice":null,
			"parallel_tool_calls":null,"user":null,"metadata":null,"store":null,"service_tier":null`, just(func(*engine.Request) {})},
		{"C105_nested_null", `"stream_options":{"include_usage":null},"chat_template_kwargs":{"enable_thinking":null}`,
			just(func(*engine.Request) {})},
		{"C136_C141_ignored", `"user":"u","metadata":{"a":[1,{"b":null}]},"store":true,"service_tier":"auto"`,
			just(func(*engine.Request) {})},
		{"nothing_asked", `"tools":[],"logprobs":false,"response_format":{"type":"text"},"n":1,"route":"local","stop":[]`,
			just(func(*engine.Request) {})},
		{"C108_top_p_0", `"top_p":0`, just(func(r *engine.Request) { r.Sampling.TopP = new(1e-9) })},
		{"C137_sampling", `"temperature":0.5,"top_p":0.9,"top_k":-1,"min_p":0.1,"presence_penalty":-2,"frequency_penalty":2,
			"repetition_penalty":1.1,"seed":-7`, just(func(r *engine.Request) {
			r.Sampling = engine.Sampling{Temperature: new(0.5), TopP: new(0.9), TopK: new(-1), MinP: new(0.1),
				Presence: new(-2.0), Frequency: new(2.0), Repetition: new(1.1), Seed: new(int64(-7))}
		})},
		{"C137_bias", `"logit_bias":{"0":-100,"999":100,"7":null}`,
			just(func(r *engine.Request) { r.Sampling.Bias = map[int]float64{0: -100, 999: 100} })},
		{"whole_numbers", `"top_k":4e1,"seed":12.0,"max_tokens":10.0,"n":1.0`, just(func(r *engine.Request) {
			r.Sampling.TopK, r.Sampling.Seed, r.MaxTokens = new(40), new(int64(12)), 10
		})},
		{"seed_range", `"seed":9223372036854775807`, just(func(r *engine.Request) { r.Sampling.Seed = new(int64(math.MaxInt64)) })},
		{"max_tokens_huge", `"max_tokens":1e18,"top_k":123456789012345678901234567890`, just(func(r *engine.Request) {
			r.MaxTokens, r.Sampling.TopK = math.MaxInt32, new(math.MaxInt32)
		})},
		{"C128_completion_wins", `"max_tokens":50,"max_completion_tokens":3`, just(func(r *engine.Request) { r.MaxTokens = 3 })},
		{"C130_stop_string", `"stop":"END"`, just(func(r *engine.Request) { r.Stop = []string{"END"} })},
		{"C130_stop_list", `"stop":["a","\n"]`, just(func(r *engine.Request) { r.Stop = []string{"a", "\n"} })},
		{"C134_logprobs", `"logprobs":true`, just(func(r *engine.Request) { r.Logprobs = true })},
		{"C134_top_logprobs", `"logprobs":true,"top_logprobs":20`, just(func(r *engine.Request) { r.Logprobs, r.TopLogprobs = true, 20 })},
		{"C139_thinking", `"chat_template_kwargs":{"enable_thinking":true}`, just(func(r *engine.Request) { r.Thinking = true })},
	} {
		t.Run(c.name, func(t *testing.T) { checkRequest(t, chatBody(c.more), c.want) })
	}
}

// checkRequest sends a body that must pass and compares what the engine gets.
func checkRequest(t *testing.T, body string, want *engine.Request) {
	t.Helper()
	e := says("Hi")
	if w := do(t, serve(t, e), post(chatPath, body)); w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if e.got.Arrived.IsZero() {
		t.Error("the time of arrival is not set")
	}
	if diff := cmp.Diff(want, e.got, cmpopts.IgnoreFields(engine.Request{}, "Arrived")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestContractToMessages(t *testing.T) {
	for _, c := range []struct {
		name, messages string
		want           []engine.Message
	}{
		{"C115_C116_roles", `[{"role":"system","content":"a"},{"role":"developer","content":""},{"role":"user","content":null},
			{"role":"assistant"},{"role":"user","content":[]}]`, []engine.Message{
			{Role: "system", Content: []string{"a"}}, {Role: "developer", Content: []string{""}}, {Role: "user"},
			{Role: "assistant"}, {Role: "user", Content: []string{}}}},
		{"C117_parts", `[{"role":"user","name":"Ann","content":[{"type":"text","text":"a"},{"type":"text","text":"b","image_url":null}]}]`,
			[]engine.Message{{Role: "user", Name: "Ann", Content: []string{"a", "b"}}}},
		{"C118_nulls", `[{"role":"user","content":"a","name":null,"tool_calls":null,"tool_call_id":null,"refusal":null,"reasoning_content":null}]`,
			[]engine.Message{{Role: "user", Content: []string{"a"}}}},
		{"C119_C120_calls", `[{"role":"assistant","content":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1.0}"}},
			{"id":"c2","type":"function","function":{"name":"g","arguments":""}}]},
			{"role":"tool","tool_call_id":"c2","content":"two"},{"role":"tool","tool_call_id":"c1","content":"one"}]`, []engine.Message{
			{Role: "assistant", Calls: []engine.Call{{ID: "c1", Name: "f", Arguments: `{"x":1.0}`}, {ID: "c2", Name: "g"}}},
			{Role: "tool", CallID: "c2", Content: []string{"two"}}, {Role: "tool", CallID: "c1", Content: []string{"one"}}}},
		{"C121_reasoning", `[{"role":"assistant","content":"a","reasoning_content":"because"}]`,
			[]engine.Message{{Role: "assistant", Content: []string{"a"}, Reasoning: "because"}}},
		{"refusal_is_content", `[{"role":"assistant","content":null,"refusal":"no"}]`,
			[]engine.Message{{Role: "assistant", Content: []string{"no"}}}},
		{"page_sample", `[{"role":"system","content":"string","name":"string","tool_calls":[{"id":"string","type":"function",
			"function":{"name":"string","arguments":"string"}}],"tool_call_id":"string","refusal":"string","reasoning_content":"string"}]`,
			[]engine.Message{{Role: "system", Content: []string{"string"}, Name: "string"}}},
		{"control_texts", `[{"role":"user","content":"<|im_end|>\u0000\ud83d\ude00"}]`,
			[]engine.Message{{Role: "user", Content: []string{"<|im_end|>\x00😀"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkRequest(t, withMessages(c.messages), &engine.Request{Messages: c.want})
		})
	}
}

func TestHostileBodies(t *testing.T) {
	h := serve(t, says("Hi"))
	deep := strings.Repeat("[", 10<<20)
	for _, c := range []struct{ name, body, param, message string }{
		{"not_json", `hello`, "", "the body is not valid JSON: invalid character 'h' at start of value at byte 0"},
		{"not_an_object", `[1]`, "", "the body must be an object"},
		{"a_string", `"x"`, "", "the body must be an object"},
		{"truncated", `{"model":"m","messages":[{"role":"us`, "messages.0.role", "messages.0.role is not valid JSON: unexpected EOF at byte 36"},
		{"trailing", chatBody("") + ` {}`, "", "the body is not valid JSON: invalid character '{' after top-level value at byte 72"},
		{"duplicate", chatBody(`"model":"x"`), "model", "model is given twice"},
		{"duplicate_escaped", chatBody(`"mod\u0065l":"x"`), "model", "model is given twice"},
		{"duplicate_deep", withMessages(`[{"role":"user","role":"user"}]`), "messages.0.role", "messages.0.role is given twice"},
		{"duplicate_in_ignored", chatBody(`"metadata":{"a":{"b":1,"b":1}}`), "metadata.a.b", "metadata.a.b is given twice"},
		{"invalid_utf8", chatBody("\"user\":\"\xff\""), "user", "user is not valid JSON: invalid UTF-8 at byte 79"},
		{"overlong_utf8", chatBody("\"user\":\"\xc0\xaf\""), "user", "user is not valid JSON: invalid UTF-8 at byte 79"},
		{"lone_surrogate", chatBody(`"user":"\ud800"`), "user", "user is not valid JSON: invalid surrogate pair `\\ud800\"}` in string at byte 79"},
		{"nan", chatBody(`"temperature":NaN`), "temperature", "temperature is not valid JSON: invalid character 'N' at start of value at byte 85"},
		{"ten_megabytes_of_brackets", deep[:10<<20-1], "", "the body must be an object"},
		{"brackets_in_messages", `{"model":"` + testModel + `","messages":` + deep[:9<<20], clip("messages" + strings.Repeat(".0", 200)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := do(t, h, post(chatPath, c.body))
			got := errorOf(t, w.Body.Bytes())
			if c.message == "" {
				c.message = got.Message
			}
			want := wireError{c.message, badRequest, "invalid_request", c.param}
			if diff := cmp.Diff(want, got); diff != "" || w.Code != 400 {
				t.Errorf("status %d, -want +got:\n%s", w.Code, diff)
			}
			if len(got.Message) > 1000 {
				t.Errorf("%d bytes of message", len(got.Message))
			}
		})
	}
	if w := do(t, h, post(chatPath, chatBody(""))); w.Code != 200 {
		t.Errorf("the next request: %d", w.Code)
	}
}

// 100,000 messages are answered within 2 s, whatever else the machine does.
func TestManyMessages(t *testing.T) {
	e := says("Hi")
	many := strings.Repeat(`{"role":"user","content":"Hello there"},{"role":"assistant","content":[{"type":"text","text":"x"}]},`, 50_000)
	body := withMessages("[" + strings.TrimSuffix(many, ",") + "]")
	h := serve(t, e)
	whole := cpuTime(t, func() {
		if w := newRecorder(h, post(chatPath, body)); w.Code != 200 || len(e.got.Messages) != 100_000 {
			t.Fatalf("status %d, %d messages", w.Code, len(e.got.Messages))
		}
	})
	t.Logf("%v of CPU time", whole)
	if whole > 2*time.Second {
		t.Errorf("%v of CPU time", whole)
	}
}

// cpuTime is the time that f takes of the process's CPUs, the garbage
// collector's work for it included: a busy machine does not change it much.
func cpuTime(t *testing.T, f func()) time.Duration {
	t.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	best := time.Duration(math.MaxInt64)
	for range 3 {
		start := used()
		f()
		best = min(best, used()-start)
	}
	return best
}

// What current clients send, recorded, is understood as far as it has no images.
func TestRecordedClients(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var recorded struct {
				Method, Path string
				Headers      map[string]string
				Body         json.RawMessage
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &recorded); err != nil {
				t.Fatal(err)
			}
			r := post(recorded.Path, string(recorded.Body))
			r.Method = recorded.Method
			for name, value := range recorded.Headers {
				r.Header.Set(name, value)
			}
			if w := do(t, serve(t, says("Hi")), r); w.Code != http.StatusOK {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
}

// FuzzChat checks that no body is answered with anything but 200 or 400, 404
// or 413, and that the answer keeps to openapi.yaml.
func FuzzChat(f *testing.F) {
	for _, more := range []string{``, `"stop":["a"]`, `"logit_bias":{"1":2}`, `"tools":[]`, `"response_format":{"type":"text"}`,
		`"tools":[{"type":"function","function":{"name":"f","parameters":{"a":[{}]},"strict":true}},{"type":"x"}],"tool_choice":"none"`,
		`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}`,
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"},"strict":null}}`,
		`"seed":1e2,"max_tokens":1e30`, `"foo":1`, `"stream":true,"stream_options":{"include_usage":true}`} {
		f.Add(chatBody(more))
	}
	f.Add(withMessages(`[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"x"}]}]`))
	f.Add("{\"model\":\"\xff\"}")
	f.Fuzz(func(t *testing.T, body string) {
		switch w := do(t, serve(t, says("Hi")), post(chatPath, body)); w.Code {
		case 200, 400, 404, 413:
		default:
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}

func TestInteger(t *testing.T) {
	type both struct {
		I *integer `json:"i"`
		L *limit   `json:"l"`
	}
	for _, c := range []struct {
		literal string
		exact   int64
		clamped int64
		refused string
	}{
		{"0", 0, 0, ""}, {"-0", 0, 0, ""}, {"-0.0", 0, 0, ""}, {"1e3", 1000, 1000, ""}, {"12e-1", 0, 0, "i must be an integer"},
		{"9223372036854775807", math.MaxInt64, math.MaxInt64, ""}, {"-9223372036854775808", math.MinInt64, math.MinInt64, ""},
		{"9223372036854775808", 0, math.MaxInt64, "i is out of range"}, {"-9.3e18", 0, math.MinInt64, "i is out of range"},
		{"1e400", 0, math.MaxInt64, "i is out of range"}, {"-1e400", 0, math.MinInt64, "i is out of range"}, {"1e-400", 0, 0, ""},
	} {
		var got both
		err := decode([]byte(fmt.Sprintf(`{"l":%s,"i":%s}`, c.literal, c.literal)), &got)
		message := ""
		if err != nil {
			message = err.(*engine.Error).Message
		}
		if strings.ReplaceAll(message, "l must", "i must") != c.refused {
			t.Errorf("%s: %v, want %q", c.literal, err, c.refused)
		}
		if got.L != nil && int64(*got.L) != c.clamped {
			t.Errorf("%s: limit %d, want %d", c.literal, *got.L, c.clamped)
		}
		if err == nil && int64(*got.I) != c.exact {
			t.Errorf("%s: integer %d, want %d", c.literal, *got.I, c.exact)
		}
	}
}

// A decode of a large body costs its size, not more.
func TestDecodeMemory(t *testing.T) {
	body := []byte(withMessages(`[{"role":"user","content":"` + strings.Repeat("x", 8<<20) + `"}]`))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var wire chatRequest
	if err := decode(body, &wire, strict); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 3*uint64(len(body)) {
		t.Errorf("%d bytes for a body of %d", used, len(body))
	}
}
