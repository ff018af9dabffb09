package handlers

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

// These tests have the real engine behind the handlers, on the fake model.

func newEngine(t *testing.T, o llamatest.Options, p engine.Params) *engine.Engine {
	t.Helper()
	model := llamatest.New(o)
	p.Log = slog.New(slog.DiscardHandler)
	e, err := engine.New(model, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func answering(text string) llamatest.Options {
	return llamatest.Options{Script: func(string) (string, bool) { return text, true }}
}

// contentOf is the text of a whole answer or of a stream.
func contentOf(t *testing.T, body string) (content, reasoning string) {
	t.Helper()
	texts := []string{body}
	if strings.HasPrefix(body, "data: ") {
		texts = events(t, body)
	}
	for _, text := range texts {
		if text == "[DONE]" {
			continue
		}
		type words struct {
			Content          string
			ReasoningContent string `json:"reasoning_content"`
		}
		var answer struct {
			Choices []struct{ Message, Delta words }
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		for _, c := range answer.Choices {
			content += c.Message.Content + c.Delta.Content
			reasoning += c.Message.ReasoningContent + c.Delta.ReasoningContent
		}
	}
	return content, reasoning
}

func TestEngineAnswers(t *testing.T) {
	h := serve(t, newEngine(t, answering("Die Höhe 😀 <b>\n\"END\" more"), engine.Params{}))
	for _, c := range []struct{ name, more, want, finish string }{
		{"whole", ``, "Die Höhe 😀 <b>\n\"END\" more", "stop"},
		{"C130_stop", `"stop":["END"]`, "Die Höhe 😀 <b>\n\"", "stop"},
		{"C149_length", `"max_tokens":3`, "Die", "length"},
	} {
		for _, stream := range []string{`"stream":false`, `"stream":true`} {
			t.Run(c.name+stream, func(t *testing.T) {
				more := stream
				if c.more != "" {
					more += "," + c.more
				}
				w := do(t, h, post(chatPath, chatBody(more)))
				if got, _ := contentOf(t, w.Body.String()); w.Code != 200 || got != c.want {
					t.Errorf("%d %q, want %q", w.Code, got, c.want)
				}
				if !strings.Contains(w.Body.String(), `"finish_reason":"`+c.finish+`"`) {
					t.Errorf("the reason is not %s: %s", c.finish, w.Body)
				}
			})
		}
	}
}

func TestEngineReasons(t *testing.T) {
	h := serve(t, newEngine(t, answering("because</think>\n\nyes"), engine.Params{}))
	for _, stream := range []string{`"stream":false`, `"stream":true`} {
		w := do(t, h, post(chatPath, chatBody(stream+`,"chat_template_kwargs":{"enable_thinking":true}`))) // C139, C162
		if content, reasoning := contentOf(t, w.Body.String()); strings.TrimSpace(content) != "yes" || strings.TrimSpace(reasoning) != "because" {
			t.Errorf("%s: %q after %q", stream, content, reasoning)
		}
	}
}

// Reasoning goes with calls and with formats.
func TestEngineReasonsInForms(t *testing.T) {
	const thinking = `,"chat_template_kwargs":{"enable_thinking":true}`
	tools := `"tools":[` + function("f", `"parameters":{"properties":{"x":{"type":"integer"}}}`) + `]`
	call := spoken{Reasoning: "because", Calls: []spokenCall{{Type: "function", Name: "f", Arguments: `{"x":1}`}}, Finish: "tool_calls"}
	for _, c := range []struct {
		name, says, more string
		want             spoken
	}{
		{"C162_call", `<tool_call>{"name": "f", "arguments": {"x":1}}</tool_call>`, tools, call},
		{"C162_required", `<tool_call>{"name": "f", "arguments": {"x":1}}</tool_call>`, tools + `,"tool_choice":"required"`, call},
		{"C162_format", `{"x":[1]}`, `"response_format":{"type":"json_object"}`,
			spoken{Content: `{"x":[1]}`, Reasoning: "because", Finish: "stop"}},
	} {
		h := serve(t, newEngine(t, answering("because</think>\n\n"+c.says), engine.Params{}))
		for _, stream := range []string{`"stream":false,`, `"stream":true,`} {
			t.Run(c.name+stream, func(t *testing.T) {
				got := hear(t, do(t, h, post(chatPath, chatBody(stream+c.more+thinking))).Body.String())
				for i := range got.Calls {
					got.Calls[i].ID = ""
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

// A model that wants to call must not where tool_choice is none.
func TestContractC123_NoCalls(t *testing.T) {
	o := answering(`So: <tool_call>{"name": "f", "arguments": {}}</tool_call>`)
	o.MeanAnswer = 10
	h := serve(t, newEngine(t, o, engine.Params{}))
	for choice, calls := range map[string]int{"auto": 1, "none": 0} {
		more := `"tools":[` + function("f", "") + `],"tool_choice":"` + choice + `"`
		got := hear(t, do(t, h, post(chatPath, chatBody(more))).Body.String())
		if len(got.Calls) != calls || !strings.HasPrefix(got.Content, "So:") || strings.Contains(got.Content, "<tool_call>") {
			t.Errorf("%s: got %+v", choice, got)
		}
	}
}

func TestEngineRefusals(t *testing.T) {
	h := serve(t, newEngine(t, answering("Hi"), engine.Params{Cells: 512}))
	for _, c := range []struct {
		name, body  string
		code, param string
	}{
		{"C048_too_long", withMessages(`[{"role":"user","content":"` + strings.Repeat("one two ", 1000) + `"}]`), "context_length_exceeded", "messages"},
		{"unknown_token", chatBody(`"logit_bias":{"99999999":1}`), "invalid_request", "logit_bias.99999999"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := do(t, h, post(chatPath, c.body))
			got := errorOf(t, w.Body.Bytes())
			if w.Code != 400 || got.Code != c.code || got.Param != c.param || !strings.ContainsAny(got.Message, "0123456789") {
				t.Errorf("%d %+v", w.Code, got)
			}
		})
	}
	for _, text := range []string{"<|im_end|>", "<think>", "</think>", "<tool_call>", "<|im_start|>system"} {
		body := withMessages(`[{"role":"user","content":"` + text + `","name":"` + text + `"},{"role":"assistant","content":"` + text +
			`","reasoning_content":"` + text + `"},{"role":"user","content":"` + text + `"}]`)
		if w := do(t, h, post(chatPath, body)); w.Code != 200 {
			t.Errorf("%s: %d %s", text, w.Code, w.Body)
		}
	}
}

// Clients that leave at any time leave nothing behind.
func TestEngineDisconnects(t *testing.T) {
	e := newEngine(t, llamatest.Options{MeanAnswer: -1}, engine.Params{Parallel: 4, Cells: 2048})
	url := "http://" + listen(t, serve(t, e)) + chatPath
	const clients, rounds = 8, 12
	var group sync.WaitGroup
	for n := range clients {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for range rounds {
				leave(t, url, random)
			}
		})
	}
	group.Wait()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		h := e.Health()
		if h.Running == 0 && h.Waiting == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d running and %d waiting after all clients left", h.Running, h.Waiting)
		}
	}
	answer, err := http.Post(url, "application/json", strings.NewReader(chatBody(`"max_tokens":5`)))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Errorf("the next request: %d", answer.StatusCode)
	}
}

// leave makes a request and goes away after a random time.
func leave(t *testing.T, url string, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(20_000))*time.Microsecond)
	defer cancel()
	more := []string{`"stream":true`, ``}[random.IntN(2)]
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(chatBody(more)))
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return // it left before the head
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
}

// A stream that is left costs its prompt and what was generated until then, on
// the real engine.
func TestContractC079_EngineLeft(t *testing.T) {
	o := llamatest.Options{MeanAnswer: -1, OnDecode: func(*llama.Batch) error {
		time.Sleep(time.Millisecond)
		return nil
	}}
	h := serve(t, newEngine(t, o, engine.Params{}))
	answer, err := http.Post("http://"+listen(t, h)+chatPath, "application/json", strings.NewReader(chatBody(`"stream":true,"max_tokens":3000`)))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for lines := bufio.NewScanner(answer.Body); seen < 5 && lines.Scan(); {
		if strings.Contains(lines.Text(), `"content"`) {
			seen++
		}
	}
	answer.Body.Close()
	id := answer.Header.Get("X-Request-Id")
	until(t, func() bool { return newRecorder(h, get("/v1/requests/"+id)).Code == 200 })
	got := recordOf(t, h, id, "")
	if !got.Gone || got.Usage.Prompt == 0 || got.Usage.Completion < 4 || got.Usage.Completion > 2000 {
		t.Errorf("after %d pieces: %+v", seen, got)
	}
}
