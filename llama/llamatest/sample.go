package llamatest

import (
	"fmt"
	"math"
	"slices"

	"github.com/b3os/b3infer/llama"
)

// A sampler draws tokens in the most direct way that llama.Sampling's
// description can be written down. It keeps memory, not state.
type sampler struct {
	logits     []float32
	model      []float32 // the logits that logprobs are of
	keys       []uint64  // what candidates are sorted by
	candidates []candidate
	seen       []uint32 // the round in which a token was listed last
	round      uint32
}

type candidate struct {
	token llama.Token
	x     float64 // a logit, later a share of the probability
}

func newSampler(vocabulary int) *sampler {
	return &sampler{
		logits:     make([]float32, vocabulary),
		model:      make([]float32, vocabulary),
		keys:       make([]uint64, 0, vocabulary),
		candidates: make([]candidate, 0, vocabulary),
		seen:       make([]uint32, vocabulary),
	}
}

var banned = float32(math.Inf(-1))

// sample draws a token from s.logits, which it changes. A nil mask allows all
// tokens. It draws llama.NoToken when no token is allowed.
func (s *sampler) sample(row *llama.SampleRow, mask []uint64, out *llama.Sampled) {
	*out = llama.Sampled{Token: llama.NoToken}
	for _, b := range row.Bias {
		s.logits[b.Token] += b.Bias
	}
	if mask != nil {
		for t := range s.logits {
			if mask[t/64]>>(t%64)&1 == 0 {
				s.logits[t] = banned
			}
		}
	}
	copy(s.model, s.logits)
	s.penalize(row)
	out.Token = s.draw(row)
	if row.Top >= 0 && out.Token != llama.NoToken {
		s.logprobs(row, out)
	}
}

// penalize does what llama.cpp's and vLLM's penalties do: repetition first.
func (s *sampler) penalize(row *llama.SampleRow) {
	if !penalizes(row.P) {
		return
	}
	for _, c := range row.Counts {
		x := s.logits[c.Token]
		if r := row.P.Repetition; r != 0 && r != 1 {
			if x > 0 {
				x /= r
			} else {
				x *= r
			}
		}
		if c.Answer > 0 {
			x -= row.P.Presence + float32(c.Answer)*row.P.Frequency
		}
		s.logits[c.Token] = x
	}
}

func penalizes(p *llama.Sampling) bool {
	return p.Presence != 0 || p.Frequency != 0 || p.Repetition != 0 && p.Repetition != 1
}

func (s *sampler) draw(row *llama.SampleRow) llama.Token {
	if row.P.Temperature <= 0 {
		return likeliest(s.logits)
	}
	s.rank(s.logits)
	if len(s.candidates) == 0 {
		return llama.NoToken
	}
	if k := int(row.P.TopK); k > 0 && k < len(s.candidates) {
		s.candidates = s.candidates[:k]
	}
	most := s.candidates[0].x
	for i := range s.candidates {
		c := &s.candidates[i]
		c.x = math.Exp((c.x - most) / float64(row.P.Temperature))
	}
	s.truncate(float64(row.P.TopP), float64(row.P.MinP))
	left := s.sum() * uniform(row.Seed, row.Step)
	for _, c := range s.candidates {
		left -= c.x
		if left < 0 {
			return c.token
		}
	}
	return s.candidates[len(s.candidates)-1].token
}

// truncate applies top-p and then min-p to candidates whose x are shares of
// the probability, the first being the largest.
func (s *sampler) truncate(topP, minP float64) {
	if topP < 1 {
		want := topP * s.sum()
		for i, c := range s.candidates {
			want -= c.x
			if want <= 0 {
				s.candidates = s.candidates[:i+1]
				break
			}
		}
	}
	least := minP * s.candidates[0].x
	for i, c := range s.candidates {
		if i > 0 && c.x < least {
			s.candidates = s.candidates[:i]
			break
		}
	}
}

func (s *sampler) sum() float64 {
	total := 0.0
	for _, c := range s.candidates {
		total += c.x
	}
	return total
}

