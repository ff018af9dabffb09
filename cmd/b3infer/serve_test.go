package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	cmd.SetArgs(append([]string{"serve", "--model", path, "--listen", "127.0.0.1:0", "--log-level", "debug",
		"--data", t.TempDir()}, args...))
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

// A key that is made while the server runs closes it, and its requests are in the
// log that the commands show.
func TestServeAccounts(t *testing.T) {
	data := t.TempDir()
	r := startServing(t, "--data", data)
	close(r.open)
	r.out.after(t, "address  ")
	if status, body := call(t, "POST", r.url+"/v1/chat/completions", hello); status != 200 {
		t.Errorf("without keys: got %d %s", status, body)
	}
	run := func(args ...string) string {
		var out bytes.Buffer
		p := newProgram()
		p.out, p.err = &out, io.Discard
		cmd := p.command()
		cmd.SetArgs(append(args, "--data", data))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	secret := strings.TrimSpace(run("keys", "create", "--name", "laptop"))
	status := 0
	for end := time.Now().Add(5 * time.Second); status != 401 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		status, _ = call(t, "POST", r.url+"/v1/chat/completions", hello)
	}
	if status != 401 {
		t.Errorf("the first key does not close the server: got %d", status)
	}
	status, body := call(t, "POST", r.url+"/v1/chat/completions", hello, "Authorization", "Bearer "+secret)
	if status != 200 {
		t.Errorf("with the key: got %d %s", status, body)
	}
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("serve ended with %v", err)
	}
	if list := run("requests"); strings.Count(list, "Fake") < 2 || !strings.Contains(list, "key_") {
		t.Errorf("the log of requests is %s", list)
	}
	if strings.Contains(r.err.String(), secret) {
		t.Error("the log has the key")
	}
}

func TestServeTLS(t *testing.T) {
	cert, key := certificate(t)
	r := startServing(t, "--tls-cert", cert, "--tls-key", key)
	close(r.open)
	if url := r.out.after(t, "address  "); !strings.HasPrefix(url, "https://127.0.0.1:") {
		t.Errorf("address is %s", url)
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	for _, want := range []string{"HTTP/1.1", "HTTP/2.0"} {
		var protocols http.Protocols
		protocols.SetHTTP1(want == "HTTP/1.1")
		protocols.SetHTTP2(want == "HTTP/2.0")
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: &protocols}}
		answer, err := client.Post(strings.Replace(r.url, "http:", "https:", 1)+"/v1/chat/completions", "application/json", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		client.CloseIdleConnections()
		if answer.StatusCode != 200 || answer.Proto != want {
			t.Errorf("got %d over %s, want 200 over %s", answer.StatusCode, answer.Proto, want)
		}
	}
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

// certificate writes a certificate for 127.0.0.1 that signs itself, and its key.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", der)
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
	cmd.SetArgs([]string{"serve", "--model", "any", "--listen", address, "--data", t.TempDir()})
	got := fmt.Sprint(cmd.ExecuteContext(t.Context()))
	want := address + " is taken by another program, perhaps another b3infer: stop it, or choose a port with --listen"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	r.stop()
	close(r.open)
	r.wait(t)
}
