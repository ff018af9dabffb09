package engine

import (
	"strings"
	"unicode/utf8"
)

// A utf8Joiner makes valid UTF-8 of pieces that may split characters. What can
// still become a character is held back; what cannot becomes U+FFFD.
type utf8Joiner struct{ held []byte }

// push takes a piece and returns the text that is certain.
func (j *utf8Joiner) push(piece []byte) string {
	if len(j.held) == 0 && utf8.Valid(piece) {
		return string(piece)
	}
	j.held = append(j.held, piece...)
	var out strings.Builder
	rest := j.held
	for len(rest) > 0 {
		if !utf8.FullRune(rest) {
			break
		}
		r, n := utf8.DecodeRune(rest)
		out.WriteRune(r)
		rest = rest[n:]
	}
	j.held = append(j.held[:0], rest...)
	return out.String()
}
