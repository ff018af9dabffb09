package mask

// Transitions keeps which configuration follows on which symbol. A configuration
// that few bytes were tried on has them in a hash table, others have a row.
type transitions struct {
	rows  [][]int32 // chunks of rowsPerChunk rows of 256
	used  int32     // rows
	keys  []uint64
	to    []int32 // unknown where the slot is free
	count int
}

const (
	rowsPerChunk = 64
	maxSparse    = 4 // transitions of a configuration in the table, before it gets a row
)

func (t *transitions) reset() {
	t.used = 0
	if len(t.keys) == 0 {
		t.keys, t.to = make([]uint64, 256), make([]int32, 256)
	}
	clear(t.to)
	t.count = 0
}

func (t *transitions) bytes() int {
	return len(t.rows)*rowsPerChunk*256*4 + len(t.keys)*12
}

// newRow is the number of an empty row.
func (t *transitions) newRow() int32 {
	id := t.used
	t.used++
	if int(id/rowsPerChunk) == len(t.rows) {
		t.rows = append(t.rows, make([]int32, rowsPerChunk*256))
	}
	clear(t.row(id))
	return id
}

func (t *transitions) row(id int32) []int32 {
	at := id % rowsPerChunk * 256
	return t.rows[id/rowsPerChunk][at : at+256 : at+256]
}

func symbolKey(from, symbol int32) uint64 {
	return uint64(uint32(from))<<32 | uint64(uint32(symbol))
}

func (t *transitions) get(from, symbol int32) int32 {
	key := symbolKey(from, symbol)
	mask := uint64(len(t.keys) - 1)
	for i := mix(key) & mask; ; i = (i + 1) & mask {
		if t.to[i] == unknown || t.keys[i] == key {
			return t.to[i]
		}
	}
}

func (t *transitions) put(from, symbol, to int32) {
	if 2*(t.count+1) > len(t.keys) {
		keys, values := t.keys, t.to
		t.keys, t.to = make([]uint64, 2*len(keys)), make([]int32, 2*len(keys))
		for i, to := range values {
			if to != unknown {
				t.insert(keys[i], to)
			}
		}
	}
	t.count++
	t.insert(symbolKey(from, symbol), to)
}

func (t *transitions) insert(key uint64, to int32) {
	mask := uint64(len(t.keys) - 1)
	i := mix(key) & mask
	for t.to[i] != unknown && t.keys[i] != key {
		i = (i + 1) & mask
	}
	t.keys[i], t.to[i] = key, to
}
