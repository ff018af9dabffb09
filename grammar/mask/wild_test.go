package mask

import (
	"bufio"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/b3os/b3infer/grammar"
)

// wildEnv names a file of schemas of the wild, a JSON object a line: {"id": …,
// "schema": …, "tests": [{"data": …, "valid": bool}]}. See the tests of package
// grammar.
const wildEnv = "B3INFER_WILD_SCHEMAS"

type wildCase struct {
	ID     string
	Schema json.RawMessage
	Tests  []struct {
		Data  json.RawMessage
		Valid bool
	}
}

// wildCases calls visit for each schema that compiles, with the instances that
// its grammar has as texts, and those that it does not have.
func wildCases(t testing.TB, visit func(c benchCase, others []string)) {
	t.Helper()
	path := os.Getenv(wildEnv)
	if path == "" {
		t.Skipf("%s is not set: no schemas", wildEnv)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c wildCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		compile := func() (*grammar.Grammar, error) {
			return grammar.FromSchema(c.Schema, grammar.Options{Strict: true, Unique: true})
		}
		g, err := compile()
		if err != nil {
			continue
		}
		out, others := benchCase{name: c.ID, compile: compile}, []string(nil)
		for _, test := range c.Tests {
			text, err := grammar.Compact(test.Data)
			switch {
			case err != nil:
				t.Fatalf("%s: %v", c.ID, err)
			case g.Match(text):
				out.texts = append(out.texts, string(text))
			default:
				others = append(others, string(text))
			}
		}
		visit(out, others)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestWildMasks reads all instances of schemas of the wild. Where the grammar has
// one, the masks always have a token that leads on, and the text may end where it
// does; else not.
func TestWildMasks(t *testing.T) {
	v := smallVocabulary()
	byText, words := textTokens(v), make([]uint64, v.Words())
	schemas, texts := 0, 0
	wildCases(t, func(c benchCase, others []string) {
		g, err := c.compile()
		if err != nil {
			t.Fatal(err)
		}
		a := automaton(t, g, v, Limits{})
		for i, text := range slices.Concat(c.texts, others) {
			s, rest := start(t, a, ""), text
			for rest != "" {
				if _, err := s.Mask(words); err != nil {
					t.Fatalf("%s: %s: before %q: %v", c.name, text, rest, err)
				}
				token := longestToken(v, byText, words, rest)
				if token == noToken {
					break
				}
				if err := s.Accept(token); err != nil {
					t.Fatalf("%s: %s: %v", c.name, text, err)
				}
				rest = rest[len(v.piece(token)):]
			}
			if want, got := i < len(c.texts), rest == "" && s.Done(); got != want {
				t.Fatalf("%s: %s: got %v, want %v, up to %q", c.name, text, got, want, rest)
			}
			texts++
		}
		schemas++
	})
	t.Logf("%d schemas, %d texts", schemas, texts)
}

// BenchmarkWild measures what BenchmarkMasks does, over schemas of the wild.
func BenchmarkWild(b *testing.B) {
	for _, name := range []string{"qwen2", "gemma-4"} {
		b.Run(name, func(b *testing.B) {
			v := realVocabulary(b, name)
			byText, words := textTokens(v), make([]uint64, v.Words())
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var m times
			most := 0
			for range b.N {
				wildCases(b, func(c benchCase, _ []string) {
					most = max(most, m.measure(b, v, byText, words, c).Bytes)
				})
			}
			m.report(b)
			b.ReportMetric(float64(most)/(1<<20), "MiB")
		})
	}
}

// measure compiles a case and reads its texts twice.
func (m *times) measure(b *testing.B, v *Vocabulary, byText map[string]int32, words []uint64, c benchCase) Stats {
	began := cpuTime()
	g, err := c.compile()
	if err != nil {
		b.Fatal(err)
	}
	m.compile = append(m.compile, cpuTime()-began)
	a := automaton(b, g, v, Limits{})
	if _, err := start(b, a, "").Mask(words); err != nil {
		b.Fatal(err)
	}
	m.first = append(m.first, cpuTime()-began)
	for _, warm := range []bool{false, true} {
		for _, text := range c.texts {
			m.read(b, a, words, byText, text, warm)
		}
	}
	return a.Stats()
}

func (m *times) report(b *testing.B) {
	micros := func(ns float64) float64 { return ns / float64(time.Microsecond) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(micros(mean(m.compile))/1e3, "compile-ms")
	b.ReportMetric(micros(mean(m.first))/1e3, "first-ms")
	b.ReportMetric(micros(quantile(m.first, 0.99))/1e3, "first-p99-ms")
	b.ReportMetric(micros(mean(m.cold)), "cold-µs")
	b.ReportMetric(micros(quantile(m.cold, 0.99)), "cold-p99-µs")
	b.ReportMetric(micros(quantile(m.cold, 1)), "cold-max-µs")
	b.ReportMetric(micros(mean(m.warm)), "warm-µs")
	b.ReportMetric(micros(quantile(m.warm, 0.99)), "warm-p99-µs")
	b.ReportMetric(micros(mean(m.accept)), "accept-µs")
}
