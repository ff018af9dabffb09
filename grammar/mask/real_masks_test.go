package mask

import (
	"math/rand/v2"
	"os"
	"testing"
)

// longEnv, when set, makes tests use all vocabularies and longer texts.
const longEnv = "B3INFER_MASK_LONG"

// TestRealMasks compares masks of published vocabularies with a plain walk: one
// token after the other, byte by byte.
func TestRealMasks(t *testing.T) {
	names, steps := realNames[:1], 4
	if os.Getenv(longEnv) != "" {
		names, steps = realNames, 12
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			v := realVocabulary(t, name)
			for _, u := range units(t) {
				a, err := New(u.grammar, v, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				plain, err := New(u.grammar, v, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				compareWalk(t, u.name, a, plain, rand.New(rand.NewPCG(1, 2)), steps)
			}
		})
	}
}

func compareWalk(t *testing.T, name string, a, plain *Automaton, random *rand.Rand, steps int) {
	t.Helper()
	s, err := a.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := a.vocab
	words := make([]uint64, v.Words())
	at, taken := plain.first, []int32(nil)
	for range steps {
		if _, err := s.Mask(words); err != nil {
			t.Fatalf("%s after %s: %v", name, spell(v, taken), err)
		}
		for token := range int32(v.Len()) {
			plain.made = 0
			want := plain.acceptExactly(at, token) != dead || v.kinds[token] == End && plain.configs[at].ends
			if got := hasBit(words, token); got != want {
				t.Fatalf("%s after %s: token %d %q: got %v, want %v", name, spell(v, taken), token, v.piece(token), got, want)
			}
		}
		choices := appendBits(nil, words)
		next := choices[random.IntN(len(choices))]
		if v.kinds[next] == End {
			return
		}
		if err := s.Accept(next); err != nil {
			t.Fatal(err)
		}
		at, taken = plain.accept(at, next), append(taken, next)
	}
}
