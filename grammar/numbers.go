package grammar

import "sync"

// Sets of numbers are languages of plain decimals: an optional minus, digits
// without leading zeros, an optional fraction, no exponent, no negative zero.
// A set holds all plain spellings of each of its numbers (1, 1.0, 1.00, …), so
// that set operations on languages are set operations on numbers.

const (
	plainPattern    = `0|[1-9]\d*`
	positivePattern = `0\.\d*[1-9]\d*|[1-9]\d*(?:\.\d+)?`
)

// plainNumbers is all numbers.
var plainNumbers = sync.OnceValue(func() *DFA {
	return compileLexeme(`(?:` + plainPattern + `)(?:\.\d+)?|-(?:` + positivePattern + `)`)
})

// integers is all numbers without a fractional part.
var integers = sync.OnceValue(func() *DFA {
	return compileLexeme(`(?:` + plainPattern + `|-[1-9]\d*)(?:\.0+)?`)
})

// comparison is the numbers x for which want holds of the sign of x - d. The
// automaton need not be minimal: it is there to be combined with others.
func comparison(m *meter, d decimal, want func(sign int) bool) (*DFA, error) {
	if err := m.spend(100 + 20*(len(d.int)+len(d.frac))); err != nil {
		return nil, err
	}
	if !d.neg {
		negative := noText
		if want(-1) {
			negative = positiveNumbers()
		}
		return signed(compareUnsigned(d, want), negative), nil
	}
	positive := noText
	if want(1) {
		positive = unsignedNumbers()
	}
	negative := compareUnsigned(d, func(sign int) bool { return want(-sign) })
	nonzero, err := combine(m, &DFA{trimStates(negative)}, positiveNumbers(), opAnd, len(negative)*4)
	if err != nil {
		return nil, err
	}
	return signed(positive.States, nonzero), nil
}

var unsignedNumbers = sync.OnceValue(func() *DFA { return compileLexeme(`(?:` + plainPattern + `)(?:\.\d+)?`) })

// signed joins unsigned numbers and, behind a minus, ones that are not zero.
func signed(positive []State, nonzero *DFA) *DFA {
	states := append(make([]State, 0, len(positive)+len(nonzero.States)), positive...)
	base := int32(len(states))
	for _, s := range nonzero.States {
		edges := make([]Edge, len(s.Edges))
		for i, e := range s.Edges {
			edges[i] = Edge{e.Lo, e.Hi, e.To + base}
		}
		states = append(states, State{s.Accept, edges})
	}
	states[0].Edges = append([]Edge{{'-', '-', base}}, states[0].Edges...)
	return knownDFA(trimStates(states))
}

var positiveNumbers = sync.OnceValue(func() *DFA { return compileLexeme(positivePattern) })

// compareUnsigned is the unsigned decimals x for which want holds of the sign
// of x - |d|. Which number of equally many digits is greater shows at the first
// digit that differs; until the last digit of d, x may still turn out shorter.
func compareUnsigned(d decimal, want func(sign int) bool) []State {
	c := comparer{digits: d.int, frac: d.frac, want: want}
	c.ids = make([]int32, (int(phaseFrac)+1)*c.reads()*3)
	most := 4 * c.reads()
	c.keys, c.states = make([]compareState, 0, most), make([]State, 0, most)
	c.id(compareState{phase: phaseStart})
	for i := 0; i < len(c.keys); i++ {
		c.expand(int32(i))
	}
	return c.states
}

type comparePhase uint8

const (
	phaseStart comparePhase = iota
	phaseZero               // the integer part is 0
	phaseInt                // read digits of the integer part
	phasePoint              // a point, no digit behind it yet
	phaseFrac               // read digits of the fraction
)

// A compareState is how much of d was compared and which way it went.
type compareState struct {
	phase comparePhase
	read  int // digits of this part, capped at one more than d has
	sign  int // of the digits read
}

type comparer struct {
	digits, frac string
	want         func(sign int) bool
	ids          []int32 // 1 more than the state of each compareState, 0 for none yet
	keys         []compareState
	states       []State
	edges        []Edge
	arena        edgeArena
}

// reads is how many values read can have.
func (c *comparer) reads() int { return max(len(c.digits), len(c.frac)) + 2 }

func (c *comparer) id(key compareState) int32 {
	at := (int(key.phase)*c.reads()+key.read)*3 + key.sign + 1
	if c.ids[at] == 0 {
		c.keys = append(c.keys, key)
		c.states = append(c.states, State{})
		c.ids[at] = int32(len(c.keys))
	}
	return c.ids[at] - 1
}

