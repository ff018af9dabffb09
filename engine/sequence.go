package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/b3os/b3infer/grammar/mask"
	"github.com/b3os/b3infer/llama"
)

// noSeq is the id of a sequence that holds no cells.
const noSeq llama.SeqID = -1

// A sequence is one request's tokens on their way through the scheduler, which
// owns all fields below out. Invariant: tokens[:computed] are in the KV cache
// under id, and computed < len(tokens) while the sequence runs.
type sequence struct {
	out *outbox

	number    uint64 // order of submission; the highest is preempted first
	tokens    []llama.Token
	pos       []llama.Pos // of each token; an image advances it by less than its rows
	promptLen int
	computed  int
	id        llama.SeqID
	shared    *stretch // what of tokens[:computed] other sequences may hold too

	maxTokens int // most tokens of the answer
	sampling  llama.Sampling
	seed      uint64
	bias      []llama.TokenBias
	counts    *tokenCounts   // nil without penalties
	guide     *mask.Sequence // what tokens may come next; nil: any
	budget    *thinkBudget   // nil: none
	top       int8           // likeliest tokens to report, -1: no logprobs

	lead lead // whom it waits for, while it does
	due  int  // rows until the first token of whoever waits for this one, or of itself
	stop int  // where those that wait for this one go on by themselves, at the earliest

	forced     int // tokens that came without a choice behind the last drawn one
	cached     int // tokens that the first admission found in the cache
	admissions int // 0: has never run
	preempted  int

	arrived, submitted, admitted, first, last time.Time
	prefillFrom                               uint64 // step of the admission; ages the prefill
}

// answered is the number of tokens generated so far.
func (s *sequence) answered() int { return len(s.tokens) - s.promptLen }

// pending is the number of rows that are due before the next token.
func (s *sequence) pending() int { return len(s.tokens) - s.computed }

// decoding tells that what is pending is the last token and those that were forced
// behind it; else the sequence prefills.
func (s *sequence) decoding() bool { return s.pending() == 1 || s.pending() == 1+s.forced }

// choose is the token that follows: the drawn one, or that which ends the reasoning
// in its place. The guide goes on with it.
func (s *sequence) choose(drawn llama.Token, v *llama.Vocab) (llama.Token, error) {
	t := drawn
	if s.budget != nil {
		t = s.budget.next(drawn, v)
	}
	if s.guide == nil {
		return t, nil
	}
	err := s.guide.Accept(int32(t))
	if t != drawn && errors.Is(err, mask.ErrNotAllowed) {
		// There may be half a character. The form is kept to all the same.
		s.budget.postpone(drawn, v)
		return drawn, s.guide.Accept(int32(drawn))
	}
	return t, err
}

// biased tells whether the request has a bias for a token.
func (s *sequence) biased(t llama.Token) bool {
	return slices.ContainsFunc(s.bias, func(b llama.TokenBias) bool { return b.Token == t })
}

// append adds a generated token.
func (s *sequence) append(t llama.Token) {
	s.tokens = append(s.tokens, t)
	s.pos = append(s.pos, s.pos[len(s.pos)-1]+1)
	if s.counts != nil {
		s.counts.add(t)
	}
}

// row is the sampling of the sequence's next token.
func (s *sequence) row(output int) llama.SampleRow {
	row := llama.SampleRow{
		Output: int32(output), P: &s.sampling, Seed: s.seed, Step: uint64(s.answered()),
		Bias: s.bias, Mask: -1, Top: s.top,
	}
	if s.counts != nil {
		row.Counts = s.counts.list
	}
	return row
}

// tokenCounts counts tokens for penalties.
type tokenCounts struct {
	list []llama.TokenCount
	at   map[llama.Token]int32 // index into list
}

// newTokenCounts starts with the tokens of the prompt, which only the
// repetition penalty looks at.
func newTokenCounts(prompt []llama.Token) *tokenCounts {
	c := &tokenCounts{at: make(map[llama.Token]int32)}
	for _, t := range prompt {
		c.index(t)
	}
	return c
}

func (c *tokenCounts) index(t llama.Token) int32 {
	i, ok := c.at[t]
	if !ok {
		i = int32(len(c.list))
		c.at[t] = i
		c.list = append(c.list, llama.TokenCount{Token: t})
	}
	return i
}

// add counts a token of the answer.
func (c *tokenCounts) add(t llama.Token) { c.list[c.index(t)].Answer++ }

// commonPrefix is the number of tokens that a and b start with alike.
func commonPrefix(a, b []llama.Token) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
