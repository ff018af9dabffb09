package llamatest

import (
	"fmt"

	"github.com/b3os/b3infer/llama"
)

// Tokenize takes the longest token that fits, from left to right, over the
// joined text of the parts. Control and user-defined tokens come before all
// others, and only where the whole of their text is in Special parts.
func (m *Model) Tokenize(dst []llama.Token, parts []llama.Part, bos bool) ([]llama.Token, error) {
	if m.closed.Load() {
		return dst, fmt.Errorf("tokenize: %w", llama.ErrClosed)
	}
	var text []byte
	var literal []bool // one a byte: text that stays text
	for _, p := range parts {
		if p.Image != 0 {
			return dst, fmt.Errorf("tokenize: %w: an image part", llama.ErrInvalid)
		}
		text = append(text, p.Text...)
		for range p.Text {
			literal = append(literal, !p.Special)
		}
	}
	if bos && m.vocab.BOS() != llama.NoToken {
		dst = append(dst, m.vocab.BOS())
	}
	for at := 0; at < len(text); {
		t, n := m.vocab.next(text[at:], literal[at:])
		dst = append(dst, t)
		at += n
	}
	return dst, nil
}

// next is the first token of text and its length. Bytes marked as literal are
// not part of a special token.
func (v *vocabulary) next(text []byte, literal []bool) (llama.Token, int) {
	free := 0
	for free < len(text) && free < v.longest && !literal[free] {
		free++
	}
	if t, n := lookUp(v.special, text[:free]); n > 0 {
		return t, n
	}
	return lookUp(v.bySpelling, text[:min(len(text), v.longest)])
}

// lookUp is the longest prefix of text that spelling has, and its length, 0 if
// there is none.
func lookUp(spelling map[string]llama.Token, text []byte) (llama.Token, int) {
	for n := len(text); n > 0; n-- {
		if t, ok := spelling[string(text[:n])]; ok {
			return t, n
		}
	}
	return llama.NoToken, 0
}
