package mask

// mix is the finalizer of splitmix64.
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// An index is a hash table of numbers above 0, with open addressing.
type index struct {
	slots []int32
	used  int
}

func (t *index) reset() {
	if len(t.slots) == 0 {
		t.slots = make([]int32, 64)
	}
	clear(t.slots)
	t.used = 0
}

// find is the slot of a number, or the empty one where it belongs.
func (t *index) find(hash uint64, is func(int32) bool) *int32 {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if t.slots[i] == 0 || is(t.slots[i]) {
			return &t.slots[i]
		}
	}
}

// grow counts a number that was put into its slot, and makes room for the next.
func (t *index) grow(hash func(int32) uint64) {
	t.used++
	if t.used*2 <= len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]int32, 2*len(old))
	for _, id := range old {
		if id != 0 {
			*t.find(hash(id), func(int32) bool { return false }) = id
		}
	}
}
