package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ranksFile writes tokens in the order of their ranks.
func ranksFile(t *testing.T, tokens ...string) string {
	t.Helper()
	var lines strings.Builder
	for rank, token := range tokens {
		fmt.Fprintf(&lines, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), rank)
	}
	path := filepath.Join(t.TempDir(), "tokens.tiktoken")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadVocabulary(t *testing.T) {
	// "bcd" is no merge of two tokens, so that no text becomes it.
	path := ranksFile(t, "a", "b", "c", "d", " ", "ab", " c", "ab c", "bcd")
	got, err := readVocabulary(path, 3, 14)
	if err != nil {
		t.Fatal(err)
	}
	want := vocabulary{
		tokens: []string{
			"a", "b", "c", "d", "Ġ", "ab", "Ġc", "abĠc", "bcd",
			"<|endoftext|>", "<|im_start|>", "<|im_end|>", "[PAD12]", "[PAD13]",
		},
		types:  []int32{1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 5, 5},
		merges: []string{"a b", "Ġ c", "ab Ġc"},
		ranked: 9,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(vocabulary{})); diff != "" {
		t.Errorf("vocabulary (-want +got):\n%s", diff)
	}
}

func TestReadVocabularyRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"ranks out of order": "YQ== 0\nYg== 2\n",
		"no base64":          "a* 0\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ranks")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if v, err := readVocabulary(path, 0, 0); err == nil {
				t.Errorf("got %v, want an error", v)
			}
		})
	}
}

func TestWriteGGUF(t *testing.T) {
	var got bytes.Buffer
	metadata := []pair{{"n", uint32(7)}, {"s", []string{"x"}}}
	tensors := []tensor{constant("one", 1, 1), constant("two", 2, 2)}
	if err := writeGGUF(&got, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	text := func(b []byte, s string) []byte { return append(le.AppendUint64(b, uint64(len(s))), s...) }
	want := le.AppendUint32([]byte("GGUF"), 3)
	want = le.AppendUint64(le.AppendUint64(want, 2), 2)
	want = le.AppendUint32(le.AppendUint32(text(want, "n"), 4), 7)
	want = le.AppendUint32(le.AppendUint32(text(want, "s"), 9), 8)
	want = text(le.AppendUint64(want, 1), "x")
	for i, name := range []string{"one", "two"} {
		want = le.AppendUint32(text(want, name), 1)
		want = le.AppendUint64(want, uint64(i+1))
		want = le.AppendUint32(want, f32)
		want = le.AppendUint64(want, uint64(i*alignment))
	}
	for _, numbers := range [][]float32{{1}, {2, 2}} {
		want = append(want, make([]byte, roundUp(len(want))-len(want))...)
		want = appendF32(want, numbers)
	}
	want = append(want, make([]byte, roundUp(len(want))-len(want))...)
	if diff := cmp.Diff(want, got.Bytes()); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

// TestQ8_0 reads blocks back: no number is off by more than half a step.
func TestQ8_0(t *testing.T) {
	source := random("blk.0.attn_q.weight", spread, width, 4)
	exact := source
	source.quantize()
	var plain, packed []byte
	exact.rows(func(b []byte) { plain = append(plain, b...) })
	source.rows(func(b []byte) { packed = append(packed, b...) })
	if len(packed) != source.bytes() || len(plain) != exact.bytes() {
		t.Fatalf("got %d and %d bytes, want %d and %d", len(packed), len(plain), source.bytes(), exact.bytes())
	}
	for i := range width * 4 {
		want := float64(math.Float32frombits(binary.LittleEndian.Uint32(plain[i*4:])))
		b := packed[i/block*(2+block):]
		scale := fromHalf(binary.LittleEndian.Uint16(b))
		got := scale * float64(int8(b[2+i%block]))
		// The scale is rounded too, to 11 bits.
		if limit := scale * (0.5 + 127.0/2048); math.Abs(got-want) > limit {
			t.Errorf("number %d: got %g, want %g within %g", i, got, want, limit)
		}
	}
}

// fromHalf reads a normal 16-bit float.
func fromHalf(h uint16) float64 {
	return math.Ldexp(1+float64(h&0x3FF)/1024, int(h>>10)-15)
}

func TestHalf(t *testing.T) {
	for _, c := range []struct {
		from float32
		want uint16
	}{
		{1, 0x3C00},
		{0.5, 0x3800},
		{65504, 0x7BFF},
		{1 + 1.0/2048, 0x3C00},        // halfway: to even
		{1 + 3.0/2048, 0x3C02},        // halfway: to even
		{2 - 1.0/4096, 0x4000},        // carries into the exponent
		{1.0 / (1 << 14), 0x0400},     // the smallest normal
		{1 + 1.0/2048 + 1e-6, 0x3C01}, // above halfway
		{0.333251953125, 0x3555},      // exact
		{1 + 1.0/2048 - 2e-7, 0x3C00}, // below halfway
	} {
		if got := half(c.from); got != c.want {
			t.Errorf("half(%v): got %#x, want %#x", c.from, got, c.want)
		}
	}
}
