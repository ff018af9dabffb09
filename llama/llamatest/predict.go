package llamatest

import (
	"unicode/utf8"

	"github.com/b3os/b3infer/llama"
)

// mix is splitmix64's output function (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A memory is what a sequence has of its rows: the sum of its cells' values,
// which does not depend on the cells' order, and on hybrids the recurrent
// state, which does.
type memory struct{ cells, state uint64 }

// value is what the cell of a row holds: like a real model's keys and values,
// it depends on everything that the row saw.
func (m memory) value(content uint64, pos llama.Pos) uint64 {
	return mix(m.cells ^ mix(m.state^mix(content^mix(uint64(pos)))))
}

// with is the memory after a row of this value.
func (m memory) with(value uint64, hybrid bool) memory {
	m.cells += value
	if hybrid {
		m.state = mix(m.state ^ value)
	}
	return m
}

// An outlook is all that the logits of a row depend on.
type outlook struct {
	hash uint64
	tail [utf8.UTFMax - 1]byte // the beginning of a character that the text ends with
	open int8                  // bytes of it
	say  llama.Token           // what the script says next, or NoToken
}

// The logits of likely tokens lie in [0, likely); unlikely ones are lower by
// unlikely; what must come next is higher by certain.
const (
	likely   = 8
	unlikely = 40
	certain  = 100
)

// outlook is what comes after the sequence of these tokens, of which the last
// row's memory is given. Rows of embeddings are NoToken.
func (m *Model) outlook(after memory, tokens []llama.Token) outlook {
	o := outlook{hash: mix(after.cells ^ mix(after.state)), say: llama.NoToken}
	o.tail, o.open = m.vocab.tail(tokens)
	if m.options.Script != nil {
		o.say = m.scripted(tokens)
	}
	if mean := uint64(m.options.MeanAnswer); o.say == llama.NoToken && mean > 0 && o.open == 0 && o.hash%mean == 0 {
		o.say = m.vocab.end
	}
	return o
}

// forgets is how many tokens of a sequence of n the outlook does not look at.
func (m *Model) forgets(n int) int {
	if m.options.Script != nil {
		return 0
	}
	return max(0, n-len(outlook{}.tail))
}

// tail is the beginning of a character that the text of tokens ends with, and
// its length.
func (v *vocabulary) tail(tokens []llama.Token) (tail [utf8.UTFMax - 1]byte, open int8) {
	var text [utf8.UTFMax * utf8.UTFMax]byte
	n := 0
	for _, t := range tokens[max(0, len(tokens)-len(tail)):] {
		if t == llama.NoToken || v.Kind(t) > llama.KindByte {
			n = 0
			continue
		}
		piece := v.Piece(t)
		n += copy(text[n:], piece[max(0, len(piece)-len(tail)):])
	}
	open = int8(copy(tail[:], unfinished(text[:n])))
	return tail, open
}

// logits fills dst, one number a token.
func (m *Model) logits(o outlook, dst []float32) {
	for t := range dst {
		x := float32(mix(o.hash^m.vocab.key[t])>>40) / (1 << 24) * likely
		if !m.vocab.text[t] || o.open > 0 {
			x -= unlikely
		}
		dst[t] = x
	}
	if o.open > 0 {
		var char [utf8.UTFMax]byte
		n := copy(char[:], o.tail[:o.open])
		for b := 0x80; b < 0xc0; b++ {
			char[n] = byte(b)
			if next := char[:n+1]; utf8.Valid(next) || !utf8.FullRune(next) {
				dst[b] += unlikely
			}
		}
	}
	if o.say != llama.NoToken {
		dst[o.say] += certain
	}
}
