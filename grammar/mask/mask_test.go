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
			a := automaton(t, u.grammar, v, Limits{})
			r := newReference(u.grammar, v)
			for seed := range uint64(10) {
				walkBeside(t, a, r, rand.New(rand.NewPCG(seed, 1)), 30, 100)
			}
		})
	}
}

// TestMasksAlong compares masks at all places of texts that random ways are
// unlikely to come to.
func TestMasksAlong(t *testing.T) {
	v := smallVocabulary()
	for _, u := range units(t) {
		a, r := automaton(t, u.grammar, v, Limits{}), newReference(u.grammar, v)
		for _, text := range unitPaths[u.name] {
			pair := startPair(t, a, r)
			for i := range len(text) {
				next := pair.compare()
				p, ok := next[int32(text[i])]
				if !ok {
					t.Fatalf("%s: %q leads to byte %d alone", u.name, text, i)
				}
				pair.accept(int32(text[i]), p)
			}
			pair.compare()
		}
	}
}

// unitPaths are beginnings of texts of units.
var unitPaths = map[string][]string{
	"unique strings":  {`["a","a`, `["ab","a","abc","ab`, `["","a`, `["é","\u0000","\u000`},
	"unique short":    {`["a","ab","a`, `["a","ab","b`},
	"unique letters":  {`["red1","red2","red`, `["a","ab","aa`},
	"unique integers": {`[1,12,1`, `[0,1,10,100,101,102,103,104,105,106,107,108,109,1`, `[12,1`},
	"unique numbers":  {`[1,"1",1`, `[1.5,1,1`, `["a",1,"a`},
	"unique objects":  {`[{"a":1},{"a":1`, `[{"a":1,"b":"x"},{"a":1,"b":"x`, `[{},{`},
	"unique of texts": {`[["a","b"],["a","b`, `[["a"],["a","b"],["a`},
	"unique unique":   {`[[1],[1`, `[[1,2],[1,2`, `[[1,12],[12,1],[1,1`, `[[],[`},
	"unique or not":   {`[1,1`, `[true,true`, `[1,2,1`},
	"unique inside":   {`{"a":[1,1`, `{"a":[1],"b":["1","1`},
	"unique prefix":   {`[1,"a",1`, `[1,"a",null,12,1`},
	"unique alone":    {`a, a`, `a, ax, ax`, `a, b, c, d, a`},
	"unique in parts": {`[xaxabxa`, `[xaxbxxab`},
}

// walkBeside takes a random way through both and compares all masks on it, as
// long as the plain reading has few threads.
func walkBeside(t *testing.T, a *Automaton, r *reference, random *rand.Rand, steps, threads int) {
	t.Helper()
	pair := startPair(t, a, r)
	for pair.sequence.Len() < steps && len(r.places[pair.position]) <= threads {
		next := pair.compare()
		if len(next) == 0 {
			return
		}
		choices := make([]int32, 0, len(next))
		for token := range next {
			choices = append(choices, token)
		}
		slices.Sort(choices)
		taken := pair.sequence.tokens()
		token := choices[random.IntN(len(choices))]
		for n := 0; n < 20 && len(taken) > 2 && random.IntN(4) > 0 && !slices.Contains(taken, token); n++ {
			token = choices[random.IntN(len(choices))] // what repeats may be barred
		}
		pair.accept(token, next[token])
	}
}

// A pair is a sequence and a plain reading of the same tokens.
type pair struct {
	t         *testing.T
	sequence  *Sequence
	reference *reference
	position  position
	words     []uint64
}

func startPair(t *testing.T, a *Automaton, r *reference) *pair {
	t.Helper()
	return &pair{t, start(t, a, ""), r, r.start(), make([]uint64, a.vocab.Words())}
}

func (p *pair) accept(token int32, to position) {
	p.t.Helper()
	if err := p.sequence.Accept(token); err != nil {
		p.t.Fatal(err)
	}
	p.position = to
}

// compare checks the mask. It gives the positions behind the tokens that lead on.
func (p *pair) compare() map[int32]position {
	p.t.Helper()
	v, ends := p.reference.vocab, p.reference.ends(p.position)
	behind := spell(v, p.sequence.tokens())
	allowed, err := p.sequence.Mask(p.words)
	if err != nil {
		p.t.Fatalf("after %s: %v", behind, err)
	}
	if p.sequence.Done() != ends {
		p.t.Fatalf("after %s: done is %v", behind, p.sequence.Done())
	}
	out := map[int32]position{}
	for token := range int32(v.Len()) {
		next := p.reference.accept(p.position, token)
		want := next != nowhere || v.kinds[token] == End && ends
		if got := hasBit(p.words, token); got != want {
			p.t.Fatalf("after %s: token %d %q: got %v, want %v", behind, token, v.piece(token), got, want)
		}
		if err := p.sequence.Clone().Accept(token); (err == nil) != want {
			p.t.Fatalf("after %s: token %d %q: %v", behind, token, v.piece(token), err)
		}
		if want {
			allowed--
		}
		if next != nowhere {
			out[token] = next
		}
	}
	if allowed != 0 {
		p.t.Fatalf("after %s: counted wrong by %d", behind, allowed)
	}
	return out
}
