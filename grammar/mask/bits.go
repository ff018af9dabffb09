package mask

import "math/bits"

// This file is about masks: bit t of a list of words is token t.

func setBit(mask []uint64, token int32) { mask[token>>6] |= 1 << (token & 63) }

func clearBit(mask []uint64, token int32) { mask[token>>6] &^= 1 << (token & 63) }

func hasBit(mask []uint64, token int32) bool { return mask[token>>6]&(1<<(token&63)) != 0 }

func setBits(mask []uint64, tokens []int32) {
	for _, t := range tokens {
		setBit(mask, t)
	}
}

// count is the number of tokens of a mask.
func count(mask []uint64) int {
	n := 0
	for _, w := range mask {
		n += bits.OnesCount64(w)
	}
	return n
}

// appendBits appends the tokens of a mask.
func appendBits(tokens []int32, mask []uint64) []int32 {
	for i, w := range mask {
		for ; w != 0; w &= w - 1 {
			tokens = append(tokens, int32(64*i+bits.TrailingZeros64(w)))
		}
	}
	return tokens
}
