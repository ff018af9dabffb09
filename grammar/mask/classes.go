package mask

import "math/bits"

// A classSet is a set of classes of ASCII bytes. Classes are what patterns tell
// apart; the tokens below a node of a trie are skipped together where they are
// of classes that a state stays alive on.
type classSet uint32

// byteClasses are the classes of more than one byte, and of single bytes that
// patterns often name. The last one is all other bytes.
var byteClasses = []string{
	"0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ",
	"_", "-", ".", " ", `"`, `\`, "/", ":", ",", "@", "+", "'", "\n", "\t", "\r",
	"!#$%&*=?^`{|}~", "()", "[]", "<", ">", ";",
}

// classOf is the class of each byte, as a set.
var classOf = func() (of [256]classSet) {
	for b := range of {
		of[b] = 1 << len(byteClasses)
	}
	for i, bytes := range byteClasses {
		for _, b := range []byte(bytes) {
			of[b] = 1 << i
		}
	}
	return of
}()

// size is the number of bytes of the classes.
func (s classSet) size() int {
	n := 0
	for rest := s; rest != 0; rest &= rest - 1 {
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
