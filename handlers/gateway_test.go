package handlers

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/accounts"
)

// elsewhere is a request for a model that only the gateway has.
func elsewhere(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}],"route":"gateway"` + more + `}`
}

// behind is a node with a gateway that answers as f does, and what it was asked.
func behind(t *testing.T, f http.HandlerFunc, change ...func(*Config)) (node, *[]*http.Request) {
	t.Helper()
	var asked []*http.Request
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		kept := r.Clone(t.Context())
		kept.Body = io.NopCloser(strings.NewReader(string(body)))
		asked = append(asked, kept)
		f(w, r)
	}))
	t.Cleanup(upstream.Close)
	change = append(change, func(c *Config) {
		c.Gateway.URL, c.Gateway.Key = upstream.URL+"/v1/", "upstream-secret"
	})
	return serve(t, says("local"), change...), &asked
}

func says200(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
}

const gatewayBody = `{"id":"x1","object":"chat.completion","created":1,"model":"gpt-5-2026","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":"Hello <b>","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,` +
	`"total_tokens":13,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}`

func TestContractC143_Gateway(t *testing.T) {
	h, asked := behind(t, says200(gatewayBody+"}"))
	_, secret := newKey(t, h.accounts, accounts.NewKey{})
	w := do(t, h, with(secret, post(chatPath, elsewhere(`"max_tokens":5`))))
	if w.Code != 200 || !strings.HasPrefix(w.Body.String(), gatewayBody+`,"b3os":{"route":"gateway","node":"n1","timing":{"model_ms":`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r := (*asked)[0]
	body, _ := io.ReadAll(r.Body)
	if want := `{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}],"max_tokens":5}`; string(body) != want || r.URL.Path != "/v1/chat/completions" {
		t.Errorf("the gateway got %s %s", r.URL, body)
	}
	if r.Header.Get("Authorization") != "Bearer upstream-secret" || strings.Contains(fmt.Sprint(r.Header), secret) {
		t.Errorf("the gateway got %v", r.Header)
	}
	got := recordOf(t, h, w.Header().Get("X-Request-Id"), secret)
	if got.Usage.Prompt != 9 || got.Usage.Cached != 3 || got.Usage.Completion != 4 || got.Usage.Reasoning != 1 || got.Model != "gpt-5" || *got.Finish != "stop" {
		t.Errorf("the record is %+v", got)
	}
	// C144: what the node has it answers itself.
	if w := do(t, h, with(secret, post(chatPath, chatBody(`"route":"gateway"`)))); !strings.Contains(w.Body.String(), `"content":"local"`) {
		t.Errorf("got %s", w.Body)
	}
	if len(*asked) != 1 || strings.Contains(h.log.String(), "upstream-secret") {
		t.Errorf("%d requests, log %s", len(*asked), h.log)
	}
}

// chunk is a piece of a stream of the gateway; usage stands after the choices.
func chunk(choices, more string) string {
	return `data: {"id":"x1","object":"chat.completion.chunk","created":1,"model":"gpt-5","choices":[` + choices + `]` + more + "}\n\n"
}

const (
	saysHello = `{"index":0,"delta":{"role":"assistant","content":"Hello"},"logprobs":null,"finish_reason":null}`
	isOver    = `{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}`
	someUsage = `,"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}`
)

func TestContractC143_C161_GatewayStream(t *testing.T) {
	upstream := ": hello\n\n" + chunk(saysHello, `,"usage":null`) + chunk(isOver, `,"usage":null`) + chunk("", someUsage) + "data: [DONE]\n\n"
	h, asked := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, upstream)
	})
	for _, c := range []struct{ more, extended, want string }{
		{`"stream":true`, `"finish_reason":"stop"`, chunk(saysHello, "") + chunk(isOver, `,"b3os":B3OS`) + "data: [DONE]\n\n"},
		{`"stream":true,"stream_options":{"include_usage":true}`, `"choices":[]`,
			chunk(saysHello, `,"usage":null`) + chunk(isOver, `,"usage":null`) + chunk("", someUsage+`,"b3os":B3OS`) + "data: [DONE]\n\n"},
	} {
		w := do(t, h, post(chatPath, elsewhere(c.more)))
		before, rest, _ := strings.Cut(w.Body.String(), `"b3os":`)
		extension, after, _ := strings.Cut(rest, "}}")
		if diff := cmp.Diff(c.want, before+`"b3os":B3OS`+after); diff != "" || !strings.HasPrefix(extension, `{"route":"gateway","node":"n1","timing":{"ttft_ms":`) {
			t.Errorf("-want +got:\n%s\n%s", diff, extension)
		}
		if w.Header().Get("Content-Type") != "text/event-stream; charset=utf-8" || !strings.Contains(w.Header().Get("Server-Timing"), "ttft;dur=") {
			t.Errorf("head: %v", w.Header())
		}
		if got := recordOf(t, h, w.Header().Get("X-Request-Id"), ""); got.Usage.Completion != 4 || got.Usage.Prompt != 9 || !got.Stream {
			t.Errorf("the record is %+v", got)
		}
	}
	body, _ := io.ReadAll((*asked)[0].Body)
	if !strings.Contains(string(body), `"stream_options":{"include_usage":true}`) {
		t.Errorf("the gateway got %s", body)
	}
}

