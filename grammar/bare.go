package grammar

// This file says how strings stand without quotes, where only a delimiter ends them.

// A countedDFA is the texts of an automaton that have so many characters.
type countedDFA struct {
	dfa      *DFA
	min, max int // max may be Unbounded
}

// size is how many states and edges the automaton has and up to how many
// characters there are to count, so that the product of both is what counting costs.
func (d countedDFA) size() (each, most int) {
	for _, s := range d.dfa.States {
		each += 1 + len(s.Edges)
	}
	most = max(d.min, d.max)
	if longest := d.dfa.longest(); longest != Unbounded {
		most = min(most, longest)
	}
	return each, most
}

// maxCountedEdges is how many edges an automaton may get for the sake of a bound on
// its texts' length.
const maxCountedEdges = 200_000

// bare is the strings of t that no delimiter begins in. Of those that have bounds on
// their length, very long ones are left out: what counts them are states.
func (c *compiler) bare(t text, delimiters []string) (*DFA, error) {
	t = t.tighten()
	d, err := avoiding(c.meter, t.dfa, delimiters, c.limits.Product)
	if err != nil {
		return nil, err
	}
	return c.counted(countedDFA{d, t.min, t.max})
}

// counted is the product of an automaton and a counter of characters, up to
// maxCountedEdges.
func (c *compiler) counted(d countedDFA) (*DFA, error) {
	if d.min == 0 && d.max == Unbounded || d.dfa.isEmpty() {
		return d.dfa, nil
	}
	each, most := d.size()
	if d.max != Unbounded {
		most = min(most, max(maxCountedEdges/each, d.min+fewMore))
	}
	n := len(d.dfa.States)
	if most+1 > c.limits.Product/n {
		return nil, errStates
	}
	if err := c.meter.spend((most + 1) * each); err != nil {
		return nil, err
	}
	// State i after k characters is k*n+i. Without an upper bound, the last k stands
	// for more as well.
	states := make([]State, (most+1)*n)
	for at := range states {
		read, from := at/n, d.dfa.States[at%n]
		next := (read + 1) * n
		switch {
		case read < most:
		case d.max == Unbounded:
			next = read * n
		default:
			from.Edges = nil
		}
		states[at].Accept = from.Accept && read >= d.min
		for _, e := range from.Edges {
			states[at].Edges = append(states[at].Edges, Edge{e.Lo, e.Hi, int32(next) + e.To})
		}
	}
	return knownDFA(trimStates(states)), nil
}
