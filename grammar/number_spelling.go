package grammar

import "sync"

// AnyNumber is the language of the JSON numbers that a grammar admits where a
// schema asks for no particular ones: at most 18 digits, 17 places, and an
// exponent that keeps them finite as float64.
var AnyNumber = sync.OnceValue(func() *DFA {
	return compileLexeme(`-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?(?:[eE][+-]?(?:\d{1,2}|1\d\d|2[0-8]\d))?`)
})

// AnyInteger is the language of all integers of at most 18 digits, which fit
// an int64.
var AnyInteger = sync.OnceValue(func() *DFA { return compileLexeme(`0|-?[1-9]\d{0,17}`) })

var (
	wholeSpellings    = sync.OnceValue(func() *DFA { return compileLexeme(`-?\d+`) })
	shortestSpellings = sync.OnceValue(func() *DFA { return compileLexeme(`-?\d+(?:\.\d*[1-9])?`) })
	moderateSpellings = sync.OnceValue(func() *DFA { return compileLexeme(`-?\d{1,18}(?:\.\d{1,17})?`) })
)

// onceSpellings are numbers of at most 15 digits without zeros at the end: no
// two of them are the same float64.
var onceSpellings = sync.OnceValue(func() *DFA { return compileLexeme(`-?(?:\d{1,15}|\d{1,7}\.\d{0,7}[1-9])`) })

// fewNumbers is how many numbers get one spelling each.
const fewNumbers = 64

// spellNumbers chooses the spellings in which a grammar admits a set of
// numbers: integers without a fraction, a handful of numbers in one way each,
// others with a moderate number of digits.
func spellNumbers(m *meter, set *DFA, mode spelling, limit int) (*DFA, error) {
	switch {
	case mode == spellFreely && set.equal(plainNumbers()):
		return AnyNumber(), nil
	case mode == spellFreely && set.equal(integers()):
		return AnyInteger(), nil
	}
	shortest, err := combine(m, set, shortestSpellings(), opAnd, limit)
	if err != nil {
		return nil, err
	}
	if texts, ok := shortest.texts(fewNumbers); ok {
		return trie(m, texts, limit)
	}
	if mode != spellFreely {
		return combine(m, set, onceSpellings(), opAnd, limit)
	}
	whole, err := combine(m, set, wholeSpellings(), opAnd, limit)
	if err != nil {
		return nil, err
	}
	if whole.equal(shortest) {
		set = whole
	}
	if set.longest() != Unbounded {
		return set, nil
	}
	moderate, err := combine(m, set, moderateSpellings(), opAnd, limit)
	if err != nil || moderate.isEmpty() {
		return set, err
	}
	return moderate, nil
}
