package handlers

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/b3os/b3infer/accounts"
)

func TestLongPath(t *testing.T) {
	h := serve(t, says("Hi"))
	runRefusals(t, h, []refusal{
		{"query", get("/v1/models?x=" + strings.Repeat("a", maxURI)), 414,
			wireError{"the path and query are 8205 bytes; at most 8192 are allowed", badRequest, "uri_too_long", ""}},
		{"unknown_path", get("/" + strings.Repeat("a", maxURI)), 414,
			wireError{"the path and query are 8193 bytes; at most 8192 are allowed", badRequest, "uri_too_long", ""}},
	})
}

func TestLargeHeaders(t *testing.T) {
	h := serve(t, says("Hi"))
	large := []string{"X-A", strings.Repeat("a", maxHeaders/2), "X-B", strings.Repeat("b", maxHeaders/2)}
	want := wireError{"the headers are 65550 bytes; at most 65536 are allowed", badRequest, "headers_too_large", ""}
	runRefusals(t, h, []refusal{
		{"known_path", get("/v1/models", large...), 431, want},
		{"before_the_body", post(chatPath, "{", append(large, "Content-Type", "")...), 431, want},
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listen(t, h)+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(withHeaders(r, large...))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 431 || !requestIDs.MatchString(response.Header.Get("X-Request-Id")) {
		t.Errorf("over HTTP: got %s, %v", response.Status, response.Header)
	}
}

// Of X-Forwarded-For only what listed proxies have added counts.
func TestClientAddress(t *testing.T) {
	s := &server{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	for _, c := range []struct{ peer, forwarded, want string }{
		{"203.0.113.9:5000", "", "203.0.113.9"},
		{"203.0.113.9:5000", "198.51.100.1", "203.0.113.9"},
		{"10.1.1.1:5000", "", "10.1.1.1"},
		{"10.1.1.1:5000", "198.51.100.1", "198.51.100.1"},
		{"10.1.1.1:5000", "made-up, 192.0.2.7, 198.51.100.1, 10.2.2.2", "198.51.100.1"},
		{"10.1.1.1:5000", "198.51.100.1, nonsense", "10.1.1.1"},
		{"[::ffff:10.1.1.1]:5000", "2001:db8::1", "2001:db8::1"},
		{"[::1]:5000", "10.3.3.3", "10.3.3.3"},
		{"@", "198.51.100.1", "@"},
	} {
		r := get("/", "X-Forwarded-For", c.forwarded)
		r.RemoteAddr = c.peer
		if got := s.clientOf(r); got != c.want {
			t.Errorf("%s with %q: got %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}

// A head that comes too slowly, or is too large, ends the connection.
func TestHeadLimits(t *testing.T) {
	const patience = 200 * time.Millisecond // for what takes headerTime elsewhere
	if s := NewServer("", nil); s.ReadHeaderTimeout != headerTime {
		t.Errorf("a head may take %v", s.ReadHeaderTimeout)
	}
	address := listen(t, serve(t, says("Hi")), func(s *http.Server) { s.ReadHeaderTimeout = patience })
	begun := time.Now()
	slow, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET / HTTP/1.1\r\nHost: x\r\n"); err != nil {
		t.Fatal(err)
	}
	large, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	_ = large.SetDeadline(begun.Add(10 * time.Second))                                                             // what does not come fails below
	go io.WriteString(large, "GET / HTTP/1.1\r\nHost: x\r\nX-Large: "+strings.Repeat("a", 2*headBytes)+"\r\n\r\n") // the server may not read all of it
	answer, err := http.ReadResponse(bufio.NewReader(large), nil)
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large head: %v, %v", answer, err)
	}
	_ = slow.SetReadDeadline(begun.Add(10 * time.Second)) // a read beyond it fails as it should
	if _, err := io.Copy(io.Discard, slow); err != nil || time.Since(begun) < patience {
		t.Errorf("a slow head: %v after %v", err, time.Since(begun))
	}
}

// No secret is in the store's files or in the log, whatever is done with it.
func TestContractC012_SecretsAreNowhere(t *testing.T) {
	h := serve(t, says("Hi"), func(c *Config) { c.Keys = []string{"static-secret"} })
	key, secret := newKey(t, h.accounts, accounts.NewKey{})
	for _, credential := range []string{secret, "static-secret", secret[:len(secret)-1], "Basic " + secret} {
		for _, path := range []string{chatPath, "/v1/keys", "/v1/auth/session", "/nowhere/" + url.PathEscape(credential), "/v1/keys/x?key=" + url.QueryEscape(credential)} {
			do(t, h, with(credential, post(path, chatBody(""))))
			newRecorder(h, with(credential, get(path, "Cookie", cookieName+"="+credential, csrfHeader, credential)))
		}
	}
	do(t, h, with(secret, del("/v1/keys/"+key.ID)))
	do(t, h, with(secret, get("/v1/models")))
	if err := h.accounts.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(h.data, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(secret[8:40])) || bytes.Contains(text, []byte("static-secret")) {
			t.Errorf("%s has a secret", file)
		}
	}
	if log := h.log.String(); strings.Contains(log, secret[8:40]) || strings.Contains(log, "static-secret") || !strings.Contains(log, key.ID) {
		t.Errorf("the log: %s", log)
	}
}
