package mask

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// plainTokens are the tokens of plain characters only, by their number.
type plainTokens struct {
	all  []uint64
	ids  []int32 // in the order of their number of characters
	upTo []int32 // ids[:upTo[n]] have at most n characters
}

func newPlainTokens(v *Vocabulary, ids []int32) plainTokens {
	p := plainTokens{all: make([]uint64, v.Words()), ids: slices.Clone(ids)}
	chars := func(id int32) int { return utf8.RuneCount(v.piece(id)) }
	slices.SortStableFunc(p.ids, func(a, b int32) int { return cmp.Compare(chars(a), chars(b)) })
	for i, id := range p.ids {
		setBit(p.all, id)
		for len(p.upTo) < chars(id) {
			p.upTo = append(p.upTo, int32(i))
		}
	}
	p.upTo = append(p.upTo, int32(len(ids)))
	return p
}

// addTo adds the tokens of at most n characters to a mask that has no plain
// tokens yet.
func (p *plainTokens) addTo(mask []uint64, n uint32) {
	upTo := len(p.ids)
	if uint64(n) < uint64(len(p.upTo)) {
		upTo = int(p.upTo[n])
	}
	if upTo < len(p.ids)/2 {
		for _, id := range p.ids[:upTo] {
			setBit(mask, id)
		}
		return
	}
	for i, w := range p.all {
		mask[i] |= w
	}
	for _, id := range p.ids[upTo:] {
		clearBit(mask, id)
	}
}

// isPlain tells whether a piece is whole characters that stand for themselves
// in a JSON string. Only speed depends on the choice.
func isPlain(piece []byte) bool {
	for _, c := range piece {
		if c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(piece)
}
