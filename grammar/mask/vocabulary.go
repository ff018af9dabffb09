package mask

import (
	"bytes"
	"cmp"
	"math"
	"slices"
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
	aliases []alias
	plain   plainTokens
	others  []uint64 // the tokens that may stand where a grammar asks for another token

	shared *program // rules that all grammars have in common, never changed
	inners sharedInners
}

// An alias is a token with the same text as another one, which alone is in the
// trie.
type alias struct{ token, as int32 }

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

// distinct leaves out of sorted tokens those with the text of the one before,
// and notes them as its aliases.
func (v *Vocabulary) distinct(sorted []int32) []int32 {
	out := make([]int32, 0, len(sorted))
	for _, id := range sorted {
		if n := len(out); n > 0 && bytes.Equal(v.piece(out[n-1]), v.piece(id)) {
			v.aliases = append(v.aliases, alias{id, out[n-1]})
		} else {
			out = append(out, id)
		}
	}
	return out
}

// appendAliases appends the aliases of tokens.
func (v *Vocabulary) appendAliases(ids []int32) []int32 {
	if len(v.aliases) == 0 {
		return ids
	}
	for _, id := range ids {
		i, _ := slices.BinarySearchFunc(v.aliases, id, func(a alias, id int32) int { return cmp.Compare(a.as, id) })
		for ; i < len(v.aliases) && v.aliases[i].as == id; i++ {
			ids = append(ids, v.aliases[i].token)
		}
	}
	return ids
}

// appendBarred appends the aliases of tokens that a mask has lost, and takes them
// out of it too.
func (v *Vocabulary) appendBarred(ids []int32, mask []uint64) []int32 {
	for _, id := range v.appendAliases(ids)[len(ids):] {
		if hasBit(mask, id) {
			clearBit(mask, id)
			ids = append(ids, id)
		}
	}
	return ids
}

// copyAliases gives each alias the bit of the token that it stands for.
func (v *Vocabulary) copyAliases(mask []uint64) {
	for _, a := range v.aliases {
		if hasBit(mask, a.as) {
			setBit(mask, a.token)
		} else {
			clearBit(mask, a.token)
		}
	}
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
	all  []uint64
	ids  []int32 // in the order of their number of characters
	upTo []int32 // ids[:upTo[n]] have at most n characters
}

func newPlainTokens(v *Vocabulary, ids []int32) plainTokens {
	p := plainTokens{all: make([]uint64, v.Words()), ids: slices.Clone(ids)}
	chars := func(id int32) int { return utf8.RuneCount(v.piece(id)) }
	slices.SortStableFunc(p.ids, func(a, b int32) int { return cmp.Compare(chars(a), chars(b)) })
	for i, id := range p.ids {
		setBit(p.all, id)
		for len(p.upTo) < chars(id) {
			p.upTo = append(p.upTo, int32(i))
		}
	}
	p.upTo = append(p.upTo, int32(len(ids)))
	return p
}

// addTo adds the tokens of at most n characters to a mask that has no plain
// tokens yet.
func (p *plainTokens) addTo(mask []uint64, n uint32) {
	upTo := len(p.ids)
	if uint64(n) < uint64(len(p.upTo)) {
		upTo = int(p.upTo[n])
	}
	if upTo < len(p.ids)/2 {
		for _, id := range p.ids[:upTo] {
			setBit(mask, id)
		}
		return
	}
	for i, w := range p.all {
		mask[i] |= w
	}
	for _, id := range p.ids[upTo:] {
		clearBit(mask, id)
	}
}
