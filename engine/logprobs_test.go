package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/b3os/b3infer/grammar"
	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
	"github.com/google/go-cmp/cmp"
)

// told is what of an answer goes together: text, and the pieces of its tokens.
type told struct {
	text   string
	pieces []string
}

func (o *told) take(events []Event) {
	for _, ev := range events {
		if t, ok := ev.(Text); ok && !t.Reasoning {
			o.text += t.Text
			for _, d := range t.Tokens {
				o.pieces = append(o.pieces, string(d.Piece))
			}
		} else if ok && t.Tokens != nil {
			o.pieces = append(o.pieces, "reasoning has tokens")
		}
	}
}

// The tokens of content are told with it, whole and one by one.
func TestOutputTokens(t *testing.T) {
	pieces := []string{"a", "b ", "\xc3", "\xa9", "<think>", "</think>", "<end>", "\xe2\x82", "\xacb ", "<mark>", "\n\n", "x\xe2", "</think>a", "\xff", "\ufffd"}
	tokens := make([]llama.VocabToken, len(pieces))
	for i, p := range pieces {
		tokens[i].Piece = []byte(p)
	}
	tokens[6] = llama.VocabToken{Piece: []byte("<end>"), Kind: llama.KindControl, End: true}
	tokens[9].Kind = llama.KindControl
	vocab := llama.NewVocab(tokens, llama.NoToken)
	envelope := thinkingEnvelope(t)
	const forced = -1
	tests := []struct {
		name   string
		stops  []string
		tokens []int // by place in pieces; forced: the next one was not drawn
		want   told
	}{
		{"text", nil, []int{0, 1, 0}, told{"ab a", []string{"a", "b ", "a"}}},
		{"control and end tokens", nil, []int{0, 9, 0, 6}, told{"aa", []string{"a", "a"}}},
		{"halves of a character", nil, []int{0, 2, 3, 0}, told{"aéa", []string{"a", "\xc3", "\xa9", "a"}}},
		{"characters across tokens", nil, []int{11, 3, 7, 8, 0}, told{"x\ufffd\ufffd€b a", []string{"x\xe2", "\xa9", "\xe2\x82", "\xacb ", "a"}}},
		{"what is no character", nil, []int{13, 7, 0, 14, 2}, told{"\ufffd\ufffd\ufffda\ufffd", []string{"\xff", "\xe2\x82", "a", "\ufffd"}}},
		{"reasoning", nil, []int{4, 1, 0, 5, 10, 1, 0}, told{"b a", []string{"b ", "a"}}},
		{"a token of both", nil, []int{4, 1, 12, 0}, told{"aa", []string{"</think>a", "a"}}},
		{"a token that was not drawn", nil, []int{4, 1, forced, 12, 0}, told{"aa", []string{"a"}}},
		{"a stop text", []string{"b "}, []int{0, 1, 0}, told{"a", []string{"a"}}},
		{"a stop text within tokens", []string{" a"}, []int{0, 1, 0}, told{"ab", []string{"a", "b "}}},
		{"a stop text behind what is no character", []string{"a"}, []int{13, 7, 0, 0}, told{"\ufffd\ufffd\ufffd", []string{"\xff", "\xe2\x82"}}},
		{"no stop text after all", []string{"b aa"}, []int{1, 0, 1, 2, 3}, told{"b ab é", []string{"b ", "a", "b ", "\xc3", "\xa9"}}},
		{"the template's stop text", nil, []int{1, 0, 0, 1}, told{"b ", []string{"b "}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var d delivery
			drawn := true
			for _, n := range tt.tokens {
				if n == forced {
					drawn = false
					continue
				}
				d.tokens = append(d.tokens, llama.Token(n))
				logprobs := []llama.TokenLogprob{}
				if drawn {
					logprobs = append(logprobs, llama.TokenLogprob{Token: llama.Token(n)})
				}
				d.logprobs = append(d.logprobs, logprobs)
				drawn = true
			}
			prompt := llama.Prompt{ThinkStart: "<think>", ThinkEnd: []string{"</think>"}, Stops: []string{"aab"}}
			p := &Prepared{prompt: prompt, stops: tt.stops, form: form{envelope: envelope, texts: answerTexts(&prompt)}}
			var whole, single told
			o := newOutput(vocab, p)
			whole.take(o.close(o.push(nil, d), false))
			o = newOutput(vocab, p)
			for i := range d.tokens {
				single.take(o.push(nil, delivery{d.tokens[i : i+1], d.logprobs[i : i+1]}))
			}
			single.take(o.close(nil, false))
			for _, got := range []told{whole, single} {
				if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(told{})); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Of any answer those tokens are told that have a byte in the content, however the
// answer comes.
func TestOutputTokensOfAnyAnswer(t *testing.T) {
	pieces := []string{"a", "b", "ab", " ", "é", "\xc3", "\xa9", "a\xe2", "\x82", "\xac", "\xacb", "\xff", "\ufffd", "\xf0\x9f\x98", "\x80a"}
	tokens := make([]llama.VocabToken, len(pieces))
	for i, p := range pieces {
		tokens[i].Piece = []byte(p)
	}
	vocab := llama.NewVocab(tokens, llama.NoToken)
	envelope, err := grammar.ParseEnvelope([]byte(`{"parsers":[{"type":"until","delimiters":[]},{"type":"tag","tag":"content","child":0},`+
		`{"type":"end"},{"type":"sequence","children":[1,2]}],"root":3,"rules":{}}`), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	stops := []string{"aba", "é", "€", "b\ufffd", " a", "bb"}
	stopped := 0
	for range 20_000 {
		p := &Prepared{stops: stops[:random.IntN(len(stops)+1)], form: form{envelope: envelope}}
		o := newOutput(vocab, p)
		var got told
		var all []byte
		var want []string
		for range random.IntN(8) {
			var d delivery
			for range random.IntN(4) {
				n := llama.Token(random.IntN(len(pieces)))
				d.tokens = append(d.tokens, n)
				d.logprobs = append(d.logprobs, []llama.TokenLogprob{{Token: n}})
				all = append(all, pieces[n]...)
				want = append(want, pieces[n])
			}
			got.take(o.push(nil, d))
		}
		got.take(o.close(nil, false))
		if o.stopped {
			stopped++
		}
		// How many bytes the content takes, and the tokens that begin within.
		bytes, length := 0, 0
		for length < len(got.text) {
			r, n := utf8.DecodeRune(all[bytes:])
			bytes, length = bytes+n, length+utf8.RuneLen(r)
		}
		begin := 0
		for i, piece := range want {
			if begin >= bytes {
				want = want[:i]
				break
			}
			begin += len(piece)
		}
		if !slices.Equal(got.pieces, want) {
			t.Fatalf("%q with the stops %q is %q, with the tokens %q, want %q", all, p.stops, got.text, got.pieces, want)
		}
	}
	if stopped < 1000 {
		t.Errorf("only %d answers were stopped", stopped)
	}
}

// contentTokens asks, and is the content with its tokens.
func contentTokens(t *testing.T, e *Engine, r *Request) (content string, tokens []Drawn) {
	t.Helper()
	p, err := e.Prepare(t.Context(), r)
	if err != nil {
		t.Error(err)
		return "", nil
	}
	for ev, err := range e.Generate(t.Context(), p) {
		if err != nil {
			t.Error(err)
			return "", nil
		}
		if text, ok := ev.(Text); ok && !text.Reasoning {
			content += text.Text
			tokens = append(tokens, text.Tokens...)
		}
	}
	return content, tokens
}

// spelled is the text of the tokens.
func spelled(tokens []Drawn) string {
	var text []byte
	for _, d := range tokens {
		text = append(text, d.Piece...)
	}
	var joiner utf8Joiner
	return joiner.push(text)
}

// checkTop checks the likeliest tokens at a place, where as many as asked for are told
// if there are so many.
func checkTop(t *testing.T, d *Drawn, asked int, greedy bool) {
	t.Helper()
	sum := 0.0
	for i, c := range d.Top {
		sum += math.Exp(float64(c.Logprob))
		if i > 0 && c.Logprob > d.Top[i-1].Logprob {
			t.Errorf("%q: %v is not in order", d.Piece, d.Top)
		}
		if string(c.Piece) == string(d.Piece) && c.Logprob != d.Logprob {
			t.Errorf("%q has %v and, among the likeliest, %v", d.Piece, d.Logprob, c.Logprob)
		}
	}
	switch {
	case len(d.Top) > asked || sum > 1+1e-5 || d.Logprob > 0 || math.IsInf(float64(d.Logprob), 0):
		t.Errorf("%q: %v, %d of sum %v", d.Piece, d.Logprob, len(d.Top), sum)
	case len(d.Top) < asked && math.Abs(sum-1) > 1e-4:
		t.Errorf("%q: all %d that are possible have the sum %v", d.Piece, len(d.Top), sum)
	case greedy && asked > 0 && (string(d.Top[0].Piece) != string(d.Piece) || d.Top[0].Logprob != d.Logprob):
		t.Errorf("%q with %v is not the likeliest, %q with %v", d.Piece, d.Logprob, d.Top[0].Piece, d.Top[0].Logprob)
	}
}

// A token that ends the reasoning in the place of the drawn one has no logprobs.
func TestSequenceLogprobs(t *testing.T) {
	drawn := &llama.Sampled{Token: 5, Logprob: -1, N: 2, Top: [llama.MaxTop]llama.TokenLogprob{{Token: 4, Logprob: -.5}, {Token: 5, Logprob: -1}}}
	for _, tt := range []struct {
		top   int8
		token llama.Token
		want  []llama.TokenLogprob
	}{
		{-1, 5, nil},
		{2, 5, []llama.TokenLogprob{{Token: 5, Logprob: -1}, {Token: 4, Logprob: -.5}, {Token: 5, Logprob: -1}}},
		{2, 6, []llama.TokenLogprob{}},
	} {
		if diff := cmp.Diff(tt.want, (&sequence{top: tt.top}).logprobs(tt.token, drawn)); diff != "" {
			t.Errorf("top %d, token %d: %s", tt.top, tt.token, diff)
		}
	}
}

// The logprobs are those of the tokens that the content has, in every form and among
// others.
func TestLogprobs(t *testing.T) {
	forms := map[string]func(*Request){
		"free":     func(*Request) {},
		"thinking": func(r *Request) { r.Thinking, r.ThinkingBudget = true, 5 },
		"schema":   func(r *Request) { r.Format = Format{Schema: citySchema, Strict: true} },
		"thinking, schema": func(r *Request) {
			r.Thinking, r.ThinkingBudget, r.Format = true, 5, Format{Schema: citySchema, Strict: true}
		},
		"bias":  func(r *Request) { r.Sampling.Bias = map[int]float64{'e': 3, ' ': -100} },
		"tools": func(r *Request) { r.Tools = []Tool{cityTool}; r.Tools[0].Strict = true },
	}
	for name, change := range forms {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(t, llamatest.Options{MeanAnswer: 40}, Params{Cells: 512, Parallel: 8})
			var wg sync.WaitGroup
			var seen atomic.Int64
			for seed := range int64(32) {
				wg.Go(func() {
					greedy, asked := seed%2 == 0, int(seed%21)
					r := user(fmt.Sprint("hi", seed))
					r.Logprobs, r.TopLogprobs, r.MaxTokens, r.Sampling.Seed = true, asked, 120, &seed
					if greedy {
						r.Sampling.Temperature = ptr(0.0)
					}
					change(r)
					content, tokens := contentTokens(t, e, r)
					if got := strings.TrimSpace(spelled(tokens)); got != strings.TrimSpace(content) {
						t.Errorf("seed %d: content %q has the tokens %q", seed, content, got)
					}
					seen.Add(int64(len(tokens)))
					for i := range tokens {
						checkTop(t, &tokens[i], asked, greedy)
					}
				})
			}
			wg.Wait()
			if seen.Load() < 100 {
				t.Errorf("only %d tokens", seen.Load())
			}
		})
	}
}

// Under a schema only what it allows is told, with what it is worth there.
func TestLogprobsUnderASchema(t *testing.T) {
	e, _ := newEngine(t, llamatest.Options{}, Params{})
	r := user("hi")
	r.Logprobs, r.TopLogprobs, r.Sampling.Temperature = true, 3, ptr(0.0)
	r.Format = Format{Schema: `{"enum":["ab","xy"]}`, Strict: true}
	_, tokens := contentTokens(t, e, r)
	var ways []string
	for _, d := range tokens {
		var way []string
		for _, c := range d.Top {
			way = append(way, string(c.Piece))
		}
		slices.Sort(way)
		ways = append(ways, strings.Join(way, ""))
		if len(d.Top) == 1 && d.Logprob != 0 {
			t.Errorf("%q is the only way and has %v", d.Piece, d.Logprob)
		}
	}
	if got := strings.Join(ways, " "); got != `" ax b "` && got != `" ax y "` {
		t.Errorf("the ways are %s", got)
	}
}

func TestNoLogprobsUnasked(t *testing.T) {
	e, _ := newEngine(t, llamatest.Options{Script: says("abc")}, Params{})
	r := user("hi")
	r.TopLogprobs = 5
	if content, tokens := contentTokens(t, e, r); content != "abc" || tokens != nil {
		t.Errorf("%q with %v", content, tokens)
	}
	r.Logprobs, r.TopLogprobs = true, 1000
	if _, tokens := contentTokens(t, e, r); len(tokens) != 3 || len(tokens[0].Top) != llama.MaxTop {
		t.Errorf("got %v", tokens)
	}
}
