package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/b3os/b3infer/accounts/accountstest"
)

// Two servers on one folder have the same keys and enter what they serve in the same
// ledger and log. What a command or the other server changes holds at once.
func TestTwoServersShareAStore(t *testing.T) {
	data := t.TempDir()
	command := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "b3infer", append(args, "--data", data)...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	newKey := func(args ...string) (id, secret string) {
		t.Helper()
		secret = command(append([]string{"keys", "create"}, args...)...)
		for _, row := range strings.Split(command("keys", "list"), "\n") {
			if strings.HasPrefix(row, "key_") {
				id, _, _ = strings.Cut(row, " ") // the newest is the last
			}
		}
		return id, secret
	}
	_, admin := newKey("--scope", "infer:run,infer:read,keys:manage")
	var servers [2]*process
	var urls [2]string
	for i := range servers {
		servers[i] = startProcess(t, "fake-b3infer", fakeModel(t), "serve", "--model", modelFile, "--listen", "127.0.0.1:0", "--data", data,
			"--log-level", "error") // nobody reads the log while they run
		urls[i] = strings.TrimPrefix(line(t, servers[i].stdout, "address "), "address  ")
	}
	ask := func(server int, secret string) int {
		status, _ := call(t, "POST", urls[server]+"/chat/completions", hello, "Authorization", "Bearer "+secret)
		return status
	}
	// until asks a server until it answers with a status.
	until := func(what string, server int, secret string, want int) {
		t.Helper()
		begun := time.Now()
		for ; ask(server, secret) != want; time.Sleep(time.Millisecond) {
			if time.Since(begun) > time.Second {
				t.Errorf("%s: server %d does not answer with %d", what, server, want)
				return
			}
		}
		t.Logf("%s: server %d after %v", what, server, time.Since(begun).Round(time.Millisecond))
	}

	byCommand, first := newKey()
	byServer, second := newKey("--spend-cap", "1")
	for server := range servers {
		for _, secret := range []string{admin, first, second} {
			if status := ask(server, secret); status != 200 {
				t.Errorf("a new key: server %d answers with %d", server, status)
			}
		}
	}
	command("keys", "revoke", byCommand)
	until("revoked by the command", 0, first, 401)
	until("revoked by the command", 1, first, 401)
	if status, body := call(t, "DELETE", urls[1]+"/keys/"+byServer, "", "Authorization", "Bearer "+admin); status != 200 {
		t.Errorf("revoke over HTTP: got %d %s", status, body)
	}
	if status := ask(1, second); status != 401 {
		t.Errorf("revoked by this server: got %d", status)
	}
	until("revoked by the other server", 0, second, 401)
	command("keys", "limits", "--requests-per-minute", "0")
	until("a limit", 0, admin, 429)
	until("a limit", 1, admin, 429)

	for _, p := range servers {
		p.signal(t)
		if status, stderr := p.end(t); status != 0 {
			t.Errorf("got status %d, %s", status, stderr)
		}
	}
	// Three keys were good at both servers, and the first ones once more meanwhile.
	if entered := accountstest.CheckFile(t, "in the end", filepath.Join(data, storeFile)); entered < 6 {
		t.Errorf("the ledger sums up %d requests, want at least 6", entered)
	}
	if n := strings.Count(command("requests", "--last", "1000"), "\n"); n < 6 {
		t.Errorf("the log has %d requests, want at least 6", n)
	}
}
