package grammar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Match tells whether the grammar has the text. It is the reference that token
// masks are checked against: plain recursion, without any cleverness.
func (g *Grammar) Match(text []byte) bool { return g.Check(text) == nil }

// Check is nil for a text that the grammar has, or says where the text leaves
// it, as a *Mismatch. Tokens never match: they are not text.
func (g *Grammar) Check(text []byte) error {
	m := matcher{g: g, text: text, ends: map[matchKey][]place{}, seen: make([]bool, len(text)+1), far: -1}
	if ends := m.match(Ref(0), []place{{}}); len(ends) > 0 {
		last := ends[len(ends)-1].offset
		if last == len(text) {
			return nil
		}
		m.miss(last, func() string { return "the end" })
	}
	slices.Sort(m.expected)
	e := &Mismatch{Offset: m.far, Expected: slices.Compact(m.expected)}
	for i, s := range e.Expected {
		if len(s) > maxExpected {
			e.Expected[i] = s[:maxExpected] + "…"
		}
	}
	return e
}

// maxExpected is how much of a long class or literal a Mismatch shows.
const maxExpected = 80

// A Mismatch says where a text leaves a grammar. Text[:Offset] is the longest
// beginning that some text of the grammar has; an item that comes again is only
// noticed at its end.
type Mismatch struct {
	Offset   int
	Expected []string // what could stand there, for people to read
}

func (e *Mismatch) Error() string {
	return fmt.Sprintf("byte %d: expected %s", e.Offset, strings.Join(e.Expected, " or "))
}

// A place is where a matcher is: at an offset, in a Unique that has had some
// items. Outside of one, items is 0.
type place struct{ offset, items int }

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.items, b.items))
}

type matchKey struct {
	rule  Ref
	start place
}

// A matcher works with sets of places, sorted: match gives all ends of a node
// for all its starts. No set changes once it is made.
type matcher struct {
	g        *Grammar
	text     []byte
	ends     map[matchKey][]place
	lists    itemLists
	seen     []bool // by offset; all false but within union
	far      int    // the last offset at which something did not match
	expected []string
}

func (m *matcher) match(n Node, starts []place) []place {
	if len(starts) == 0 {
		return nil
	}
	switch n := n.(type) {
	case Ref:
		return m.union(len(starts), func(i int) []place { return m.rule(n, starts[i]) })
	case Seq:
		for _, p := range n {
			starts = m.match(p, starts)
		}
		return starts
	case Alt:
		return m.union(len(n), func(i int) []place { return m.match(n[i], starts) })
	case Repeat:
		return m.repeat(n, starts)
	case Bag:
		return m.bag(n, starts)
	case Unique:
		return m.union(len(starts), func(i int) []place { return m.unique(n, starts[i]) })
	case Item:
		return m.union(len(starts), func(i int) []place { return m.item(n, starts[i]) })
	}
	return m.union(len(starts), func(i int) []place {
		ends := m.terminal(n, starts[i].offset)
		places := make([]place, len(ends))
		for j, end := range ends {
			places[j] = place{end, starts[i].items}
		}
		return places
	})
}

// union is the places of n sets, each of which may be one that others hold.
func (m *matcher) union(n int, set func(int) []place) []place {
	if n == 1 {
		return set(0)
	}
	sets := make([][]place, n)
	for i := range sets {
		sets[i] = set(i)
	}
	// Ambiguous rules have a great many ends in common: most are dropped before sorting.
	var out []place
	for _, s := range sets {
		for _, p := range s {
			if p.items == 0 && m.seen[p.offset] {
				continue
			}
			m.seen[p.offset] = m.seen[p.offset] || p.items == 0
			out = append(out, p)
		}
	}
	for _, p := range out {
		m.seen[p.offset] = false
	}
	return sortedSet(out)
}

func sortedSet(s []place) []place {
	slices.SortFunc(s, comparePlaces)
	return slices.Compact(s)
}

func (m *matcher) rule(ref Ref, start place) []place {
	key := matchKey{ref, start}
	ends, ok := m.ends[key]
	if !ok {
		ends = m.match(m.g.Rules[ref].Body, []place{start})
		m.ends[key] = ends
	}
	return ends
}

