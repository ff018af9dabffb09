package llama

// Sampling says how a token is drawn from logits. The steps are done in this
// order: logit bias, mask, penalties, temperature, top-k, top-p, min-p, draw.
type Sampling struct {
	Temperature float32 // 0 takes the likeliest token, of equals the one with the lowest id
	TopK        int32   // keep the K likeliest; 0 or less: all
	TopP        float32 // keep the likeliest whose sum reaches P; 1: all
	MinP        float32 // keep what has at least this share of the likeliest; 0: all
	Presence    float32 // taken from the logit of a token that this answer has
	Frequency   float32 // taken from it once per occurrence in this answer
	Repetition  float32 // logits of tokens in prompt or answer are divided (if positive) or multiplied by this; 0 and 1: off
}

// A TokenCount says how often a token occurs, for penalties.
type TokenCount struct {
	Token  Token
	Answer int32 // occurrences in the answer; 0 for a token that only the prompt has
}

// A TokenBias is added to a token's logit. -Inf bans it.
type TokenBias struct {
	Token Token
	Bias  float32
}

// A SampleRow asks for one token. Sampling keeps no state: the random number
// is a function of Seed and Step alone.
type SampleRow struct {
	Output     int32 // index of the batch row, which must have had Output set
	P          *Sampling
	Seed, Step uint64
	Counts     []TokenCount // only looked at when a penalty is on; each token once, fastest in ascending order
	Bias       []TokenBias  // each token once
	Mask       int32        // index of the row's mask in masks, or -1 for none
	Allowed    int32        // number of set bits of the mask, if known, else 0
	Top        int8         // how many of the likeliest tokens to report; -1: no logprobs at all
}

// MaxTop is the most alternatives that a SampleRow may ask for.
const MaxTop = 20

// Sampled is the token drawn for a row.
type Sampled struct {
	// Token is NoToken when the row has no candidate: nothing is allowed, or the
	// logits are all NaN or -Inf. A NaN is never a candidate, +Inf the only ones.
	Token Token
	// Logprob is the natural logarithm of the token's probability under the
	// model, after bias and mask and before everything else. -Inf when the row did
	// not ask for logprobs.
	Logprob float32
	// Top has the likeliest tokens, most likely first; N of them are set.
	Top [MaxTop]TokenLogprob
	N   int8
}

// A TokenLogprob is an alternative that a row could have drawn.
type TokenLogprob struct {
	Token   Token
	Logprob float32
}

// MaskWords is the length of a bitmask over a vocabulary of n tokens. Bit t%64
// of word t/64 says whether token t is allowed.
func MaskWords(n int) int { return (n + 63) / 64 }
