//go:build cgo

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// likelyToken is a token of an answer's logprobs.
type likelyToken struct {
	Token   string
	Logprob float64
	Bytes   []int
	Top     []likelyToken `json:"top_logprobs"`
}

// likelyAnswer is the content of an answer, whole or streamed, with its tokens.
func likelyAnswer(t *testing.T, body string) (content string, tokens []likelyToken) {
	t.Helper()
	for text := range strings.SplitSeq(body, "\n\n") {
		text = strings.TrimPrefix(text, "data: ")
		if text == "[DONE]" || text == "" {
			continue
		}
		var answer struct {
			Choices []struct {
				Message, Delta struct{ Content string }
				Logprobs       struct{ Content []likelyToken }
			}
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, c := range answer.Choices {
			content += c.Message.Content + c.Delta.Content
			tokens = append(tokens, c.Logprobs.Content...)
		}
	}
	return content, tokens
}

// What a real model's server tells of the tokens of an answer at temperature 0: each is
// the likeliest, also among what a schema allows, and streams tell the same.
func TestRealLogprobs(t *testing.T) {
	p := startProcess(t, "b3infer", t.TempDir(), "serve", "--model", realModelPath(t), "--listen", "127.0.0.1:0", "--ctx", "1024", "--threads", "1")
	url := strings.TrimPrefix(line(t, p.stdout, "address "), "address  ") + "/chat/completions"
	const format = `,"response_format":{"type":"json_schema","json_schema":{"name":"city","strict":true,"schema":{"type":"object",
		"properties":{"city":{"enum":["Rome","Oslo","Zürich"]},"days":{"type":"integer","minimum":1,"maximum":9}},
		"required":["city","days"],"additionalProperties":false}}}`
	for name, more := range map[string]string{"free": "", "schema": format, "bias": `,"logit_bias":{"253":-100,"260":1.5}`} {
		t.Run(name, func(t *testing.T) {
			var answers [2][]likelyToken
			for i := range answers {
				status, body := call(t, "POST", url, fmt.Sprintf(`{"model": "SmolLM2-135M-Instruct.Q4_1", "temperature": 0, "repetition_penalty": 1,
					"messages": [{"role": "user", "content": "Name a city of Europe, and say it with an emoji."}], "max_tokens": 40,
					"logprobs": true, "top_logprobs": 20, "stream": %v%s}`, i == 1, more))
				content, tokens := likelyAnswer(t, body)
				if status != 200 || len(tokens) < 8 {
					t.Fatalf("%d: %s", status, body)
				}
				checkLikely(t, content, tokens, name == "schema")
				answers[i] = tokens
			}
			if diff := cmp.Diff(answers[0], answers[1], cmpopts.EquateApprox(0, 1e-3)); diff != "" {
				t.Errorf("-whole +streamed:\n%s", diff)
			}
		})
	}
	p.signal(t)
	if status, stderr := p.end(t); status != 0 {
		t.Errorf("got status %d, %s", status, stderr)
	}
}

func checkLikely(t *testing.T, content string, tokens []likelyToken, bound bool) {
	t.Helper()
	var spelled []byte
	few := 0
	for _, token := range tokens {
		for _, b := range token.Bytes {
			spelled = append(spelled, byte(b))
		}
		sum := 0.0
		for _, top := range token.Top {
			sum += math.Exp(top.Logprob)
		}
		if sum > 1+1e-5 || len(token.Top) < 20 && math.Abs(sum-1) > 1e-4 {
			t.Errorf("%q: %d of sum %v", token.Token, len(token.Top), sum)
		}
		if len(token.Top) < 20 {
			few++
		}
		if first := token.Top[0]; first.Token != token.Token || first.Logprob != token.Logprob {
			t.Errorf("%q with %v is not the likeliest, %q with %v", token.Token, token.Logprob, first.Token, first.Logprob)
		}
	}
	if bound != (few > 0) {
		t.Errorf("%d places have fewer than 20 tokens, bound %v", few, bound)
	}
	// The last token may end within a character, which the content leaves out.
	if !strings.HasPrefix(string(spelled), content) || len(spelled)-len(content) > 3 {
		t.Errorf("%q has the tokens %q", content, spelled)
	}
}
