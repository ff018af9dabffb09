package mask

import (
	"cmp"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/b3os/b3infer/grammar"
)

// A classSet is a set of classes of characters. Classes are what patterns tell
// apart; the tokens below a node of a trie are skipped together where they are
// of classes that a state stays alive on.
type classSet uint32

// byteClasses are the classes of ASCII characters that patterns often name. There
// are two more classes.
var byteClasses = []string{
	"0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ",
	"_", "-", ".", " ", `"`, `\`, "/", ":", ",", "@", "+", "'", "\n", "\t", "\r",
	"!#$%&*=?^`{|}~", "()", "[]", "<", ">", ";",
}

const (
	otherClass classSet = 1 << 26 // control characters, spaces beyond ASCII, and what is no UTF-8
	wideClass  classSet = 1 << 27 // all other characters beyond ASCII
)

// classOf is the class of each ASCII byte, as a set.
var classOf = func() (of [256]classSet) {
	for b := range of {
		of[b] = otherClass
	}
	for i, bytes := range byteClasses {
		for _, b := range []byte(bytes) {
			of[b] = 1 << i
		}
	}
	return of
}()

// wideSpaces are the characters beyond ASCII that patterns take for spaces.
var wideSpaces = []grammar.Range{
	{Lo: 0x85, Hi: 0x85}, {Lo: 0xa0, Hi: 0xa0}, {Lo: 0x1680, Hi: 0x1680}, {Lo: 0x2000, Hi: 0x200a}, {Lo: 0x2028, Hi: 0x2029},
	{Lo: 0x202f, Hi: 0x202f}, {Lo: 0x205f, Hi: 0x205f}, {Lo: 0x3000, Hi: 0x3000}, {Lo: 0xfeff, Hi: 0xfeff},
}

// wideRanges are the characters of wideClass.
var wideRanges = func() (out []grammar.Range) {
	next := rune(twoBytes)
	gaps := slices.Concat(wideSpaces, []grammar.Range{{Lo: 0xd800, Hi: 0xdfff}})
	slices.SortFunc(gaps, func(a, b grammar.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	for _, gap := range gaps {
		out = append(out, grammar.Range{Lo: next, Hi: gap.Lo - 1})
		next = gap.Hi + 1
	}
	out = append(out, grammar.Range{Lo: next, Hi: utf8.MaxRune})
	return out
}()

// appendClasses appends the class of each byte of a token. Bytes of a character
// have that of the character.
func appendClasses(classes []classSet, piece []byte) []classSet {
	isText := utf8.Valid(piece)
	for len(piece) > 0 {
		r, size := utf8.DecodeRune(piece)
		class := classOf[piece[0]]
		if isText && r >= twoBytes {
			class = wideClass
			for _, s := range wideSpaces {
				if s.Lo <= r && r <= s.Hi {
					class = otherClass
				}
			}
		}
		for range size {
			classes = append(classes, class)
		}
		piece = piece[size:]
	}
	return classes
}

// size is the number of ASCII bytes of the classes.
func (s classSet) size() int {
	n := 0
	for rest := s &^ (otherClass | wideClass); rest != 0; rest &= rest - 1 {
		n += len(byteClasses[bits.TrailingZeros32(uint32(rest))])
	}
	return n
}

// classesOf is the classes all of whose bytes have an edge.
func classesOf(edges []byteEdge) classSet {
	var has [256]bool
	for _, e := range edges {
		for b := int(e.lo); b <= int(e.hi) && b < twoBytes; b++ {
			has[b] = true
		}
	}
	var s classSet
	for i, bytes := range byteClasses {
		all := true
		for j := 0; j < len(bytes) && all; j++ {
			all = has[bytes[j]]
		}
		if all {
			s |= 1 << i
		}
	}
	return s
}

// touches tells whether an edge leads on with a byte of the classes.
func (e byteEdge) touches(s classSet) bool {
	for b := int(e.lo); b <= int(e.hi) && b < twoBytes; b++ {
		if classOf[b]&s != 0 {
			return true
		}
	}
	return false
}

// wideShapes are the characters of wideClass: ranges of bytes, one behind the
// other.
var wideShapes = func() (shapes [][]byteRange) {
	for _, r := range wideRanges {
		shapes = appendShapes(shapes, r.Lo, r.Hi)
	}
	return shapes
}()

// appendShapes appends the spellings of the characters from lo to hi, which have
// more than one byte.
func appendShapes(shapes [][]byteRange, lo, hi rune) [][]byteRange {
	for _, last := range []rune{threeBytes - 1, fourBytes - 1} {
		if lo <= last && last < hi {
			return appendShapes(appendShapes(shapes, lo, last), last+1, hi)
		}
	}
	for shift := 6; shift <= 18; shift += 6 {
		m := rune(1)<<shift - 1
		if lo>>shift == hi>>shift {
			break
		}
		if lo&m != 0 {
			return appendShapes(appendShapes(shapes, lo, lo|m), lo|m+1, hi)
		}
		if hi&m != m {
			return appendShapes(appendShapes(shapes, lo, hi&^m-1), hi&^m, hi)
		}
	}
	first, last := utf8.AppendRune(nil, lo), utf8.AppendRune(nil, hi)
	shape := make([]byteRange, len(first))
	for i := range shape {
		shape[i] = byteRange{first[i], last[i]}
	}
	return append(shapes, shape)
}