// logprobs is about the model's own logits under bias and mask.
func (s *sampler) logprobs(row *llama.SampleRow, out *llama.Sampled) {
	s.rank(s.model)
	most, total := s.candidates[0].x, 0.0
	for _, c := range s.candidates {
		total += math.Exp(c.x - most)
	}
	norm := most + math.Log(total)
	out.Logprob = float32(float64(s.model[out.Token]) - norm)
	out.N = int8(min(int(row.Top), len(s.candidates)))
	for i, c := range s.candidates[:out.N] {
		out.Top[i] = llama.TokenLogprob{Token: c.token, Logprob: float32(c.x - norm)}
	}
}

// rank makes the allowed tokens candidates, the likeliest first, and of equals
// the one of the lower id.
func (s *sampler) rank(logits []float32) {
	s.keys = s.keys[:0]
	for t, x := range logits {
		if x > banned {
			s.keys = append(s.keys, uint64(falling(x))<<32|uint64(t))
		}
	}
	slices.Sort(s.keys)
	s.candidates = s.candidates[:0]
	for _, key := range s.keys {
		t := llama.Token(uint32(key))
		s.candidates = append(s.candidates, candidate{t, float64(logits[t])})
	}
}

// falling is a number that is the smaller the larger x is.
func falling(x float32) uint32 {
	bits := math.Float32bits(x)
	if bits>>31 == 0 {
		return ^(bits | 1<<31)
	}
	return bits
}

func likeliest(logits []float32) llama.Token {
	best, most := llama.NoToken, banned
	for t, x := range logits {
		if x > most {
			best, most = llama.Token(t), x
		}
	}
	return best
}

// uniform is a random number in [0, 1) that seed and step alone decide.
func uniform(seed, step uint64) float64 {
	return float64(mix(mix(seed)^step)>>11) / (1 << 53)
}

// check refuses rows that a sampler cannot serve. masks are words words each.
func (s *sampler) check(row *llama.SampleRow, masks []uint64) error {
	words := llama.MaskWords(len(s.logits))
	switch {
	case row.P == nil || !sane(row.P):
		return fmt.Errorf("%w: parameters %v", llama.ErrInvalid, row.P)
	case row.Top < -1 || row.Top > llama.MaxTop:
		return fmt.Errorf("%w: top %d", llama.ErrInvalid, row.Top)
	case row.Mask < -1 || (int(row.Mask)+1)*words > len(masks):
		return fmt.Errorf("%w: mask %d of %d words", llama.ErrInvalid, row.Mask, len(masks))
	}
	s.round++
	for _, b := range row.Bias {
		if !s.list(b.Token) || math.IsNaN(float64(b.Bias)) || math.IsInf(float64(b.Bias), 1) {
			return fmt.Errorf("%w: bias %v of token %d, or the token comes twice", llama.ErrInvalid, b.Bias, b.Token)
		}
	}
	s.round++
	for _, c := range row.Counts {
		if !s.list(c.Token) || c.Answer < 0 {
			return fmt.Errorf("%w: count %d of token %d, or the token comes twice", llama.ErrInvalid, c.Answer, c.Token)
		}
	}
	return nil
}

func sane(p *llama.Sampling) bool {
	for _, x := range [...]float32{p.Temperature, p.TopP, p.MinP, p.Presence, p.Frequency, p.Repetition} {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return false
		}
	}
	return p.Temperature >= 0 && p.MinP >= 0 && p.Repetition >= 0
}

// list tells whether t is a token that this round has not seen yet.
func (s *sampler) list(t llama.Token) bool {
	if t < 0 || int(t) >= len(s.seen) || s.seen[t] == s.round {
		return false
	}
	s.seen[t] = s.round
	return true
}

// setBits counts the tokens that a mask over a vocabulary of n allows.
func setBits(mask []uint64, n int) int {
	count := 0
	for t := range n {
		count += int(mask[t/64] >> (t % 64) & 1)
	}
	return count
}
