package handlers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/engine"
)

// The tests named C and three digits show the points of the API's contract.

var (
	requestID    = regexp.MustCompile(`^req_[0-9a-hjkmnp-tv-z]{26}$`)
	serverTiming = regexp.MustCompile(`^[a-z]+;dur=[0-9.]+(, [a-z]+;dur=[0-9.]+)*$`)
)

// wireError is OpenAI's error body.
type wireError struct {
	Message, Type, Code string
	Param               string // empty for null
}

func errorOf(t *testing.T, text []byte) wireError {
	t.Helper()
	var body struct {
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	e := wireError{Message: body.Error.Message, Type: body.Error.Type, Code: body.Error.Code}
	if body.Error.Param != nil {
		e.Param = *body.Error.Param
	}
	return e
}

// A refusal is a request and the error that it must be answered with.
type refusal struct {
	name    string
	request *http.Request
	status  int
	want    wireError
}

const badRequest = "invalid_request_error"

// bad is a refusal of chatBody(more) with 400.
func bad(name, more, code, param, message string) refusal {
	return refusal{name, post(chatPath, chatBody(more)), 400, wireError{message, badRequest, code, param}}
}

func runRefusals(t *testing.T, h http.Handler, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := do(t, h, c.request)
			if w.Code != c.status {
				t.Errorf("status %d, want %d", w.Code, c.status)
			}
			if diff := cmp.Diff(c.want, errorOf(t, w.Body.Bytes())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestContractPaths(t *testing.T) {
	h := serve(t, says("Hi"))
	runRefusals(t, h, []refusal{
		{"unknown_path", get("/v2/x"), 404,
			wireError{"there is no /v2/x here; GET /openapi.yaml lists the paths", badRequest, "not_found", ""}},
		{"no_model_id", get("/v1/models/"), 404,
			wireError{"there is no /v1/models/ here; GET /openapi.yaml lists the paths", badRequest, "not_found", ""}},
		{"get_on_chat", get(chatPath), 405,
			wireError{"GET is not allowed here; use POST", badRequest, "method_not_allowed", ""}},
		{"options_on_chat", httptest.NewRequest("OPTIONS", chatPath, nil), 405,
			wireError{"OPTIONS is not allowed here; use POST", badRequest, "method_not_allowed", ""}},
		{"post_on_models", post("/v1/models", "{}"), 405,
			wireError{"POST is not allowed here; use GET, HEAD", badRequest, "method_not_allowed", ""}},
	})
	for path, want := range map[string]string{chatPath: "POST", "/v1/infer/models": "GET, HEAD"} {
		if got := do(t, h, httptest.NewRequest("DELETE", path, nil)).Header().Get("Allow"); got != want {
			t.Errorf("Allow of %s is %q, want %q", path, got, want)
		}
	}
	if w := do(t, h, httptest.NewRequest("HEAD", "/v1/infer/models", nil)); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
	if w := do(t, h, post("/v1/chat/completions", chatBody(""))); w.Code != 200 {
		t.Errorf("the alias answers %d", w.Code)
	}
}

func TestContractRequestIDs(t *testing.T) {
	h := serve(t, says("Hi"))
	seen := map[string]bool{}
	for range 100 { // C024
		seen[do(t, h, get("/")).Header().Get("X-Request-Id")] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different ids for 100 requests", len(seen))
	}
	// C023: do checks the header of every response in these tests.
}

func TestContractServerTiming(t *testing.T) {
	h := serve(t, says("Hi"))
	// C030, C032, C035
	w := do(t, h, post(chatPath, chatBody("")))
	want := regexp.MustCompile(`^auth;dur=[0-9.]+, render;dur=1, queue;dur=2, prefill;dur=3, ttft;dur=6, decode;dur=4, total;dur=[0-9.]+$`)
	if got := w.Header().Get("Server-Timing"); !want.MatchString(got) {
		t.Errorf("Server-Timing is %q", got)
	}
	// C033, C034
	w = do(t, h, post(chatPath, chatBody(`"stream":true`)))
	if got := w.Header().Get("Server-Timing"); !strings.HasSuffix(got, ", render;dur=1, queue;dur=2, prefill;dur=3, ttft;dur=6") {
		t.Errorf("Server-Timing of a stream is %q", got)
	}
	// C031
	w = do(t, h, post(chatPath, "{"))
	if got := w.Header().Get("Server-Timing"); !regexp.MustCompile(`^total;dur=[0-9.]+$`).MatchString(got) {
		t.Errorf("Server-Timing of a refusal is %q", got)
	}
}

func TestContractBody(t *testing.T) {
	h := serve(t, says("Hi"), func(c *Config) { c.MaxBody = 16 << 20 })
	media := func(message string) wireError { return wireError{message, badRequest, "unsupported_media_type", ""} }
	large := func(message string) wireError { return wireError{message, badRequest, "payload_too_large", ""} }
	pad := func(n int) string {
		body := chatBody(`"user":""`)
		return strings.Replace(body, `"user":"`, `"user":"`+strings.Repeat("x", n-len(body)), 1)
	}
	wantJSON := media("expected Content-Type: application/json")
	badGzip := wireError{"the request body is not valid gzip, or ends early", badRequest, "invalid_request", ""}
	whole := packed(t, chatBody(""))
	noBody := wireError{"the request has no body; send a JSON object", badRequest, "invalid_request", ""}
	unsized := post(chatPath, pad(16<<20+1))
	unsized.ContentLength = -1
	runRefusals(t, h, []refusal{
		{"C066_content_type", post(chatPath, chatBody(""), "Content-Type", "text/plain"), 415, wantJSON},
		{"C057_xml", post(chatPath, "<a/>", "Content-Type", "application/xml"), 415, wantJSON},
		{"C066_no_content_type", post(chatPath, chatBody(""), "Content-Type", ""), 415, wantJSON},
		{"C066_nearly_json", post(chatPath, chatBody(""), "Content-Type", "application/jsonl"), 415, wantJSON},
		{"other_encoding", post(chatPath, chatBody(""), "Content-Encoding", "br"), 415,
			media("this Content-Encoding is not supported; send gzip or none")},
		{"C071_empty", post(chatPath, ""), 400, noBody},
		{"C071_empty_gzip", post(chatPath, "", "Content-Encoding", "gzip"), 400, noBody},
		{"not_gzip", post(chatPath, chatBody(""), "Content-Encoding", "gzip"), 400, badGzip},
		{"C055_C068_C069_model_limit", post(chatPath, pad(12582912)), 413,
			large("Request body is 12582912 bytes; this model accepts at most 10485760")},
		{"C068_one_more", post(chatPath, pad(10485761)), 413,
			large("Request body is 10485761 bytes; this model accepts at most 10485760")},
		{"server_limit", post(chatPath, pad(16<<20+1)), 413,
			large("Request body is 16777217 bytes; this server accepts at most 16777216")},
		{"server_limit_unsized", unsized, 413,
			large("Request body is over 16777216 bytes; this server accepts at most 16777216")},
		{"cut_gzip", post(chatPath, whole[:len(whole)-9], "Content-Encoding", "gzip"), 400, badGzip},
		{"wrong_sum", post(chatPath, whole[:len(whole)-8]+"\x00\x00\x00\x00"+whole[len(whole)-4:], "Content-Encoding", "gzip"), 400, badGzip},
		{"more_than_gzip", post(chatPath, whole+"more", "Content-Encoding", "gzip"), 400, badGzip},
		{"gzip_counts_unpacked", post(chatPath, packed(t, pad(10485761)), "Content-Encoding", "gzip"), 413,
			large("Request body is 10485761 bytes; this model accepts at most 10485760")},
		{"gzip_bomb", post(chatPath, packed(t, pad(16<<20+1)), "Content-Encoding", "gzip"), 413,
			large("Request body is over 16777216 bytes; this server accepts at most 16777216")},
	})
	for name, r := range map[string]*http.Request{
		"C068_the_limit": post(chatPath, pad(10485760)),
		"C066_charset":   post(chatPath, chatBody(""), "Content-Type", "Application/JSON; charset=utf-8"),
		"gzip":           post(chatPath, packed(t, chatBody("")), "Content-Encoding", "gzip"),
		"identity":       post(chatPath, chatBody(""), "Content-Encoding", "identity"),
	} {
		t.Run(name, func(t *testing.T) {
			if w := do(t, h, r); w.Code != 200 {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
}

func packed(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestContractModel(t *testing.T) {
	h := serve(t, says("Hi"))
	model := func(value string) *http.Request {
		return post(chatPath, `{"model":`+value+`,"messages":[{"role":"user","content":"Hi"}],"foo":1}`)
	}
	invalid := func(message string) wireError { return wireError{message, badRequest, "invalid_request", "model"} }
	long := strings.Repeat("ä", 256)
	runRefusals(t, h, []refusal{
		{"C053_C145_unknown_comes_before_parameters", model(`"gpt-5"`), 404,
			wireError{"gpt-5 is not served on this node; GET /v1/infer/models lists the models that are", badRequest, "model_not_available", "model"}},
		{"C114_absent", post(chatPath, `{"messages":[]}`), 400, invalid("model is required")},
		{"C107_null", model(`null`), 400, invalid("model is required")},
		{"number", model(`5`), 400, invalid("model must be a string")},
		{"C072_empty", model(`""`), 400, invalid("model must have 1 to 256 characters")},
		{"C072_257_characters", model(`"` + long + `x"`), 400, invalid("model must have 1 to 256 characters")},
	})
	if w := do(t, h, model(`"`+long+`"`)); w.Code != 404 { // C072
		t.Errorf("256 unknown characters: %d", w.Code)
	}
	gateway := post(chatPath, strings.Replace(chatBody(`"route":"gateway"`), testModel, "gpt-5", 1))
	runRefusals(t, h, []refusal{{"C064_gateway_not_set_up", gateway, 503, wireError{
		"gpt-5 is not served on this node, and no gateway is set up", "server_error", "infer_backend_unavailable", "route"}}})
	var got struct {
		Model string
		B3os  struct{ Route, Node string }
	}
	w := do(t, h, post(chatPath, chatBody(`"route":"gateway"`))) // C144, C153, C154
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Model != testModel || got.B3os.Route != "local" || got.B3os.Node != "n1" {
		t.Errorf("%v: %s", err, w.Body)
	}
}

func TestContractFailures(t *testing.T) {
	// C040, C041: do checks every error against the schema of errors.
	for _, c := range []struct {
		name   string
		engine *script
		status int
		retry  string
		want   wireError
	}{
		{"C048_context", &script{refuse: &engine.Error{Code: engine.CodeContext, Message: "5000 > 4096", Param: "messages"}},
			400, "", wireError{"5000 > 4096", badRequest, "context_length_exceeded", "messages"}},
		{"template_refuses", &script{refuse: &engine.Error{Code: engine.CodeInvalid, Message: "no", Param: "messages"}},
			400, "", wireError{"no", badRequest, "invalid_request", "messages"}},
		{"C062_overloaded", &script{broken: failing(engine.CodeOverloaded)}, 503, "2",
			wireError{"it failed", "server_error", "capacity_unavailable", ""}},
		{"C062_C065_unavailable", &script{broken: failing(engine.CodeUnavailable)}, 503, "2",
			wireError{"it failed", "server_error", "infer_backend_unavailable", ""}},
		{"C027_C060_internal", &script{broken: failing(engine.CodeInternal)}, 500, "",
			wireError{"internal error (request ID)", "server_error", "internal", ""}},
		{"other_error", &script{broken: fmt.Errorf("disk: %w", http.ErrBodyNotAllowed)}, 500, "",
			wireError{"internal error (request ID)", "server_error", "internal", ""}},
		{"C060_panic", &script{panics: "boom"}, 500, "", wireError{"internal error (request ID)", "server_error", "internal", ""}},
		{"no_ending", &script{}, 500, "", wireError{"internal error (request ID)", "server_error", "internal", ""}},
	} {
		for _, stream := range []string{"false", "true"} { // C111
			t.Run(c.name+"/stream="+stream, func(t *testing.T) {
				h := serve(t, c.engine)
				w := do(t, h, post(chatPath, chatBody(`"stream":`+stream)))
				got := errorOf(t, w.Body.Bytes())
				got.Message = strings.Replace(got.Message, w.Header().Get("X-Request-Id"), "ID", 1)
				if diff := cmp.Diff(c.want, got); diff != "" || w.Code != c.status || w.Header().Get("Retry-After") != c.retry {
					t.Errorf("status %d, Retry-After %q; -want +got:\n%s", w.Code, w.Header().Get("Retry-After"), diff)
				}
				if wantLogged := c.status == 500; strings.Contains(h.log.String(), "request failed") != wantLogged {
					t.Errorf("log has the failure: %v, want %v:\n%s", !wantLogged, wantLogged, h.log)
				}
			})
		}
	}
	t.Run("loading", func(t *testing.T) {
		h := serve(t, nil)
		runRefusals(t, h, []refusal{
			bad("parameters_come_first", `"foo":1`, "unsupported_parameter", "foo", "foo is not supported on this node"),
			{"C062_loading", post(chatPath, chatBody("")), 503, wireError{
				"The model runtime on n1 is loading; retry in 5 seconds", "server_error", "infer_backend_unavailable", ""}},
		})
		h.model.Serve(says("Hi"))
		if w := do(t, h, post(chatPath, chatBody(""))); w.Code != 200 {
			t.Errorf("status %d after loading", w.Code)
		}
	})
}

func TestContractModels(t *testing.T) {
	h := serve(t, says("Hi"))
	const openAI = `{"id":"b3os/qwen3.5-9b","object":"model","created":1793001600,"owned_by":"b3os",` +
		`"context_length":4096,"max_request_bytes":10485760,"image_input":false}`
	const anthropic = `{"type":"model","id":"b3os/qwen3.5-9b","display_name":"b3os/qwen3.5-9b","created_at":"2026-10-26T08:00:00Z"}`
	const anthropicList = `{"data":[` + anthropic + `],"has_more":false,"first_id":"b3os/qwen3.5-9b","last_id":"b3os/qwen3.5-9b"}`
	for _, c := range []struct {
		name, path, version string
		want                string
	}{
		{"C330_C355_C357_C358", "/v1/infer/models", "", `{"object":"list","data":[` + openAI + `]}`},
		{"alias", "/v1/models", "", `{"object":"list","data":[` + openAI + `]}`},
		{"anthropic_sdk", "/v1/infer/v1/models", "2023-06-01", anthropicList},
		{"anthropic_alias", "/v1/models", "any", anthropicList},
		{"one", "/v1/infer/models/b3os/qwen3.5-9b", "", openAI},
		{"one_escaped", "/v1/infer/models/b3os%2Fqwen3.5-9b", "", openAI},
		{"one_anthropic", "/v1/infer/v1/models/b3os%2fqwen3.5-9b", "2023-06-01", anthropic},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := do(t, h, get(c.path, "Anthropic-Version", c.version))
			if diff := cmp.Diff(c.want, w.Body.String()); diff != "" || w.Code != 200 {
				t.Errorf("status %d, -want +got:\n%s", w.Code, diff)
			}
		})
	}
	if w := do(t, h, get("/v1/models/gpt%2F5")); w.Code != 404 || errorOf(t, w.Body.Bytes()).Code != "model_not_available" {
		t.Errorf("unknown model: %d %s", w.Code, w.Body)
	}
	if w := do(t, serve(t, nil), get("/v1/models")); strings.Contains(w.Body.String(), "context_length") {
		t.Errorf("a loading model has no context yet: %s", w.Body)
	}
}

func TestHealth(t *testing.T) {
	state := func(s engine.State) *script {
		return &script{health: engine.Health{State: s, LastStep: 1500 * time.Microsecond, Running: 2, Waiting: 3}}
	}
	for _, c := range []struct {
		name   string
		engine Engine
		status int
		want   string
	}{
		{"ready", state(engine.StateReady), 200, `"ready","last_step_ms":1.5,"running":2,"waiting":3`},
		{"draining", state(engine.StateDraining), 503, `"draining","last_step_ms":1.5,"running":2,"waiting":3`},
		{"stuck", state(engine.StateStuck), 503, `"stuck","last_step_ms":1.5,"running":2,"waiting":3`},
		{"loading", nil, 503, `"loading"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := do(t, serve(t, c.engine), get("/healthz"))
			want := `{"status":"` + c.name + `","node":"n1","models":[{"id":"b3os/qwen3.5-9b","status":` + c.want + `}]}`
			if diff := cmp.Diff(want, w.Body.String()); diff != "" || w.Code != c.status {
				t.Errorf("status %d, -want +got:\n%s", w.Code, diff)
			}
		})
	}
}

func TestSupport(t *testing.T) {
	h := serve(t, says("Hi"))
	if got := do(t, h, get("/")).Body.String(); got != `{"name":"b3infer","version":"0.1.0","docs":"/docs"}` {
		t.Error(got)
	}
	if got := do(t, h, get("/openapi.yaml")).Body.Bytes(); !bytes.Equal(got, openAPI) {
		t.Error("/openapi.yaml is not the file")
	}
	page := do(t, h, get("/docs")).Body.String()
	if external := regexp.MustCompile(`(?i)(src|href|url|import)[=( ]*["']?(https?:)?//|<script|<link|<img`).FindString(page); external != "" || page == "" {
		t.Errorf("/docs asks for %q", external)
	}
	for code, v := range verdicts {
		if !strings.Contains(page, string(code)) || !strings.Contains(page, strconv.Itoa(v.status)) {
			t.Errorf("/docs does not tell of %d %s", v.status, code)
		}
	}
	if w := do(t, h, get("/metrics")); w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("/metrics: %d %v", w.Code, w.Header())
	}
}
