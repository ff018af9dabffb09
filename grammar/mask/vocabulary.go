package mask

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

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
	aliases []alias
	plain   plainTokens
	others  []uint64 // the tokens that may stand where a grammar asks for another token

	shared *program // rules that all grammars have in common, never changed
	inners sharedInners
}

// maxPiece is the longest text of a token, in bytes.
const maxPiece = math.MaxUint16

// NewVocabulary prepares a vocabulary: pieces are the texts of the tokens in the
// order of their ids, kinds what they are for. It takes some hundred
// milliseconds for 150,000 tokens. A token of kind Text without bytes, or with
// more than 65,535, is never allowed.
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
		case v.isText(int32(id)):
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

// tokenNumber reads the form <[N]>.
func tokenNumber(text string) (int32, bool) {
	digits, opened := strings.CutPrefix(text, "<[")
	digits, closed := strings.CutSuffix(digits, "]>")
	n, err := strconv.ParseUint(digits, 10, 31)
	return int32(n), opened && closed && err == nil
}

// index sorts the tokens into the tries.
func (v *Vocabulary) index() {
	var plain, other []int32
	v.others = make([]uint64, v.Words())
	for id := range int32(v.Len()) {
		if v.isText(id) || v.kinds[id] == Marker {
			setBit(v.others, id)
		}
		switch {
		case !v.isText(id):
		case isPlain(v.piece(id)):
			plain = append(plain, id)
		default:
			other = append(other, id)
		}
	}
	v.plain = newPlainTokens(v, plain)
	byText := func(a, b int32) int { return bytes.Compare(v.piece(a), v.piece(b)) }
	slices.SortStableFunc(plain, byText)
	slices.SortStableFunc(other, byText)
	v.trie.add(v, v.distinct(other))
	v.trie.plain = int32(len(v.trie.nodes))
	v.trie.add(v, v.distinct(plain))
	slices.SortFunc(v.aliases, func(a, b alias) int { return cmp.Compare(a.as, b.as) })
}

// isText tells whether a token spells something.
func (v *Vocabulary) isText(token int32) bool {
	n := v.offsets[token+1] - v.offsets[token]
	return v.kinds[token] == Text && 0 < n && n <= maxPiece
}
