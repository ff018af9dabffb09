package handlers

import (
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Beyond what JSON asks for it escapes
// U+0085, U+2028 and U+2029: some readers of event streams (Python's
// str.splitlines, which httpx uses) end a line there. Invalid UTF-8 becomes
// U+FFFD.
func appendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		n := escapeLen(s[i:])
		if n == 0 {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, s[i:])
		i += n
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// escapeLen is the length of the character at the start of s if it must be
// escaped, else 0.
func escapeLen(s string) int {
	switch c := s[0]; {
	case c < ' ', c == '"', c == '\\':
		return 1
	case c == 0xC2 && s[1] == 0x85:
		return 2
	case c == 0xE2 && s[1] == 0x80 && (s[2] == 0xA8 || s[2] == 0xA9):
		return 3
	}
	return 0
}

// appendEscape appends the escape of the character at the start of s.
func appendEscape(dst []byte, s string) []byte {
	switch c := s[0]; c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	r, _ := utf8.DecodeRuneInString(s)
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}
