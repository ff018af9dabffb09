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
// and chats that come from it. open loads the model; the suite closes it, and
// opens it again to see what is left after Close.
//
// The suite knows nothing of the model but that it reacts to its context, which
// it measures first. Where the composition of batches differs, or the cells
// that rows lie in, real models' logits differ in their last bits: there
// logprobs are compared within 0.05, or a quarter of what another token far back
// in the prompt changes if that is less, and a near-tie that changed the
// likeliest token is logged.
func TestModel(t *testing.T, open func(t *testing.T) llama.Model) {
	s := &suite{open: func(t *testing.T) llama.Model {
		model := open(t)
		t.Cleanup(func() {
			if err := model.Close(); err != nil {
				t.Errorf("close model: %v", err)
			}
		})
		return model
	}}
	s.model = s.open(t)
	s.tolerance = min(s.reaction(s.rig(t))/4, 0.05)
	for _, g := range []struct {
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
	} {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.test(s.rig(t)) })
			}
		})
	}
	t.Run("close", s.closing)
}

type contractCase struct {
	name string
	test func(r *rig)
}

// smallContext is what each case runs in. llama.cpp allots cells by 256.
var smallContext = llama.ContextParams{Cells: 256, Sequences: 8, Batch: 64, UBatch: 32, Outputs: 8, Threads: 1}

// A suite is the model under test.
type suite struct {
	open  func(t *testing.T) llama.Model
	model llama.Model
	// tolerance is how far logprobs may be apart that are the same but for the
	// order in which numbers were summed up.
	tolerance float64
}

// A rig is an empty context and the usual ways to drive it.
type rig struct {
	*testing.T
	*suite
	ctx   llama.Context
	vocab *llama.Vocab
	batch llama.Batch
}

// rig makes a context for the time of a test.
func (s *suite) rig(t *testing.T) *rig {
	t.Helper()
	ctx, err := s.model.NewContext(smallContext)
	if err != nil {
		t.Fatalf("NewContext: %v", err)
	}
	t.Cleanup(func() {
		if err := ctx.Close(); err != nil {
			t.Errorf("close context: %v", err)
		}
	})
	return &rig{T: t, suite: s, ctx: ctx, vocab: s.model.Vocab()}
}

// reaction is how much another token in the prompt changes logprobs, wherever
// it stands.
func (s *suite) reaction(r *rig) float64 {
	least := math.Inf(1)
	want := r.prefill(0, r.prompt(foxText, 40))
	for _, at := range []int{0, 5, 20, 35} {
		prompt := r.prompt(foxText, 40)
		prompt[at] = r.prompt(shipText, 12)[11]
		got := r.prefill(1, prompt)
		least = min(least, distance(&got, &want))
		r.must("SeqRemove", r.ctx.SeqRemove(1, -1, -1))
	}
	if least < 1e-3 {
		r.Fatalf("another token in the prompt changes logprobs by %.3g only: comparisons would say nothing", least)
	}
	return least
}

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

// near compares greedy steps that should be the same within the tolerance.
func (r *rig) near(what string, got, want []llama.Sampled) {
	r.Helper()
	for i := range want {
		if d := distance(&got[i], &want[i]); d > r.tolerance {
			r.Fatalf("%s: step %d: got %s, want %s: logprobs are %.3g apart, at most %.3g are right",
				what, i, show(&got[i]), show(&want[i]), d, r.tolerance)
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

// closing tests what is left of a model and a context after Close.
func (s *suite) closing(t *testing.T) {
	other := &suite{open: s.open, model: s.open(t)}
	r := other.rig(t)
	r.must("close context", r.ctx.Close())
	r.must("close context again", r.ctx.Close())
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
	r.wantRange(0, -1)

	r.must("close model", r.model.Close())
	r.must("close model again", r.model.Close())
	_, err = r.model.Tokenize(nil, []llama.Part{literal("a")}, false)
	r.mustBe("Tokenize", err, llama.ErrClosed)
	_, err = r.model.NewContext(smallContext)
	r.mustBe("NewContext", err, llama.ErrClosed)
	_, err = r.model.NewChat(llama.ChatParams{})
	r.mustBe("NewChat", err, llama.ErrClosed)
	if got := string(r.vocab.Piece(0)); got != string(s.model.Vocab().Piece(0)) {
		r.Errorf("the vocabulary's first piece became %q", got)
	}
}
