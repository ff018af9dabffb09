// Package gpucheck is a client of `b3infer serve` on a machine whose hardware matters:
// it asks for answers, alone and many at a time, and reports how fast they come.
// scripts/gpu-check runs it; without its variables every test is skipped.
package gpucheck

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A server is a running b3infer.
type server struct {
	url   string // without a slash at the end
	model string // what it calls the model
	log   string // file
}

// program is the b3infer under test (B3INFER_CHECK_PROGRAM).
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("B3INFER_CHECK_PROGRAM")
	if path == "" {
		t.Skip("B3INFER_CHECK_PROGRAM is not set (scripts/gpu-check does)")
	}
	return path
}

// modelPath is a model that scripts/models makes. The test is skipped when it is not there.
func modelPath(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("B3INFER_TEST_MODELS"), name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no test model: %v (scripts/models test makes it)", err)
	}
	return path
}

// serve starts the program on a free port, with its log in B3INFER_CHECK_LOGS. When
// the test ends, SIGTERM must end the program with status 0.
func serve(t *testing.T, model string, args ...string) *server {
	t.Helper()
	s := &server{model: strings.TrimSuffix(filepath.Base(model), ".gguf")}
	s.log = filepath.Join(os.Getenv("B3INFER_CHECK_LOGS"), strings.NewReplacer("/", "-", "#", "-").Replace(t.Name())+".log")
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program(t), append([]string{"serve", "--model", model, "--listen", "127.0.0.1:0", "--log-level", "debug"}, args...)...)
	cmd.Env = append(os.Environ(), "B3INFER_DATA="+t.TempDir())
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, cmd) })
	for lines := bufio.NewScanner(stdout); s.url == "" && lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), "address "); ok {
			s.url = strings.TrimSpace(address)
		}
	}
	if s.url == "" {
		t.Fatalf("the server does not start:\n%s", tail(t, s.log))
	}
	t.Logf("result: ready after %.1f s", time.Since(start).Seconds())
	return s
}

func stop(t *testing.T, cmd *exec.Cmd) {
	const limit = 20 * time.Second
	kill := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() }) // fails when it has ended
	defer kill.Stop()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error("SIGTERM: ", err)
	}
	start := time.Now()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v, %.1f s after SIGTERM", err, time.Since(start).Seconds())
	}
}

// tail is the last lines of a file.
func tail(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[max(0, len(text)-3000):])
}

// checkOffload fails unless llama.cpp put all layers on the GPU, which only its log tells.
func (s *server) checkOffload(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`offloaded (\d+)/(\d+) layers to GPU`).FindSubmatch(text)
	if m == nil || string(m[1]) != string(m[2]) {
		t.Errorf("not all layers are on the GPU: %q", m)
	}
}

// gauge reads a value of /metrics.
func (s *server) gauge(t *testing.T, name string) (value float64) {
	t.Helper()
	answer, err := http.Get(strings.TrimSuffix(s.url, "/v1") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			if _, err := fmt.Sscan(text, &value); err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("/metrics has no %s", name)
	return 0
}
