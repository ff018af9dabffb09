package engine

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestUTF8Joiner(t *testing.T) {
	tests := []struct {
		name   string
		pieces []string
		want   []string
	}{
		{"ascii", []string{"a", "b"}, []string{"a", "b"}},
		{"split character", []string{"\xe2\x82", "\xac."}, []string{"", "€."}},
		{"byte by byte", []string{"\xf0", "\x9f", "\x98", "\x80"}, []string{"", "", "", "😀"}},
		{"text before the split", []string{"x\xc3", "\xa9"}, []string{"x", "é"}},
		{"invalid byte", []string{"a\xff", "b"}, []string{"a\uFFFD", "b"}},
		{"broken off", []string{"\xe2\x82", "x"}, []string{"", "\uFFFD\uFFFDx"}},
		{"incomplete end", []string{"a\xe2\x82"}, []string{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var j utf8Joiner
			for i, piece := range tt.pieces {
				if got := j.push([]byte(piece)); got != tt.want[i] {
					t.Errorf("piece %d: got %q, want %q", i, got, tt.want[i])
				}
			}
		})
	}
}

func TestUTF8JoinerPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		var j utf8Joiner
		got := ""
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			out := j.push(rest[:n])
			if !utf8.ValidString(out) {
				t.Fatalf("%q is not valid", out)
			}
			got += out
			rest = rest[n:]
		}
		if got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	})
}
