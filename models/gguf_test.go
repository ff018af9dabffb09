package models

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A builder writes small GGUF files by hand.
type builder struct {
	keys, tensors  int
	meta, table    bytes.Buffer
	version        uint32
	data           int  // bytes of tensor data
	cut            int  // bytes to leave out at the end
	claimedTensors *int // in place of the true number
}

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			put(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
}

// key adds a key. Slices become arrays.
func (b *builder) key(name string, v any) *builder {
	b.keys++
	put(&b.meta, name)
	switch v := v.(type) {
	case uint32:
		put(&b.meta, uint32(typeUint32), v)
	case int32:
		put(&b.meta, uint32(typeInt32), v)
	case uint64:
		put(&b.meta, uint32(typeUint64), v)
	case float32:
		put(&b.meta, uint32(typeFloat32), v)
	case string:
		put(&b.meta, uint32(typeString), v)
	case []string:
		put(&b.meta, uint32(typeArray), uint32(typeString), uint64(len(v)))
		for _, s := range v {
			put(&b.meta, s)
		}
	case []uint32:
		put(&b.meta, uint32(typeArray), uint32(typeUint32), uint64(len(v)), v)
	case []bool:
		put(&b.meta, uint32(typeArray), uint32(typeBool), uint64(len(v)), v)
	case []byte: // the value's own bytes, type first
		b.meta.Write(v)
	default:
		panic(v)
	}
	return b
}

// tensor adds a tensor and its data.
func (b *builder) tensor(name string, kind uint32, shape ...uint64) *builder {
	b.tensors++
	put(&b.table, name, uint32(len(shape)), shape, kind, uint64(b.data))
	n := uint64(1)
	for _, s := range shape {
		n *= s
	}
	t := tensorTypes[kind]
	b.data += (int(n/t.block*t.bytes) + 31) &^ 31
	return b
}

func (b *builder) bytes() []byte {
	var out bytes.Buffer
	out.WriteString("GGUF")
	version := b.version
	if version == 0 {
		version = 3
	}
	tensors := b.tensors
	if b.claimedTensors != nil {
		tensors = *b.claimedTensors
	}
	put(&out, version, uint64(tensors), uint64(b.keys))
	out.Write(b.meta.Bytes())
	out.Write(b.table.Bytes())
	if b.data > 0 {
		for out.Len()%32 != 0 {
			out.WriteByte(0)
		}
	}
	out.Write(make([]byte, b.data))
	return out.Bytes()[:out.Len()-b.cut]
}

// small is a valid model of one layer.
func small() *builder {
	b := &builder{}
	return b.key("general.architecture", "llama").
		key("llama.block_count", uint32(1)).
		key("llama.embedding_length", uint32(32)).
		key("llama.attention.head_count", uint32(2)).
		tensor("token_embd.weight", 0, 32, 4).
		tensor("blk.0.attn_k.weight", 8, 32, 32)
}

