package grammar

import (
	"slices"
)

// until is the texts before the first of the delimiters. With whole, the
// delimiter follows; otherwise the text may end anywhere, also in the midst of a
// delimiter. Without delimiters it is all texts.
func until(m *meter, delimiters []string, whole bool) (*DFA, error) {
	delimiters = slices.DeleteFunc(slices.Clone(delimiters), func(s string) bool { return s == "" })
	if len(delimiters) == 0 {
		return allTexts, nil
	}
	w := newUntilWriter(delimiters)
	states := make([]State, len(w.prefixes))
	for i := range w.prefixes {
		states[i] = State{Accept: !whole || w.meets(i), Edges: w.edges(i)}
		if err := m.spend(50 * len(w.runes)); err != nil {
			return nil, err
		}
	}
	return finishDFA(m, states, maxUntilStates)
}

// maxUntilStates is far above what the delimiters of any template need.
const maxUntilStates = 4096

// An untilWriter is the automaton of Aho and Corasick without the states in which
// a delimiter is complete.
type untilWriter struct {
	delimiters []string
	prefixes   []string // of the delimiters, the states
	ids        map[string]int
	runes      []rune // that the delimiters have
}

func newUntilWriter(delimiters []string) *untilWriter {
	w := &untilWriter{delimiters: delimiters, ids: map[string]int{}}
	for _, d := range delimiters {
		for i, r := range d {
			w.runes = append(w.runes, r)
			prefix := d[:i]
			if _, ok := w.ids[prefix]; !ok && !w.complete(prefix) {
				w.ids[prefix] = len(w.prefixes)
				w.prefixes = append(w.prefixes, prefix)
			}
		}
	}
	slices.Sort(w.runes)
	w.runes = slices.Compact(w.runes)
	return w
}

// complete tells whether a delimiter ends the text.
func (w *untilWriter) complete(text string) bool {
	return slices.ContainsFunc(w.delimiters, func(d string) bool {
		return len(d) <= len(text) && text[len(text)-len(d):] == d
	})
}

// next is the state behind a character, or -1 where a delimiter is complete.
func (w *untilWriter) next(state int, r rune) int {
	text := w.prefixes[state] + string(r)
	if w.complete(text) {
		return -1
	}
	for {
		if id, ok := w.ids[text]; ok {
			return id
		}
		text = text[1:] // what is cut inside a character is no state
	}
}

// meets tells whether some delimiter may follow such that no other one, nor the
// same one, is complete before its end. All of them must be able to: which one
// follows is not known.
func (w *untilWriter) meets(state int) bool {
	return !slices.ContainsFunc(w.delimiters, func(d string) bool {
		at, runes := state, []rune(d)
		for _, r := range runes[:len(runes)-1] {
			if at = w.next(at, r); at < 0 {
				return true
			}
		}
		return false
	})
}

func (w *untilWriter) edges(state int) []Edge {
	var edges edgeList
	from := rune(0)
	others := func(to rune) {
		for _, r := range intersectRunes(anyRune, runeSet{{from, to}}) {
			edges.add(Edge{r.Lo, r.Hi, 0})
		}
	}
	for _, r := range w.runes {
		if r > from {
			others(r - 1)
		}
		from = r + 1
		if to := w.next(state, r); to >= 0 {
			edges.add(Edge{r, r, int32(to)})
		}
	}
	others(anyRune[1].Hi)
	return edges.sorted()
}

// avoiding is the texts of a language that have none of the delimiters, nor end
// such that one begins in them where it is written behind them.
func avoiding(m *meter, d *DFA, delimiters []string, limit int) (*DFA, error) {
	free, err := until(m, delimiters, true)
	if err != nil {
		return nil, err
	}
	return combine(m, d, free, opAnd, limit)
}
