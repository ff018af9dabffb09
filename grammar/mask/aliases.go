package mask

import (
	"bytes"
	"cmp"
	"slices"
)

// An alias is a token with the same text as another one, which alone is in the
// trie.
type alias struct{ token, as int32 }

// distinct leaves out of sorted tokens those with the text of the one before,
// and notes them as its aliases.
func (v *Vocabulary) distinct(sorted []int32) []int32 {
	out := make([]int32, 0, len(sorted))
	for _, id := range sorted {
		if n := len(out); n > 0 && bytes.Equal(v.piece(out[n-1]), v.piece(id)) {
			v.aliases = append(v.aliases, alias{id, out[n-1]})
		} else {
			out = append(out, id)
		}
	}
	return out
}

// appendAliases appends the aliases of tokens.
func (v *Vocabulary) appendAliases(ids []int32) []int32 {
	if len(v.aliases) == 0 {
		return ids
	}
	for _, id := range ids {
		i, _ := slices.BinarySearchFunc(v.aliases, id, func(a alias, id int32) int { return cmp.Compare(a.as, id) })
		for ; i < len(v.aliases) && v.aliases[i].as == id; i++ {
			ids = append(ids, v.aliases[i].token)
		}
	}
	return ids
}

// appendBarred appends the aliases of tokens that a mask has lost, and takes them
// out of it too.
func (v *Vocabulary) appendBarred(ids []int32, mask []uint64) []int32 {
	for _, id := range v.appendAliases(ids)[len(ids):] {
		if hasBit(mask, id) {
			clearBit(mask, id)
			ids = append(ids, id)
		}
	}
	return ids
}

// copyAliases gives each alias the bit of the token that it stands for.
func (v *Vocabulary) copyAliases(mask []uint64) {
	for _, a := range v.aliases {
		if hasBit(mask, a.as) {
			setBit(mask, a.token)
		} else {
			clearBit(mask, a.token)
		}
	}
}
