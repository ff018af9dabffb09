package handlers

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/llama/llamatest"
)

// wireToken is a token of logprobs.content.
type wireToken struct {
	Token       string
	Logprob     float64
	Bytes       []int
	TopLogprobs []wireToken `json:"top_logprobs"`
}

type wireLogprobs struct{ Content []wireToken }

// logprobsOf are the tokens of a whole answer or of a stream.
func logprobsOf(t *testing.T, body string) []wireToken {
	t.Helper()
	texts := []string{body}
	if strings.HasPrefix(body, "data: ") {
		texts = events(t, body)
	}
	var all []wireToken
	for _, text := range texts {
		if text == "[DONE]" {
			continue
		}
		for _, c := range parseChat(t, text).Choices {
			var l wireLogprobs
			if err := json.Unmarshal(c.Logprobs, &l); err != nil {
				t.Fatal(err)
			}
			if _, content := c.Delta["content"].(string); c.Message == nil && l.Content != nil && !content {
				t.Errorf("a delta without content has %s", c.Logprobs)
			}
			all = append(all, l.Content...)
		}
	}
	return all
}

// spell is the text of the tokens.
func spell(tokens []wireToken) string {
	var text []byte
	for _, token := range tokens {
		for _, b := range token.Bytes {
			text = append(text, byte(b))
		}
	}
	return string(text)
}

// The logprobs belong to the content, streamed or not, drawn in any way.
func TestContractC134_Logprobs(t *testing.T) {
	const schema = `"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,` +
		`"schema":{"type":"array","items":{"enum":["Höhe","😀",12]},"minItems":4,"maxItems":4}}}`
	for _, c := range []struct{ name, more string }{
		{"free", `"temperature":1`},
		{"greedy", `"temperature":0`},
		{"schema", schema},
		{"greedy_schema", `"temperature":0,` + schema},
		{"reasoning", `"temperature":0,"chat_template_kwargs":{"enable_thinking":true},` + schema},
		{"tools", `"tools":[` + function("f", "") + `]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := serve(t, newEngine(t, llamatest.Options{MeanAnswer: 30}, engine.Params{}))
			var answers [][]wireToken
			for _, stream := range []string{`"stream":false`, `"stream":true`} {
				w := do(t, h, post(chatPath, chatBody(stream+`,"seed":5,"max_tokens":200,"logprobs":true,"top_logprobs":2,`+c.more)))
				tokens := logprobsOf(t, w.Body.String())
				content, _ := contentOf(t, w.Body.String())
				if len(tokens) == 0 || strings.TrimSpace(strings.ToValidUTF8(spell(tokens), "\uFFFD")) != strings.TrimSpace(content) {
					t.Errorf("%q for %q", spell(tokens), content)
				}
				for _, token := range tokens {
					checkToken(t, &token, strings.Contains(c.more, `"temperature":0`))
				}
				answers = append(answers, tokens)
			}
			if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
				t.Errorf("-whole +streamed:\n%s", diff)
			}
		})
	}
}

func checkToken(t *testing.T, token *wireToken, greedy bool) {
	t.Helper()
	sum := 0.0
	for _, top := range token.TopLogprobs {
		sum += math.Exp(top.Logprob)
	}
	switch first := token.TopLogprobs[0]; {
	case len(token.TopLogprobs) != 2 && math.Abs(sum-1) > 1e-4, sum > 1+1e-5, token.Logprob > 0:
		t.Errorf("%+v: the sum is %v", token, sum)
	case greedy && (first.Logprob != token.Logprob || first.Token != token.Token):
		t.Errorf("%+v is not the likeliest", token)
	}
}

func TestContractC134_C135_LogprobsAsked(t *testing.T) {
	h := serve(t, newEngine(t, answering("Hi"), engine.Params{}))
	for _, c := range []struct {
		more string
		want int // likely ones to a token; -1: no logprobs
	}{
		{``, -1}, {`"logprobs":null`, -1}, {`"logprobs":false`, -1}, {`"logprobs":false,"top_logprobs":null`, -1},
		{`"logprobs":true`, 0}, {`"logprobs":true,"top_logprobs":0`, 0}, {`"logprobs":true,"top_logprobs":20`, 20},
	} {
		choice := parseChat(t, do(t, h, post(chatPath, chatBody(c.more))).Body.String()).Choices[0]
		var got wireLogprobs
		if err := json.Unmarshal(choice.Logprobs, &got); err != nil {
			t.Fatal(err)
		}
		if c.want < 0 && string(choice.Logprobs) != "null" || c.want >= 0 && (len(got.Content) != 2 || len(got.Content[1].TopLogprobs) != c.want) {
			t.Errorf("%s: %s", c.more, choice.Logprobs)
		}
	}
}

// The official SDK reads them.
func TestContractC134_C331_SDKLogprobs(t *testing.T) {
	client := sdk(t, serve(t, newEngine(t, answering("Ö!"), engine.Params{})))
	params := question()
	params.Logprobs, params.TopLogprobs = param.NewOpt(true), param.NewOpt[int64](2)
	whole, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	sum, _ := streamed(t, &client, params)
	for name, choice := range map[string]openai.ChatCompletionChoice{"whole": whole.Choices[0], "stream": sum.Choices[0]} {
		var bytes []byte
		for _, token := range choice.Logprobs.Content {
			for _, b := range token.Bytes {
				bytes = append(bytes, byte(b))
			}
			if len(token.TopLogprobs) != 2 || token.TopLogprobs[0].Logprob < token.TopLogprobs[1].Logprob || token.Logprob > 0 {
				t.Errorf("%s: %+v", name, token)
			}
		}
		if string(bytes) != "Ö!" || choice.Message.Content != "Ö!" {
			t.Errorf("%s: %q", name, bytes)
		}
	}
}
