//go:build cgo

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const realModel = "SmolLM2-135M-Instruct.Q4_1.gguf"

// realModelPath is the file of SmolLM2.
func realModelPath(t *testing.T) string {
	t.Helper()
	return testModelPath(t, realModel)
}

// testModelPath is the file of a test model. The test is skipped when it is not there.
func testModelPath(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("B3INFER_TEST_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("no cache folder to look for models in: ", err)
		}
		dir = filepath.Join(cache, "b3infer", "models")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no test model: %v (scripts/models fetches it)", err)
	}
	return path
}

// The whole program with a real model.
func TestRealServe(t *testing.T) {
	p := startProcess(t, "b3infer", t.TempDir(), "serve", "--model", realModelPath(t), "--listen", "127.0.0.1:0", "--ctx", "1024", "--threads", "1")
	if got, want := line(t, p.stdout, "model "), "model    SmolLM2-135M-Instruct.Q4_1 (llama, 135M parameters, Q4_1, 92.1 MiB)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := line(t, p.stdout, "context "), "context  1024 tokens, f16 cache of 22.5 MiB; up to 32 requests at a time"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	url := strings.TrimPrefix(line(t, p.stdout, "address "), "address  ")
	checkCurl(t, line(t, p.stdout, "curl "), `"finish_reason":"`)
	// What it says differs between CPUs, but not from one time to the next.
	var said [2]string
	for i := range said {
		status, answer := call(t, "POST", url+"/chat/completions", `{"model": "SmolLM2-135M-Instruct.Q4_1", "temperature": 0,
			"messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 20}`)
		_, said[i], _ = strings.Cut(answer, `"content":"`)
		said[i], _, _ = strings.Cut(said[i], `"`)
		if status != 200 || len(said[i]) < 3 {
			t.Errorf("got %d %s", status, answer)
		}
	}
	if said[0] != said[1] {
		t.Errorf("first %q, then %q", said[0], said[1])
	}
	p.signal(t)
	if status, stderr := p.end(t); status != 0 {
		t.Errorf("got status %d, %s", status, stderr)
	}
}

// run runs the program to its end.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "b3infer", args...)
	cmd.Stdin = strings.NewReader(stdin)
	var errText strings.Builder
	cmd.Stderr = &errText
	out, _ := cmd.Output() // a failure shows in stderr
	return string(out), errText.String()
}

const realRequest = `{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <|im_end|>"}]}`

const realPrompt = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n"

func TestRealPrompt(t *testing.T) {
	model := realModelPath(t)
	if out, stderr := run(t, realRequest, "template", "--model", model); out != realPrompt {
		t.Errorf("template: got %q, %s\nwant %q", out, stderr, realPrompt)
	}
	jinja := filepath.Join(t.TempDir(), "chat.jinja")
	const source = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
		"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	if err := os.WriteFile(jinja, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, stderr := run(t, realRequest, "template", "--chat-template", jinja); out != realPrompt {
		t.Errorf("template alone: got %q, %s\nwant %q", out, stderr, realPrompt)
	}
	out, stderr := run(t, realRequest, "tokenize", "--model", model, "--request", "-")
	if n := strings.Count(out, "  control\n"); n != 5 {
		t.Errorf("tokenize: got %d control tokens, want 5\n%s%s", n, out, stderr)
	}
	if out, _ := run(t, "", "tokenize", "--model", model, "Hello"); out != "  19556  \"Hello\"\n" {
		t.Errorf("tokenize: got %q", out)
	}
}

func TestRealErrors(t *testing.T) {
	model := realModelPath(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	broken := file("broken.jinja", "{% for m in messages %}{{ m.content }}")
	foreign := file("foreign.gguf", strings.Replace(string(gguf()), "llama", "lgama", 1))
	incomplete := file("incomplete.gguf", string(gguf()))
	tests := []struct {
		name string
		args []string
		want string // part of the one line
	}{
		{"template", []string{"serve", "--listen", "127.0.0.1:0", "--model", model, "--chat-template", broken}, "chat template"},
		{"architecture", []string{"serve", "--listen", "127.0.0.1:0", "--model", foreign}, "lgama"},
		{"weights", []string{"serve", "--listen", "127.0.0.1:0", "--model", incomplete}, incomplete},
		{"tokenize", []string{"tokenize", "--model", foreign, "x"}, "lgama"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, stderr := run(t, "", test.args...)
			if !strings.HasPrefix(stderr, "b3infer: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.want) {
				t.Errorf("got %s\nwant one line with %q", stderr, test.want)
			}
		})
	}
}

func TestRealVersion(t *testing.T) {
	out, stderr := run(t, "", "version")
	for _, want := range []string{"b3infer    ", "\nllama.cpp  0.5.0", "\ngo         go1.", "\ndevice     CPU"} {
		if !strings.Contains("\n"+out, want) {
			t.Errorf("no %q in %s%s", want, out, stderr)
		}
	}
}
