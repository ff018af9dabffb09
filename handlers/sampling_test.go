package handlers

import (
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/llama/llamatest"
)

// sampled is the text that a model which speaks at random answers.
func sampled(t *testing.T, h node, more string) string {
	t.Helper()
	content, _ := contentOf(t, do(t, h, post(chatPath, chatBody(more+`,"max_tokens":24`))).Body.String())
	return content
}

// What the parameters of sampling do to an answer, and not only that they arrive.
func TestContractSampling(t *testing.T) {
	h := serve(t, newEngine(t, llamatest.Options{MeanAnswer: 200}, engine.Params{}))
	first, differs := sampled(t, h, `"temperature":1`), false
	for range 5 {
		differs = differs || sampled(t, h, `"temperature":1`) != first
	}
	if !differs {
		t.Error("without a seed all answers are the same")
	}
	for name, more := range map[string]string{
		"C131_seed":  `"temperature":1,"seed":7`,
		"C137_top_k": `"temperature":1,"top_k":1`,
		"C108_top_p": `"temperature":1,"top_p":0`,
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := sampled(t, h, more), sampled(t, h, more); a != b || a == "" {
				t.Errorf("got %q and %q", a, b)
			}
		})
	}
	t.Run("C137_logit_bias", func(t *testing.T) {
		text := sampled(t, h, `"temperature":1,"logit_bias":{"100":100}`)
		if text == "" || strings.Trim(text, text[:1]) != "" {
			t.Errorf("got %q, which is not one token again and again", text)
		}
	})
}

// The reasoning of an earlier turn is in the prompt that the model gets.
func TestContractC121_ReasoningGoesBack(t *testing.T) {
	seen := ""
	h := serve(t, newEngine(t, llamatest.Options{Script: func(prompt string) (string, bool) {
		seen = prompt
		return "Hi", true
	}}, engine.Params{}))
	body := `{"model":"` + testModel + `","messages":[{"role":"user","content":"Go."},
		{"role":"assistant","reasoning_content":"because it rains","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c","content":"52F"}]}`
	if w := do(t, h, post(chatPath, body)); w.Code != 200 || !strings.Contains(seen, "because it rains") {
		t.Errorf("%d, the prompt is %q", w.Code, seen)
	}
}

func TestContractC335_SDKForbidden(t *testing.T) {
	h := serve(t, says("Hi"))
	_, secret := newKey(t, h.accounts, accounts.NewKey{Scopes: accounts.Scopes{accounts.ScopeRead}})
	client := sdk(t, h, option.WithAPIKey(secret))
	_, err := client.Chat.Completions.New(t.Context(), question())
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 403 || e.Code != "forbidden" || e.Type != "permission_error" {
		t.Errorf("got %v", err)
	}
}
