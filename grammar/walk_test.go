package grammar

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// A walker writes random texts of a grammar. Beyond some size it takes the
// shortest ways out.
type walker struct {
	g    *Grammar
	rand *rand.Rand
	cost []int // of each rule: the depth of its shallowest text
	size int   // bytes wanted at most, roughly
	out  strings.Builder
	had  map[string]bool // the items of the Unique, nil outside
	over bool            // an item could not be other than those before
}

const tooDeep = 1 << 20

func newWalker(g *Grammar, seed uint64, size int) *walker {
	w := &walker{g: g, rand: rand.New(rand.NewPCG(seed, 0)), size: size}
	w.cost = slices.Repeat([]int{tooDeep}, len(g.Rules))
	for changed := true; changed; {
		changed = false
		for i := range g.Rules {
			if c := w.depth(g.Rules[i].Body) + 1; c < w.cost[i] {
				w.cost[i], changed = c, true
			}
		}
	}
	return w
}

func (w *walker) depth(n Node) int {
	switch n := n.(type) {
	case Ref:
		return w.cost[n]
	case Seq:
		most := 0
		for _, p := range n {
			most = max(most, w.depth(p))
		}
		return most
	case Alt:
		least := tooDeep
		for _, p := range n {
			least = min(least, w.depth(p))
		}
		return least
	case Repeat:
		if n.Min == 0 {
			return 0
		}
		return w.depth(n.Body)
	case Unique:
		return w.depth(n.Body)
	case Item:
		return w.depth(n.Body)
	case Bag:
		most := 0
		for _, item := range n.Items {
			most = max(most, w.depth(item.Body))
		}
		return most
	}
	return 0
}

// text is a random text of the grammar.
func (w *walker) text() string {
	for {
		w.out.Reset()
		w.over = false
		if w.write(Ref(0)); !w.over {
			return w.out.String()
		}
	}
}

func (w *walker) full() bool { return w.out.Len() >= w.size }

func (w *walker) write(n Node) {
	switch n := n.(type) {
	case Literal:
		w.out.WriteString(string(n))
	case Class:
		w.rune(n)
	case *DFA:
		w.lexeme(n)
	case Ref:
		w.write(w.g.Rules[n].Body)
	case Seq:
		for _, p := range n {
			w.write(p)
		}
	case Alt:
		w.write(w.choose(n))
	case Repeat:
		for i := 0; i < n.Min || (n.Max == Unbounded || i < n.Max) && !w.full() && w.rand.IntN(3) > 0; i++ {
			w.write(n.Body)
		}
	case Bag:
		w.bag(n)
	case Unique:
		before := w.had
		w.had = map[string]bool{}
		w.write(n.Body)
		w.had = before
	case Item:
		w.item(n)
	}
}

func (w *walker) item(it Item) {
	had, start := w.had, w.out.String()
	for range 50 {
		w.had = nil
		w.write(it.Body)
		w.had = had
		if text := w.out.String()[len(start):]; !had[text] {
			had[text] = true
			return
		}
		w.out.Reset()
		w.out.WriteString(start)
	}
	w.over = true
}

func (w *walker) choose(alt Alt) Node {
	if !w.full() {
		return alt[w.rand.IntN(len(alt))]
	}
	return slices.MinFunc(alt, func(a, b Node) int { return w.depth(a) - w.depth(b) })
}

func (w *walker) bag(b Bag) {
	order := w.rand.Perm(len(b.Items))
	most := b.Max
	if most == Unbounded {
		most = len(b.Items)
	}
	n := b.Min + w.rand.IntN(most-b.Min+1)
	slices.SortStableFunc(order, func(x, y int) int {
		return map[bool]int{true: -1}[b.Items[x].Required && !b.Items[y].Required]
	})
	for i, item := range order[:n] {
		if i > 0 {
			w.write(b.Sep)
		}
		w.write(b.Items[item].Body)
	}
}

func (w *walker) rune(set []Range) {
	r := set[w.rand.IntN(len(set))]
	span := int(r.Hi - r.Lo)
	if w.rand.IntN(8) > 0 {
		span = min(span, 40) // mostly plain characters
	}
	w.out.WriteRune(r.Lo + rune(w.rand.IntN(span+1)))
}

func (w *walker) lexeme(d *DFA) {
	dist := distances(d.States, edgesInto(d.States))
	for state, n := int32(0), 0; ; n++ {
		s := d.States[state]
		hurry := n > 12 || w.full()
		if s.Accept && (len(s.Edges) == 0 || hurry || w.rand.IntN(6) == 0) {
			return
		}
		edges := s.Edges
		if hurry {
			edges = slices.Clone(edges)
			edges = slices.DeleteFunc(edges, func(e Edge) bool { return dist[e.To] >= dist[state] })
		}
		e := edges[w.rand.IntN(len(edges))]
		w.rune([]Range{{e.Lo, e.Hi}})
		state = e.To
	}
}
