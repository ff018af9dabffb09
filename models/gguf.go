package models

import (
	"fmt"
	"io"
	"math"
	"math/bits"
)

// Bounds on what a header may hold. The largest published models have about
// 100 keys and 2,000 tensors per file.
const (
	maxHeader     = 1 << 30 // bytes
	maxKeys       = 1 << 14
	maxTensors    = 1 << 18
	maxKeyLen     = 1 << 10
	maxNameLen    = 63        // GGML_MAX_NAME less the zero
	keptText      = 1 << 10   // bytes of a string value that are kept
	keptNumbers   = maxLayers // elements of an array that are kept
	maxAlignment  = 1 << 20
	maxDimensions = 4
)

// The types of metadata values (gguf_type).
const (
	typeUint8, typeInt8, typeUint16, typeInt16   = 0, 1, 2, 3
	typeUint32, typeInt32, typeFloat32, typeBool = 4, 5, 6, 7
	typeString, typeArray                        = 8, 9
	typeUint64, typeInt64, typeFloat64           = 10, 11, 12
)

// scalarBytes is the size of the values of fixed size, by type.
var scalarBytes = [...]int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

// A value is one metadata value: the beginning of a text, or the raw bits of
// one number or of a short array of numbers.
type value struct {
	kind    uint32 // of the elements, for an array
	count   uint64 // elements; 1 unless an array
	text    string
	numbers []uint64 // nil for strings and for arrays longer than keptNumbers
}

// A tensor is one entry of the table of tensors.
type tensor struct {
	name     string
	shape    [maxDimensions]uint64 // input size first; unused ones are 1
	kind     string                // name of its tensorType
	elements uint64
	bytes    uint64
}

// A header is all of a GGUF file but the weights.
type header struct {
	meta    map[string]value
	tensors []tensor
}

// readHeader reads the header of a GGUF file of size bytes (gguf_init_from_file)
// and checks that its tensors lie within the file.
func readHeader(file io.Reader, size int64) (*header, error) {
	r := newReader(file, size)
	if size == 0 {
		return nil, fmt.Errorf("file is empty")
	}
	if err := readVersion(r); err != nil {
		return nil, err
	}
	tensors, keys := r.u64(), r.u64()
	if r.err == nil && (tensors > maxTensors || keys > maxKeys) {
		r.fail("it claims %d tensors and %d keys", tensors, keys)
	}
	h := &header{meta: map[string]value{}}
	for range keys {
		if r.err != nil {
			break
		}
		h.readKey(r)
	}
	end := h.readTensors(r, tensors)
	if r.err != nil {
		return nil, r.err
	}
	if end > r.size {
		return nil, fmt.Errorf("file is cut short: has %d bytes, needs %d", r.size, end)
	}
	return h, nil
}

func readVersion(r *reader) error {
	var magic [4]byte
	for i := range magic {
		magic[i] = byte(r.number(1))
	}
	if r.err == nil && string(magic[:]) != "GGUF" {
		return fmt.Errorf("not a GGUF file: it begins with %q", magic[:])
	}
	version := r.u32()
	switch {
	case r.err != nil:
		return r.err
	case version&0xffff == 0: // as llama.cpp tells them apart
		return fmt.Errorf("big-endian GGUF file, or a damaged one: only little-endian is supported")
	case version != 2 && version != 3:
		return fmt.Errorf("GGUF version %d: versions 2 and 3 are supported", version)
	}
	return nil
}

func (h *header) readKey(r *reader) {
	key := r.text(maxKeyLen + 1)
	v := value{kind: r.u32(), count: 1}
	isArray := v.kind == typeArray
	if isArray {
		v.kind, v.count = r.u32(), r.u64()
	}
	switch {
	case r.err != nil:
	case key == "" || len(key) > maxKeyLen:
		r.fail("a key has %d bytes or more", len(key))
	case v.kind == typeString && isArray:
		for i := uint64(0); i < v.count && r.err == nil; i++ {
			r.skip(r.u64())
		}
	case v.kind == typeString:
		v.text = r.text(keptText)
	case v.kind >= uint32(len(scalarBytes)) || v.kind == typeArray:
		r.fail("key %q has the unknown type %d", key, v.kind)
	case v.count > keptNumbers:
		high, n := bits.Mul64(v.count, uint64(scalarBytes[v.kind]))
		if high != 0 {
			n = math.MaxUint64 // more than any file has: skip fails
		}
		r.skip(n)
	default:
		v.numbers = make([]uint64, 0, v.count)
		for range v.count {
			v.numbers = append(v.numbers, r.number(scalarBytes[v.kind]))
		}
	}
	if _, twice := h.meta[key]; twice {
		r.fail("key %q occurs twice", key)
	}
	h.meta[key] = v
}

// readTensors reads the table of tensors and returns the file size that it
// asks for.
func (h *header) readTensors(r *reader, n uint64) (end uint64) {
	alignment := uint64(32) // GGUF_DEFAULT_ALIGNMENT
	if a, ok := h.uint("general.alignment"); ok {
		alignment = a
	}
	if alignment == 0 || alignment > maxAlignment || alignment&(alignment-1) != 0 {
		r.fail("its alignment is %d", alignment)
	}
	var next uint64 // where the next tensor's data begins
	for i := uint64(0); i < n && r.err == nil; i++ {
		t, offset := readTensor(r)
		if r.err == nil && offset != next {
			r.fail("tensor %q begins at %d, not at %d", t.name, offset, next)
		}
		if t.bytes > math.MaxInt64-next-alignment {
			r.fail("its tensors are too large")
			return 0
		}
		end = next + t.bytes
		next = roundUp(end, alignment)
		h.tensors = append(h.tensors, t)
	}
	if n == 0 {
		return r.pos
	}
	return roundUp(r.pos, alignment) + end
}

// roundUp is the next multiple of a power of two.
func roundUp(n, unit uint64) uint64 { return (n + unit - 1) &^ (unit - 1) }

func readTensor(r *reader) (t tensor, offset uint64) {
	t.name = r.text(maxNameLen + 1)
	if len(t.name) > maxNameLen {
		r.fail("the tensor name %q is too long", t.name)
	}
	dimensions := r.u32()
	if dimensions > maxDimensions {
		r.fail("tensor %q has %d dimensions", t.name, dimensions)
		return t, 0
	}
	t.elements = 1
	for i := range t.shape {
		t.shape[i] = 1
		if i < int(dimensions) {
			t.shape[i] = r.u64()
		}
		high, product := bits.Mul64(t.elements, t.shape[i])
		if high != 0 || product > math.MaxInt64 {
			r.fail("tensor %q is too large", t.name)
			return t, 0
		}
		t.elements = product
	}
	number := r.u32()
	kind, ok := tensorTypes[number]
	if !ok {
		r.fail("tensor %q has the unknown type %d", t.name, number)
		return t, 0
	}
	if t.shape[0]%kind.block != 0 {
		r.fail("tensor %q has rows of %d, not a multiple of %s's %d", t.name, t.shape[0], kind.name, kind.block)
	}
	high, size := bits.Mul64(t.elements/kind.block, kind.bytes)
	if high != 0 {
		r.fail("tensor %q is too large", t.name)
	}
	t.kind, t.bytes = kind.name, size
	return t, r.u64()
}
