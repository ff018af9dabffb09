//go:build cgo

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/b3os/b3infer/accounts/accountstest"
)

const (
	// inFlight is the limit of the organization, of which more is asked.
	inFlight   = 6
	killAsked  = 8
	recordTime = time.Second // a record is written within it
)

// A victim is a program that is killed again and again, and what its clients
// were told by it.
type victim struct {
	data, model, admin string
	url                string // of the process that runs

	mu      sync.Mutex      // guards the clients' part of what follows
	good    []string        // secrets of keys that were created
	revoked []string        // secrets of keys that were revoked
	ended   map[string]bool // whether it was early enough before the kill, by a request's id
}

// However often the program is killed, no key that it has acknowledged is lost and
// no revocation, nothing stays booked, and the ledger is what the log says.
// B3INFER_KILLS is how often.
func TestKilledUnderLoad(t *testing.T) {
	kills := 3
	if text := os.Getenv("B3INFER_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal("B3INFER_KILLS: ", err)
		}
	}
	v := newVictim(t)
	p := v.start(t)
	var entered, answered, lost int
	for i := range kills {
		v.loadUntilKilled(t, p)
		answered += len(v.ended)
		p = v.start(t)
		when := fmt.Sprintf("after %d kills", i+1)
		lost += v.checkRecords(t, when)
		entered = v.check(t, when)
	}
	p.signal(t)
	if status, stderr := p.end(t); status != 0 {
		t.Errorf("got status %d, %s", status, stderr)
	}
	t.Logf("%d kills: %d keys kept, %d revoked; of %d answered requests %d of the last second are not in the log; the ledger sums up %d",
		kills, len(v.good), len(v.revoked), answered, lost, entered)
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{data: t.TempDir(), model: testModelPath(t, "tiny.gguf")}
	v.admin = v.command(t, "keys", "create", "--organization", "load", "--scope", "infer:run,infer:read,keys:manage")
	v.command(t, "keys", "limits", "--organization", "load", "--requests-in-flight", strconv.Itoa(inFlight))
	return v
}

// command runs a command on the store and returns what it prints.
func (v *victim) command(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr := run(t, "", append(args, "--data", v.data)...)
	if out == "" {
		t.Errorf("%v: %s", args, stderr)
	}
	return strings.TrimSpace(out)
}

func (v *victim) start(t *testing.T) *process {
	t.Helper()
	p := startProcess(t, "b3infer", t.TempDir(), "serve", "--model", v.model, "--alias", "tiny", "--listen", "127.0.0.1:0",
		"--ctx", "4096", "--threads", "1", "--data", v.data, "--log-level", "error")
	v.url = strings.TrimSuffix(strings.TrimPrefix(line(t, p.stdout, "address "), "address  "), "/v1")
	return p
}

// ask sends a request and returns its status, its id and its whole body. The status
// is 0 if the server ends before all is there.
func (v *victim) ask(ctx context.Context, secret, method, path, body string) (status int, id string, answer []byte) {
	request, err := http.NewRequestWithContext(ctx, method, v.url+path, strings.NewReader(body))
	if err != nil {
		panic(err) // of what is written in this file
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", nil
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		return 0, "", nil
	}
	return response.StatusCode, response.Header.Get("X-Request-Id"), answer
}

