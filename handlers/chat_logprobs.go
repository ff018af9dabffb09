package handlers

import (
	"strconv"

	"github.com/b3os/b3infer/engine"
)

// maxTopLogprobs is the most alternatives that top_logprobs may ask for.
const maxTopLogprobs = 20

func (r *chatRequest) checkLogprobs() *fault {
	switch n := r.TopLogprobs; {
	case n == nil:
		return nil
	case *n < 0 || *n > maxTopLogprobs:
		return invalid("top_logprobs", "must be between 0 and %d", maxTopLogprobs)
	case !isTrue(r.Logprobs):
		return invalid("top_logprobs", "is only allowed with logprobs set to true")
	}
	return nil
}

// appendLogprobs appends the logprobs of content, of which tokens are the elements of
// the list. What is no content, such as reasoning and calls, has none.
func appendLogprobs(dst, tokens []byte) []byte {
	dst = append(dst, `{"content":[`...)
	dst = append(dst, tokens...)
	return append(dst, `],"refusal":null}`...)
}

// appendTokens appends tokens to the elements of a list.
func appendTokens(list []byte, tokens []engine.Drawn) []byte {
	for i := range tokens {
		if len(list) > 0 {
			list = append(list, ',')
		}
		list = appendCandidate(list, &tokens[i].Candidate)
		list = append(list, `,"top_logprobs":[`...)
		for j := range tokens[i].Top {
			if j > 0 {
				list = append(list, ',')
			}
			list = append(appendCandidate(list, &tokens[i].Top[j]), '}')
		}
		list = append(list, ']', '}')
	}
	return list
}

// leastLogprob stands for all that is less likely, as in OpenAI's answers; JSON has no
// infinity.
const leastLogprob = -9999

// appendCandidate appends a token without its closing brace. In a part of a character
// the text has U+FFFD, and only the bytes tell what it is.
func appendCandidate(dst []byte, c *engine.Candidate) []byte {
	dst = append(dst, `{"token":`...)
	dst = appendString(dst, string(c.Piece))
	dst = append(dst, `,"logprob":`...)
	dst = strconv.AppendFloat(dst, float64(max(c.Logprob, leastLogprob)), 'g', -1, 32)
	dst = append(dst, `,"bytes":[`...)
	for i, b := range c.Piece {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(b), 10)
	}
	return append(dst, ']')
}
