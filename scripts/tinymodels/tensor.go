package main

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Number formats of weights (enum ggml_type).
const (
	f32  = 0
	q8_0 = 8
)

// A tensor is made while it is written, from its name alone, so that its numbers are the
// same in all formats and whatever else is in the file.
type tensor struct {
	name  string
	size  []int // in llama.cpp's order: the length of a row first
	kind  int
	value func(*rand.Rand) float32
}

// random is a tensor of normally distributed numbers around 0.
func random(name string, scale float64, size ...int) tensor {
	return tensor{name: name, size: size, value: func(r *rand.Rand) float32 {
		return float32(r.NormFloat64() * scale)
	}}
}

// constant is a tensor of one number.
func constant(name string, value float32, size int) tensor {
	return tensor{name: name, size: []int{size}, value: func(*rand.Rand) float32 { return value }}
}

// quantize turns a matrix whose rows are whole blocks into Q8_0; others stay as they are.
func (t *tensor) quantize() {
	if len(t.size) == 2 && t.size[0]%block == 0 {
		t.kind = q8_0
	}
}

func (t *tensor) bytes() int {
	n := 1
	for _, length := range t.size {
		n *= length
	}
	if t.kind == q8_0 {
		return n / block * (2 + block)
	}
	return n * 4
}

// rows makes the tensor and gives it to put row by row.
func (t *tensor) rows(put func([]byte)) {
	seed := fnv.New64a()
	seed.Write([]byte(t.name))
	r := rand.New(rand.NewPCG(1, seed.Sum64()))
	count := 1
	for _, length := range t.size[1:] {
		count *= length
	}
	row := make([]float32, t.size[0])
	var encoded []byte
	for range count {
		for i := range row {
			row[i] = t.value(r)
		}
		if t.kind == q8_0 {
			encoded = appendQ8_0(encoded[:0], row)
		} else {
			encoded = appendF32(encoded[:0], row)
		}
		put(encoded)
	}
}

func appendF32(b []byte, row []float32) []byte {
	for _, x := range row {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// block is how many numbers of Q8_0 share a scale (QK8_0).
const block = 32

// appendQ8_0 is quantize_row_q8_0_ref: for each block a scale and 32 bytes.
func appendQ8_0(b []byte, row []float32) []byte {
	for ; len(row) > 0; row = row[block:] {
		largest := float32(0)
		for _, x := range row[:block] {
			largest = max(largest, float32(math.Abs(float64(x))))
		}
		scale := largest / 127
		b = binary.LittleEndian.AppendUint16(b, half(scale))
		for _, x := range row[:block] {
			b = append(b, byte(int8(math.Round(float64(x/scale)))))
		}
	}
	return b
}

// half is f as a 16-bit float, rounded to even. f is positive and in the format's normal
// range, as scales of random weights are.
func half(f float32) uint16 {
	bits := math.Float32bits(f)
	h := (bits>>23-127+15)<<10 | bits>>13&0x3FF
	if rest := bits & 0x1FFF; rest > 0x1000 || rest == 0x1000 && h&1 == 1 {
		h++
	}
	return uint16(h)
}
