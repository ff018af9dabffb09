package mask

import (
	"bytes"
	"math/bits"
)

// Run is the tokens that come next in every text of the grammar. Spell divides a text
// into tokens; what the tokens do not spell exactly ends the run. At its end a run leaves
// out tokens in whose place a longer one could stand, one that goes on into what is not
// certain: the model is to choose between them. The sequence stays where it is. The
// caller must not change the tokens.
//
// What a run is depends on the place in the grammar alone, so it is worked out once, with
// the spell of whoever asks first.
func (s *Sequence) Run(spell func(text []byte) []int32) ([]int32, error) {
	defer s.a.mu.Unlock()
	if err := s.enter(); err != nil {
		return nil, err
	}
	a, config := s.a, s.last().config
	if config == over || a.configs[config].ends {
		return nil, nil
	}
	if _, _, ok := a.onlyWay(config); !ok {
		return nil, nil
	}
	run, known := a.forcedRuns.tokens[config]
	if !known {
		run = a.trimRun(config, a.spellRun(config, spell))
		if a.fault == nil {
			a.forcedRuns.add(config, run)
		}
	}
	return run, a.fault
}

// Final tells whether the text is complete and cannot go on.
func (s *Sequence) Final() (bool, error) {
	defer s.a.mu.Unlock()
	if err := s.enter(); err != nil {
		return false, err
	}
	config := s.last().config
	return config == over || s.a.final(config), nil
}

// final tells whether nothing can follow.
func (a *Automaton) final(config int32) bool {
	if !a.configs[config].ends {
		return false
	}
	for _, it := range a.of(a.configs[config].items) {
		if len(a.program.bytesOf(it.state)) > 0 || len(a.program.tokensOf(it.state)) > 0 {
			return false
		}
	}
	return true
}

// forcedRuns are the runs that were worked out, by the configuration in front of them.
type forcedRuns struct {
	tokens map[int32][]int32
	size   int
}

func (r *forcedRuns) add(config int32, run []int32) {
	if r.tokens == nil {
		r.tokens = make(map[int32][]int32)
	}
	r.tokens[config] = run
	r.size += 64 + 4*len(run)
}

// spellRun is the tokens of what is forced.
func (a *Automaton) spellRun(config int32, spell func([]byte) []int32) []int32 {
	var run []int32
	for _, p := range a.forced(config) {
		if p.Text == nil {
			run = append(run, p.Token)
			continue
		}
		rest := p.Text
		for _, t := range spell(p.Text) {
			piece := a.vocab.piece(t)
			if !a.vocab.isText(t) || !bytes.HasPrefix(rest, piece) {
				return run
			}
			run, rest = append(run, t), rest[len(piece):]
		}
		if len(rest) > 0 {
			return run
		}
	}
	return run
}

// maxTrim is how many tokens trimRun looks at from the end of a run.
const maxTrim = 4

// trimRun leaves out the end of a run that a longer token could stand in the place of.
func (a *Automaton) trimRun(config int32, run []int32) []int32 {
	places := make([]int32, len(run)) // in front of each token
	for i, t := range run {
		places[i] = config
		if config = a.acceptExactly(config, t); config == dead || a.fault != nil {
			return run[:i]
		}
	}
	keep, rest := len(run), 0
	for i := len(run) - 1; i >= max(0, len(run)-maxTrim) && a.vocab.isText(run[i]); i-- {
		rest += len(a.vocab.piece(run[i]))
		if a.allowsLonger(places[i], rest) {
			keep = i
		}
		if a.fault != nil {
			return nil
		}
	}
	return run[:keep:keep]
}

// allowsLonger tells whether a token of more bytes may stand at a configuration.
func (a *Automaton) allowsLonger(config int32, n int) bool {
	r := a.recipeOf(config)
	if r == nil {
		return false
	}
	words := make([]uint64, a.vocab.Words())
	a.assemble(r, words)
	for i, word := range words {
		for ; word != 0; word &= word - 1 {
			t := int32(i<<6 + bits.TrailingZeros64(word))
			if a.vocab.isText(t) && len(a.vocab.piece(t)) > n {
				return true
			}
		}
	}
	return false
}
