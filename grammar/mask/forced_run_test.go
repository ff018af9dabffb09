package mask

import (
	"slices"
	"testing"
)

// greedy divides a text into the longest tokens of a vocabulary.
func greedy(v *Vocabulary) func([]byte) []int32 {
	return func(text []byte) []int32 {
		var out []int32
		for len(text) > 0 {
			best, n := int32(noToken), 0
			for t := range int32(v.Len()) {
				piece := v.piece(t)
				if v.isText(t) && len(piece) > n && len(piece) <= len(text) && string(piece) == string(text[:len(piece)]) {
					best, n = t, len(piece)
				}
			}
			out, text = append(out, best), text[n:]
		}
		return out
	}
}

// wordsVocabulary has single characters and some words.
func wordsVocabulary(words ...string) *Vocabulary {
	var texts [][]byte
	var kinds []Kind
	for b := range 256 {
		texts, kinds = append(texts, []byte{byte(b)}), append(kinds, Text)
	}
	for _, w := range words {
		texts, kinds = append(texts, []byte(w)), append(kinds, Text)
	}
	texts, kinds = append(texts, []byte("</s>")), append(kinds, End)
	return NewVocabulary(texts, kinds)
}

func TestRun(t *testing.T) {
	tests := []struct {
		name, grammar string
		words         []string
		want          string // the run, a bar behind each token
	}{
		{"nothing is forced", `root ::= "a" | "b"`, nil, ""},
		{"all of it", `root ::= "abc"`, []string{"ab"}, "ab|c|"},
		{"up to a choice", `root ::= "abc" [xy]`, []string{"ab"}, "ab|c|"},
		{"a longer token could be meant", `root ::= "abc" [xy]`, []string{"ab", "cx"}, "ab|"},
		{"a longer token that is not allowed", `root ::= "abc" [xy]`, []string{"ab", "cz"}, "ab|c|"},
		{"a longer token that begins early", `root ::= "abc" [xy]`, []string{"ab", "bcx"}, "ab|c|"},
		{"a longer token in the place of two", `root ::= "abc" [xy]`, []string{"bcx"}, "a|"},
		{"not where the text may end", `root ::= "a"? `, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := wordsVocabulary(tt.words...)
			s := start(t, automaton(t, gbnf(t, tt.grammar), v, Limits{}), "")
			for range 2 { // the second time it is known
				run, err := s.Run(greedy(v))
				got := ""
				for _, token := range run {
					got += string(v.piece(token)) + "|"
				}
				if err != nil || got != tt.want {
					t.Errorf("got %q, %v, want %q", got, err, tt.want)
				}
			}
		})
	}
	v := wordsVocabulary()
	s := start(t, automaton(t, gbnf(t, `root ::= "abc"`), v, Limits{}), "")
	if run, err := s.Run(func([]byte) []int32 { return []int32{'a', 'x'} }); err != nil || !slices.Equal(run, []int32{'a'}) {
		t.Errorf("a wrong spelling gives %v, %v", run, err)
	}
}

// A run can be accepted, and tokens that are left out could have been others.
func TestRunsOfGrammars(t *testing.T) {
	v := smallVocabulary()
	for _, u := range units(t) {
		name := u.name
		s := start(t, automaton(t, u.grammar, v, Limits{}), "")
		for range 30 {
			run, err := s.Run(greedy(v))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, token := range run {
				if err := s.Accept(token); err != nil {
					t.Fatalf("%s: %q: %v", name, v.piece(token), err)
				}
			}
			mask := maskOf(t, s)
			if final, err := s.Final(); err != nil || final && !onlyEnds(v, mask) {
				t.Fatalf("%s: final is %v, %v", name, final, err)
			}
			token := firstOf(mask)
			if err := s.Accept(token); err != nil {
				t.Fatal(err)
			}
			if v.kinds[token] == End {
				break
			}
		}
	}
}

func firstOf(mask []uint64) int32 {
	for t := range int32(64 * len(mask)) {
		if mask[t>>6]>>(t&63)&1 > 0 {
			return t
		}
	}
	return noToken
}

func onlyEnds(v *Vocabulary, mask []uint64) bool {
	for t := range int32(v.Len()) {
		if mask[t>>6]>>(t&63)&1 > 0 && v.kinds[t] != End {
			return false
		}
	}
	return true
}