func TestGatewayRefuses(t *testing.T) {
	for _, c := range []struct {
		name         string
		status       int
		header, body string
		want         wireError
		wantStatus   int
		retry        string
	}{
		{"bad_request", 400, "", `{"error":{"message":"bad top_p","type":"x","param":"top_p","code":null}}`,
			wireError{"bad top_p", badRequest, "invalid_request", "top_p"}, 400, ""},
		{"context", 400, "", `{"error":{"message":"too long","code":"context_length_exceeded"}}`,
			wireError{"too long", badRequest, "context_length_exceeded", ""}, 400, ""},
		{"no_words", 422, "", `<html>`, wireError{"the gateway refuses this request", badRequest, "invalid_request", ""}, 400, ""},
		{"unknown_model", 404, "", `{"error":{"message":"no gpt-5"}}`, wireError{"no gpt-5", badRequest, "model_not_available", "model"}, 404, ""},
		{"too_large", 413, "", ``, wireError{"the gateway refuses this request", badRequest, "payload_too_large", ""}, 413, ""},
		{"C062_C064_limited", 429, "7", `{"error":{"message":"account of Ada"}}`,
			wireError{"the gateway is overloaded; retry in 7 seconds", "server_error", "capacity_unavailable", ""}, 503, "7"},
		{"C064_our_key_is_bad", 401, "", `{"error":{"message":"bad key upstream-sec..."}}`,
			wireError{"the gateway failed; retry in 5 seconds", "server_error", "infer_backend_unavailable", ""}, 503, "5"},
		{"C064_down", 502, "", `x`, wireError{"the gateway failed; retry in 5 seconds", "server_error", "infer_backend_unavailable", ""}, 503, "5"},
		{"redirect", 307, "", ``, wireError{"the gateway failed; retry in 5 seconds", "server_error", "infer_backend_unavailable", ""}, 503, "5"},
		{"nonsense", 200, "", `{"a":1}`,
			wireError{"the gateway's answer is no chat completion; retry in 5 seconds", "server_error", "infer_backend_unavailable", ""}, 503, "5"},
		{"cut", 200, "", gatewayBody,
			wireError{"the gateway's answer is no chat completion; retry in 5 seconds", "server_error", "infer_backend_unavailable", ""}, 503, "5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := behind(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.header)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			w := do(t, h, post(chatPath, elsewhere("")))
			if diff := cmp.Diff(c.want, errorOf(t, w.Body.Bytes())); diff != "" || w.Code != c.wantStatus || w.Header().Get("Retry-After") != c.retry {
				t.Errorf("%d, Retry-After %q, -want +got:\n%s", w.Code, w.Header().Get("Retry-After"), diff)
			}
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	h := serve(t, says("Hi"), func(c *Config) { c.Gateway.URL = gone.URL })
	runRefusals(t, h, []refusal{
		{"C064_unreachable", post(chatPath, elsewhere("")), 503,
			wireError{"the gateway cannot be reached; retry in 5 seconds", "server_error", "infer_backend_unavailable", ""}},
		{"parameters_first", post(chatPath, elsewhere(`"foo":1`)), 400, wireError{"foo is not supported on this node", badRequest, "unsupported_parameter", "foo"}},
		{"ranges_first", post(chatPath, elsewhere(`"top_p":2`)), 400, wireError{"top_p must be between 0 and 1", badRequest, "invalid_request", "top_p"}},
		{"C053_C145_only_when_asked", post(chatPath, strings.Replace(elsewhere(""), `"gateway"`, `"local"`, 1)), 404, wireError{
			`gpt-5 is not served on this node; set "route":"gateway" to use the B3IQ gateway`, badRequest, "model_not_available", "model"}},
	})
}

func TestGatewaySilent(t *testing.T) {
	for name, begun := range map[string]string{"before": "", "within": chunk(saysHello, "")} {
		t.Run(name, func(t *testing.T) {
			left := make(chan struct{})
			h, _ := behind(t, func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, begun)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				close(left)
			}, func(c *Config) { c.Gateway.Timeout = 50 * time.Millisecond })
			w := do(t, h, post(chatPath, elsewhere(`"stream":true`)))
			<-left
			wantStatus := map[string]int{"before": 503, "within": 200}[name]
			if w.Code != wantStatus || !strings.Contains(w.Body.String(), "the gateway was silent for 0 seconds") || strings.Contains(w.Body.String(), "[DONE]") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

func TestContractC112_GatewayBreaksOff(t *testing.T) {
	for name, end := range map[string]string{
		"cut": "", "error": `data: {"error":{"message":"secret"}}` + "\n\n", "nonsense": "data: {\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := behind(t, says200(chunk(saysHello, "")+end))
			w := do(t, h, post(chatPath, elsewhere(`"stream":true`)))
			all := events(t, w.Body.String())
			var last struct {
				Error *struct{ Code, Message string }
			}
			if err := json.Unmarshal([]byte(all[len(all)-1]), &last); err != nil || last.Error == nil || last.Error.Code != "infer_backend_unavailable" {
				t.Errorf("%v: %s", err, w.Body)
			}
			if got := recordOf(t, h, w.Header().Get("X-Request-Id"), ""); got.Usage.Cost != 0 || *got.Error != "infer_backend_unavailable" {
				t.Errorf("the record is %+v", got)
			}
		})
	}
}

// A client that leaves ends the call of the gateway, and pays for what came.
func TestGatewayLeft(t *testing.T) {
	left := make(chan struct{})
	h, _ := behind(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat(chunk(saysHello, ""), 3))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	})
	answer, err := http.Post("http://"+listen(t, h)+chatPath, "application/json", strings.NewReader(elsewhere(`"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(answer.Body, make([]byte, 400)); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	<-left
	id := answer.Header.Get("X-Request-Id")
	until(t, func() bool { return newRecorder(h, get("/v1/requests/"+id)).Code == 200 })
	if got := recordOf(t, h, id, ""); !got.Gone || got.Usage.Completion != 3 || got.Usage.Prompt == 0 {
		t.Errorf("the record is %+v", got)
	}
}

func TestGatewayLimits(t *testing.T) {
	h, asked := behind(t, says200(gatewayBody+"}"))
	err := h.accounts.SetRules(t.Context(), accounts.Target{Model: "gateway"}, map[accounts.Rule]int64{accounts.RequestsPerMinute: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{200, 429} {
		if w := do(t, h, post(chatPath, elsewhere(""))); w.Code != want {
			t.Errorf("got %d, want %d", w.Code, want)
		}
	}
	if len(*asked) != 1 {
		t.Errorf("the gateway was asked %d times", len(*asked))
	}
}

func TestAppendObject(t *testing.T) {
	for _, c := range []struct{ text, more, want string }{
		{`{}`, ``, `{}`}, {`{}`, `"z":1`, `{"z":1}`}, {`{"a":1}`, ``, `{}`}, {`{"a":1}`, `"z":1`, `{"z":1}`},
		{" {\"b\" : [1, {\"a\": \"<\\u00e9\"}],\n\"a\":{}, \"c\":1e3}", `"z":1`, `{"b":[1,{"a":"<\u00e9"}],"c":1e3,"z":1}`},
	} {
		got, err := appendObject([]byte("x"), []byte(c.text), map[string]bool{"a": true}, c.more)
		if string(got) != "x"+c.want || err != nil {
			t.Errorf("%s: got %s, %v", c.text, got, err)
		}
	}
	for _, text := range []string{``, `[]`, `{`, `{"b":}`, `{"b":1`, `{"a":1`} {
		if got, err := appendObject(nil, []byte(text), map[string]bool{"a": true}, ""); err == nil {
			t.Errorf("%s: got %s", text, got)
		}
	}
}
