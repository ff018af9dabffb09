package mask

import "github.com/b3os/b3infer/grammar"

// The register of a loop: the rounds that it must still make, and those that it
// may. Unlimited ones are not counted.
func rounds(need, left uint32) uint64 { return uint64(need)<<32 | uint64(left) }

func roundsOf(register uint64) (need, left uint32) { return uint32(register >> 32), uint32(register) }

const unlimited = 1<<32 - 1

// repeatRegister is the register that a counted loop begins with.
func repeatRegister(least, most int) uint64 {
	left := uint32(unlimited)
	if most != grammar.Unbounded {
		left = uint32(min(most, unlimited-1))
	}
	return rounds(uint32(min(least, unlimited-1)), left)
}

// countRound takes one round off.
func countRound(register uint64) uint64 {
	need, left := roundsOf(register)
	if need > 0 && need != unlimited {
		need--
	}
	if left != unlimited {
		left--
	}
	return rounds(need, left)
}
