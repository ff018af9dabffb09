package handlers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/engine"
)

// A timed engine waits before each of its events.
type timed struct {
	*script
	wait []time.Duration
}

func (e *timed) Generate(ctx context.Context, p *engine.Prepared) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		i := 0
		for ev, err := range e.script.Generate(ctx, p) {
			time.Sleep(e.wait[i])
			i++
			if !yield(ev, err) {
				return
			}
		}
	}
}

// A stampWriter keeps when each write came, and fails those after the deadline.
type stampWriter struct {
	*httptest.ResponseRecorder
	start, deadline time.Time
	log             []string
}

func (w *stampWriter) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

func (w *stampWriter) Write(b []byte) (int, error) {
	if left := time.Until(w.deadline); left < writeTime/2 {
		return 0, fmt.Errorf("only %v left to write", left)
	}
	kind := "data"
	switch {
	case string(b) == ":\n\n":
		kind = "comment"
	case strings.Contains(string(b), "[DONE]"):
		kind = "end"
	}
	w.log = append(w.log, fmt.Sprint(kind, " ", time.Since(w.start)))
	return w.ResponseRecorder.Write(b)
}

// Comments fill the silences of a stream, but none comes before its head.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &timed{script: says("a", "b"), wait: []time.Duration{40 * time.Second, 10 * time.Second, 50 * time.Second, time.Second}}
		w := &stampWriter{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
		serve(t, e).ServeHTTP(w, post(chatPath, chatBody(`"stream":true`)))
		time.Sleep(time.Hour) // nothing is written after the end
		got := strings.Join(w.log, ", ")
		want := "data 40s, data 50s, comment 1m5s, comment 1m20s, comment 1m35s, data 1m40s, end 1m41s"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// A stream that is never silent has time for every write, however long it lasts.
func TestWriteDeadlineMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		e := &timed{script: says(strings.Split(strings.Repeat("x", n), "")...), wait: slices.Repeat([]time.Duration{time.Second}, n+2)}
		w := &stampWriter{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
		serve(t, e).ServeHTTP(w, post(chatPath, chatBody(`"stream":true`)))
		if last := w.log[len(w.log)-1]; len(w.log) != n+2 || last != "end 5m2s" {
			t.Errorf("%d writes, the last: %s", len(w.log), last)
		}
	})
}

// A brokenWriter fails from the second write on.
type brokenWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.writes++; w.writes > 1 {
		return 0, errors.New("connection reset")
	}
	return w.ResponseRecorder.Write(b)
}

func TestWriteErrorLeavesTheAnswer(t *testing.T) {
	e := says(strings.Split(strings.Repeat("x", 100), "")...)
	e.hang = make(chan struct{})
	h := serve(t, e)
	w := &brokenWriter{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, post(chatPath, chatBody(`"stream":true`)))
	<-e.hang
	if w.writes != 2 || !strings.Contains(h.log.String(), "status=499") {
		t.Errorf("%d writes, log: %s", w.writes, h.log)
	}
}

// A whole body that cannot be written is the client's doing, not a failure.
func TestWriteErrorOfWholeAnswer(t *testing.T) {
	h := serve(t, says("Hi"))
	h.ServeHTTP(&brokenWriter{ResponseRecorder: httptest.NewRecorder(), writes: 1}, post(chatPath, chatBody("")))
	if log := h.log.String(); !strings.Contains(log, "status=499") || strings.Contains(log, "request failed") {
		t.Errorf("log: %s", log)
	}
}

// listen serves h on a real connection as cmd does.
func listen(t testing.TB, h http.Handler, changes ...func(*http.Server)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer("", h)
	for _, change := range changes {
		change(server)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return l.Addr().String()
}

// A client that leaves ends the generation, whether its answer is streamed, not
// streamed, or not begun.
func TestContractC165_DisconnectCancels(t *testing.T) {
	for _, c := range []struct {
		name, more string
		events     []engine.Event
	}{
		{"stream", `"stream":true`, says("Hi").events[:2]},
		{"stream_before_first_token", `"stream":true`, nil},
		{"whole", ``, says("Hi").events[:2]},
		{"whole_before_first_token", ``, nil},
	} {
		for _, encoding := range []string{"", "gzip"} {
			t.Run(c.name+encoding, func(t *testing.T) {
				e := &script{events: c.events, hang: make(chan struct{})}
				conn, err := net.Dial("tcp", listen(t, serve(t, e)))
				if err != nil {
					t.Fatal(err)
				}
				body := chatBody(c.more)
				if encoding != "" {
					body = packed(t, body)
				}
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s",
					chatPath, encoding, len(body), body)
				if c.more != "" && c.events != nil {
					if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
						t.Fatal(err)
					}
				}
				conn.Close()
				select {
				case <-e.hang:
				case <-time.After(10 * time.Second):
					t.Fatal("the answer is still being generated")
				}
			})
		}
	}
}

// The head of a stream comes with the first token, not before.
func TestContractC113_HeadWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &timed{script: says("a"), wait: []time.Duration{2 * time.Second, 0, 0}}
		w := &headWriter{ResponseRecorder: httptest.NewRecorder()}
		start := time.Now()
		serve(t, e).ServeHTTP(w, post(chatPath, chatBody(`"stream":true`)))
		if got := w.head.Sub(start); got != 2*time.Second {
			t.Errorf("the head came after %v", got)
		}
	})
}

type headWriter struct {
	*httptest.ResponseRecorder
	head time.Time
}

func (w *headWriter) WriteHeader(status int) {
	w.head = time.Now()
	w.ResponseRecorder.WriteHeader(status)
}

