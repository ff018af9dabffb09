package mask

import (
	"sync"

	"github.com/b3os/b3infer/grammar"
)

// A sharedKey is a local configuration of states that all grammars have.
type sharedKey [2]startItem

// sharedInners keeps inner masks for all automata of a vocabulary.
type sharedInners struct {
	mu    sync.RWMutex
	masks map[sharedKey]*inner
	bytes int
}

// maxSharedBytes bounds them. Strings with a bound on their length have one for
// each number of characters that are left, up to the longest token.
const maxSharedBytes = 16 << 20

func (s *sharedInners) get(key sharedKey) *inner {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.masks[key]
}

// put reports false where there is no room.
func (s *sharedInners) put(key sharedKey, in *inner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+in.bytes() > maxSharedBytes {
		return false
	}
	if s.masks == nil {
		s.masks = map[sharedKey]*inner{}
	}
	s.masks[key] = in
	s.bytes += in.bytes()
	return true
}

// sharedKey is the key of a local configuration, if all grammars have it.
func (a *Automaton) sharedKey(local int32) (sharedKey, bool) {
	items := a.of(a.configs[local].items)
	key := sharedKey{{state: noState}, {state: noState}}
	if len(items) > len(key) {
		return key, false
	}
	for i, it := range items {
		if int(it.state) >= len(a.vocab.shared.states)-1 || it.frame != bottom {
			return key, false
		}
		key[i] = startItem{it.register, it.state}
	}
	return key, true
}

// fillShared works out the inner masks that most grammars need.
func (v *Vocabulary) fillShared() {
	chars := grammar.Repeat{Body: grammar.AnyChar(), Max: grammar.Unbounded}
	some := grammar.Repeat{Body: grammar.AnyChar(), Min: 1, Max: grammar.Unbounded}
	quote := grammar.Literal(`"`)
	a := newAutomaton(&grammar.Grammar{Rules: []grammar.Rule{{Name: "root", Body: grammar.Alt{
		grammar.AnyString(), grammar.AnyNumber(), grammar.AnyInteger(),
		grammar.Seq{grammar.Literal("c"), chars, quote}, grammar.Seq{grammar.Literal("s"), some, quote},
	}}}}, v, Limits{})
	a.fillReached()
}

// fillReached works out all inner masks that an automaton can need.
func (a *Automaton) fillReached() {
	seen := map[int32]bool{dead: true}
	todo := []int32{a.first}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		a.eachGroup(id, func(items []item) { a.innerOf(a.localOf(items)) })
		for b := range 256 {
			todo = append(todo, a.next(id, byte(b)))
		}
	}
}
