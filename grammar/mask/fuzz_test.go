package mask

import (
	"math/rand/v2"
	"testing"

	"github.com/b3os/b3infer/grammar"
)

// FuzzMasks compares masks of any GBNF text with a plain reading of it.
func FuzzMasks(f *testing.F) {
	for _, text := range unitTexts {
		f.Add(text, uint64(1))
	}
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if len(text) > 400 {
			t.Skip("long")
		}
		g, err := grammar.ParseGBNF(text)
		if err != nil {
			t.Skip(err)
		}
		a, err := New(g, v, Limits{})
		if err != nil {
			t.Skip(err)
		}
		walkBeside(t, a, newReference(g, v), rand.New(rand.NewPCG(seed, 30)), 6, 10)
	})
}