func TestReadHeader(t *testing.T) {
	tests := []struct {
		name string
		file []byte
		want string // the error
	}{
		{"good", small().bytes(), ""},
		{"version 2", (&builder{version: 2}).key("a", uint32(1)).bytes(), ""},
		{"empty", nil, "file is empty"},
		{"other file", []byte("<html><body>"), `not a GGUF file: it begins with "<htm"`},
		{"magic alone", []byte("GGUF"), "file is cut short: has 4 bytes, its header goes on beyond"},
		{"version 1", (&builder{version: 1}).bytes(), "GGUF version 1: versions 2 and 3 are supported"},
		{"version 4", (&builder{version: 4}).bytes(), "GGUF version 4: versions 2 and 3 are supported"},
		{"big-endian", (&builder{version: 3 << 24}).bytes(), "big-endian GGUF file, or a damaged one: only little-endian is supported"},
		{"cut in the data", func() []byte { b := small(); b.cut = 100; return b.bytes() }(), "file is cut short: has 1820 bytes, needs 1920"},
		{"cut in the table", func() []byte { b := small(); return b.bytes()[:200] }(), "file is cut short: has 200 bytes, its header goes on beyond"},
		{"many keys", (&builder{keys: 1 << 40}).bytes(), "damaged GGUF file: it claims 0 tensors and 1099511627776 keys"},
		{"many tensors", (&builder{claimedTensors: new(math.MaxInt)}).bytes(), "damaged GGUF file: it claims 9223372036854775807 tensors and 0 keys"},
		{"long string", (&builder{}).key("a", []byte{8, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}).bytes(),
			"file is cut short: has 45 bytes, its header goes on beyond"},
		{"long array", (&builder{}).key("a", []byte{9, 0, 0, 0, 10, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}).bytes(),
			"file is cut short: has 49 bytes, its header goes on beyond"},
		{"array of arrays", (&builder{}).key("a", []byte{9, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}).bytes(),
			`damaged GGUF file: key "a" has the unknown type 9`},
		{"unknown value type", (&builder{}).key("a", []byte{13, 0, 0, 0}).bytes(), `damaged GGUF file: key "a" has the unknown type 13`},
		{"key twice", (&builder{}).key("a", uint32(1)).key("a", uint32(1)).bytes(), `damaged GGUF file: key "a" occurs twice`},
		{"empty key", (&builder{}).key("", uint32(1)).bytes(), "damaged GGUF file: a key has 0 bytes or more"},
		{"alignment", (&builder{}).key("general.alignment", uint32(3)).bytes(), "damaged GGUF file: its alignment is 3"},
		{"removed tensor type", rawTensor(4, 32), `damaged GGUF file: tensor "a" has the unknown type 4`},
		{"broken rows", rawTensor(2, 33), `damaged GGUF file: tensor "a" has rows of 33, not a multiple of Q4_0's 32`},
		{"huge tensor", rawTensor(0, 1<<40, 1<<40), `damaged GGUF file: tensor "a" is too large`},
		{"large tensor", rawTensor(0, 1<<40, 1<<20), "file is cut short: has 65 bytes, needs 4611686018427388000"},
		{"gap between tensors", func() []byte { b := small(); b.data += 32; return b.tensor("a", 0, 1).bytes() }(),
			`damaged GGUF file: tensor "a" begins at 1632, not at 1600`},
		{"dimensions", rawTensor(0, 1, 1, 1, 1, 1), `damaged GGUF file: tensor "a" has 5 dimensions`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := readHeader(bytes.NewReader(test.file), int64(len(test.file)))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got error %q, want %q", got, test.want)
			}
		})
	}
}

// rawTensor is a file of one tensor without its data.
func rawTensor(kind uint32, shape ...uint64) []byte {
	b := &builder{tensors: 1}
	put(&b.table, "a", uint32(len(shape)), shape, kind, uint64(0))
	return b.bytes()
}

func TestReadHeaderValues(t *testing.T) {
	file := (&builder{}).
		key("text", "hello").
		key("long", string(bytes.Repeat([]byte("x"), 2*keptText))).
		key("list", []uint32{1, 2, 3}).
		key("flags", []bool{true, false}).
		key("words", []string{"a", "bc"}).
		key("many", make([]uint32, keptNumbers+1)).
		key("negative", int32(-1)).
		key("end", uint32(7)).bytes()
	got, err := readHeader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]value{
		"text":     {kind: typeString, count: 1, text: "hello"},
		"long":     {kind: typeString, count: 1, text: string(bytes.Repeat([]byte("x"), keptText))},
		"list":     {kind: typeUint32, count: 3, numbers: []uint64{1, 2, 3}},
		"flags":    {kind: typeBool, count: 2, numbers: []uint64{1, 0}},
		"words":    {kind: typeString, count: 2},
		"many":     {kind: typeUint32, count: keptNumbers + 1},
		"negative": {kind: typeInt32, count: 1, numbers: []uint64{math.MaxUint32}},
		"end":      {kind: typeUint32, count: 1, numbers: []uint64{7}},
	}
	if diff := cmp.Diff(want, got.meta, cmp.AllowUnexported(value{})); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if n, ok := got.uint("negative"); ok {
		t.Errorf("uint of -1: got %d, want none", n)
	}
}
