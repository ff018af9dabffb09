package mask

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/b3os/b3infer/grammar"
)

// Kind says what a token may be used for.
type Kind uint8

// The kinds of tokens.
const (
	Text    Kind = iota // spells bytes
	Marker              // stands for itself where a grammar names it, never for its text
	Control             // as Marker, and never generated without a grammar that names it
	End                 // ends the generation where the grammar's text may end
)

// A Vocabulary is a model's tokens in the form that masks are computed from. It
// may be used by any number of goroutines.
type Vocabulary struct {
	text    []byte
	offsets []uint32 // text[offsets[t]:offsets[t+1]] is the piece of token t
	kinds   []Kind
	ends    []int32
	marks   map[string]int32 // the tokens that are not Text, by their text
	longest int              // bytes of the longest piece of kind Text
	trie    trie
	aliases []int32 // the next token with the same piece, or -1; nil if all differ
	plain   plainTokens

	mu     sync.Mutex // guards shared against Share
	shared *program   // rules that all grammars have in common
	inners sync.Map   // inner masks of single states of shared: innerKey to *inner
}

// NewVocabulary prepares a vocabulary: pieces are the texts of the tokens in the
// order of their ids, kinds what they are for. It takes some hundred
// milliseconds for 150,000 tokens. A token of kind Text without bytes is never
// allowed.
func NewVocabulary(pieces [][]byte, kinds []Kind) *Vocabulary {
	v := &Vocabulary{
		offsets: make([]uint32, 1, len(pieces)+1),
		kinds:   slices.Clone(kinds),
		marks:   map[string]int32{},
	}
	for id, piece := range pieces {
		v.text = append(v.text, piece...)
		v.offsets = append(v.offsets, uint32(len(v.text)))
		switch kind := kinds[id]; {
		case kind != Text:
			if _, taken := v.marks[string(piece)]; !taken {
				v.marks[string(piece)] = int32(id)
			}
			if kind == End {
				v.ends = append(v.ends, int32(id))
			}
		default:
			v.longest = max(v.longest, len(piece))
		}
	}
	v.index()
	v.shared = newSharedProgram(v)
	v.fillShared()
	return v
}

// Len is the number of tokens.
func (v *Vocabulary) Len() int { return len(v.kinds) }

// Words is the length of a mask in words of 64 tokens.
func (v *Vocabulary) Words() int { return (len(v.kinds) + 63) / 64 }

// piece is the text of a token.
func (v *Vocabulary) piece(token int32) []byte {
	return v.text[v.offsets[token]:v.offsets[token+1]]
}

// mark is the token that a grammar names, if the vocabulary has it as a token
// that is not text.
func (v *Vocabulary) mark(t grammar.Token) (int32, bool) {
	if id, ok := tokenNumber(t.Text); ok {
		return id, int(id) < v.Len()
	}
	id, ok := v.marks[t.Text]
	return id, ok
}

// index sorts the tokens into the tries.
func (v *Vocabulary) index() {
	var plain, other []int32
	for id := range int32(v.Len()) {
		switch piece := v.piece(id); {
		case v.kinds[id] != Text || len(piece) == 0:
		case isPlain(piece):
			plain = append(plain, id)
		default:
			other = append(other, id)
		}
	}
	v.plain = newPlainTokens(v, plain)
	byText := func(a, b int32) int { return bytes.Compare(v.piece(a), v.piece(b)) }
	slices.SortFunc(plain, byText)
	slices.SortFunc(other, byText)
	v.trie.add(v, v.link(other))
	v.trie.plain = len(v.trie.nodes)
	v.trie.add(v, v.link(plain))
}

// link leaves out of sorted tokens those with the text of the one before, and
// notes them as its aliases.
func (v *Vocabulary) link(sorted []int32) []int32 {
	distinct := make([]int32, 0, len(sorted))
	for _, id := range sorted {
		n := len(distinct)
		if n == 0 || !bytes.Equal(v.piece(distinct[n-1]), v.piece(id)) {
			distinct = append(distinct, id)
			continue
		}
		if v.aliases == nil {
			v.aliases = slices.Repeat([]int32{-1}, v.Len())
		}
		v.aliases[id] = v.aliases[distinct[n-1]]
		v.aliases[distinct[n-1]] = id
	}
	return distinct
}

// appendAll appends the token and all with the same text.
func (v *Vocabulary) appendAll(ids []int32, token int32) []int32 {
	ids = append(ids, token)
	if v.aliases != nil {
		for token = v.aliases[token]; token >= 0; token = v.aliases[token] {
			ids = append(ids, token)
		}
	}
	return ids
}

// isPlain tells whether a piece is whole characters that stand for themselves
// in a JSON string. Only speed depends on the choice.
func isPlain(piece []byte) bool {
	for _, c := range piece {
		if c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(piece)
}

// plainTokens are the tokens of plain characters only, by their number.
type plainTokens struct {
	all   []uint64
	ids   []int32 // in the order of their number of characters
	upTo  []int32 // ids[:upTo[n]] have at most n characters
	words int
}

func newPlainTokens(v *Vocabulary, ids []int32) plainTokens {
	p := plainTokens{all: make([]uint64, v.Words()), words: v.Words()}
	var counts []int
	chars := func(id int32) int { return utf8.RuneCount(v.piece(id)) }
	for _, id := range ids {
		setBit(p.all, id)
		for len(counts) <= chars(id) {
			counts = append(counts, 0)
		}
		counts[chars(id)]++
	}
	total := int32(0)
	starts := make([]int32, len(counts))
	for n, count := range counts {
		starts[n] = total
		total += int32(count)
		p.upTo = append(p.upTo, total)
	}
	p.ids = make([]int32, len(ids))
	for _, id := range ids {
		n := chars(id)
		p.ids[starts[n]] = id
		starts[n]++
	}
	return p
}

// set adds the tokens of at most k characters to a mask.
func (p *plainTokens) set(dst []uint64, k int) {
	if k >= len(p.upTo)-1 {
		for i, w := range p.all {
			dst[i] |= w
		}
		return
	}
	for _, id := range p.ids[:p.upTo[max(k, 0)]] {
		setBit(dst, id)
	}
}

func setBit(mask []uint64, token int32) { mask[token>>6] |= 1 << (token & 63) }

func clearBit(mask []uint64, token int32) { mask[token>>6] &^= 1 << (token & 63) }

func hasBit(mask []uint64, token int32) bool { return mask[token>>6]&(1<<(token&63)) != 0 }
