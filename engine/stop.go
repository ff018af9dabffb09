package engine

import "strings"

// A stopMatcher looks for the first of several texts in a stream. It holds back
// what may be the beginning of one. Each byte costs one step of the
// Knuth-Morris-Pratt automaton of each text.
type stopMatcher struct {
	stops []stopText
	held  string
}

type stopText struct {
	text    string
	failure []int // length of the longest border of text[:i+1]
	matched int
}

func newStopMatcher(texts []string) *stopMatcher {
	m := &stopMatcher{}
	for _, text := range texts {
		if text != "" {
			m.stops = append(m.stops, stopText{text: text, failure: borders(text)})
		}
	}
	return m
}

func borders(text string) []int {
	failure := make([]int, len(text))
	for i, k := 1, 0; i < len(text); i++ {
		for k > 0 && text[i] != text[k] {
			k = failure[k-1]
		}
		if text[i] == text[k] {
			k++
		}
		failure[i] = k
	}
	return failure
}

// push takes more of the stream. It returns the text before a stop text, that
// text and what follows it; or what certainly belongs to none, "" and "". The
// stop text that is complete first counts; of several complete at the same byte,
// the longest.
func (m *stopMatcher) push(text string) (clear, stop, rest string) {
	if len(m.stops) == 0 {
		return text, "", ""
	}
	all := m.held + text
	for i := len(m.held); i < len(all); i++ {
		if stop := m.step(all[i]); stop != "" {
			m.held = ""
			return all[:i+1-len(stop)], stop, all[i+1:]
		}
	}
	keep := 0
	for _, s := range m.stops {
		keep = max(keep, s.matched)
	}
	m.held = all[len(all)-keep:]
	return all[:len(all)-keep], "", ""
}

// step advances all automata by a byte and returns the stop text that is
// complete now, if any.
func (m *stopMatcher) step(b byte) string {
	found := ""
	for i := range m.stops {
		s := &m.stops[i]
		for s.matched > 0 && s.text[s.matched] != b {
			s.matched = s.failure[s.matched-1]
		}
		if s.text[s.matched] == b {
			s.matched++
		}
		if s.matched == len(s.text) {
			if len(s.text) > len(found) {
				found = s.text
			}
			s.matched = s.failure[s.matched-1]
		}
	}
	return found
}

// flush returns what was held back: the stream is over.
func (m *stopMatcher) flush() string {
	held := m.held
	m.held = ""
	for i := range m.stops {
		m.stops[i].matched = 0
	}
	return strings.Clone(held)
}
