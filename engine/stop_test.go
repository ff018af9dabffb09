package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// streamed pushes the pieces through a matcher and returns all that came out
// before the stop, and the stop.
func streamed(m *stopMatcher, pieces []string) (text, stop string) {
	for _, piece := range pieces {
		clear, stop, _ := m.push(piece)
		text += clear
		if stop != "" {
			return text, stop
		}
	}
	return text + m.flush(), ""
}

func TestStopMatcher(t *testing.T) {
	tests := []struct {
		name       string
		stops      []string
		pieces     []string
		text, stop string
	}{
		{"none", nil, []string{"a", "b"}, "ab", ""},
		{"empty stop is none", []string{""}, []string{"a"}, "a", ""},
		{"inside a piece", []string{"END"}, []string{"one END two"}, "one ", "END"},
		{"across pieces", []string{"END"}, []string{"one E", "N", "D two"}, "one ", "END"},
		{"almost", []string{"END"}, []string{"one EN", "E", "ND"}, "one EN", "END"},
		{"held back at the end", []string{"END"}, []string{"one EN"}, "one EN", ""},
		{"own border", []string{"aab"}, []string{"a", "a", "a", "b"}, "a", "aab"},
		{"complete first", []string{"bcd", "c"}, []string{"abcd"}, "ab", "c"},
		{"longest at one byte", []string{"c", "bc"}, []string{"abcd"}, "a", "bc"},
		{"character across pieces", []string{"é"}, []string{"caf\xc3", "\xa9!"}, "caf", "é"},
		{"whole", []string{"x"}, []string{"x"}, "", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, stop := streamed(newStopMatcher(tt.stops), tt.pieces)
			if text != tt.text || stop != tt.stop {
				t.Errorf("got %q, %q; want %q, %q", text, stop, tt.text, tt.stop)
			}
		})
	}
}

// However a text is cut into pieces, the matcher says what a search in the
// whole text says, and never holds back more than it must.
func TestStopMatcherPieces(t *testing.T) {
	word := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 1, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		stops := rapid.SliceOfN(word, 1, 3).Draw(t, "stops")
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abc")), 0, 30, -1).Draw(t, "text")
		want, wantStop := text, ""
		for end := 1; end <= len(text) && wantStop == ""; end++ {
			for _, s := range stops {
				if strings.HasSuffix(text[:end], s) && len(s) > len(wantStop) {
					want, wantStop = text[:end-len(s)], s
				}
			}
		}
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		got, stop := streamed(newStopMatcher(stops), pieces)
		if diff := cmp.Diff([]string{want, wantStop}, []string{got, stop}); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStopMatcherHoldsNoMoreThanNeeded(t *testing.T) {
	m := newStopMatcher([]string{"STOP"})
	clear, _, _ := m.push("text ST")
	if clear != "text " {
		t.Errorf("got %q, want all but what may begin the stop text", clear)
	}
}
