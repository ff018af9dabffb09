package mask

import (
	"fmt"
	"slices"
)

// A Sequence is one answer on its way through a grammar. It is for one goroutine
// at a time; sequences of one Automaton may run on any number of them.
type Sequence struct {
	a      *Automaton
	epoch  uint32
	prefix []byte // read before the first token
	origin step   // behind the prefix, without a token
	steps  []step
	cloned bool // steps are shared with another sequence: their room is not ours
}

// A step is an accepted token and the configuration that it led to.
type step struct {
	token, config int32
	done          bool // the text is complete there
}

// over is the configuration behind a token that ended the generation.
const over = -1

// Start begins an answer. The prefix is what already stands there: the end of
// the prompt, as text. Markers in it are recognized by their text.
func (a *Automaton) Start(prefix []byte) (*Sequence, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.enter(); err != nil {
		return nil, err
	}
	config, read := a.readPrompt(prefix)
	if a.fault != nil {
		return nil, a.fault
	}
	if read < len(prefix) {
		return nil, fmt.Errorf("%w: the prefix at byte %d of %q", ErrNotAllowed, read, prefix)
	}
	return &Sequence{
		a: a, epoch: a.epoch, prefix: slices.Clone(prefix),
		origin: step{token: noToken, config: config, done: a.configs[config].ends},
	}, nil
}

// readPrompt is the configuration after a text with markers in it, and how much
// of the text it is behind.
func (a *Automaton) readPrompt(text []byte) (config int32, read int) {
	config = a.first
	for read < len(text) {
		to, n := int32(dead), 0
		if a.configs[config].tokens {
			to, n = a.readMarker(config, text[read:])
		}
		if to == dead {
			to, n = a.next(config, text[read]), 1
		}
		if to == dead {
			return dead, read
		}
		config, read = to, read+n
	}
	return config, read
}

// readMarker follows the longest marker that the text begins with, if any can
// stand here.
func (a *Automaton) readMarker(config int32, text []byte) (to int32, n int) {
	token := int32(noToken)
	for _, it := range a.of(a.configs[config].items) {
		for _, e := range a.program.tokensOf(it.state) {
			if e.not || e.token == noToken {
				continue
			}
			if piece := a.vocab.piece(e.token); len(piece) > n && len(piece) <= len(text) && string(piece) == string(text[:len(piece)]) {
				token, n = e.token, len(piece)
			}
		}
	}
	if token == noToken {
		return dead, 0
	}
	return a.accept(config, token), n
}

// enter locks the automaton and makes sure that the sequence's configurations
// are of its epoch. The caller unlocks.
func (s *Sequence) enter() error {
	s.a.mu.Lock()
	if err := s.a.enter(); err != nil {
		return err
	}
	if s.epoch == s.a.epoch {
		return nil
	}
	return s.replay()
}

// replay reads the prefix and the tokens again, in a new epoch.
func (s *Sequence) replay() error {
	a := s.a
	config, _ := a.readPrompt(s.prefix)
	origin, steps := s.origin, slices.Clone(s.steps)
	origin.config = config
	for i := range steps {
		a.made = 0
		if steps[i].config != over {
			config = a.accept(config, steps[i].token)
			steps[i].config = config
		}
		if a.fault != nil {
			break
		}
	}
	if a.fault != nil {
		return a.fault
	}
	s.epoch, s.origin, s.steps, s.cloned = a.epoch, origin, steps, false
	a.made = 0
	return nil
}

// last is where the sequence stands.
func (s *Sequence) last() step {
	if n := len(s.steps); n > 0 {
		return s.steps[n-1]
	}
	return s.origin
}

// Mask sets the bits of the tokens that may come next, bit t of the words for
// token t, and tells how many they are. It fills the vocabulary's Words words.
// There is at least one such token until one that ends the generation was
// accepted, else the error is ErrDeadEnd. With an error the words are undefined.
func (s *Sequence) Mask(words []uint64) (allowed int, err error) {
	defer s.a.mu.Unlock()
	if err := s.enter(); err != nil {
		return 0, err
	}
	words = words[:s.a.vocab.Words()]
	config := s.last().config
	if config == over {
		clear(words)
		return 0, nil
	}
	r := s.a.recipeOf(config)
	if r == nil {
		return 0, s.a.fault
	}
	if r.allowed == 0 {
		return 0, ErrDeadEnd
	}
	s.a.assemble(r, words)
	return int(r.allowed), nil
}

// Accept goes on with a token. Where the error is ErrNotAllowed or ErrTooComplex
// the sequence stays as it was.
func (s *Sequence) Accept(token int32) error {
	defer s.a.mu.Unlock()
	if err := s.enter(); err != nil {
		return err
	}
	a, from := s.a, s.last().config
	if from == over || token < 0 || int(token) >= a.vocab.Len() {
		return ErrNotAllowed
	}
	to := a.acceptExactly(from, token)
	if a.fault != nil {
		return a.fault
	}
	if to == dead {
		if a.vocab.kinds[token] != End || !a.configs[from].ends {
			return ErrNotAllowed
		}
		to = over
	}
	s.steps = append(s.steps, step{token, to, to == over || a.configs[to].ends})
	return nil
}

// Done tells whether the text is complete: tokens that end the generation are
// allowed, or one was accepted.
func (s *Sequence) Done() bool { return s.last().done }

// Len is the number of accepted tokens.
func (s *Sequence) Len() int { return len(s.steps) }

// Rollback takes the last tokens back. There must be as many.
func (s *Sequence) Rollback(tokens int) {
	n := len(s.steps) - tokens
	s.steps = s.steps[:n]
	if s.cloned {
		s.steps = s.steps[:n:n] // what is behind may be the clone's
	}
}

// Clone is a second sequence at the same place. Neither sees what becomes of the
// other.
func (s *Sequence) Clone() *Sequence {
	s.cloned = true
	c := *s
	c.steps = slices.Clip(c.steps)
	return &c
}
