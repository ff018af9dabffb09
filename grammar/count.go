package grammar

import "slices"

// manyTexts is more texts of one kind than any answer has.
const manyTexts = 1 << 20

// A nodeCounter counts the texts of nodes: at least so many there are, up to
// manyTexts.
type nodeCounter struct {
	rules []int
	dfas  map[*DFA]int
}

// countingRounds is how often rules that lead to themselves are looked at.
const countingRounds = 6

func newNodeCounter(rules []Rule) *nodeCounter {
	c := &nodeCounter{rules: make([]int, len(rules)), dfas: map[*DFA]int{}}
	for range countingRounds {
		changed := false
		for i := len(rules) - 1; i >= 0; i-- {
			if n := c.count(rules[i].Body); n > c.rules[i] {
				c.rules[i], changed = n, true
			}
		}
		if !changed {
			break
		}
	}
	return c
}

func (c *nodeCounter) count(n Node) int {
	switch n := n.(type) {
	case nil: // of a rule in the making
		return 0
	case Class:
		return countRunes(n)
	case *DFA:
		count, ok := c.dfas[n]
		if !ok {
			count = n.count()
			c.dfas[n] = count
		}
		return count
	case Ref:
		return c.rules[n]
	case Seq:
		product := 1
		for _, p := range n {
			product = countProduct(product, c.count(p))
		}
		return product
	case Alt:
		return c.alternatives(n)
	case Repeat:
		return c.repeat(n)
	case Item:
		return c.count(n.Body)
	case Unique:
		return min(c.count(n.Body), 1) // one at least
	case Bag:
		return 1
	}
	return 1
}

// alternatives counts the part that has the most, and the literals that no other
// part can have. Other parts may have texts in common.
func (c *nodeCounter) alternatives(alt Alt) int {
	most, literals := 0, map[Literal]bool{}
	for _, p := range alt {
		if literal, ok := p.(Literal); ok {
			literals[literal] = true
		} else {
			most = max(most, c.count(p))
		}
	}
	apart := 0
	for literal := range literals {
		if !slices.ContainsFunc(alt, func(p Node) bool { return mayHave(p, literal) }) {
			apart++
		}
	}
	return min(max(most+apart, len(literals)), manyTexts)
}

// mayHave tells whether a node that is no literal may have a text.
func mayHave(n Node, text Literal) bool {
	switch n := n.(type) {
	case Literal:
		return false
	case *DFA:
		return n.match(string(text))
	}
	return true
}

// repeat counts the texts of the most repetitions, and the empty text.
func (c *nodeCounter) repeat(r Repeat) int {
	body := c.count(r.Body)
	switch {
	case body == 0 && r.Min == 0:
		return 1
	case body == 0 || body == 1 && r.Max != Unbounded:
		return body
	case r.Max == Unbounded:
		return manyTexts
	}
	product := 1
	for n := 0; n < r.Max && product < manyTexts; n++ {
		product = countProduct(product, body)
	}
	if r.Min == 0 && r.Max > 0 {
		product = min(product+1, manyTexts)
	}
	return product
}

// count is how many texts the DFA has, up to manyTexts.
func (d *DFA) count() int {
	if d.longest() == Unbounded {
		return manyTexts
	}
	counts := make([]int, len(d.States)) // 1 more than the texts from a state, 0 for not known yet
	var visit func(int32) int
	visit = func(state int32) int {
		if counts[state] > 0 {
			return counts[state] - 1
		}
		s := d.States[state]
		n := 0
		if s.Accept {
			n = 1
		}
		for _, e := range s.Edges {
			n = min(n+countProduct(int(e.Hi-e.Lo)+1, visit(e.To)), manyTexts)
		}
		counts[state] = n + 1
		return n
	}
	return visit(0)
}

// maxCountedLength is how long texts are at most that are counted one by one.
const maxCountedLength = 4096

// count is how many texts there are for certain, up to manyTexts. It goes through
// the lengths, with the number of ways to each state.
func (t text) count() int {
	if t.min == 0 && t.max == Unbounded {
		return t.dfa.count()
	}
	ways, total := make([]int, len(t.dfa.States)), 0
	ways[0] = 1
	for n := 0; n <= maxCountedLength && (t.max == Unbounded || n <= t.max); n++ {
		next := make([]int, len(ways))
		for i, s := range t.dfa.States {
			if ways[i] == 0 {
				continue
			}
			if s.Accept && n >= t.min {
				total = min(total+ways[i], manyTexts)
			}
			for _, e := range s.Edges {
				next[e.To] = min(next[e.To]+countProduct(ways[i], int(e.Hi-e.Lo)+1), manyTexts)
			}
		}
		if ways = next; total == manyTexts || !slices.ContainsFunc(ways, func(n int) bool { return n > 0 }) {
			break
		}
	}
	return total
}

func countRunes(set []Range) int {
	n := 0
	for _, r := range set {
		n += int(r.Hi-r.Lo) + 1
	}
	return min(n, manyTexts)
}

// countProduct multiplies counts up to manyTexts.
func countProduct(a, b int) int {
	if a > 0 && b > manyTexts/a {
		return manyTexts
	}
	return a * b
}
