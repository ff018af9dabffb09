package grammar

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// undeclared is the language of the names that are not among the keys, made
// once for the same keys.
func (c *compiler) undeclared(keys []key) (*DFA, error) {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	slices.Sort(names)
	names = slices.Compact(names)
	id := strings.Join(names, "\xff") // no name has that byte
	if d := c.others[id]; d != nil {
		return d, nil
	}
	d, err := otherNames(c.meter, names, c.limits.Product)
	if err == nil && len(names) > 0 {
		c.others[id] = d
	}
	return d, err
}

// otherNames is all texts but the names, which are sorted and distinct. States
// stand in the order of a walk. Those with one name left are joined with others
// that have the same letters left; nearly always the DFA is minimal.
func otherNames(m *meter, names []string, limit int) (*DFA, error) {
	if len(names) == 0 {
		return allTexts, nil
	}
	most := 2
	for _, name := range names {
		most += len(name)
	}
	w := nameWriter{
		nodes: make([]nameNode, 0, most), states: make([]State, 0, most), suffixes: make(map[string]int32, most),
		arena: edgeArena{free: make([]Edge, 4*most)},
	}
	w.id(names, 0)
	for i := 0; i < len(w.nodes); i++ {
		w.expand(w.nodes[i])
		if err := m.spend(20 + 4*len(w.states[i].Edges)); err != nil {
			return nil, err
		}
		if len(w.states) > limit {
			return nil, errStates
		}
	}
	return &DFA{w.states}, nil
}

// A nameNode is the names that begin with what was read, and how many bytes that
// is. Without names it is a text that no name begins with.
type nameNode struct {
	names []string
	read  int
}

type nameWriter struct {
	nodes    []nameNode
	states   []State          // as far as the nodes are expanded
	suffixes map[string]int32 // the nodes with one name, by what is left of it
	rest     int32            // the node without names, 0 for none yet
	edges    []Edge
	arena    edgeArena
}

func (w *nameWriter) id(names []string, read int) int32 {
	id := int32(len(w.nodes))
	switch len(names) {
	case 0:
		if w.rest != 0 {
			return w.rest
		}
		w.rest = id
	case 1:
		left := names[0][read:]
		if known, ok := w.suffixes[left]; ok {
			return known
		}
		w.suffixes[left] = id
	}
	w.nodes = append(w.nodes, nameNode{names, read})
	return id
}

func (w *nameWriter) expand(n nameNode) {
	names, isName := n.names, len(n.names) > 0 && len(n.names[0]) == n.read
	if isName {
		names = names[1:]
	}
	w.edges = w.edges[:0]
	next := rune(0)
	for len(names) > 0 {
		r, size := utf8.DecodeRuneInString(names[0][n.read:])
		same := 1
		for char := names[0][n.read : n.read+size]; same < len(names) && strings.HasPrefix(names[same][n.read:], char); {
			same++
		}
		w.others(next, r-1)
		w.edges = append(w.edges, Edge{r, r, w.id(names[:same], n.read+size)})
		names, next = names[same:], r+1
	}
	w.others(next, unicode.MaxRune)
	w.states = append(w.states, State{!isName, w.arena.keep(w.edges)})
}

// others leads the code points from lo to hi out of all names.
func (w *nameWriter) others(lo, hi rune) {
	for _, r := range anyRune {
		if lo, hi := max(lo, r.Lo), min(hi, r.Hi); lo <= hi {
			w.edges = append(w.edges, Edge{lo, hi, w.id(nil, 0)})
		}
	}
}
