package mask

import (
	"bytes"
	"slices"
)

// maxLengthened bounds the forced bytes that Lengthen looks at; it is more than a token
// of words has.
const maxLengthened = 64

// lengthenedBytes is about what one token takes among those that were lengthened.
const lengthenedBytes = 32

// Lengthen is the token that stands for the one that was drawn and is to be accepted in
// its place: where what comes behind it is certain, the one that spell puts first in the
// text of both, as `,"` for `,`. The text stays what it was, in fewer tokens, and in
// those that a model has learned to read. Spell divides a text into tokens.
func (s *Sequence) Lengthen(drawn int32, spell func(text []byte) []int32) (int32, error) {
	defer s.a.mu.Unlock()
	if err := s.enter(); err != nil {
		return drawn, err
	}
	a, from := s.a, s.last().config
	if from == over || drawn < 0 || int(drawn) >= a.vocab.Len() || !a.vocab.isText(drawn) {
		return drawn, nil
	}
	to := a.acceptExactly(from, drawn)
	if to == dead || a.configs[to].ends {
		return drawn, a.fault
	}
	if _, token, ok := a.onlyWay(to); !ok || token != noToken {
		return drawn, nil
	}
	key := uint64(from)<<32 | uint64(drawn)
	longer, known := a.lengthened[key]
	if !known {
		longer = a.lengthen(from, to, drawn, spell)
		if a.fault == nil {
			if a.lengthened == nil {
				a.lengthened = make(map[uint64]int32)
			}
			a.lengthened[key] = longer
		}
	}
	return longer, a.fault
}

// lengthen works out what stands for a token that leads from one configuration to another.
// It leads where the drawn one and the forced bytes do, which is not so where any token
// may stand for itself.
func (a *Automaton) lengthen(from, to, drawn int32, spell func([]byte) []int32) int32 {
	piece := a.vocab.piece(drawn)
	text, places := slices.Clone(piece), []int32{to}
	for len(places) <= maxLengthened && to != dead && !a.configs[to].ends {
		b, token, ok := a.onlyWay(to)
		if !ok || token != noToken {
			break
		}
		to = a.next(to, b)
		text, places = append(text, b), append(places, to)
	}
	spelled := spell(text)
	if len(spelled) == 0 || !a.vocab.isText(spelled[0]) {
		return drawn
	}
	first := a.vocab.piece(spelled[0])
	if len(first) <= len(piece) || !bytes.HasPrefix(text, first) ||
		a.acceptExactly(from, spelled[0]) != places[len(first)-len(piece)] {
		return drawn
	}
	return spelled[0]
}
