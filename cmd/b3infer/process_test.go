package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A process is the program as its user runs it.
type process struct {
	*exec.Cmd
	stdout, stderr *bufio.Reader
}

// startProcess runs one of TestMain's commands.
func startProcess(t *testing.T, name, dir string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(name, args...)}
	p.Dir = dir
	p.Env = append(os.Environ(), "OMP_WAIT_POLICY=passive", "B3INFER_DATA="+t.TempDir())
	open := func(pipe io.ReadCloser, err error) *bufio.Reader {
		if err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(pipe)
	}
	p.stdout, p.stderr = open(p.StdoutPipe()), open(p.StderrPipe())
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() }) // fails when it has ended
	return p
}

// line reads lines until one that contains mark.
func line(t *testing.T, r *bufio.Reader, mark string) string {
	t.Helper()
	var seen strings.Builder
	for {
		text, err := r.ReadString('\n')
		seen.WriteString(text)
		if strings.Contains(text, mark) {
			return strings.TrimSpace(text)
		}
		if err != nil {
			t.Fatalf("no line with %q in %s", mark, seen.String())
		}
	}
}

func (p *process) signal(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// end waits for the exit and returns the status and what was left on stderr.
func (p *process) end(t *testing.T) (status int, stderr string) {
	t.Helper()
	_, _ = io.Copy(io.Discard, p.stdout) // the pipes must be empty before Wait
	rest, _ := io.ReadAll(p.stderr)
	err := p.Wait()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		t.Fatal(err)
	}
	if failed {
		status = exit.ExitCode()
	}
	return status, string(rest)
}

func fakeModel(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, modelFile), gguf(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The curl line works when it is pasted, and a signal ends the server in order.
func TestProcess(t *testing.T) {
	p := startProcess(t, "fake-b3infer", fakeModel(t), "serve", "--model", modelFile, "--listen", "127.0.0.1:0")
	checkCurl(t, line(t, p.stdout, "curl "), `"content":"Hello there."`)
	p.signal(t)
	if status, stderr := p.end(t); status != 0 {
		t.Errorf("got status %d, %s", status, stderr)
	}
}

// checkCurl runs a line in a shell.
func checkCurl(t *testing.T, command, want string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("the curl line is not tried: no curl")
		return
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%s\ngot %s, %v\nwant %s", command, out, err, want)
	}
}

// A second signal does not wait for the requests that run.
func TestProcessSecondSignal(t *testing.T) {
	p := startProcess(t, "endless-b3infer", fakeModel(t), "serve", "--model", modelFile, "--listen", "127.0.0.1:0", "--grace", "1h")
	url := strings.TrimPrefix(line(t, p.stdout, "address "), "address  ")
	stream := strings.Replace(hello, "{", `{"stream": true, `, 1)
	answer := post(t, url+"/chat/completions", stream)
	defer answer.Body.Close()
	line(t, bufio.NewReader(answer.Body), "data: ") // it runs
	p.signal(t)
	line(t, p.stderr, "stopping")
	p.signal(t)
	status, stderr := p.end(t)
	if status != 1 || !strings.HasSuffix(stderr, "b3infer: stopped before everything had ended\n") {
		t.Errorf("got status %d, %s", status, stderr)
	}
}
