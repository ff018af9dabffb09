package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// A pair is one entry of a file's metadata.
type pair struct {
	key   string
	value any // uint32, int32, float32, bool, string or a slice of int32, string
}

// alignment is where tensors may start, in bytes (GGUF_DEFAULT_ALIGNMENT).
const alignment = 32

// writeGGUF writes version 3 of the format that ggml/include/gguf.h describes.
func writeGGUF(file io.Writer, metadata []pair, tensors []tensor) error {
	w := &ggufWriter{out: bufio.NewWriterSize(file, 1<<20)}
	w.put([]byte("GGUF"))
	w.number(uint32(3))
	w.number(uint64(len(tensors)))
	w.number(uint64(len(metadata)))
	for _, p := range metadata {
		w.text(p.key)
		w.value(p.value)
	}
	offset := 0
	for _, t := range tensors {
		w.text(t.name)
		w.number(uint32(len(t.size)))
		for _, n := range t.size {
			w.number(uint64(n))
		}
		w.number(uint32(t.kind))
		w.number(uint64(offset))
		offset += roundUp(t.bytes())
	}
	w.pad()
	for _, t := range tensors {
		t.rows(w.put)
		w.pad()
	}
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

// roundUp is the room that n bytes take.
func roundUp(n int) int { return (n + alignment - 1) / alignment * alignment }

// A ggufWriter keeps the first error, so that callers look once.
type ggufWriter struct {
	out     *bufio.Writer
	written int
	err     error
}

func (w *ggufWriter) put(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
		w.written += len(b)
	}
}

func (w *ggufWriter) pad() { w.put(make([]byte, roundUp(w.written)-w.written)) }

// number writes a number of fixed size.
func (w *ggufWriter) number(n any) {
	b, err := binary.Append(nil, binary.LittleEndian, n)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.put(b)
}

func (w *ggufWriter) text(s string) {
	w.number(uint64(len(s)))
	w.put([]byte(s))
}

// value writes the number of a type (enum gguf_type) and a value of it.
func (w *ggufWriter) value(v any) {
	switch v := v.(type) {
	case uint32:
		w.number(uint32(4))
		w.number(v)
	case int32:
		w.number(uint32(5))
		w.number(v)
	case float32:
		w.number(uint32(6))
		w.number(v)
	case bool:
		w.number(uint32(7))
		w.number(v)
	case string:
		w.number(uint32(8))
		w.text(v)
	case []int32:
		w.array(5, len(v))
		w.number(v)
	case []string:
		w.array(8, len(v))
		for _, s := range v {
			w.text(s)
		}
	default:
		w.err = fmt.Errorf("no GGUF type for %T", v)
	}
}

func (w *ggufWriter) array(element uint32, length int) {
	w.number(uint32(9))
	w.number(element)
	w.number(uint64(length))
}
