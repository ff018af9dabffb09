package grammar

import "unicode"

// A setOp combines two sets of texts.
type setOp uint8

const (
	opAnd   setOp = iota // in both
	opMinus              // in the first alone
	opOr                 // in at least one
)

// live tells whether texts may still follow when the first DFA is in state p
// and the second in q, where -1 has left the set for good.
func (op setOp) live(p, q int32) bool {
	switch op {
	case opAnd:
		return p >= 0 && q >= 0
	case opMinus:
		return p >= 0
	}
	return p >= 0 || q >= 0
}

func (op setOp) accept(p, q bool) bool {
	switch op {
	case opAnd:
		return p && q
	case opMinus:
		return p && !q
	}
	return p || q
}

// combine is the product construction.
func combine(m *meter, a, b *DFA, op setOp, limit int) (*DFA, error) {
	if d := combineTrivially(a, b, op); d != nil {
		return d, nil
	}
	if op == opMinus && a.isAll() {
		return complementDFA(m, b, limit)
	}
	p := newProduct(a, b, op)
	p.id(0, 0)
	var arena edgeArena
	var edges []Edge
	for i := 0; i < len(p.pairs); i++ {
		x, y := p.pairs[i][0], p.pairs[i][1]
		ea, acceptA := a.at(x)
		eb, acceptB := b.at(y)
		p.states[i].Accept = op.accept(acceptA, acceptB)
		edges = edges[:0]
		overlay(ea, eb, func(lo, hi rune, to, toB int32) {
			if op.live(to, toB) {
				edges = appendEdge(edges, Edge{lo, hi, p.id(to, toB)})
			}
		})
		p.states[i].Edges = arena.keep(edges)
		if err := m.spend(8 + 4*(len(ea)+len(eb))); err != nil {
			return nil, err
		}
		if len(p.states) > 2*limit {
			return nil, errStates
		}
	}
	return finishDFA(m, p.states, limit)
}

// complementDFA is the texts that d does not accept. It is minimal as d is.
func complementDFA(m *meter, d *DFA, limit int) (*DFA, error) {
	states := make([]State, len(d.States)+1)
	rest := int32(len(d.States)) // where nothing of d can follow
	states[rest] = State{Accept: true, Edges: edgesTo(anyRune, rest)}
	var arena edgeArena
	var edges []Edge
	for i, s := range d.States {
		edges = edges[:0]
		overlay(s.Edges, allTexts.States[0].Edges, func(lo, hi rune, to, _ int32) {
			if to < 0 {
				to = rest
			}
			edges = appendEdge(edges, Edge{lo, hi, to})
		})
		states[i] = State{!s.Accept, arena.keep(edges)}
		if err := m.spend(8 + 4*len(s.Edges)); err != nil {
			return nil, err
		}
	}
	if states = trimStates(states); len(states) > limit {
		return nil, errStates
	}
	return knownDFA(states), nil
}

func combineTrivially(a, b *DFA, op setOp) *DFA {
	switch {
	case a == b && op != opMinus:
		return a
	case a == b:
		return noText
	case op == opAnd && (a.isEmpty() || b.isEmpty()), op == opMinus && a.isEmpty():
		return noText
	case op == opAnd && a.isAll(), op == opOr && (a.isEmpty() || b.isAll()):
		return b
	case op == opAnd && b.isAll(), op == opOr && (b.isEmpty() || a.isAll()), op == opMinus && b.isEmpty():
		return a
	}
	return nil
}

// at is the state's edges and whether it accepts; -1 is the state of no text.
func (d *DFA) at(state int32) ([]Edge, bool) {
	if state < 0 {
		return nil, false
	}
	return d.States[state].Edges, d.States[state].Accept
}

// A product numbers pairs of states in the order in which they are met.
type product struct {
	a, b   *DFA
	op     setOp
	pairs  [][2]int32
	states []State
	// The numbers of the pairs, in a table (one more, or 0) where that is small.
	table  []int32
	others map[[2]int32]int32
}

// maxTable is how many pairs have their place in a table.
const maxTable = 1 << 12

func newProduct(a, b *DFA, op setOp) product {
	most := 2 * max(len(a.States), len(b.States)) // mostly
	p := product{a: a, b: b, op: op, pairs: make([][2]int32, 0, most), states: make([]State, 0, most)}
	if size := (len(a.States) + 1) * (len(b.States) + 1); size <= maxTable {
		p.table = make([]int32, size)
	} else {
		p.others = map[[2]int32]int32{}
	}
	return p
}

func (p *product) id(x, y int32) int32 {
	if p.table == nil {
		key := [2]int32{x, y}
		id, ok := p.others[key]
		if !ok {
			id = p.add(x, y)
			p.others[key] = id
		}
		return id
	}
	cell := &p.table[int(x+1)*(len(p.b.States)+1)+int(y+1)]
	if *cell == 0 {
		*cell = p.add(x, y) + 1
	}
	return *cell - 1
}

func (p *product) add(x, y int32) int32 {
	p.pairs = append(p.pairs, [2]int32{x, y})
	p.states = append(p.states, State{})
	return int32(len(p.states) - 1)
}

// overlay calls yield for every stretch of code points on which both lists of
// edges are constant and at least one has an edge; the other gives -1.
func overlay(a, b []Edge, yield func(lo, hi rune, p, q int32)) {
	var pos rune
	for len(a) > 0 || len(b) > 0 {
		p, q, hi := int32(-1), int32(-1), rune(unicode.MaxRune)
		next := rune(unicode.MaxRune) // where the next edge starts, if none covers pos
		p, hi, next = cover(a, pos, p, hi, next)
		q, hi, next = cover(b, pos, q, hi, next)
		if p < 0 && q < 0 {
			pos = next
			continue
		}
		yield(pos, hi, p, q)
		pos = hi + 1
		if len(a) > 0 && a[0].Hi < pos {
			a = a[1:]
		}
		if len(b) > 0 && b[0].Hi < pos {
			b = b[1:]
		}
	}
}

// cover says where the first edge leads if it covers pos, and narrows hi to
// where that stops being so.
func cover(edges []Edge, pos rune, to int32, hi, next rune) (int32, rune, rune) {
	if len(edges) == 0 {
		return to, hi, next
	}
	if e := edges[0]; e.Lo <= pos {
		return e.To, min(hi, e.Hi), next
	}
	return to, min(hi, edges[0].Lo-1), min(next, edges[0].Lo)
}

// appendEdge appends an edge and joins it with the last one where it can.
func appendEdge(edges []Edge, e Edge) []Edge {
	if n := len(edges); n > 0 && edges[n-1].To == e.To && edges[n-1].Hi+1 == e.Lo {
		edges[n-1].Hi = e.Hi
		return edges
	}
	return append(edges, e)
}
