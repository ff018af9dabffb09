package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

// A watched buffer lets a test wait for what is written to it.
type watched struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{}
}

func newWatched() *watched { return &watched{written: make(chan struct{}, 1)} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	select {
	case w.written <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// after waits until mark has been written, and returns the word behind it.
func (w *watched) after(t *testing.T, mark string) string {
	t.Helper()
	for {
		if _, rest, ok := strings.Cut(w.String(), mark); ok && strings.ContainsAny(rest, " \n") {
			return strings.Fields(rest)[0]
		}
		select {
		case <-w.written:
		case <-t.Context().Done():
			t.Fatalf("%q was never written, but %q", mark, w.String())
		}
	}
}

// A gate is a fake backend whose Load waits until it is opened.
type gate struct {
	*llamatest.Backend
	open chan struct{}
}

func (g gate) Load(path string, p llama.ModelParams) (llama.Model, error) {
	<-g.open
	return g.Backend.Load(path, p)
}

// A running serve command.
type running struct {
	out, err *watched
	open     chan struct{} // closed to let the model load
	stop     context.CancelFunc
	ended    chan error
	url      string
}

// startServing runs serve on the fake with further arguments.
func startServing(t *testing.T, args ...string) *running {
	t.Helper()
	path := filepath.Join(t.TempDir(), modelFile)
	if err := os.WriteFile(path, gguf(), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &running{out: newWatched(), err: newWatched(), open: make(chan struct{}), ended: make(chan error, 1)}
	p := newProgram()
	p.out, p.err = r.out, r.err
	p.env = func(string) (string, bool) { return "", false }
	p.openBackend = func(*slog.Logger, int) (llama.Backend, error) {
		fake := llamatest.NewBackend(map[string]llamatest.Options{
			path: {Script: func(string) (string, bool) { return "Hello there.", true }},
		})
		return gate{fake, r.open}, nil
	}
	cmd := p.command()
	cmd.SetArgs(append([]string{"serve", "--model", path, "--listen", "127.0.0.1:0", "--log-level", "debug"}, args...))
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() { r.ended <- cmd.ExecuteContext(ctx) }()
	r.url = "http://" + strings.TrimPrefix(r.err.after(t, "msg=listening address="), "http://")
	return r
}

func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-t.Context().Done():
		t.Fatal("serve did not end")
		return nil
	}
}

// call sends a request and returns the status and the body.
func call(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// post sends a request and returns the answer while its body still comes.
func post(t *testing.T, url, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

const hello = `{"model": "Fake", "messages": [{"role": "user", "content": "Hi"}]}`

func TestServe(t *testing.T) {
	r := startServing(t, "--ctx", "1024", "--threads", "3")

	status, body := call(t, "GET", r.url+"/healthz", "")
	if status != 503 || !strings.Contains(body, "loading") {
		t.Errorf("health while loading: got %d %s", status, body)
	}
	if status, body := call(t, "POST", r.url+"/v1/chat/completions", hello); status != 503 {
		t.Errorf("request while loading: got %d %s", status, body)
	}
	close(r.open)
	r.out.after(t, "address  ")
	if status, body := call(t, "GET", r.url+"/healthz", ""); status != 200 {
		t.Errorf("health: got %d %s", status, body)
	}
	status, body = call(t, "POST", r.url+"/v1/chat/completions", hello)
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 200 ||
		len(answer.Choices) != 1 || answer.Choices[0].Message.Content != "Hello there." {
		t.Errorf("answer: got %d %s, %v", status, body, err)
	}
	if status, body := call(t, "GET", r.url+"/metrics", ""); status != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics: got %d %s", status, body)
	}

	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("serve ended with %v", err)
	}
	address := strings.TrimPrefix(r.url, "http://")
	want := fmt.Sprintf(`model    Fake (llama, 4096 parameters, F32, 16.0 KiB)
context  1024 tokens, f16 cache of 256.0 KiB; up to 32 requests at a time
device   CPU: fake CPU
threads  3
address  http://%s/v1

curl http://%s/v1/chat/completions -H 'Content-Type: application/json' -d '{"model": "Fake", "messages": [{"role": "user", "content": "Say hello."}]}'
`, address, address)
	if diff := cmp.Diff(want, r.out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if !strings.Contains(r.err.String(), "loading Fake: 100%") {
		t.Errorf("no progress in %s", r.err)
	}
	if _, err := http.Get(r.url); err == nil {
		t.Error("the port is still open")
	}
}

func TestServeKeyAndAlias(t *testing.T) {
	r := startServing(t, "--api-key", "one", "--api-key", "two", "--alias", "it's", "--node-name", "n1")
	close(r.open)
	r.out.after(t, "address  ")
	if status, _ := call(t, "GET", r.url+"/v1/models", ""); status != 401 {
		t.Errorf("without a key: got %d, want 401", status)
	}
	status, body := call(t, "GET", r.url+"/v1/models", "", "Authorization", "Bearer two")
	if status != 200 || !strings.Contains(body, `"id":"it's"`) {
		t.Errorf("models: got %d %s", status, body)
	}
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("serve ended with %v", err)
	}
	if curl := r.out.String(); !strings.Contains(curl, `-H "Authorization: Bearer $B3INFER_API_KEY"`) || !strings.Contains(curl, `"model": "it'\''s"`) {
		t.Errorf("curl line: got %s", curl)
	}
}

func TestServeInterruptedWhileLoading(t *testing.T) {
	r := startServing(t)
	r.stop()
	close(r.open)
	if err := r.wait(t); !errors.Is(err, errInterrupted) {
		t.Errorf("got %v, want %v", err, errInterrupted)
	}
}

func TestServeBusyPort(t *testing.T) {
	r := startServing(t)
	address := strings.TrimPrefix(r.url, "http://")
	p := newProgram()
	p.env = func(string) (string, bool) { return "", false }
	cmd := p.command()
	cmd.SetArgs([]string{"serve", "--model", "any", "--listen", address})
	got := fmt.Sprint(cmd.ExecuteContext(t.Context()))
	want := address + " is taken by another program, perhaps another b3infer: stop it, or choose a port with --listen"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	r.stop()
	close(r.open)
	r.wait(t)
}
