package engine

import (
	"slices"
	"unicode/utf8"

	"github.com/b3os/b3infer/llama"
)

// top is how many of the likeliest tokens a sampler reports for the request, as in
// llama.SampleRow.
func (r *Request) top() int8 {
	if !r.Logprobs {
		return -1
	}
	return int8(min(max(r.TopLogprobs, 0), llama.MaxTop))
}

// logprobs are those of the token that comes and, behind it, of the likeliest ones. A
// token that was not drawn has none; nil means that the request does not ask.
func (s *sequence) logprobs(t llama.Token, drawn *llama.Sampled) []llama.TokenLogprob {
	switch {
	case s.top < 0:
		return nil
	case t != drawn.Token:
		return []llama.TokenLogprob{}
	}
	own := llama.TokenLogprob{Token: t, Logprob: drawn.Logprob}
	return append(append(make([]llama.TokenLogprob, 0, 1+drawn.N), own), drawn.Top[:drawn.N]...)
}

// A trail leads from the content of an answer back to the tokens that it was made of.
// A nil one has none of them.
type trail struct {
	vocab *llama.Vocab
	// tokens has the logprobs of the tokens from the number first on. Those before
	// are told, or will not be.
	tokens [][]llama.TokenLogprob
	first  int
	// owners has a token's number for each byte of the answer's text from the place
	// start on, and held for each byte that is no text yet.
	owners []int
	start  int
	held   []int
	// content is where the text stands that is content and was not told.
	content []span
}

// A span is a part of a text.
type span struct{ from, to int }

// add takes the next token. held are the bytes of a character that the tokens before it
// have begun.
func (l *trail) add(held, piece []byte, logprobs []llama.TokenLogprob) {
	if l == nil || len(piece) == 0 {
		return
	}
	for range piece {
		l.held = append(l.held, l.first+len(l.tokens))
	}
	l.tokens = append(l.tokens, logprobs)
	for rest := slices.Concat(held, piece); utf8.FullRune(rest); {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 { // which becomes U+FFFD
			l.owners = append(l.owners, l.held[0], l.held[0])
		}
		l.owners = append(l.owners, l.held[:n]...)
		l.held, rest = l.held[n:], rest[n:]
	}
}

// mark says that the text [from, to) is content.
func (l *trail) mark(from, to int) {
	if l != nil && from < to {
		l.content = append(l.content, span{from, to})
	}
}

// tell returns the tokens of the next n bytes of content. A token that has bytes on both
// sides of a border is told with the first.
func (l *trail) tell(n int) []Drawn {
	if l == nil {
		return nil
	}
	var out []Drawn
	for n > 0 {
		s := &l.content[0]
		end := min(s.to, s.from+n)
		for _, owner := range l.owners[s.from-l.start : end-l.start] {
			if owner >= l.first {
				out = l.drawn(out, owner)
			}
		}
		n -= end - s.from
		l.owners, l.start = l.owners[end-l.start:], end
		if s.from = end; end == s.to {
			l.content = l.content[1:]
		}
	}
	return out
}

// drawn appends the token of that number, and forgets those before it.
func (l *trail) drawn(into []Drawn, number int) []Drawn {
	logprobs := l.tokens[number-l.first]
	l.tokens, l.first = l.tokens[number-l.first+1:], number+1
	if len(logprobs) == 0 {
		return into
	}
	all := make([]Candidate, len(logprobs))
	for i, p := range logprobs {
		all[i] = Candidate{Piece: l.vocab.Piece(p.Token), Logprob: p.Logprob}
	}
	return append(into, Drawn{Candidate: all[0], Top: all[1:]})
}
