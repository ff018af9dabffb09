package handlers

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// openAPIFile checks requests and responses against openapi.yaml.
type openAPIFile struct {
	doc map[string]any

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema // by JSON pointer
}

const schemaURL = "file:///openapi.json"

var loadContract = sync.OnceValues(func() (*openAPIFile, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(openAPI, &doc); err != nil {
		return nil, err
	}
	return &openAPIFile{doc: doc, schemas: map[string]*jsonschema.Schema{}}, nil
})

func contract(t testing.TB) *openAPIFile {
	t.Helper()
	f, err := loadContract()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// schema compiles the schema at a JSON pointer.
func (f *openAPIFile) schema(t testing.TB, pointer string) *jsonschema.Schema {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.schemas[pointer]; s != nil {
		return s
	}
	text, err := json.Marshal(f.doc)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(schemaURL, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schemaURL + "#" + pointer)
	if err != nil {
		t.Fatalf("%s: %v", pointer, err)
	}
	f.schemas[pointer] = s
	return s
}

// validate checks a JSON text against the schema at pointer.
func (f *openAPIFile) validate(t testing.TB, pointer, text string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	if err := f.schema(t, pointer).Validate(v); err != nil {
		t.Errorf("against %s: %v\n%s", pointer, err, text)
	}
}

// at is the value at the keys, with references resolved, and its pointer.
func (f *openAPIFile) at(keys ...string) (map[string]any, string) {
	var v any = f.doc
	pointer := ""
	for _, key := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, ""
		}
		v = m[key]
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		if m, ok := v.(map[string]any); ok {
			if ref, ok := m["$ref"].(string); ok {
				pointer = strings.TrimPrefix(ref, "#")
				v, _ = f.at(strings.Split(pointer[1:], "/")...)
			}
		}
	}
	m, _ := v.(map[string]any)
	return m, pointer
}

// pathOf is the file's name for a request's path.
func (f *openAPIFile) pathOf(r *http.Request) string {
	paths := f.doc["paths"].(map[string]any)
	if paths[r.URL.Path] != nil {
		return r.URL.Path
	}
	for path := range paths {
		prefix, _, ok := strings.Cut(path, "{")
		if rest, under := strings.CutPrefix(r.URL.Path, prefix); ok && under && rest != "" {
			return path
		}
	}
	return ""
}

// check validates the answer to r: its headers, and its body against the
// schema of its path, method, status and type. A request that was obeyed must
// itself be valid.
func (f *openAPIFile) check(t testing.TB, r *http.Request, body []byte, w *httptest.ResponseRecorder) {
	t.Helper()
	f.checkHeaders(t, w)
	if w.Body.Len() == 0 {
		return
	}
	if w.Code >= 400 && r.URL.Path != "/healthz" {
		f.validate(t, "/components/schemas/Error", w.Body.String())
	}
	path := f.pathOf(r)
	operation, _ := f.at("paths", path, strings.ToLower(r.Method))
	if path == "" || operation == nil {
		if w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed && w.Code != http.StatusRequestURITooLong {
			t.Errorf("%s %s is not in openapi.yaml and answered %d", r.Method, clip(r.URL.Path), w.Code)
		}
		return
	}
	contentType, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	_, pointer := f.at("paths", path, strings.ToLower(r.Method), "responses", strconv.Itoa(w.Code))
	answer, _ := f.at("paths", path, strings.ToLower(r.Method), "responses", strconv.Itoa(w.Code), "content", contentType)
	if answer == nil {
		t.Errorf("openapi.yaml has no %d %s for %s %s", w.Code, contentType, r.Method, path)
		return
	}
	if local, ok := localAnswers[contentType]; ok && strings.HasSuffix(path, "/chat/completions") && w.Code == 200 && !bytes.Contains(body, []byte("gpt-5")) {
		pointer = local // what the node answers itself is held to more than what it passes on
	} else {
		pointer += "/content/" + strings.ReplaceAll(contentType, "/", "~1") + "/schema"
	}
	switch contentType {
	case "application/json":
		f.validate(t, pointer, w.Body.String())
	case "text/event-stream":
		for _, data := range events(t, w.Body.String()) {
			if data != "[DONE]" {
				f.validate(t, pointer, data)
			}
		}
	}
	asked, _ := f.at("paths", path, strings.ToLower(r.Method), "requestBody", "content", "application/json")
	if asked != nil && w.Code < 300 && r.Header.Get("Content-Encoding") == "" {
		_, pointer := f.at("paths", path, strings.ToLower(r.Method), "requestBody", "content", "application/json", "schema")
		f.validate(t, pointer, string(body))
	}
}