// Both protocols carry streams, and frames are flushed one by one.
func TestServerProtocols(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*http.Protocols)
		want string
	}{
		{"http1", func(p *http.Protocols) { p.SetHTTP1(true) }, "HTTP/1.1"},
		{"h2c", func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, "HTTP/2.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &script{events: says("Hi").events[:2], hang: make(chan struct{})}
			var protocols http.Protocols
			c.set(&protocols)
			client := http.Client{Transport: &http.Transport{Protocols: &protocols}}
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+listen(t, serve(t, e))+chatPath,
				strings.NewReader(chatBody(`"stream":true`)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			lines := bufio.NewScanner(answer.Body)
			for _, want := range []string{`"role":"assistant"`, `"content":"Hi"`} { // they come while the engine hangs
				if !lines.Scan() || !strings.Contains(lines.Text(), want) || !lines.Scan() {
					t.Fatalf("got %q, want %s", lines.Text(), want)
				}
			}
			if answer.Proto != c.want {
				t.Errorf("protocol %s, want %s", answer.Proto, c.want)
			}
			cancel()
			<-e.hang
		})
	}
}

// A body that stops coming is given up, and the connection with it: its deadline
// stays, since the HTTP server reads what is left of a body before it answers.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &stalledBody{}
		r := httptest.NewRequest(http.MethodPost, chatPath, body)
		r.Header.Set("Content-Type", "application/json")
		w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder(), body: body}
		serve(t, says("Hi")).ServeHTTP(w, r)
		got := errorOf(t, w.Body.Bytes())
		want := wireError{"the request body came too slowly; 64 KiB must arrive every 30 seconds", badRequest, "request_timeout", ""}
		if w.Code != 408 || got != want || w.lifted {
			t.Errorf("%d %+v, deadline lifted: %v", w.Code, got, w.lifted)
		}
	})
}

// A stalledBody sends a byte every second until its read deadline.
type stalledBody struct{ deadline time.Time }

func (b *stalledBody) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	if !b.deadline.IsZero() && time.Now().After(b.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	p[0] = ' '
	return 1, nil
}

type deadlineWriter struct {
	*httptest.ResponseRecorder
	body   *stalledBody
	lifted bool
}

func (w *deadlineWriter) SetReadDeadline(t time.Time) error {
	w.body.deadline, w.lifted = t, t.IsZero()
	return nil
}

// The log has one line a request, and neither content nor credentials.
func TestLog(t *testing.T) {
	h := serve(t, says("the answer"), func(c *Config) { c.Keys = []string{"sekrit"} })
	body := strings.Replace(chatBody(`"stream":true`), "Hi", "the question", 1)
	w := do(t, h, post(chatPath, body, "Authorization", "Bearer sekrit"))
	do(t, h, post(chatPath, body, "Authorization", "Bearer wrong-sekrit"))
	do(t, h, get("/nowhere?key=sekrit"))
	lines := strings.Split(strings.TrimSpace(h.log.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), h.log)
	}
	for _, want := range []string{
		"level=INFO msg=request id=" + w.Header().Get("X-Request-Id"), "method=POST", "route=" + chatPath, "status=200",
		"model=" + testModel, "stream=true", "prompt=17", "cached=8", "render_ms=1", "queue_ms=2", "prefill_ms=3", "ttft_ms=6",
		"answer=2", "reasoning=0", "finish=stop", "decode_ms=4", "total_ms=",
	} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("no %q in %s", want, lines[0])
		}
	}
	if !strings.Contains(lines[1], "status=401") || !strings.Contains(lines[1], "code=unauthorized") {
		t.Error(lines[1])
	}
	if !strings.Contains(lines[2], "route=none status=404") {
		t.Error(lines[2])
	}
	for _, secret := range []string{"question", "answer\"", "the answer", "sekrit"} {
		if strings.Contains(h.log.String(), secret) {
			t.Errorf("the log has %q:\n%s", secret, h.log)
		}
	}
}

func TestLogOfPanic(t *testing.T) {
	h := serve(t, &script{panics: "boom"})
	w := do(t, h, post(chatPath, chatBody("")))
	if strings.Count(h.log.String(), "boom") != 1 || !strings.Contains(h.log.String(), "script).Generate") {
		t.Errorf("the panic is logged once, with its stack:\n%s", h.log)
	}
	if !strings.Contains(h.log.String(), w.Header().Get("X-Request-Id")) {
		t.Error("the log does not name the request")
	}
}

// A failure after half a body cuts the connection, so that the half cannot pass
// for the whole.
func TestFailureInBody(t *testing.T) {
	s := &server{log: slog.New(slog.DiscardHandler)}
	e := echo.New()
	e.Use(s.observe)
	e.GET("/", func(c *echo.Context) error {
		c.Response().Header().Set("Content-Length", "10")
		_, err := c.Response().Write([]byte("half"))
		return errors.Join(err, http.NewResponseController(c.Response()).Flush(), errors.New("boom"))
	})
	answer, err := http.Get("http://" + listen(t, e))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", body, err)
	}
}

// Every text comes out as it went in, and as one line.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c", "\x00\x1f \x7f", "\u0085\u2028\u2029", "é😀\ufffd", "\xff\xc2", "\xc2\x85\xe2\x80\xa8", "\xe2\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := appendString(nil, s)
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil {
			t.Fatalf("%q: %v", quoted, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); got != want {
			t.Errorf("%q came out as %q", want, got)
		}
		if strings.ContainsAny(string(quoted), "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029") {
			t.Errorf("%q has a line break", quoted)
		}
	})
}