func (c *comparer) expand(i int32) {
	key := c.keys[i]
	edges := c.edges[:0]
	if key.phase == phaseZero || key.phase == phaseInt {
		edges = append(edges, Edge{'.', '.', c.id(compareState{phasePoint, 0, c.integerSign(key)})})
	}
	for digit := byte('0'); digit <= '9'; digit++ {
		if next, ok := c.next(key, digit); ok {
			edges = appendEdge(edges, Edge{rune(digit), rune(digit), c.id(next)})
		}
	}
	c.edges = edges
	c.states[i] = State{Accept: c.accepts(key), Edges: c.arena.keep(edges)}
}

// next is the state behind one more digit.
func (c *comparer) next(key compareState, digit byte) (compareState, bool) {
	switch key.phase {
	case phaseZero:
		return key, false
	case phaseStart:
		if digit == '0' {
			return compareState{phaseZero, 1, signOf(digit, c.digits[0])}, true
		}
		return compareState{phaseInt, 1, signOf(digit, c.digits[0])}, true
	case phaseInt:
		if key.read >= len(c.digits) {
			return compareState{phaseInt, len(c.digits) + 1, 1}, true
		}
		if key.sign == 0 {
			key.sign = signOf(digit, c.digits[key.read])
		}
		key.read++
		return key, true
	}
	if key.sign != 0 {
		return compareState{phaseFrac, 0, key.sign}, true
	}
	if key.read >= len(c.frac) {
		return compareState{phaseFrac, key.read, signOf(digit, '0')}, true
	}
	sign := signOf(digit, c.frac[key.read])
	return compareState{phaseFrac, key.read + 1, sign}, true
}

func signOf(a, b byte) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// integerSign is the sign of the difference of the integer parts, at their end.
func (c *comparer) integerSign(key compareState) int {
	if key.read < len(c.digits) {
		return -1
	}
	return key.sign
}

func (c *comparer) accepts(key compareState) bool {
	sign := key.sign
	switch key.phase {
	case phaseStart, phasePoint:
		return false
	case phaseZero, phaseInt:
		if sign = c.integerSign(key); sign == 0 && c.frac != "" {
			sign = -1
		}
	case phaseFrac:
		if sign == 0 && key.read < len(c.frac) {
			sign = -1
		}
	}
	return c.want(sign)
}

// literalNumbers is the set of the given numbers.
func literalNumbers(m *meter, ds []decimal, limit int) (*DFA, error) {
	var whole []string
	var sets []*DFA
	for _, d := range ds {
		if d.isInteger() {
			whole = append(whole, d.String())
			continue
		}
		set, err := comparison(m, d, func(sign int) bool { return sign == 0 })
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	set, err := literalIntegers(m, whole, limit)
	if err != nil {
		return nil, err
	}
	return unionOf(m, append(sets, set), limit)
}

func literalIntegers(m *meter, texts []string, limit int) (*DFA, error) {
	d, err := trie(m, texts, limit)
	if err != nil || d.isEmpty() {
		return d, err
	}
	point := int32(len(d.States))
	states := append([]State{}, d.States...)
	for i, s := range states {
		if s.Accept { // '.' sorts between '-' and the digits
			at := 0
			if len(s.Edges) > 0 && s.Edges[0].Hi == '-' {
				at = 1
			}
			edges := append([]Edge{}, s.Edges[:at]...)
			edges = append(edges, Edge{'.', '.', point})
			states[i].Edges = append(edges, s.Edges[at:]...)
		}
	}
	states = append(states,
		State{Edges: []Edge{{'0', '0', point + 1}}},
		State{Accept: true, Edges: []Edge{{'0', '0', point + 1}}})
	return finishDFA(m, states, limit)
}

// unionOf joins sets pairwise, so that small ones meet small ones.
func unionOf(m *meter, sets []*DFA, limit int) (*DFA, error) {
	switch len(sets) {
	case 0:
		return noText, nil
	case 1:
		return sets[0], nil
	}
	a, err := unionOf(m, sets[:len(sets)/2], limit)
	if err != nil {
		return nil, err
	}
	b, err := unionOf(m, sets[len(sets)/2:], limit)
	if err != nil {
		return nil, err
	}
	return combine(m, a, b, opOr, limit)
}
