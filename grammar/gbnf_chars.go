package grammar

import (
	"fmt"
	"strings"
)

// String is the class in GBNF.
func (c Class) String() string {
	if len(c) == 2 && c[0] == anyRune[0] && c[1] == anyRune[1] {
		return "."
	}
	set, open := runeSet(c), "["
	if inverse := invertRunes(c); len(c) > 1 && c[len(c)-1].Hi == anyRune[1].Hi && len(inverse) > 0 {
		set, open = inverse, "[^"
	}
	var b strings.Builder
	b.WriteString(open)
	for _, r := range set {
		writeClassChar(&b, r.Lo)
		if r.Hi > r.Lo {
			if r.Hi > r.Lo+1 {
				b.WriteByte('-')
			}
			writeClassChar(&b, r.Hi)
		}
	}
	b.WriteByte(']')
	return b.String()
}

func writeClassChar(b *strings.Builder, r rune) {
	switch r {
	case ']', '[', '\\', '-':
		b.WriteByte('\\')
		b.WriteRune(r)
	case '^':
		b.WriteString(`\x5E`)
	default:
		writeChar(b, r)
	}
}

func writeLiteral(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		if r == '"' || r == '\\' {
			b.WriteByte('\\')
			b.WriteRune(r)
		} else {
			writeChar(b, r)
		}
	}
	b.WriteByte('"')
}

// writeChar spells a character that needs no escape for where it stands.
func writeChar(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case r < ' ' || r == 0x7F:
		fmt.Fprintf(b, `\x%02X`, r)
	case r < 0x7F:
		b.WriteRune(r)
	case r <= 0xFFFF:
		fmt.Fprintf(b, `\u%04X`, r)
	default:
		fmt.Fprintf(b, `\U%08X`, r)
	}
}