func (m *matcher) repeat(r Repeat, starts []place) []place {
	var out []place
	if r.Min == 0 {
		out = slices.Clone(starts)
	}
	begun := map[place]bool{} // the places from which a round was made that may be the last
	for n := 1; (r.Max == Unbounded || n <= r.Max) && len(starts) > 0; n++ {
		if n < r.Min {
			before := starts
			if starts = m.match(r.Body, starts); slices.Equal(starts, before) {
				n = r.Min - 1 // the body can be empty: more rounds change nothing
			}
			continue
		}
		// A second round from a place leads to nothing new.
		starts = slices.DeleteFunc(slices.Clone(starts), func(s place) bool { return begun[s] })
		for _, s := range starts {
			begun[s] = true
		}
		starts = m.match(r.Body, starts)
		out = append(out, starts...)
	}
	return sortedSet(out)
}

// bag tries the items in every order, with the set of used ones.
func (m *matcher) bag(b Bag, starts []place) []place {
	type bagPlace struct {
		at   place
		used uint64
	}
	var required uint64
	for i, item := range b.Items {
		if item.Required {
			required |= 1 << i
		}
	}
	todo, seen, out := []bagPlace{}, map[bagPlace]bool{}, []place(nil)
	for _, s := range starts {
		todo = append(todo, bagPlace{s, 0})
	}
	for n := 0; len(todo) > 0 && (b.Max == Unbounded || n <= b.Max); n++ {
		var next []bagPlace
		for _, p := range todo {
			if n >= b.Min && p.used&required == required {
				out = append(out, p.at)
			}
			after := []place{p.at}
			if n > 0 {
				after = m.match(b.Sep, after)
			}
			for i, item := range b.Items {
				if p.used&(1<<i) != 0 {
					continue
				}
				for _, end := range m.match(item.Body, after) {
					if q := (bagPlace{end, p.used | 1<<i}); !seen[q] {
						seen[q] = true
						next = append(next, q)
					}
				}
			}
		}
		todo = next
	}
	return sortedSet(out)
}

// terminal gives the ends of what is plain text, and notes how far it came.
func (m *matcher) terminal(n Node, start int) []int {
	text := m.text[start:]
	switch n := n.(type) {
	case Literal:
		if strings.HasPrefix(string(text), string(n)) {
			return []int{start + len(n)}
		}
		same := 0
		for same < len(text) && same < len(n) && text[same] == n[same] {
			same++
		}
		m.miss(start+same, func() string { return fmt.Sprintf("%q", string(n)[same:]) })
	case Class:
		if r, size := utf8.DecodeRune(text); size > 0 && (r != utf8.RuneError || size > 1) && hasRune(n, r) {
			return []int{start + size}
		}
		m.miss(start, n.String)
	case *DFA:
		return m.lexeme(n, start)
	case Token:
		m.miss(start, func() string { return "the token " + n.Text })
	}
	return nil
}

func (m *matcher) lexeme(d *DFA, start int) []int {
	var ends []int
	state, offset := int32(0), start
	for {
		if d.States[state].Accept {
			ends = append(ends, offset)
		}
		r, size := utf8.DecodeRune(m.text[offset:])
		if r == utf8.RuneError && size == 1 {
			r = -1 // not UTF-8
		}
		next := int32(-1)
		if size > 0 {
			next = d.next(state, r)
		}
		if next < 0 {
			if edges := d.States[state].Edges; len(edges) > 0 {
				m.miss(offset, edgeRunes(edges).String)
			}
			return ends
		}
		state, offset = next, offset+size
	}
}

// edgeRunes is the code points that lead on.
func edgeRunes(edges []Edge) Class {
	var set runeSet
	for _, e := range edges {
		set = append(set, Range{e.Lo, e.Hi})
	}
	return Class(normalizeRunes(set))
}

func (m *matcher) miss(offset int, expected func() string) {
	if offset > m.far {
		m.far, m.expected = offset, nil
	}
	if offset == m.far {
		m.expected = append(m.expected, expected())
	}
}
