package engine

import (
	"fmt"
	"time"

	"github.com/b3os/b3infer/llama"
)

// maxRun is the most forced tokens that are appended at a time, so that a step's rows
// stay few.
const maxRun = 16

// speller divides a text into tokens as the model's tokenizer does.
func speller(model llama.Model) func(text []byte) []int32 {
	return func(text []byte) []int32 {
		tokens, err := model.Tokenize(nil, []llama.Part{{Text: text}}, false)
		if err != nil {
			return nil // then nothing is forced
		}
		out := make([]int32, len(tokens))
		for i, t := range tokens {
			out[i] = int32(t)
		}
		return out
	}
}

// lengthen is the token that stands for a drawn one, where its guide leaves no choice about
// what follows. Logprobs are of drawn tokens, so who asks for them keeps those; and a bias
// is about draws, so the tokens that it names come of them alone.
func (s *scheduler) lengthen(seq *sequence, drawn llama.Token) (llama.Token, error) {
	if seq.guide == nil || seq.top >= 0 {
		return drawn, nil
	}
	t, err := seq.guide.Lengthen(int32(drawn), s.spell)
	if seq.biased(llama.Token(t)) {
		return drawn, err
	}
	return llama.Token(t), err
}

// force appends what the guide leaves no choice about. These tokens cost a row each, not
// a step, and are spelled as the tokenizer spells them. Where nothing can follow any
// more, the answer is at its end. Where logprobs are asked for or a token has a bias, it is
// drawn, as for lengthen.
func (s *scheduler) force(seq *sequence, now time.Time) error {
	if final, err := seq.guide.Final(); final || err != nil {
		if final {
			s.finish(seq, ending{reason: FinishStop})
		}
		return err
	}
	if seq.top >= 0 {
		return nil
	}
	run, err := seq.guide.Run(s.spell)
	if err != nil {
		return err
	}
	for _, t := range run[:min(len(run), s.maxRun)] {
		if seq.answered() >= seq.maxTokens || seq.biased(llama.Token(t)) {
			break
		}
		if err := seq.guide.Accept(t); err != nil {
			return fmt.Errorf("forced token %d: %w", t, err)
		}
		if seq.budget != nil {
			seq.budget.see(llama.Token(t), s.vocab)
		}
		s.put(seq, llama.Token(t), nil, now)
		seq.forced++
	}
	return nil
}
