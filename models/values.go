package models

import "math"

// integer is an element of a value as a number, and false if it is not a
// whole number of at least 0.
func (v value) integer(i int) (uint64, bool) {
	if i >= len(v.numbers) {
		return 0, false
	}
	n := v.numbers[i]
	switch v.kind {
	case typeUint8, typeUint16, typeUint32, typeUint64, typeBool:
		return n, true
	case typeInt8:
		return n, int8(n) >= 0
	case typeInt16:
		return n, int16(n) >= 0
	case typeInt32:
		return n, int32(n) >= 0
	case typeInt64:
		return n, int64(n) >= 0
	default:
		return 0, false
	}
}

// uint is a key's number, if it has one.
func (h *header) uint(key string) (uint64, bool) { return h.meta[key].integer(0) }

// maxSize bounds the counts and lengths that are drawn from a file, so that
// products of them do not overflow. The longest contexts are below it.
const maxSize = 1 << 24

// size is a key's number as a count or length, 0 if there is none.
func (h *header) size(key string) uint64 {
	n, _ := h.uint(key)
	return min(n, maxSize)
}

// perLayer is a key's number for one layer: the same for all, or from an array
// (get_key_or_arr).
func (h *header) perLayer(key string, layer int) (uint64, bool) {
	v, ok := h.meta[key]
	if !ok {
		return 0, false
	}
	if v.count == 1 {
		layer = 0
	}
	n, ok := v.integer(layer)
	return min(n, maxSize), ok
}

// text is a key's string, or "".
func (h *header) text(key string) string { return h.meta[key].text }

// float is a key's number, or nil.
func (h *header) float(key string) *float32 {
	v := h.meta[key]
	if len(v.numbers) == 0 {
		return nil
	}
	var f float32
	switch v.kind {
	case typeFloat32:
		f = math.Float32frombits(uint32(v.numbers[0]))
	case typeFloat64:
		f = float32(math.Float64frombits(v.numbers[0]))
	default:
		n, ok := v.integer(0)
		if !ok {
			return nil
		}
		f = float32(n)
	}
	return &f
}
