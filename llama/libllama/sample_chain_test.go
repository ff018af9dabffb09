//go:build cgo

package libllama

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/google/go-cmp/cmp"
)

// compileCXX builds a program from C++ files and returns its path.
func compileCXX(t *testing.T, args ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	args = slices.Concat([]string{"-std=c++17", "-I.", "-o", program}, strings.Fields(os.Getenv("CGO_CPPFLAGS")), args)
	if out, err := exec.Command(goTool(t, "env", "CXX"), args...).CombinedOutput(); err != nil {
		t.Fatalf("compile %v: %v\n%s", args, err, out)
	}
	return program
}

func goTool(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Skipf("go %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// linkFlags are what a C++ program needs to link llama.cpp as this package does.
func linkFlags(t *testing.T) []string {
	t.Helper()
	tags := ""
	if dynamic {
		tags = "dl"
	}
	list := goTool(t, "list", "-tags", tags, "-f", `{{join .CgoLDFLAGS " "}}`, ".")
	return append(strings.Fields(os.Getenv("CGO_LDFLAGS")), strings.Fields(list)...)
}

// A chainCase is a row for which llama.cpp's samplers tell what may come out.
type chainCase struct {
	name      string
	p         llama.Sampling
	deviation float64 // of the logits
	counts    []llama.TokenCount
	bias      []llama.TokenBias
	allowed   func(llama.Token) bool
}

func chainCases(vocab int) []chainCase {
	var counts []llama.TokenCount
	var bias []llama.TokenBias
	for i := range vocab / 3 {
		counts = append(counts, llama.TokenCount{Token: llama.Token(vocab - 1 - 3*i), Answer: int32(i % 4)})
		bias = append(bias, llama.TokenBias{Token: llama.Token(i * 7 % vocab), Bias: float32(i%5) - 2})
	}
	for i := range 50 {
		bias[i].Bias = -inf
	}
	third := func(t llama.Token) bool { return t%3 == 0 }
	few := func(t llama.Token) bool { return t%400 == 17 }
	return []chainCase{
		{name: "temperature 0.7", p: llama.Sampling{Temperature: 0.7, TopP: 1}},
		{name: "temperature 1", p: llama.Sampling{Temperature: 1, TopP: 1}},
		{name: "temperature 1.5", p: llama.Sampling{Temperature: 1.5, TopP: 1}},
		{name: "top-k 40", p: llama.Sampling{Temperature: 1, TopK: 40, TopP: 1}},
		{name: "top-k 100", p: llama.Sampling{Temperature: 1, TopK: 100, TopP: 1}, deviation: 1},
		{name: "top-k 1000", p: llama.Sampling{Temperature: 1, TopK: 1000, TopP: 1}, deviation: 0.5},
		{name: "top-k of all", p: llama.Sampling{Temperature: 1, TopK: 1 << 30, TopP: 1}},
		{name: "top-p 0.9", p: llama.Sampling{Temperature: 1, TopP: 0.9}},
		{name: "top-p 0.5, flat", p: llama.Sampling{Temperature: 1.5, TopP: 0.5}, deviation: 1},
		{name: "top-p 0.1", p: llama.Sampling{Temperature: 0.7, TopP: 0.1}},
		{name: "min-p 0.1", p: llama.Sampling{Temperature: 1, TopP: 1, MinP: 0.1}},
		{name: "min-p 0.02, flat", p: llama.Sampling{Temperature: 1.5, TopP: 1, MinP: 0.02}},
		{name: "top-p and min-p", p: llama.Sampling{Temperature: 1, TopP: 0.9, MinP: 0.05}},
		{name: "all", p: llama.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}},
		{name: "all, top-p last", p: llama.Sampling{Temperature: 1.2, TopK: 100, TopP: 0.8, MinP: 0.001}},
		{name: "presence and frequency", p: llama.Sampling{Temperature: 1, TopK: 100, TopP: 1, Presence: 1.5, Frequency: 0.5}, counts: counts},
		{name: "repetition", p: llama.Sampling{Temperature: 1, TopP: 0.9, Repetition: 1.3}, counts: counts},
		{name: "all penalties", p: llama.Sampling{Temperature: 1, TopP: 1, MinP: 0.03, Presence: -0.5, Frequency: 0.2, Repetition: 0.8}, counts: counts},
		{name: "bias", p: llama.Sampling{Temperature: 1, TopP: 0.9}, bias: bias},
		{name: "mask", p: llama.Sampling{Temperature: 1, TopP: 1}, allowed: third},
		{name: "mask and top-k", p: llama.Sampling{Temperature: 1, TopK: 50, TopP: 1}, allowed: third},
		{name: "narrow mask", p: llama.Sampling{Temperature: 1, TopP: 1}, deviation: 1, allowed: few},
		{name: "narrow mask and top-k", p: llama.Sampling{Temperature: 1, TopK: 3, TopP: 1}, deviation: 1, allowed: few},
		{name: "everything", p: llama.Sampling{Temperature: 0.9, TopK: 60, TopP: 0.9, MinP: 0.01, Presence: 0.4, Frequency: 0.1, Repetition: 1.1}, counts: counts, bias: bias, allowed: third},
		{name: "greedy", p: llama.Sampling{TopP: 1}},
		{name: "greedy with everything", p: llama.Sampling{TopK: 60, TopP: 0.9, MinP: 0.01, Presence: 0.4, Frequency: 0.1, Repetition: 1.1}, counts: counts, bias: bias, allowed: third},
	}
}

// ask writes a case as testdata/sample/chain.cpp reads it.
func (c *chainCase) ask(w io.Writer, logits []float32) {
	p := c.p
	if p.Repetition == 0 {
		p.Repetition = 1
	}
	bias := c.bias
	for t := range logits {
		if c.allowed != nil && !c.allowed(llama.Token(t)) {
			bias = append(bias, llama.TokenBias{Token: llama.Token(t), Bias: -inf})
		}
	}
	for _, x := range []any{
		int32(len(logits)), int32(len(c.counts)), int32(len(bias)), p.TopK,
		p.Temperature, p.TopP, p.MinP, p.Presence, p.Frequency, p.Repetition,
		logits, c.counts, bias,
	} {
		binary.Write(w, binary.NativeEndian, x)
	}
}

// runChain answers with llama.cpp's samplers.
func runChain(t *testing.T, asked io.Reader) io.Reader {
	t.Helper()
	run := exec.Command(compileCXX(t, append([]string{"testdata/sample/chain.cpp"}, linkFlags(t)...)...))
	run.Stdin, run.Stderr = asked, os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(out)
}

// readChain reads the answer: the probabilities of the tokens that are left.
func readChain(t *testing.T, r io.Reader) map[llama.Token]float64 {
	t.Helper()
	var n int32
	if err := binary.Read(r, binary.NativeEndian, &n); err != nil {
		t.Fatal(err)
	}
	left := map[llama.Token]float64{}
	for range n {
		var e struct {
			Token       llama.Token
			Probability float64
		}
		if err := binary.Read(r, binary.NativeEndian, &e); err != nil {
			t.Fatal(err)
		}
		left[e.Token] = e.Probability
	}
	return left
}

// Tokens are drawn with the probabilities that llama.cpp's samplers give them
// in the same order, and none that these leave out.
func TestSampleLikeLlamaChain(t *testing.T) {
	const vocab, draws = 2003, 100_000
	cases := chainCases(vocab)
	var asked bytes.Buffer
	logits := make([][]float32, len(cases))
	for i, c := range cases {
		if c.deviation == 0 {
			c.deviation = 3
		}
		logits[i] = normal(uint64(i), vocab, c.deviation)
		c.ask(&asked, logits[i])
	}
	answers := runChain(t, &asked)
	for i, c := range cases {
		want := readChain(t, answers)
		t.Run(c.name, func(t *testing.T) { c.compare(t, logits[i], want, draws) })
	}
}

func (c *chainCase) compare(t *testing.T, logits []float32, want map[llama.Token]float64, draws int) {
	counts := c.draw(t, logits, draws)
	for token := range counts {
		if want[token] == 0 {
			t.Errorf("drew token %d, which llama.cpp leaves out", token)
		}
	}
	// A token that is expected 30 times is missed once in 10^13.
	for token, p := range want {
		if p*float64(draws) > 30 && counts[token] == 0 {
			t.Errorf("never drew token %d of probability %g", token, p)
		}
	}
	var seen, expected []float64
	for _, token := range slices.Sorted(maps.Keys(want)) {
		seen = append(seen, counts[token])
		expected = append(expected, want[token]*float64(draws))
	}
	p := chiSquare(seen, expected)
	if p < 1e-4 {
		t.Errorf("got p = %g over %d tokens: another distribution", p, len(want))
	}
	t.Logf("p = %.3f over %d tokens, of which %d were drawn", p, len(want), len(counts))
}

func (c *chainCase) draw(t *testing.T, logits []float32, draws int) map[llama.Token]float64 {
	s := openSampler(t, len(logits), 2, bestKernels)
	row := llama.SampleRow{P: &c.p, Seed: 20, Counts: c.counts, Bias: c.bias, Mask: -1, Top: -1}
	var mask []uint64
	if c.allowed != nil {
		row.Mask, mask = 0, maskOf(len(logits), c.allowed)
	}
	rows := slices.Repeat([]llama.SampleRow{row}, 1000)
	out := make([]llama.Sampled, len(rows))
	counts := map[llama.Token]float64{}
	for step := 0; step < draws; step += len(rows) {
		for i := range rows {
			rows[i].Step = uint64(step + i)
		}
		if err := s.sampleLogits(logits, rows, mask, out); err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			counts[o.Token]++
		}
	}
	return counts
}

// Greedy rows of a real vocabulary's size choose as llama.cpp's samplers do.
func TestSampleGreedyLikeLlamaChain(t *testing.T) {
	const vocab, rows = 151_936, 20
	cases := chainCases(vocab)
	c := cases[len(cases)-1]
	var asked bytes.Buffer
	var got []llama.Token
	for i := range rows {
		logits := normal(uint64(i), vocab, 3)
		c.ask(&asked, logits)
		row := llama.SampleRow{P: &c.p, Counts: c.counts, Bias: c.bias, Top: -1}
		got = append(got, sampleOne(t, logits, row, maskOf(vocab, c.allowed)).Token)
	}
	answers := runChain(t, &asked)
	for i := range rows {
		want := map[llama.Token]float64{got[i]: 1}
		if diff := cmp.Diff(want, readChain(t, answers)); diff != "" {
			t.Error(diff)
		}
	}
}
