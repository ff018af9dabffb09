package grammar

import "math/big"

// maxDivisor bounds the remainders that a multipleOf has to tell apart.
const maxDivisor = 10_000

// multiples is the numbers that are an integer times d, which is positive. A
// state is the remainder of the digits so far and how many of them stood behind
// the point.
func multiples(m *meter, d decimal, limit int) (*DFA, error) {
	mantissa, places := d.scaled()
	if mantissa.Cmp(big.NewInt(maxDivisor)) > 0 {
		return nil, errStates
	}
	divisor := int(mantissa.Int64())
	if err := m.spend(divisor * (places + 2) * 20); err != nil {
		return nil, err
	}
	r := remainders{divisor: divisor, places: places}
	return finishDFA(m, r.build(), limit)
}

type remainders struct {
	divisor, places int
	states          []State
}

// The first states; a negative zero is none of the numbers.
const (
	remStart     = iota
	remZero      // 0
	remMinus     // -
	remMinusZero // -0
	remSmall     // -0. and as many zeros behind it as this is counted up
)

// index is the state of a remainder after that many places: first the integer
// part, then the point alone, then 1, 2, …
func (r *remainders) index(places, remainder int) int32 {
	return int32(remSmall + r.places + (places+1)*r.divisor + remainder)
}

const integerPart = -1

func (r *remainders) build() []State {
	past := r.index(r.places+1, 0) // only zeros may follow here
	r.states = make([]State, past+1)
	r.states[remStart].Edges = append([]Edge{{'-', '-', remMinus}, {'0', '0', remZero}}, r.digits('1', integerPart, 0)...)
	r.states[remZero] = State{Accept: true, Edges: []Edge{{'.', '.', r.index(0, 0)}}}
	r.states[remMinus].Edges = append([]Edge{{'0', '0', remMinusZero}}, r.digits('1', integerPart, 0)...)
	if r.places > 0 {
		r.states[remMinusZero].Edges = []Edge{{'.', '.', remSmall}}
	}
	for zeros := range r.places {
		var edges []Edge
		if zeros+1 < r.places {
			edges = []Edge{{'0', '0', int32(remSmall + zeros + 1)}}
		}
		r.states[remSmall+zeros].Edges = append(edges, r.digits('1', zeros+1, 0)...)
	}
	for rem := range r.divisor {
		r.states[r.index(integerPart, rem)] = State{
			Accept: r.divides(0, rem),
			Edges:  append([]Edge{{'.', '.', r.index(0, rem)}}, r.digits('0', integerPart, rem)...),
		}
		for places := 0; places < r.places; places++ {
			r.states[r.index(places, rem)] = State{
				Accept: places > 0 && r.divides(places, rem),
				Edges:  r.digits('0', places+1, rem),
			}
		}
	}
	zero := []Edge{{'0', '0', past}}
	r.states[r.index(r.places, 0)] = State{Accept: r.places > 0, Edges: zero}
	r.states[past] = State{Accept: true, Edges: zero}
	return r.states
}

// divides tells whether a number with that remainder after so many places is a
// multiple, its further places being zeros.
func (r *remainders) divides(places, rem int) bool {
	for ; places < r.places; places++ {
		rem = rem * 10 % r.divisor
	}
	return rem == 0
}

// digits are the edges from a remainder on one more digit, from lowest on.
func (r *remainders) digits(lowest byte, places, rem int) []Edge {
	var edges []Edge
	for digit := lowest; digit <= '9'; digit++ {
		next := (rem*10 + int(digit-'0')) % r.divisor
		edges = appendEdge(edges, Edge{rune(digit), rune(digit), r.index(places, next)})
	}
	return edges
}
