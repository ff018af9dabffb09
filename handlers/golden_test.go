package handlers

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/b3os/b3infer/engine"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The files of testdata/chat hold a request, the events that the engine
// answers with, one a line, and the bytes of the response to it.
func TestGoldenChat(t *testing.T) {
	// C155, C156: the files have every byte of a body and of a stream.
	files, err := filepath.Glob("testdata/chat/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			section := func(name string) *txtar.File {
				i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
				if i < 0 {
					t.Fatalf("no section %s", name)
				}
				return &archive.Files[i]
			}
			e := scriptOf(t, string(section("events").Data))
			w := do(t, serve(t, e), post(chatPath, string(section("request").Data)))
			var got bytes.Buffer
			fmt.Fprintln(&got, w.Code)
			for _, name := range []string{"Content-Type", "Cache-Control", "X-Accel-Buffering", "Server-Timing"} {
				if value := w.Header().Get(name); value != "" {
					fmt.Fprintf(&got, "%s: %s\n", name, value)
				}
			}
			fmt.Fprintf(&got, "\n%s", strings.TrimSuffix(w.Body.String(), "\n"))
			got.WriteByte('\n')
			result := stable(got.String())
			want := section("response")
			if *update {
				want.Data = []byte(result)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), result); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

var unstable = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(chatcmpl-|req_|call_)[0-9a-hjkmnp-tv-z]{26}`), "${1}ID"},
	{regexp.MustCompile(`"created":[0-9]+`), `"created":TIME`},
	{regexp.MustCompile(`"total_ms":[0-9.]+`), `"total_ms":MS`},
	{regexp.MustCompile(`(auth|total);dur=[0-9.]+`), `${1};dur=MS`},
}

// stable puts names in the place of ids and measured times.
func stable(s string) string {
	for _, u := range unstable {
		s = u.pattern.ReplaceAllString(s, u.with)
	}
	return s
}

// scriptOf reads the events of a golden file: first, text "…", reasoning "…", token
// "…" LOGPROB with likely ones behind it in the same way, all before their text, call NAME, or with the model's own id call NAME ID, arguments "…", end of a call,
// finish REASON, error CODE "…", panic "…".
func scriptOf(t *testing.T, lines string) *script {
	t.Helper()
	s := &script{}
	usage := engine.Usage{Prompt: 17, Cached: 8}
	var tokens []engine.Drawn
	for line := range strings.Lines(lines) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		unquoted := func(q string) string {
			text, err := strconv.Unquote(q)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return text
		}
		switch verb {
		case "first":
			s.events = append(s.events, engine.First{PromptTokens: 17, CachedTokens: 8, Timing: testTiming})
		case "text", "reasoning":
			usage.Answer++
			if verb == "reasoning" {
				usage.Reasoning++
			}
			s.events = append(s.events, engine.Text{Text: unquoted(rest), Reasoning: verb == "reasoning", Tokens: tokens})
			tokens = nil
		case "token":
			all := candidatesOf(t, rest)
			tokens = append(tokens, engine.Drawn{Candidate: all[0], Top: all[1:]})
		case "call":
			name, id, _ := strings.Cut(rest, " ")
			s.events = append(s.events, engine.CallStart{ID: id, Name: name})
		case "arguments":
			usage.Answer++
			s.events = append(s.events, engine.CallArguments{Text: unquoted(rest)})
		case "end":
			s.events = append(s.events, engine.CallEnd{})
		case "finish":
			usage.Answer++
			s.events = append(s.events, engine.Finish{Reason: engine.FinishReason(rest), Usage: usage, Timing: testTiming})
		case "error":
			code, message, _ := strings.Cut(rest, " ")
			s.broken = &engine.Error{Code: engine.Code(code), Message: unquoted(message), Err: errors.New("cause")}
		case "panic":
			s.panics = unquoted(rest)
		default:
			t.Fatalf("bad line %q", line)
		}
	}
	return s
}

// candidatesOf reads "…" LOGPROB, one or more times.
func candidatesOf(t *testing.T, text string) []engine.Candidate {
	t.Helper()
	var all []engine.Candidate
	for text != "" {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		piece, _ := strconv.Unquote(quoted)
		number, rest, _ := strings.Cut(strings.TrimSpace(text[len(quoted):]), " ")
		logprob, err := strconv.ParseFloat(number, 32)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, engine.Candidate{Piece: []byte(piece), Logprob: float32(logprob)})
		text = strings.TrimSpace(rest)
	}
	return all
}
