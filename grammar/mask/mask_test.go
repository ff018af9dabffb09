package mask

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMasks is the law: a token is in the mask if and only if a plain reading of
// the grammar can go on behind it, and it is accepted if and only if it is in
// the mask.
func TestMasks(t *testing.T) {
	v := smallVocabulary()
	for _, u := range units(t) {
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			a, err := New(u.grammar, v, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			r := newReference(u.grammar, v)
			for seed := range uint64(10) {
				walkBeside(t, a, r, rand.New(rand.NewPCG(seed, 1)), 30, 100)
			}
		})
	}
}

// walkBeside takes a random way through both and compares all masks on it, as
// long as the plain reading has few threads.
func walkBeside(t *testing.T, a *Automaton, r *reference, random *rand.Rand, steps, threads int) {
	t.Helper()
	s, err := a.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := a.vocab
	words := make([]uint64, v.Words())
	var taken []int32
	for p := r.start(); len(taken) < steps && len(r.places[p]) <= threads; {
		allowed, err := s.Mask(words)
		if err != nil {
			t.Fatalf("after %s: %v", spell(v, taken), err)
		}
		if s.Done() != r.ends(p) {
			t.Fatalf("after %s: done is %v", spell(v, taken), s.Done())
		}
		var after []position
		var choices []int32
		n := 0
		for token := range int32(v.Len()) {
			next := r.accept(p, token)
			want := next != nowhere || v.kinds[token] == End && r.ends(p)
			if got := hasBit(words, token); got != want {
				t.Fatalf("after %s: token %d %q: got %v, want %v", spell(v, taken), token, v.piece(token), got, want)
			}
			if err := s.Clone().Accept(token); (err == nil) != want {
				t.Fatalf("after %s: token %d %q: %v", spell(v, taken), token, v.piece(token), err)
			}
			if want {
				n++
			}
			if next != nowhere {
				after, choices = append(after, next), append(choices, token)
			}
		}
		if n != allowed {
			t.Fatalf("after %s: %d allowed, %d counted", spell(v, taken), n, allowed)
		}
		if len(choices) == 0 {
			return
		}
		i := random.IntN(len(choices))
		if again := slices.IndexFunc(choices, func(token int32) bool { return slices.Contains(taken, token) }); again >= 0 && random.IntN(3) == 0 {
			i = again // what repeats may be barred
		}
		if err := s.Accept(choices[i]); err != nil {
			t.Fatal(err)
		}
		p, taken = after[i], append(taken, choices[i])
	}
}
