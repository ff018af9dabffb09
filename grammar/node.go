package grammar

// sequence is the parts one after the other, in the simplest form.
func sequence(parts ...Node) Node {
	var out Seq
	for _, p := range parts {
		switch p := p.(type) {
		case Seq:
			for _, q := range p {
				out = appendPart(out, q)
			}
		default:
			out = appendPart(out, p)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

// appendPart joins literals that meet.
func appendPart(seq Seq, p Node) Seq {
	lit, ok := p.(Literal)
	if ok && lit == "" {
		return seq
	}
	if n := len(seq); ok && n > 0 {
		if before, ok := seq[n-1].(Literal); ok {
			seq[n-1] = before + lit
			return seq
		}
	}
	return append(seq, p)
}

// alternatives is any of the parts, in the simplest form.
func alternatives(parts ...Node) Node {
	var out Alt
	empty := false
	for _, p := range parts {
		switch p := p.(type) {
		case Alt:
			out = append(out, p...)
		case Seq:
			if len(p) == 0 {
				empty = true
			} else {
				out = append(out, p)
			}
		default:
			out = append(out, p)
		}
	}
	var n Node = out
	if len(out) == 1 {
		n = out[0]
	}
	if !empty {
		return n
	}
	if len(out) == 0 {
		return Seq{}
	}
	return optional(n)
}

func optional(n Node) Node {
	if r, ok := n.(Repeat); ok && (r.Min == 0 || r.Min == 1) {
		r.Min = 0
		return r
	}
	return Repeat{n, 0, 1}
}

// repeated is a Repeat in the simplest form.
func repeated(body Node, least, most int) Node {
	if most == 0 {
		return Seq{}
	}
	if least == 1 && most == 1 {
		return body
	}
	return Repeat{body, least, most}
}

// A graph is an automaton whose edges spell nodes. State 0 is the start.
type graph []graphState

type graphState struct {
	edges []graphEdge
	final Node // what may still come before the end; nil if this is no place to end
}

type graphEdge struct {
	label Node
	to    int
}

// node spells the graph. States that are entered from several places become
// rules, the others stand where they are entered.
func (g graph) node(e *emitter, name string) Node {
	w := graphWriter{e: e, g: g, name: name, entries: g.entries(), rules: make([]int, len(g))}
	return w.enter(0)
}

// entries counts from how many other states each state is entered, the start
// from outside too.
func (g graph) entries() []int {
	entries := make([]int, len(g))
	entries[0] = 1
	for from, s := range g {
		seen := map[int]bool{from: true}
		for _, edge := range s.edges {
			if !seen[edge.to] {
				seen[edge.to] = true
				entries[edge.to]++
			}
		}
	}
	return entries
}

type graphWriter struct {
	e       *emitter
	g       graph
	name    string
	entries []int
	rules   []int // 1 + the rule of each state, 0 for none yet
}

func (w *graphWriter) enter(state int) Node {
	if w.rules[state] > 0 {
		return Ref(w.rules[state] - 1)
	}
	if w.entries[state] < 2 {
		return w.state(state)
	}
	id := w.e.reserve(w.name)
	w.rules[state] = id + 1
	w.e.rules[id].Body = w.state(state)
	return Ref(id)
}

// state is what may follow: edges with the same end as one, edges back to the
// state as a repetition.
func (w *graphWriter) state(state int) Node {
	var targets []int
	labels := map[int][]Node{}
	for _, edge := range w.g[state].edges {
		if labels[edge.to] == nil {
			targets = append(targets, edge.to)
		}
		labels[edge.to] = append(labels[edge.to], edge.label)
	}
	var alt []Node
	for _, to := range targets {
		if to != state {
			alt = append(alt, sequence(alternatives(labels[to]...), w.enter(to)))
		}
	}
	if final := w.g[state].final; final != nil {
		alt = append(alt, final)
	}
	loop := labels[state]
	if loop == nil {
		return alternatives(alt...)
	}
	return sequence(Repeat{alternatives(loop...), 0, Unbounded}, alternatives(alt...))
}
