package llamatest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/b3os/b3infer/llama"
)

// TestModel is the contract that every llama.Model keeps, with the contexts
// and chats that come from it. open gives a model and a fresh context of it;
// it arranges for both to be closed at the end of t. All contexts that open
// makes with the same parameters compute the same.
//
// The suite knows nothing of the model but that it reacts to its context, which
// it checks first. Where only the composition of batches differs, or the cells
// that rows lie in, real models' logits differ in their last bits: there
// results are compared within a tolerance, and a near-tie that changed the
// likeliest token is logged.
func TestModel(t *testing.T, open func(t *testing.T, p llama.ContextParams) (llama.Model, llama.Context)) {
	groups := []struct {
		name  string
		cases []contractCase
	}{
		{"vocabulary", vocabularyCases},
		{"tokenize", tokenizeCases},
		{"chat", chatCases},
		{"decode", decodeCases},
		{"sequence", sequenceCases},
		{"state", stateCases},
		{"sample", sampleCases},
		{"close", closeCases},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.test(newRig(t, open)) })
			}
		})
	}
}

type contractCase struct {
	name string
	test func(r *rig)
}

// smallContext is what each case runs in. llama.cpp allots cells by 256.
var smallContext = llama.ContextParams{Cells: 256, Sequences: 8, Batch: 64, UBatch: 32, Outputs: 8, Threads: 1}

// A rig is a context under test and the usual ways to drive it.
type rig struct {
	*testing.T
	open  func(t *testing.T, p llama.ContextParams) (llama.Model, llama.Context)
	model llama.Model
	ctx   llama.Context
	vocab *llama.Vocab
	batch llama.Batch
}

func newRig(t *testing.T, open func(t *testing.T, p llama.ContextParams) (llama.Model, llama.Context)) *rig {
	model, ctx := open(t, smallContext)
	return &rig{T: t, open: open, model: model, ctx: ctx, vocab: model.Vocab()}
}

// again is a rig of the same kind with an empty context.
func (r *rig) again() *rig { return newRig(r.T, r.open) }

// The texts that prompts are made of.
const (
	foxText  = "The quick brown fox jumps over the lazy dog, and then it sleeps in the sun for two days. "
	shipText = "When the ship came in, all of the people went down to the water to see what it had brought. "
)

// prompt is the first n tokens of a text that is repeated as often as needed.
func (r *rig) prompt(text string, n int) []llama.Token {
	r.Helper()
	tokens := r.tokenize(llama.Part{Text: []byte(strings.Repeat(text, n/8+1))})
	if len(tokens) < n {
		r.Fatalf("%d tokens of text, want %d", len(tokens), n)
	}
	return tokens[:n:n]
}

func (r *rig) tokenize(parts ...llama.Part) []llama.Token {
	r.Helper()
	tokens, err := r.model.Tokenize(nil, parts, false)
	if err != nil {
		r.Fatalf("Tokenize: %v", err)
	}
	return tokens
}

// must fails the test on an error of a call.
func (r *rig) must(verb string, err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", verb, err)
	}
}

// mustBe fails the test unless err wraps want.
func (r *rig) mustBe(verb string, err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Fatalf("%s: got error %v, want one that wraps %q", verb, err, want)
	}
}

// next is the position behind a sequence.
func (r *rig) next(s llama.SeqID) llama.Pos {
	_, last := r.ctx.SeqRange(s)
	return last + 1
}

// prefill puts tokens behind a sequence and samples after the last of them.
func (r *rig) prefill(s llama.SeqID, tokens []llama.Token) llama.Sampled {
	r.Helper()
	var last llama.Sampled
	for limit := r.ctx.Limits().Batch; len(tokens) > 0; {
		n := min(limit, len(tokens))
		r.batch.Reset()
		at := r.next(s)
		for i, t := range tokens[:n] {
			r.batch.Add(t, at+llama.Pos(i), s, i == n-1)
		}
		r.must("Decode", r.ctx.Decode(&r.batch))
		last = r.sample(int32(n - 1))
		tokens = tokens[n:]
	}
	return last
}

// extend puts tokens behind a sequence one by one and samples after each.
func (r *rig) extend(s llama.SeqID, tokens []llama.Token) []llama.Sampled {
	r.Helper()
	steps := make([]llama.Sampled, len(tokens))
	for i := range tokens {
		steps[i] = r.prefill(s, tokens[i:i+1])
	}
	return steps
}

