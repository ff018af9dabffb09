package mask

import "math/bits"

// allows tells whether item i may begin when used ones were begun: it is not one
// of them, and room stays for the required ones.
func (b *bag) allows(used uint64, i int) bool {
	with := used | 1<<i
	return with != used && bits.OnesCount64(with|b.required) <= b.max
}

// complete tells whether the bag may end.
func (b *bag) complete(used uint64) bool {
	return b.required&^used == 0 && bits.OnesCount64(used) >= b.min
}

// goesOn tells whether some item may come after a separator.
func (b *bag) goesOn(used uint64) bool {
	for i := range b.items {
		if b.allows(used, i) {
			return true
		}
	}
	return false
}
