package mask

import (
	"unicode/utf8"

	"github.com/b3os/b3infer/grammar"
)

const (
	never = iota
	partly
	whole
)

// matching tells whether bytes are, or begin, a character of a set.
func matching(char string, set []grammar.Range) int {
	if utf8.FullRuneInString(char) {
		c, n := utf8.DecodeRuneInString(char)
		if n == len(char) && (c != utf8.RuneError || n > 1) {
			for _, s := range set {
				if s.Lo <= c && c <= s.Hi {
					return whole
				}
			}
		}
		return never
	}
	least, most := char, char
	for !utf8.FullRuneInString(least) {
		least = extend(least, true)
	}
	for !utf8.FullRuneInString(most) {
		most = extend(most, false)
	}
	lo, _ := utf8.DecodeRuneInString(least)
	hi, _ := utf8.DecodeRuneInString(most)
	for _, s := range set {
		if s.Lo <= hi && lo <= s.Hi {
			return partly
		}
	}
	return never
}

// extend adds the least or greatest byte that can follow inside of a character.
func extend(char string, least bool) string {
	for i := range 64 {
		b := byte(0x80 + i)
		if !least {
			b = byte(0xbf - i)
		}
		next := char + string([]byte{b})
		if c, _ := utf8.DecodeRuneInString(next); !utf8.FullRuneInString(next) || c != utf8.RuneError {
			return next
		}
	}
	panic("no byte follows")
}