// answer prefills a prompt and continues with n of the likeliest tokens. It
// gives what was sampled after the prompt and after each token but the last,
// and these tokens.
func (r *rig) answer(s llama.SeqID, prompt []llama.Token, n int) ([]llama.Sampled, []llama.Token) {
	r.Helper()
	steps := []llama.Sampled{r.prefill(s, prompt)}
	for len(steps) < n {
		steps = append(steps, r.prefill(s, []llama.Token{steps[len(steps)-1].Token}))
	}
	tokens := make([]llama.Token, n)
	for i, step := range steps {
		tokens[i] = step.Token
	}
	return steps, tokens
}

// repeat computes an earlier answer's rows again: the same steps should come.
func (r *rig) repeat(s llama.SeqID, prompt, answer []llama.Token) []llama.Sampled {
	r.Helper()
	return append([]llama.Sampled{r.prefill(s, prompt)}, r.extend(s, answer[:len(answer)-1])...)
}

var greedy = &llama.Sampling{TopP: 1}

// greedyRow asks for the likeliest token and as many others as may be.
func greedyRow(output int32) llama.SampleRow {
	return llama.SampleRow{Output: output, P: greedy, Mask: -1, Top: llama.MaxTop}
}

// sample draws the likeliest token of a batch row.
func (r *rig) sample(output int32) llama.Sampled {
	r.Helper()
	return r.sampleRows(nil, greedyRow(output))[0]
}

func (r *rig) sampleRows(masks []uint64, rows ...llama.SampleRow) []llama.Sampled {
	r.Helper()
	out := make([]llama.Sampled, len(rows))
	r.must("Sample", r.ctx.Sample(rows, masks, out))
	return out
}

// tolerance is how far logprobs may be apart that are the same but for the
// order in which they were summed up.
const tolerance = 0.05

// near compares greedy steps that should be the same within the tolerance.
func (r *rig) near(what string, got, want []llama.Sampled) {
	r.Helper()
	for i := range want {
		if d := distance(&got[i], &want[i]); d > tolerance {
			r.Fatalf("%s: step %d: got %s, want %s: logprobs are %.3g apart", what, i, show(&got[i]), show(&want[i]), d)
		}
		if got[i].Token != want[i].Token {
			r.Logf("%s: step %d: near-tie: got %s, want %s", what, i, show(&got[i]), show(&want[i]))
		}
	}
}

// distance is how much a greedy step's logprobs differ from another's, judged
// by both steps' likeliest tokens.
func distance(a, b *llama.Sampled) float64 {
	apart := func(a, b *llama.Sampled) float64 {
		for _, alt := range b.Top[:b.N] {
			if alt.Token == a.Token {
				return math.Abs(float64(alt.Logprob - a.Logprob))
			}
		}
		return math.Inf(1)
	}
	return max(apart(a, b), apart(b, a))
}

func show(s *llama.Sampled) string { return fmt.Sprintf("token %d (%.4f)", s.Token, s.Logprob) }

var closeCases = []contractCase{
	{"twice", func(r *rig) {
		r.must("Close", r.ctx.Close())
		r.must("second Close", r.ctx.Close())
		r.must("close model", r.model.Close())
		r.must("second close of model", r.model.Close())
	}},
	{"context is of no use after", func(r *rig) {
		r.must("Close", r.ctx.Close())
		r.batch.Add(0, 0, 0, true)
		r.mustBe("Decode", r.ctx.Decode(&r.batch), llama.ErrClosed)
		r.mustBe("Sample", r.ctx.Sample(nil, nil, nil), llama.ErrClosed)
		r.mustBe("SeqCopy", r.ctx.SeqCopy(0, 1, -1, -1), llama.ErrClosed)
		r.mustBe("SeqRemove", r.ctx.SeqRemove(0, -1, -1), llama.ErrClosed)
		r.mustBe("StateLoad", r.ctx.StateLoad(0, nil, false), llama.ErrClosed)
		_, err := r.ctx.StateSize(0, false)
		r.mustBe("StateSize", err, llama.ErrClosed)
		_, err = r.ctx.StateSave(0, nil, false)
		r.mustBe("StateSave", err, llama.ErrClosed)
	}},
	{"model is of no use after", func(r *rig) {
		r.must("Close", r.ctx.Close())
		r.must("close model", r.model.Close())
		_, err := r.model.Tokenize(nil, nil, false)
		r.mustBe("Tokenize", err, llama.ErrClosed)
		_, err = r.model.NewContext(smallContext)
		r.mustBe("NewContext", err, llama.ErrClosed)
		_, err = r.model.NewChat(llama.ChatParams{})
		r.mustBe("NewChat", err, llama.ErrClosed)
	}},
}
