package mask

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/b3os/b3infer/grammar"
)

func automaton(t testing.TB, g *grammar.Grammar, v *Vocabulary, l Limits) *Automaton {
	t.Helper()
	a, err := New(g, v, l)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func start(t testing.TB, a *Automaton, prefix string) *Sequence {
	t.Helper()
	s, err := a.Start([]byte(prefix))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func gbnf(t testing.TB, text string) *grammar.Grammar {
	t.Helper()
	g, err := grammar.ParseGBNF(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func schema(t testing.TB, text string) *grammar.Grammar {
	t.Helper()
	g, err := grammar.FromSchema([]byte(text), grammar.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func maskOf(t testing.TB, s *Sequence) []uint64 {
	t.Helper()
	words := make([]uint64, s.a.vocab.Words())
	if _, err := s.Mask(words); err != nil {
		t.Fatalf("after %s: %v", spell(s.a.vocab, s.tokens()), err)
	}
	return words
}

func (s *Sequence) tokens() []int32 {
	var out []int32
	for _, step := range s.steps {
		out = append(out, step.token)
	}
	return out
}

// replayed is a new sequence of another automaton with the same tokens.
func replayed(t testing.TB, a *Automaton, tokens []int32) *Sequence {
	t.Helper()
	s := start(t, a, "")
	for _, token := range tokens {
		if err := s.Accept(token); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// step accepts a random token, and tells whether there was one.
func randomStep(t testing.TB, s *Sequence, random *rand.Rand) bool {
	t.Helper()
	if s.last().config == over {
		return false
	}
	choices := appendBits(nil, maskOf(t, s))
	if err := s.Accept(choices[random.IntN(len(choices))]); err != nil {
		t.Fatal(err)
	}
	return true
}

// TestRollback is the law that a sequence is what its tokens make it, whatever
// was tried in between.
func TestRollback(t *testing.T) {
	v := smallVocabulary()
	for _, u := range units(t) {
		a, fresh := automaton(t, u.grammar, v, Limits{}), automaton(t, u.grammar, v, Limits{})
		random := rand.New(rand.NewPCG(3, 4))
		all := []*Sequence{start(t, a, "")}
		for range 60 {
			s := all[random.IntN(len(all))]
			before := s.tokens()
			switch random.IntN(6) {
			case 0:
				n := random.IntN(s.Len() + 1)
				s.Rollback(n)
				before = before[:len(before)-n]
			case 1:
				all = append(all, s.Clone())
			default:
				if randomStep(t, s, random) {
					before = append(before, s.tokens()[s.Len()-1])
				}
			}
			if !slices.Equal(s.tokens(), before) {
				t.Fatalf("%s: tokens %v, want %v", u.name, s.tokens(), before)
			}
		}
		for _, s := range all {
			r := replayed(t, fresh, s.tokens())
			if s.Done() != r.Done() || s.last().config != over && !slices.Equal(maskOf(t, s), maskOf(t, r)) {
				t.Fatalf("%s: after %s the masks differ", u.name, spell(v, s.tokens()))
			}
		}
	}
}

// TestEpochs is the law that forgetting changes nothing.
func TestEpochs(t *testing.T) {
	v := smallVocabulary()
	epochs := 0
	for _, u := range units(t) {
		size := automaton(t, u.grammar, v, Limits{}).Bytes()
		a := automaton(t, u.grammar, v, Limits{Memory: size + 100<<10})
		roomy := automaton(t, u.grammar, v, Limits{})
		random := rand.New(rand.NewPCG(5, 6))
		for range 10 {
			s, err := a.Start(nil)
			if errors.Is(err, ErrTooComplex) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			r := start(t, roomy, "")
			for s.Len() < 40 && s.last().config != over {
				want := maskOf(t, r)
				words := make([]uint64, v.Words())
				if _, err := s.Mask(words); errors.Is(err, ErrTooComplex) {
					break // it forgets too often
				} else if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(words, want) || s.Done() != r.Done() {
					t.Fatalf("%s: after %s the masks differ", u.name, spell(v, s.tokens()))
				}
				choices := appendBits(nil, want)
				token := choices[random.IntN(len(choices))]
				if err := s.Accept(token); errors.Is(err, ErrTooComplex) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if err := r.Accept(token); err != nil {
					t.Fatal(err)
				}
			}
		}
		epochs += a.Stats().Epoch - 1
	}
	if epochs < 20 {
		t.Errorf("only %d new epochs", epochs)
	}
}

// TestGoroutines walks one automaton on ten goroutines; every one finds what a
// single one finds. It is for the race detector, and for small memory.
func TestGoroutines(t *testing.T) {
	v := smallVocabulary()
	g := schema(t, unitSchemas["nested"])
	walk := func(a *Automaton, seed uint64) []uint64 {
		random, sums := rand.New(rand.NewPCG(seed, 7)), []uint64{}
		for range 5 {
			s := start(t, a, "")
			for s.Len() < 40 && s.last().config != over {
				sum := uint64(0)
				for i, w := range maskOf(t, s) {
					sum = mix(sum ^ w ^ uint64(i))
				}
				sums = append(sums, sum)
				randomStep(t, s.Clone(), random)
				randomStep(t, s, random)
			}
		}
		return sums
	}
	shared := automaton(t, g, v, Limits{Memory: 400 << 10})
	var all sync.WaitGroup
	for seed := range uint64(10) {
		all.Go(func() {
			if got, want := walk(shared, seed), walk(automaton(t, g, v, Limits{}), seed); !slices.Equal(got, want) {
				t.Errorf("seed %d: the masks differ", seed)
			}
		})
	}
	all.Wait()
	t.Logf("%d epochs", shared.Stats().Epoch)
}

func TestStart(t *testing.T) {
	v := smallVocabulary()
	a := automaton(t, gbnf(t, `root ::= <think> "\n" [a-z]* | "<t" [a-z]+ | "plain"`), v, Limits{})
	for _, c := range []struct {
		prefix, allowed, refused string
		fails                    bool
	}{
		{prefix: "", allowed: "<", refused: "a"},
		{prefix: "<think>", allowed: "\n", refused: "a"},
		{prefix: "<think>\nab", allowed: "c", refused: "<"},
		{prefix: "<t", allowed: "a", refused: "<"},
		{prefix: "pla", allowed: "i", refused: "a"},
		{prefix: "<x", fails: true},
		{prefix: "<think>a", fails: true},
	} {
		s, err := a.Start([]byte(c.prefix))
		if c.fails {
			if !errors.Is(err, ErrNotAllowed) {
				t.Errorf("%q: error %v", c.prefix, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.prefix, err)
			continue
		}
		if words := maskOf(t, s); !hasBit(words, int32(c.allowed[0])) || hasBit(words, int32(c.refused[0])) {
			t.Errorf("%q: %q is not allowed, or %q is", c.prefix, c.allowed, c.refused)
		}
	}
}

// TestStartReplays is for a prefix that must be read again in a new epoch.
func TestStartReplays(t *testing.T) {
	v := smallVocabulary()
	a := automaton(t, gbnf(t, `root ::= <think> "\n" [a-z]* <tool_call>`), v, Limits{})
	s := start(t, a, "<think>\nab")
	if err := s.Accept('c'); err != nil {
		t.Fatal(err)
	}
	want := maskOf(t, s)
	a.restart()
	if got := maskOf(t, s); !slices.Equal(got, want) {
		t.Error("the mask differs in a new epoch")
	}
}

func TestEnd(t *testing.T) {
	v := smallVocabulary()
	s := start(t, automaton(t, gbnf(t, `root ::= "a" "b"?`), v, Limits{}), "")
	if s.Done() || s.Accept(endToken) != ErrNotAllowed {
		t.Error("may end before the start")
	}
	if err := s.Accept('a'); err != nil || !s.Done() {
		t.Fatalf("error %v, done %v", err, s.Done())
	}
	if words := maskOf(t, s); !hasBit(words, endToken) || !hasBit(words, end2Token) || !hasBit(words, 'b') {
		t.Error("not all ways to end are allowed")
	}
	if err := s.Accept(end2Token); err != nil || !s.Done() {
		t.Fatalf("error %v, done %v", err, s.Done())
	}
	words := make([]uint64, v.Words())
	if n, err := s.Mask(words); n != 0 || err != nil || count(words) != 0 {
		t.Errorf("behind the end: %d allowed, error %v", n, err)
	}
	if forced, err := s.Forced(); forced != nil || err != nil {
		t.Errorf("behind the end: forced %v, error %v", forced, err)
	}
	if err := s.Accept('b'); err != ErrNotAllowed {
		t.Errorf("behind the end: %v", err)
	}
	s.Rollback(1)
	if err := s.Accept('b'); err != nil || s.Len() != 2 {
		t.Errorf("after a rollback: %v, %d tokens", err, s.Len())
	}
	for _, token := range []int32{-1, int32(v.Len()), emptyToken, controlToken} {
		if err := s.Accept(token); err != ErrNotAllowed {
			t.Errorf("token %d: %v", token, err)
		}
	}
}

func TestForced(t *testing.T) {
	v := smallVocabulary()
	for _, c := range []struct {
		grammar, prefix string
		want            []Piece
	}{
		{`root ::= "ab" "cd" [ef] "g"`, "", []Piece{{Text: []byte("abcd")}}},
		{`root ::= "ab" "cd" [ef] "g"`, "abcde", []Piece{{Text: []byte("g")}}},
		{`root ::= "ab" "c"?`, "", []Piece{{Text: []byte("ab")}}},
		{`root ::= "ab" | "ac"`, "", []Piece{{Text: []byte("a")}}},
		{`root ::= [ab]`, "", nil},
		{`root ::= "é" | "è"`, "", []Piece{{Text: []byte("\xc3")}}},
		{`root ::= "a" <tool_call> "\n" <think> </tool_call>`, "", []Piece{{Text: []byte("a")}, {Token: callToken}, {Text: []byte("\n")}, {Token: thinkToken}, {Token: closeToken}}},
		{`root ::= "a" (<tool_call> | "b")`, "", []Piece{{Text: []byte("a")}}},
		{`root ::= "a" !<tool_call>`, "", []Piece{{Text: []byte("a")}}},
		{`root ::= (<think> | <tool_call>) "a"`, "", nil},
		{`root ::= ("ab" | "ab" "c") "d"`, "", []Piece{{Text: []byte("ab")}}},
	} {
		s := start(t, automaton(t, gbnf(t, c.grammar), v, Limits{}), c.prefix)
		got, err := s.Forced()
		if err != nil || !slices.EqualFunc(got, c.want, func(a, b Piece) bool { return string(a.Text) == string(b.Text) && a.Token == b.Token }) {
			t.Errorf("%s after %q: got %v, error %v, want %v", c.grammar, c.prefix, got, err, c.want)
		}
		if s.Len() != 0 {
			t.Errorf("%s: the sequence moved", c.grammar)
		}
	}
	long := start(t, automaton(t, gbnf(t, `root ::= "a"{1000000}`), v, Limits{}), "")
	if got, err := long.Forced(); err != nil || len(got) != 1 || len(got[0].Text) != maxForced {
		t.Errorf("a million bytes: %d pieces, error %v", len(got), err)
	}
}

// TestForcedBytes checks against the masks: what is forced is all that is allowed.
func TestForcedBytes(t *testing.T) {
	v := smallVocabulary()
	for _, u := range units(t) {
		a, random := automaton(t, u.grammar, v, Limits{}), rand.New(rand.NewPCG(8, 9))
		for s := start(t, a, ""); s.Len() < 20; {
			forced, err := s.Forced()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range forced {
				for text := p.Text; len(text) > 0; text = text[1:] {
					for _, token := range appendBits(nil, maskOf(t, s)) {
						if !v.isText(token) || v.piece(token)[0] != text[0] {
							t.Fatalf("%s: %q is forced and %q allowed", u.name, text, v.piece(token))
						}
					}
					if err := s.Accept(int32(text[0])); err != nil {
						t.Fatal(err)
					}
				}
				if p.Text == nil {
					if words := maskOf(t, s); count(words) != 1 || s.Accept(p.Token) != nil {
						t.Fatalf("%s: token %d is forced and others allowed", u.name, p.Token)
					}
				}
			}
			if !randomStep(t, s, random) {
				break
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	v := smallVocabulary()
	for _, u := range units(t) {
		a := automaton(t, u.grammar, v, Limits{})
		s, random := start(t, a, ""), rand.New(rand.NewPCG(10, 11))
		for s.Len() < 30 && randomStep(t, s, random) {
		}
		tokens, words := s.tokens(), make([]uint64, v.Words())
		s.Rollback(len(tokens))
		allocs := testing.AllocsPerRun(5, func() {
			for _, token := range tokens {
				if _, err := s.Mask(words); err != nil {
					t.Fatal(err)
				}
				if err := s.Accept(token); err != nil {
					t.Fatal(err)
				}
			}
			s.Rollback(len(tokens))
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", u.name, allocs)
		}
	}
}

func TestLimits(t *testing.T) {
	v := smallVocabulary()
	many := gbnf(t, `root ::= ("a" | "b"){20,50} s | s`+"\n"+`s ::= "a" s s | "aa" s | "a" | "ab" s "c"`)
	s := start(t, automaton(t, many, v, Limits{Configurations: 8}), "")
	words := make([]uint64, v.Words())
	var err error
	if _, err = s.Mask(words); !errors.Is(err, errConfigurations) {
		t.Errorf("configurations: %v", err)
	}
	if err := s.Accept('a'); err != nil || s.Len() != 1 {
		t.Errorf("configurations: the sequence cannot go on: %v", err)
	}
	wide := `root ::= "x" ("a1" | "a2" | "a3" | "a4" | "a5" | "a6" | "a7" | "a8" | "a9")`
	s = start(t, automaton(t, gbnf(t, wide), v, Limits{Items: 5}), "")
	if err := s.Accept('x'); !errors.Is(err, errItems) || !errors.Is(err, ErrTooComplex) {
		t.Errorf("items: %v", err)
	}
	if _, err := s.Mask(words); !errors.Is(err, ErrTooComplex) {
		t.Errorf("items: mask %v", err)
	}
	if s.Len() != 0 {
		t.Error("items: the sequence moved")
	}
	if _, err := New(gbnf(t, `root ::= "a1" | "b1" | "c1"`), v, Limits{Items: 2}); !errors.Is(err, ErrTooComplex) {
		t.Errorf("items at the start: %v", err)
	}

	a := automaton(t, many, v, Limits{Memory: 1})
	s = start(t, a, "")
	for range 300 {
		if _, err = s.Mask(words); err != nil {
			break
		}
	}
	if !errors.Is(err, errMemory) {
		t.Errorf("memory: %v", err)
	}
}

func TestDeadEnd(t *testing.T) {
	v := NewVocabulary([][]byte{[]byte("a"), []byte("</s>")}, []Kind{Text, End})
	s := start(t, automaton(t, gbnf(t, `root ::= "ab"`), v, Limits{}), "")
	if err := s.Accept(0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mask(make([]uint64, 1)); err != ErrDeadEnd {
		t.Errorf("got %v", err)
	}
}
