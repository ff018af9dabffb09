package mask

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/b3os/b3infer/grammar"
)

// asClass is a node as a class of characters, if it is one.
func (p *program) asClass(n grammar.Node) (grammar.Class, bool) {
	switch n := n.(type) {
	case grammar.Class:
		return n, true
	case grammar.Literal:
		r, size := utf8.DecodeRuneInString(string(n))
		return grammar.Class{{Lo: r, Hi: r}}, size > 0 && size == len(n)
	case grammar.Ref:
		if p.fact(n).inline {
			return p.asClass(p.grammar.Rules[n].Body)
		}
	case grammar.Alt:
		var all grammar.Class
		for _, part := range n {
			c, ok := p.asClass(part)
			if !ok {
				return nil, false
			}
			all = append(all, c...)
		}
		return union(all), len(all) > 0
	}
	return nil, false
}

// union sorts ranges and joins those that meet, in place.
func union(ranges grammar.Class) grammar.Class {
	slices.SortFunc(ranges, func(a, b grammar.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}
