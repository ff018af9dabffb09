package llamatest

import (
	"strings"
	"unicode/utf8"

	"github.com/b3os/b3infer/llama"
)

// The first 256 tokens are the single bytes, so that Token(b) is byte b; the
// others stand in the order of these lists.
const (
	// words are whole pieces of common text. Those with a leading space come
	// first, as in vocabularies made by byte pair encoding.
	words = " the of and to in is it that for was on are as with his they at be this have from or one had by" +
		" but not what all were we when your can said there use an each which she do how their if will up" +
		" other about out many then them these so some her would make like him into time has look two more" +
		" write go see number no way could people my than first water been call who oil its now find long" +
		" down day did get come made may part I you he a"
	stems = "The A I In It You He She We They is er ing ed ly tion ment ness able est al re un th he in an" +
		" on at en nd or ou ea user system assistant tool name content value true false null string type"
	marks = `{" ": "} ", ], }, [] {} \n \" http :// .com ..  ,  == -> // `
)

// pieces of more than one byte that are no words: whole characters, and
// beginnings of characters such as byte pair encodings have them too, so that
// one character may take one, two, three or four tokens.
var pieces = []string{
	"\n\n", "  ", "    ", ": ", ", ", ". ",
	"ü", "ß", " ü", "€", "–", "…", "世", "界", "你好", "日本", "こん", "😀",
	"\xe4\xb8", "\xe3\x81", "\xf0\x9f", "\xf0\x9f\x98", " \xf0\x9f", "\xce", "\xd0",
}

// control and user-defined tokens, after all others but the padding.
var specials = []llama.VocabToken{
	{Piece: []byte("<s>"), Kind: llama.KindControl},
	{Piece: []byte("<|endoftext|>"), Kind: llama.KindControl, End: true},
	{Piece: []byte("<|im_start|>"), Kind: llama.KindControl},
	{Piece: []byte("<|im_end|>"), Kind: llama.KindControl, End: true},
	{Piece: []byte("<|vision_start|>"), Kind: llama.KindControl},
	{Piece: []byte("<|vision_end|>"), Kind: llama.KindControl},
	{Piece: []byte("<think>"), Kind: llama.KindUser},
	{Piece: []byte("</think>"), Kind: llama.KindUser},
	{Piece: []byte("<tool_call>"), Kind: llama.KindUser},
	{Piece: []byte("</tool_call>"), Kind: llama.KindUser},
}

// A vocabulary is the model's tokens and what is derived from them.
type vocabulary struct {
	*llama.Vocab
	bySpelling map[string]llama.Token // normal and byte tokens
	special    map[string]llama.Token // control and user-defined tokens
	longest    int                    // bytes of the longest spelling in either map
	key        []uint64               // one random number a token, for the logits
	text       []bool                 // the piece may begin where no character is open
	end        llama.Token            // <|im_end|>
}

// newVocabulary makes the vocabulary, padded with unused tokens up to size.
func newVocabulary(size int, bos bool) *vocabulary {
	tokens := textTokens()
	first := len(tokens)
	tokens = append(tokens, specials...)
	for len(tokens) < size {
		tokens = append(tokens, llama.VocabToken{Kind: llama.KindUnused})
	}
	begin := llama.NoToken
	if bos {
		begin = llama.Token(first)
	}
	v := &vocabulary{
		Vocab:      llama.NewVocab(tokens, begin),
		bySpelling: make(map[string]llama.Token, len(tokens)),
		special:    make(map[string]llama.Token, len(specials)),
		key:        make([]uint64, len(tokens)),
		text:       make([]bool, len(tokens)),
	}
	for id, t := range tokens {
		v.index(llama.Token(id), t)
	}
	v.end = v.special["<|im_end|>"]
	return v
}

func (v *vocabulary) index(id llama.Token, t llama.VocabToken) {
	v.key[id] = mix(uint64(id) + 1)
	spelling := string(t.Piece)
	switch t.Kind {
	case llama.KindNormal, llama.KindByte:
		v.bySpelling[spelling] = id
		v.text[id] = beginsText(t.Piece)
	case llama.KindControl, llama.KindUser:
		v.special[spelling] = id
	}
	v.longest = max(v.longest, len(spelling))
}

func textTokens() []llama.VocabToken {
	tokens := make([]llama.VocabToken, 0, 512)
	for b := range 256 {
		kind := llama.KindByte
		if b >= ' ' && b < 0x7f || b == '\n' || b == '\t' {
			kind = llama.KindNormal
		}
		tokens = append(tokens, llama.VocabToken{Piece: []byte{byte(b)}, Kind: kind})
	}
	seen := make(map[string]bool)
	add := func(piece string) {
		if len(piece) > 1 && !seen[piece] {
			seen[piece] = true
			tokens = append(tokens, llama.VocabToken{Piece: []byte(piece), Kind: llama.KindNormal})
		}
	}
	for word := range strings.FieldsSeq(words) {
		add(" " + word)
	}
	for _, list := range []string{stems, marks} {
		for piece := range strings.FieldsSeq(list) {
			add(piece)
		}
	}
	for _, piece := range pieces {
		add(piece)
	}
	return tokens
}

// beginsText tells whether a piece is text, perhaps with an unfinished
// character at its end, and not the rest of an earlier one.
func beginsText(piece []byte) bool {
	whole := piece[:len(piece)-len(unfinished(piece))]
	return utf8.Valid(whole) && (len(whole) == 0 || whole[0] >= ' ' && whole[0] != 0x7f || whole[0] == '\n')
}

// unfinished is the beginning of a character that text ends with.
func unfinished(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		tail := text[len(text)-n:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return tail
			}
			return nil
		}
	}
	return nil
}
