package mask

import (
	"math/bits"
	"slices"
)

// An inner mask is the tokens that stay inside of a set of items, whatever their
// frame, and what is left of those that leave. It does not change once it is
// made.
type inner struct {
	root    *inner   // its tokens and exits are in it too, but for missing and dropped; has no root itself
	tokens  []uint64 // a mask, or nil
	ids     []int32  // more tokens
	missing []int32  // tokens of root that are not in it
	dropped []int32  // places at which tokens leave root that do not leave here, sorted
	exits   exits
	memory  int32 // with which tokens leave, where the items have one
	// partial says that there are too many exits to keep: the mask must be worked
	// out for each frame.
	partial bool
}

// maxIDs is up to how many tokens are kept as a list.
const maxIDs = 1024

// bytes is how much memory the inner mask holds.
func (in *inner) bytes() int {
	return 160 + 8*cap(in.tokens) + 4*(cap(in.ids)+cap(in.missing)+cap(in.dropped)) + in.exits.bytes()
}

// cost is about how long it takes to add it, in tokens that are set one by one.
func (in *inner) cost() int {
	cost := len(in.ids) + len(in.missing)
	if in.root != nil {
		cost += len(in.root.ids)
	}
	return cost
}

// copyTo makes a mask of it.
func (in *inner) copyTo(mask []uint64) {
	tokens := in.tokens
	if in.root != nil {
		tokens = in.root.tokens
	}
	if tokens == nil {
		clear(mask)
	} else {
		copy(mask, tokens)
	}
	if in.root != nil {
		setBits(mask, in.root.ids)
	}
	for _, id := range in.missing {
		clearBit(mask, id)
	}
	setBits(mask, in.ids)
}

// addTo adds its tokens to a mask. Scratch is space for another one.
func (in *inner) addTo(mask, scratch []uint64) {
	if in.root != nil {
		in.copyTo(scratch)
		for i, w := range scratch {
			mask[i] |= w
		}
		return
	}
	for i, w := range in.tokens {
		mask[i] |= w
	}
	setBits(mask, in.ids)
}

// keep stores a set of tokens, in the shorter form.
func (in *inner) keep(mask []uint64) {
	if count(mask) > maxIDs {
		in.tokens = slices.Clone(mask)
	} else {
		in.ids = appendBits(nil, mask)
	}
}

// keepDifference stores a set of tokens by its difference from root, whose mask
// is given. It reports false where that is no shorter.
func (in *inner) keepDifference(mask, root []uint64) bool {
	n := 0
	for i, w := range mask {
		n += bits.OnesCount64(w ^ root[i])
	}
	if n > maxIDs {
		return false
	}
	for i, w := range mask {
		for d := w ^ root[i]; d != 0; d &= d - 1 {
			bit := bits.TrailingZeros64(d)
			id := int32(64*i + bit)
			if w>>bit&1 != 0 {
				in.ids = append(in.ids, id)
			} else {
				in.missing = append(in.missing, id)
			}
		}
	}
	return true
}
