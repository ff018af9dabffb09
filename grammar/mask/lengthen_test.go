package mask

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLengthen(t *testing.T) {
	tests := []struct {
		name, grammar string
		words         []string
		drawn, want   string
	}{
		{"what follows is certain", `root ::= "a" ("," "b" | "}")`, []string{",b"}, "a", "a"},
		{"the rest of a word", `root ::= "red" | "green"`, []string{"red", "re"}, "r", "red"},
		{"a longer start of it", `root ::= "red" | "green"`, []string{"red", "re"}, "re", "red"},
		{"the whole word already", `root ::= "red" | "green"`, []string{"red", "re"}, "red", "red"},
		{"up to a choice", `root ::= "re" [dx]`, []string{"red", "re"}, "r", "re"},
		{"no token for it", `root ::= "red" | "green"`, []string{"ed"}, "r", "r"},
		{"where the text may end", `root ::= "r" "ed"?`, []string{"red"}, "r", "r"},
		{"a token that ends the text", `root ::= "r"?`, []string{"red"}, "</s>", "</s>"},
		{"what is not allowed", `root ::= "red"`, []string{"xed"}, "x", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := wordsVocabulary(tt.words...)
			s := start(t, automaton(t, gbnf(t, tt.grammar), v, Limits{}), "")
			for range 2 { // the second time it is known
				got, err := s.Lengthen(tokenOf(t, v, tt.drawn), greedy(v))
				if err != nil || string(v.piece(got)) != tt.want {
					t.Errorf("got %q, %v, want %q", v.piece(got), err, tt.want)
				}
			}
		})
	}
	v := wordsVocabulary("xy")
	s := start(t, automaton(t, gbnf(t, `root ::= "abc"`), v, Limits{}), "")
	for _, wrong := range [][]int32{nil, {tokenOf(t, v, "xy")}, {tokenOf(t, v, "</s>")}} {
		if got, err := s.Lengthen('a', func([]byte) []int32 { return wrong }); err != nil || got != 'a' {
			t.Errorf("a wrong spelling gives %v, %v", got, err)
		}
	}
}

func tokenOf(t *testing.T, v *Vocabulary, text string) int32 {
	t.Helper()
	for token := range int32(v.Len()) {
		if string(v.piece(token)) == text {
			return token
		}
	}
	t.Fatalf("no token %q", text)
	return noToken
}

// A longer token leads where the drawn one and what is forced behind it lead.
func TestLengthenOnWalks(t *testing.T) {
	v := smallVocabulary()
	random := rand.New(rand.NewPCG(1, 2))
	lengthened := 0
	for _, u := range units(t) {
		for range 20 {
			s := start(t, automaton(t, u.grammar, v, Limits{}), "")
			for range 40 {
				allowed := appendBits(nil, maskOf(t, s))
				drawn := allowed[random.IntN(len(allowed))]
				if v.kinds[drawn] == End {
					break
				}
				longer, err := s.Lengthen(drawn, greedy(v))
				if err != nil {
					t.Fatalf("%s: %v", u.name, err)
				}
				if longer != drawn {
					lengthened++
					sameWay(t, s, drawn, longer)
				}
				if err := s.Accept(longer); err != nil {
					t.Fatalf("%s: %q: %v", u.name, v.piece(longer), err)
				}
			}
		}
	}
	if lengthened < 100 {
		t.Errorf("%d tokens were lengthened", lengthened)
	}
}

// sameWay compares both tokens' ways through the grammar.
func sameWay(t *testing.T, s *Sequence, drawn, longer int32) {
	t.Helper()
	v, bytewise, whole := s.a.vocab, s.Clone(), s.Clone()
	for at, token := 0, drawn; ; {
		if err := bytewise.Accept(token); err != nil {
			t.Fatalf("%q of %q: %v", v.piece(token), v.piece(longer), err)
		}
		if at += len(v.piece(token)); at == len(v.piece(longer)) {
			break
		}
		forced, err := bytewise.Forced()
		if err != nil || len(forced) == 0 || len(forced[0].Text) == 0 || forced[0].Text[0] != v.piece(longer)[at] {
			t.Fatalf("%q stands for %q, and %v may follow: %v", v.piece(longer), v.piece(drawn), forced, err)
		}
		token = tokenOf(t, v, string(forced[0].Text[:1]))
	}
	if err := whole.Accept(longer); err != nil {
		t.Fatal(err)
	}
	if a, b := maskOf(t, bytewise), maskOf(t, whole); !slices.Equal(a, b) || bytewise.Done() != whole.Done() {
		t.Errorf("other tokens may follow %q than its pieces", v.piece(longer))
	}
}
