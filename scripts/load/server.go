package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// A server is a b3infer that was started for the measurements.
type server struct {
	cmd     *exec.Cmd
	folder  string // of accounts
	address string // host and port
	key     string
}

// start serves a model with one thread, for those with a key.
func start(program, model string) (s *server, err error) {
	s = &server{}
	if s.folder, err = os.MkdirTemp("", "load"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	out, err := exec.Command(program, "keys", "create", "--data", s.folder).Output()
	if err != nil {
		return nil, fmt.Errorf("%s keys create: %w", program, err)
	}
	s.key = strings.TrimSpace(string(out))
	cmd := exec.Command(program, "serve", "--model", model, "--alias", "m", "--listen", "127.0.0.1:0",
		"--data", s.folder, "--threads", "1", "--ctx", "32768", "--log-level", "warn")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.cmd = cmd
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), "address "); ok {
			s.address = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(address), "http://"), "/v1")
			return s, nil
		}
	}
	return nil, errors.New("the server does not start")
}

// stop ends the server, which was started for this alone.
func (s *server) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGKILL) // fails when it has ended
		_ = s.cmd.Wait()                          // says that it was killed
	}
	_ = os.RemoveAll(s.folder) // what is left is in the folder of temporary files
}

// memory is what the server's process takes, in bytes.
func (s *server) memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(text, []byte("VmRSS:"))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) == 0 {
		return 0, errors.New("the system does not tell a process's memory")
	}
	kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
	return kilobytes << 10, err
}

// busy tells whether any request runs or waits.
func (s *server) busy() (bool, error) {
	answer, err := http.Get("http://" + s.address + "/healthz")
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return !bytes.Contains(text, []byte(`"running":0,"waiting":0`)), err
}