// loadUntilKilled asks from many sides until the process is killed, at any moment.
func (v *victim) loadUntilKilled(t *testing.T, p *process) {
	t.Helper()
	ended := map[string]time.Time{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for i := range killAsked {
		group.Go(func() { v.chatUntilKilled(ctx, t, i, ended) })
	}
	group.Go(func() { v.changeKeysUntilKilled(ctx, t) })
	group.Go(func() {
		if secret := v.command(t, "keys", "create", "--organization", "load"); secret != "" {
			v.mu.Lock()
			v.good = append(v.good, secret)
			v.mu.Unlock()
		}
	})
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	p.end(t)
	group.Wait()
	v.ended = map[string]bool{}
	for id, at := range ended {
		v.ended[id] = killed.Sub(at) > recordTime
	}
}

// chatUntilKilled asks for answers, every second one as a stream.
func (v *victim) chatUntilKilled(ctx context.Context, t *testing.T, n int, ended map[string]time.Time) {
	for ; ; n++ {
		body := fmt.Sprintf(`{"model": "tiny", "stream": %v, "max_tokens": %d, "messages": [{"role": "user", "content": "Say %d."}]}`,
			n%2 == 0, 1+rand.IntN(50), n)
		switch status, id, answer := v.ask(ctx, v.admin, "POST", "/v1/chat/completions", body); status {
		case 0:
			return
		case http.StatusOK:
			v.mu.Lock()
			ended[id] = time.Now()
			v.mu.Unlock()
		case http.StatusTooManyRequests: // as many as the limit allows are running
			time.Sleep(time.Millisecond)
		default:
			t.Errorf("chat: got %d %s", status, answer)
			return
		}
	}
}

// changeKeysUntilKilled creates keys and revokes every second one.
func (v *victim) changeKeysUntilKilled(ctx context.Context, t *testing.T) {
	for n := 0; ; n++ {
		status, _, answer := v.ask(ctx, v.admin, "POST", "/v1/keys", `{}`)
		if status == 0 {
			return
		}
		var key struct{ ID, Secret string }
		if err := json.Unmarshal(answer, &key); err != nil || status != http.StatusCreated {
			t.Errorf("create a key: got %d %s", status, answer)
			return
		}
		list := &v.good
		if n%2 == 1 {
			status, _, answer := v.ask(ctx, v.admin, "DELETE", "/v1/keys/"+key.ID, "")
			if status == 0 {
				return // nobody was told that it is revoked
			}
			if status != http.StatusOK {
				t.Errorf("revoke a key: got %d %s", status, answer)
				return
			}
			list = &v.revoked
		}
		v.mu.Lock()
		*list = append(*list, key.Secret)
		v.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
}

// check looks at a process that has just started, and returns how many requests
// the ledger sums up.
func (v *victim) check(t *testing.T, when string) int {
	t.Helper()
	_, _, health := v.ask(t.Context(), v.admin, "GET", "/healthz", "")
	if !bytes.Contains(health, []byte(`"running":0,"waiting":0`)) {
		t.Errorf("%s: something runs: %s", when, health)
	}
	v.checkFree(t, when)
	for want, secrets := range map[int][]string{http.StatusOK: v.good, http.StatusUnauthorized: v.revoked} {
		for _, secret := range secrets {
			if status, _, answer := v.ask(t.Context(), secret, "GET", "/v1/models", ""); status != want {
				t.Errorf("%s: with a key that should be answered with %d: got %d %s", when, want, status, answer)
			}
		}
	}
	return accountstest.CheckFile(t, when, filepath.Join(v.data, storeFile))
}

// checkFree asks for as many answers as the limit allows at a time: all are given,
// unless something is still booked.
func (v *victim) checkFree(t *testing.T, when string) {
	t.Helper()
	var group sync.WaitGroup
	for range inFlight {
		group.Go(func() {
			status, _, answer := v.ask(t.Context(), v.admin, "POST", "/v1/chat/completions",
				`{"model": "tiny", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]}`)
			if status != http.StatusOK {
				t.Errorf("%s: the limit is not free: got %d %s", when, status, answer)
			}
		})
	}
	group.Wait()
}

// checkRecords asks for the records of what was answered before the kill, and returns
// how many there are not. None may be missing that was answered early enough.
func (v *victim) checkRecords(t *testing.T, when string) (lost int) {
	t.Helper()
	for id, early := range v.ended {
		status, _, answer := v.ask(t.Context(), v.admin, "GET", "/v1/requests/"+id, "")
		if status == http.StatusOK {
			continue
		}
		lost++
		if early {
			t.Errorf("%s: the record of a request that was answered early enough: got %d %s", when, status, answer)
		}
	}
	return lost
}