// localAnswers are the schemas of the node's own answers, by type.
var localAnswers = map[string]string{
	"application/json":  "/components/schemas/ChatCompletion",
	"text/event-stream": "/components/schemas/ChatCompletionStreamData",
}

// checkHeaders checks what every response must have.
func (f *openAPIFile) checkHeaders(t testing.TB, w *httptest.ResponseRecorder) {
	t.Helper()
	if id := w.Header().Get("X-Request-Id"); !requestID.MatchString(id) {
		t.Errorf("x-request-id is %q", id)
	}
	timing := w.Header().Get("Server-Timing")
	if !serverTiming.MatchString(timing) {
		t.Errorf("Server-Timing is %q", timing)
	}
	streamed := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
	if total := strings.Contains(timing, "total;"); total == streamed {
		t.Errorf("Server-Timing is %q on a response with stream %v", timing, streamed)
	}
	if length := w.Header().Get("Content-Length"); streamed != (length == "") && w.Code != http.StatusNoContent {
		t.Errorf("Content-Length is %q on a response with stream %v", length, streamed)
	}
	if limits := len(w.Header().Values("RateLimit-Limit")); limits > 0 && w.Code != 200 && w.Code != 429 || limits == 0 && w.Code == 429 {
		t.Errorf("%d RateLimit-Limit on a %d", limits, w.Code)
	}
	// C065: a request that no waiting helps has none.
	retry, never := w.Header().Get("Retry-After"), w.Header().Get("X-Should-Retry") == "false"
	if _, err := strconv.ParseUint(retry, 10, 31); (err == nil) != (w.Code == 429 && !never || w.Code == 503) && !isHealth(w) {
		t.Errorf("Retry-After is %q on a %d", retry, w.Code)
	}
	if never && w.Code != 429 {
		t.Errorf("X-Should-Retry on a %d", w.Code)
	}
	if reset := w.Header().Get("RateLimit-Reset"); w.Code == 429 && retry != "" && number(reset) < number(retry) {
		t.Errorf("Retry-After %s is beyond RateLimit-Reset %s", retry, reset)
	}
}

// number is a header's number, -1 if it is none.
func number(header string) int {
	n, err := strconv.Atoi(header)
	if err != nil {
		return -1
	}
	return n
}

func isHealth(w *httptest.ResponseRecorder) bool {
	return strings.HasPrefix(w.Body.String(), `{"status":`)
}

// events splits a stream into its data, and checks that there is nothing but
// data lines.
func events(t testing.TB, stream string) []string {
	t.Helper()
	var data []string
	for _, frame := range strings.SplitAfter(stream, "\n\n") {
		if frame == "" {
			continue
		}
		line, ok := strings.CutPrefix(frame, "data: ")
		line, end := strings.CutSuffix(line, "\n\n")
		if !ok || !end || strings.Contains(line, "\n") {
			t.Fatalf("bad frame %q", frame)
		}
		data = append(data, line)
	}
	return data
}

// Every example in the file is valid and its requests are accepted.
func TestOpenAPIExamples(t *testing.T) {
	f := contract(t)
	media, pointer := f.at("paths", chatPath, "post", "requestBody", "content", "application/json")
	for name, example := range media["examples"].(map[string]any) {
		text, err := json.Marshal(example.(map[string]any)["value"])
		if err != nil {
			t.Fatal(err)
		}
		f.validate(t, pointer+"/schema", string(text))
		w := do(t, serve(t, says("The Rogue.")), post(chatPath, strings.ReplaceAll(string(text), `"50256"`, `"5"`)))
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	media, pointer = f.at("paths", chatPath, "post", "responses", "200", "content", "application/json")
	for _, example := range media["examples"].(map[string]any) {
		text, err := json.Marshal(example.(map[string]any)["value"])
		if err != nil {
			t.Fatal(err)
		}
		f.validate(t, pointer+"/schema", string(text))
	}
	media, pointer = f.at("paths", chatPath, "post", "responses", "200", "content", "text/event-stream")
	for _, data := range events(t, media["x-sse-example"].(string)+"\n") {
		if data != "[DONE]" {
			f.validate(t, pointer+"/schema", data)
		}
	}
}
