//go:build cgo

package libllama

import (
	"cmp"
	"slices"

	"github.com/b3os/b3infer/llama"
)

// A special is a token that llama.cpp finds in a text before everything else
// (llama_vocab's cache_special_tokens).
type special struct {
	token          llama.Token
	text           string
	lstrip, rstrip bool // takes the white space before or after it along
}

// specials finds special tokens in text: a trie of their texts.
type specials struct {
	// list is in llama.cpp's order of precedence: longer texts first.
	list  []special
	roots [256]int32 // by first byte: index in nodes, 0 for none
	nodes []trieNode // nodes[0] is not used
}

type trieNode struct {
	b              byte
	rank           int32 // index in list of the text that ends here, or -1
	child, sibling int32 // indexes in nodes, 0 for none
}

func newSpecials(list []special) *specials {
	s := &specials{list: slices.Clone(list), nodes: make([]trieNode, 1)}
	slices.SortFunc(s.list, func(a, b special) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.token, b.token))
	})
	for rank, sp := range s.list {
		s.insert(sp.text, int32(rank))
	}
	return s
}

func (s *specials) insert(text string, rank int32) {
	n := s.roots[text[0]]
	if n == 0 {
		n = s.newNode(text[0], 0)
		s.roots[text[0]] = n
	}
	for i := 1; i < len(text); i++ {
		child := s.child(n, text[i])
		if child == 0 {
			child = s.newNode(text[i], s.nodes[n].child)
			s.nodes[n].child = child
		}
		n = child
	}
	if s.nodes[n].rank < 0 {
		s.nodes[n].rank = rank
	}
}

func (s *specials) newNode(b byte, sibling int32) int32 {
	s.nodes = append(s.nodes, trieNode{b: b, rank: -1, sibling: sibling})
	return int32(len(s.nodes) - 1)
}

func (s *specials) child(n int32, b byte) int32 {
	for c := s.nodes[n].child; c != 0; c = s.nodes[c].sibling {
		if s.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// at appends the ranks of all special tokens that text begins with.
func (s *specials) at(text []byte, ranks []int32) []int32 {
	if len(text) == 0 {
		return ranks
	}
	n := s.roots[text[0]]
	for i := 1; n != 0; i++ {
		if r := s.nodes[n].rank; r >= 0 {
			ranks = append(ranks, r)
		}
		if i == len(text) {
			break
		}
		n = s.child(n, text[i])
	}
	return ranks
}

// begins tells whether text begins with any special token.
func (s *specials) begins(text []byte) bool {
	n := s.roots[text[0]]
	for i := 1; n != 0; i++ {
		if s.nodes[n].rank >= 0 {
			return true
		}
		if i == len(text) {
			break
		}
		n = s.child(n, text[i])
	}
	return false
}

// A mark is a special token found in a text. text[from:to] is what it stands
// for, with the white space that it takes along.
type mark struct {
	from, to int
	token    llama.Token
}

// marks finds the special tokens in the given spans of a text as llama.cpp does
// (tokenizer_st_partition): tokens of higher precedence first, each from left to
// right over what is left. White space is taken along outside of the spans too.
func (s *specials) marks(text []byte, spans []span) []mark {
	type found struct {
		rank int32
		at   int
	}
	var all []found
	var ranks []int32
	for _, sp := range spans {
		for i := sp.from; i < sp.to; i++ {
			ranks = s.at(text[i:sp.to], ranks[:0])
			for _, r := range ranks {
				all = append(all, found{r, i})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.at, b.at)) })

	taken := make([]bool, len(text))
	marks := make([]mark, 0, len(all))
	for _, f := range all {
		sp := &s.list[f.rank]
		m := mark{from: f.at, to: f.at + len(sp.text), token: sp.token}
		if slices.Contains(taken[m.from:m.to], true) {
			continue
		}
		for sp.lstrip && m.from > 0 && !taken[m.from-1] && isSpace(text[m.from-1]) {
			m.from--
		}
		for sp.rstrip && m.to < len(text) && !taken[m.to] && isSpace(text[m.to]) {
			m.to++
		}
		for i := m.from; i < m.to; i++ {
			taken[i] = true
		}
		marks = append(marks, m)
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.from, b.from) })
	return marks
}

// isSpace is C's isspace in the C locale.
func isSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }
