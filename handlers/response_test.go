package handlers

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/engine"
)

// chatWire is a completion or a chunk, as far as the points below look at it.
type chatWire struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index          int
		Message, Delta map[string]any
		FinishReason   *string         `json:"finish_reason"`
		Logprobs       json.RawMessage `json:"logprobs"`
	}
	Usage json.RawMessage `json:"usage"` // nil without the key
	B3os  *struct {
		Route, Node string
		Timing      map[string]float64
	}
}

func parseChat(t *testing.T, text string) chatWire {
	t.Helper()
	var c chatWire
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return c
}

// chunks are the chunks of a stream that ends well.
func chunks(t *testing.T, body string) []chatWire {
	t.Helper()
	data := events(t, body)
	if n := len(data); data[n-1] != "[DONE]" { // C156
		t.Fatalf("the last event is %s", data[n-1])
	}
	var all []chatWire
	for _, text := range data[:len(data)-1] {
		all = append(all, parseChat(t, text))
	}
	return all
}

var completionID = regexp.MustCompile(`^chatcmpl-[0-9a-hjkmnp-tv-z]{26}$`)

func TestContractResponse(t *testing.T) {
	before := time.Now().Unix()
	w := do(t, serve(t, says("The", " Rogue.")), post(chatPath, chatBody("")))
	got := parseChat(t, w.Body.String())
	choice := got.Choices[0]
	if got.Object != "chat.completion" || got.Created < before || got.Created > time.Now().Unix() || len(got.Choices) != 1 {
		t.Errorf("C147: %s", w.Body)
	}
	if !completionID.MatchString(got.ID) {
		t.Errorf("C148: %s", got.ID)
	}
	if *choice.FinishReason != "stop" || choice.Index != 0 {
		t.Errorf("C149: %s", w.Body)
	}
	if diff := cmp.Diff(map[string]any{"role": "assistant", "content": "The Rogue."}, choice.Message); diff != "" {
		t.Errorf("C150: -want +got:\n%s", diff)
	}
	if string(choice.Logprobs) != "null" {
		t.Errorf("C135: logprobs is %q", choice.Logprobs)
	}
	const usage = `{"prompt_tokens":17,"completion_tokens":3,"total_tokens":20,` +
		`"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":0}}`
	if string(got.Usage) != usage {
		t.Errorf("C152: %s", got.Usage)
	}
	if got.Model != testModel {
		t.Errorf("C153: %s", got.Model)
	}
	if got.B3os.Route != "local" || got.B3os.Node != "n1" {
		t.Errorf("C154: %+v", got.B3os)
	}
	timing := got.B3os.Timing
	if _, ttft := timing["ttft_ms"]; ttft || timing["model_ms"] != 10 || timing["total_ms"] < timing["model_ms"] {
		t.Errorf("C038, C039: %v", timing)
	}
}

func TestContractStream(t *testing.T) {
	e := says("The", " Rogue.")
	for _, c := range []struct {
		name, more string
		usage      bool
	}{
		{"plain", `"stream":true`, false},
		{"options_null", `"stream":true,"stream_options":null`, false},
		{"C159_usage", `"stream":true,"stream_options":{"include_usage":true}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := do(t, serve(t, e), post(chatPath, chatBody(c.more)))
			if got := w.Header().Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
				t.Errorf("C110: %s", got)
			}
			all := chunks(t, w.Body.String())
			var deltas []any
			for i, chunk := range all {
				last := i == len(all)-1
				if chunk.ID != all[0].ID || chunk.Created != all[0].Created || chunk.Model != testModel || !completionID.MatchString(chunk.ID) {
					t.Errorf("C157: %+v", chunk)
				}
				if wantUsage := []string{"", "null"}[btoi(c.usage)]; string(chunk.Usage) != wantUsage && !(c.usage && last) {
					t.Errorf("C159, C160: usage is %q", chunk.Usage)
				}
				if (chunk.B3os != nil) != last {
					t.Errorf("C161: chunk %d of %d has b3os: %v", i, len(all), chunk.B3os)
				}
				for _, choice := range chunk.Choices {
					deltas = append(deltas, choice.Delta, choice.FinishReason)
				}
			}
			none, stop := (*string)(nil), "stop"
			want := []any{ // C158
				map[string]any{"role": "assistant", "content": ""}, none, map[string]any{"content": "The"}, none,
				map[string]any{"content": " Rogue."}, none, map[string]any{}, &stop,
			}
			if diff := cmp.Diff(want, deltas); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			last := all[len(all)-1]
			if c.usage && (len(last.Choices) != 0 || !strings.Contains(string(last.Usage), `"total_tokens":20`)) {
				t.Errorf("C159: %+v", last)
			}
			timing := last.B3os.Timing
			if _, model := timing["model_ms"]; model || timing["ttft_ms"] != 6 || timing["total_ms"] < 6 {
				t.Errorf("C038: %v", timing)
			}
		})
	}
	for _, more := range []string{`"stream":false`, `"stream":null`, ``} { // C110
		w := do(t, serve(t, e), post(chatPath, chatBody(more)))
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("C110: %s with %s", got, more)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A stream that fails after its start keeps its status, and ends with the error
// and nothing after it.
func TestContractC112_C164_FailedStream(t *testing.T) {
	e := says("The")
	e.events, e.broken = e.events[:2], failing(engine.CodeUnavailable)
	w := do(t, serve(t, e), post(chatPath, chatBody(`"stream":true`)))
	data := events(t, w.Body.String())
	got := errorOf(t, []byte(data[len(data)-1]))
	want := wireError{"it failed", "server_error", "infer_backend_unavailable", ""}
	if diff := cmp.Diff(want, got); diff != "" || w.Code != 200 || len(data) != 3 {
		t.Errorf("status %d, %d events, -want +got:\n%s", w.Code, len(data), diff)
	}
}
