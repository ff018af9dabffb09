package handlers

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/b3os/b3infer/engine"
)

func testEncoder() *chatEncoder {
	return newChatEncoder(chatAnswer{
		id: newID("chatcmpl-", time.Now()), created: time.Now(), model: testModel, fingerprint: "b3infer-0.1.0", node: "n1", route: "local",
	})
}

// A token of a stream allocates nothing once its buffer has grown.
func TestFrameAllocations(t *testing.T) {
	s := openStream(&nullWriter{header: http.Header{}}, &exchange{}, testEncoder())
	defer s.close()
	if err := s.send(engine.CallStart{Name: "f"}); err != nil {
		t.Fatal(err)
	}
	for _, ev := range []engine.Event{engine.Text{Text: " Rogue\n"}, engine.CallArguments{Text: `{"city":`}} {
		if n := testing.AllocsPerRun(100, func() {
			if err := s.send(ev); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations for %T", n, ev)
		}
	}
}

// Logprobs need no memory of their own either.
func TestLogprobsAllocations(t *testing.T) {
	e := testEncoder()
	e.logprobs = true
	rogue := engine.Candidate{Piece: []byte(" Rogue"), Logprob: -0.123}
	var ev engine.Event = engine.Text{Text: " Rogue", Tokens: []engine.Drawn{{Candidate: rogue, Top: []engine.Candidate{rogue, rogue}}}}
	dst := e.frame(nil, ev)
	if n := testing.AllocsPerRun(100, func() { dst = e.frame(dst[:0], ev) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A nullWriter takes everything.
type nullWriter struct{ header http.Header }

func (w *nullWriter) Header() http.Header         { return w.header }
func (w *nullWriter) WriteHeader(int)             {}
func (w *nullWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *nullWriter) Flush()                      {}

func BenchmarkFrame(b *testing.B) {
	enc := testEncoder()
	var ev engine.Event = engine.Text{Text: " Rogue"}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = enc.frame(dst[:0], ev)
	}
}

func BenchmarkSend(b *testing.B) {
	s := openStream(&nullWriter{header: http.Header{}}, &exchange{}, testEncoder())
	defer s.close()
	var ev engine.Event = engine.Text{Text: " Rogue"}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.send(ev); err != nil {
			b.Fatal(err)
		}
	}
}

// The cost of a token over a real connection, client and kernel included.
func BenchmarkStreamedToken(b *testing.B) {
	const tokens = 1000
	e := says(strings.Split(strings.Repeat("x", tokens), "")...)
	client := http.Client{}
	address := "http://" + listen(b, serve(b, e, quiet)) + chatPath
	b.ReportAllocs()
	for b.Loop() {
		answer, err := client.Post(address, "application/json", strings.NewReader(chatBody(`"stream":true`)))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			b.Fatal(err)
		}
		answer.Body.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tokens, "ns/token")
}

func quiet(c *Config) { c.Log = slog.New(slog.DiscardHandler) }

func BenchmarkWhole(b *testing.B) {
	h := serve(b, says("The", " Rogue."), quiet)
	b.ReportAllocs()
	for b.Loop() {
		newRecorder(h, post(chatPath, chatBody("")))
	}
}

func BenchmarkRefused(b *testing.B) {
	h := serve(b, says("Hi"), quiet, func(c *Config) { c.Keys = []string{"key"} })
	b.ReportAllocs()
	for b.Loop() {
		newRecorder(h, post(chatPath, chatBody("")))
	}
}
