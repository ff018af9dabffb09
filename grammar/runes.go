package grammar

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A runeSet is sorted, disjoint, non-adjacent ranges of code points, never with
// surrogates: text is valid UTF-8.
type runeSet = []Range

const (
	surrogateMin = 0xD800
	surrogateMax = 0xDFFF
)

// anyRune is every code point.
var anyRune = runeSet{{0, surrogateMin - 1}, {surrogateMax + 1, unicode.MaxRune}}

func runesOf(rs ...rune) runeSet {
	set := make(runeSet, len(rs))
	for i, r := range rs {
		set[i] = Range{r, r}
	}
	return normalizeRunes(set)
}

// normalizeRunes sorts and joins ranges and takes surrogates out, in place.
func normalizeRunes(set runeSet) runeSet {
	slices.SortFunc(set, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	out := set[:0]
	for _, r := range set {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
		} else {
			out = append(out, r)
		}
	}
	return withoutSurrogates(out)
}

func withoutSurrogates(set runeSet) runeSet {
	for i, r := range set {
		if r.Hi >= surrogateMin && r.Lo <= surrogateMax {
			var parts runeSet
			if r.Lo < surrogateMin {
				parts = append(parts, Range{r.Lo, surrogateMin - 1})
			}
			if r.Hi > surrogateMax {
				parts = append(parts, Range{surrogateMax + 1, r.Hi})
			}
			return slices.Replace(set, i, i+1, parts...)
		}
	}
	return set
}

// invertRunes is every code point that is not in set.
func invertRunes(set runeSet) runeSet {
	var out runeSet
	next := rune(0)
	for _, r := range set {
		if r.Lo > next {
			out = append(out, Range{next, r.Lo - 1})
		}
		next = r.Hi + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, Range{next, unicode.MaxRune})
	}
	return normalizeRunes(out)
}

// intersectRunes is the code points that both sets have.
func intersectRunes(a, b runeSet) runeSet {
	var out runeSet
	for len(a) > 0 && len(b) > 0 {
		lo, hi := max(a[0].Lo, b[0].Lo), min(a[0].Hi, b[0].Hi)
		if lo <= hi {
			out = append(out, Range{lo, hi})
		}
		if a[0].Hi < b[0].Hi {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

func hasRune(set runeSet, r rune) bool {
	i, found := slices.BinarySearchFunc(set, r, func(x Range, r rune) int { return cmp.Compare(x.Lo, r) })
	return found || i > 0 && r <= set[i-1].Hi
}

// isScalar tells whether a number is a code point that text can have.
func isScalar(r rune) bool { return utf8.ValidRune(r) }
