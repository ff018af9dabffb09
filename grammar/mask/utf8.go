package mask

import (
	"encoding/binary"
	"slices"

	"github.com/b3os/b3infer/grammar"
)

// The first code points that take two, three and four bytes.
const (
	twoBytes   = 0x80
	threeBytes = 0x800
	fourBytes  = 0x10000
)

// utf8 spells edges over characters as byte edges. The edges are sorted and
// disjoint. States inside of characters are shared within the rule.
func (b *builder) utf8(edges []grammar.Edge) []byteEdge {
	var out []byteEdge
	for _, e := range edges {
		if e.Lo < twoBytes {
			out = appendByteEdge(out, byteEdge{e.To, byte(e.Lo), byte(min(e.Hi, twoBytes-1))})
		}
	}
	out = append(out, b.lead(within(edges, twoBytes, threeBytes-1), 0xc0, 1)...)
	out = append(out, b.lead(within(edges, threeBytes, fourBytes-1), 0xe0, 2)...)
	return append(out, b.lead(within(edges, fourBytes, 0x10ffff), 0xf0, 3)...)
}

// within cuts edges to the code points from lo to hi.
func within(edges []grammar.Edge, lo, hi rune) []grammar.Edge {
	var out []grammar.Edge
	for _, e := range edges {
		if e.Lo <= hi && e.Hi >= lo {
			out = append(out, grammar.Edge{Lo: max(e.Lo, lo), Hi: min(e.Hi, hi), To: e.To})
		}
	}
	return out
}

// lead is the edges by the first byte of characters that have more bytes: its
// bits above the character's are mark.
func (b *builder) lead(edges []grammar.Edge, mark byte, more int) []byteEdge {
	var out []byteEdge
	var group []grammar.Edge
	shift := 6 * more
	for len(edges) > 0 {
		first := edges[0].Lo >> shift << shift
		last := first + 1<<shift - 1
		group = group[:0]
		for len(edges) > 0 && edges[0].Lo <= last {
			e := edges[0]
			if e.Lo == first && e.Hi >= last {
				// Whole groups that lead to the same state make one edge.
				last += (e.Hi - last) >> shift << shift
			}
			group = append(group, grammar.Edge{Lo: e.Lo, Hi: min(e.Hi, last), To: e.To})
			if e.Hi > last {
				edges[0].Lo = last + 1
				break
			}
			edges = edges[1:]
		}
		group[len(group)-1].Hi = min(group[len(group)-1].Hi, first+1<<shift-1)
		to := b.continuation(group, first, more)
		out = appendByteEdge(out, byteEdge{to, mark | byte(first>>shift), mark | byte(last>>shift)})
	}
	return out
}

// appendByteEdge appends an edge and joins it with the last one where it can.
func appendByteEdge(edges []byteEdge, e byteEdge) []byteEdge {
	if n := len(edges); n > 0 && edges[n-1].to == e.to && edges[n-1].hi+1 == e.lo {
		edges[n-1].hi = e.hi
		return edges
	}
	return append(edges, e)
}

// A utf8Key is what follows inside of a character.
type utf8Key string

// continuation is the state that reads the last bytes of characters, those
// above base that the edges have.
func (b *builder) continuation(edges []grammar.Edge, base rune, bytes int) int32 {
	if bytes == 0 {
		return edges[0].To
	}
	key := []byte{byte(bytes)}
	relative := slices.Clone(edges)
	for i := range relative {
		relative[i].Lo -= base
		relative[i].Hi -= base
		key = binary.LittleEndian.AppendUint32(key, uint32(relative[i].Lo))
		key = binary.LittleEndian.AppendUint32(key, uint32(relative[i].Hi))
		key = binary.LittleEndian.AppendUint32(key, uint32(relative[i].To))
	}
	if id, ok := b.endings[utf8Key(key)]; ok {
		return id
	}
	id := b.add(draft{bytes: b.lead(relative, 0x80, bytes-1)})
	if b.endings == nil {
		b.endings = map[utf8Key]int32{}
	}
	b.endings[utf8Key(key)] = id
	return id
}
