package libllama

// #include "shim.h"
import "C"

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/b3os/b3infer/llama"
)

// A tokenizer turns parts into tokens so that literal text never yields marks:
// tokens that mean more than their text.
//
// llama_tokenize alone cannot do that: with parse_special it makes marks of any
// text that spells one, and without it still of user-defined ones. So the parts
// are joined, marks are looked for here, as llama.cpp does but only where all
// of their text is Special, and llama_tokenize gets what lies between: runs of
// ordinary text, which may begin in a Special part and end in a literal one.
// Where a run spells a user-defined mark after all, it is cut behind the mark's
// first character, and a line of more than 64 KB is cut where it must be. All
// other text becomes the tokens that llama.cpp makes of the whole.
type tokenizer struct {
	model *C.struct_llama_model
	vocab *llama.Vocab
	// all finds special tokens in Special parts, users the user-defined marks in
	// what is left.
	all, users *specials
	// lead stands in front of a run's rest after a cut, so that SentencePiece
	// puts no space there; leadTokens are what becomes of it.
	lead       string
	leadTokens int
	bpe        bool // text is split by regular expressions
}

// A span is the bytes from:to of a text.
type span struct{ from, to int }

func newTokenizer(model *C.struct_llama_model, vocab *llama.Vocab, all []special) (*tokenizer, error) {
	var users []special
	for _, s := range all {
		if vocab.Kind(s.token) == llama.KindUser {
			users = append(users, s)
		}
	}
	t := &tokenizer{model: model, vocab: vocab, all: newSpecials(all), users: newSpecials(users)}
	switch C.b3_vocab_type(model) {
	case vocabBPE:
		t.bpe = true
		return t, nil
	case vocabSPM:
	default:
		return t, nil
	}
	lead := freeCharacter(vocab)
	tokens, err := t.start(nil).raw(nil, []byte(lead), false)
	t.lead, t.leadTokens = lead, len(tokens)
	return t, err
}

// freeCharacter is a character that no token has, so that nothing merges with it.
func freeCharacter(vocab *llama.Vocab) string {
	for r := rune(0xFFFF); r > 0xE000; r-- { // noncharacters, and then for private use
		c, used := []byte(string(r)), false
		for t := range vocab.Len() {
			if used = bytes.Contains(vocab.Piece(llama.Token(t)), c); used {
				break
			}
		}
		if !used {
			return string(c)
		}
	}
	return ""
}

// Tokenize appends the tokens of parts to dst (llama_tokenize).
func (m *Model) Tokenize(dst []llama.Token, parts []llama.Part, bos bool) ([]llama.Token, error) {
	done, err := m.handle.use()
	if err != nil {
		return dst, err
	}
	defer done()
	text, spans, err := join(parts)
	if err != nil {
		return dst, fmt.Errorf("tokenize: %w", err)
	}
	if bos && m.vocab.BOS() != llama.NoToken {
		dst = append(dst, m.vocab.BOS())
	}
	out, err := m.tokenizer.start(text).text(dst, spans)
	if err != nil {
		return dst, fmt.Errorf("tokenize: %w", err)
	}
	return out, nil
}

// join puts the texts of parts together and says where they are Special.
func join(parts []llama.Part) ([]byte, []span, error) {
	n := 0
	for _, p := range parts {
		if p.Image != 0 {
			return nil, nil, fmt.Errorf("image part: %w", llama.ErrInvalid)
		}
		n += len(p.Text)
	}
	if n > math.MaxInt32/2 {
		return nil, nil, fmt.Errorf("text of %d bytes: %w", n, llama.ErrInvalid)
	}
	text := make([]byte, 0, n)
	var spans []span
	for _, p := range parts {
		from := len(text)
		text = append(text, p.Text...)
		switch last := len(spans) - 1; {
		case !p.Special:
		case last >= 0 && spans[last].to == from:
			spans[last].to = len(text)
		default:
			spans = append(spans, span{from, len(text)})
		}
	}
	return text, spans, nil
}

// A tokenizing is one call of Tokenize.
type tokenizing struct {
	*tokenizer
	all   []byte // the joined text
	lead  []byte // scratch: a run's rest behind lead
	count C.int32_t
	cerr  C.b3_error
}

func (t *tokenizer) start(text []byte) *tokenizing { return &tokenizing{tokenizer: t, all: text} }

// text appends the tokens of the whole.
func (t *tokenizing) text(dst []llama.Token, spans []span) ([]llama.Token, error) {
	var err error
	at := 0
	for _, m := range t.tokenizer.all.marks(t.all, spans) {
		if dst, err = t.run(dst, t.all[at:m.from]); err != nil {
			return nil, err
		}
		dst = append(dst, m.token)
		at = m.to
	}
	return t.run(dst, t.all[at:])
}

// run appends the tokens of text between two marks. Whatever special text is
// left in it is not to become a mark.
func (t *tokenizing) run(dst []llama.Token, text []byte) ([]llama.Token, error) {
	var err error
	from := 0
	for i := 0; i < len(text); i++ {
		if !t.users.begins(text[i:]) {
			continue
		}
		_, size := utf8.DecodeRune(text[i:])
		i += size
		if dst, err = t.ordinary(dst, text[from:i], from > 0); err != nil {
			return nil, err
		}
		from = i
		i--
	}
	return t.ordinary(dst, text[from:], from > 0)
}

// ordinary appends the tokens of text that spells no user-defined mark. rest
// tells that the text goes on from what was tokenized before.
func (t *tokenizing) ordinary(dst []llama.Token, text []byte, rest bool) ([]llama.Token, error) {
	for t.bpe {
		at := lineCut(text)
		if at == 0 {
			break
		}
		var err error
		if dst, err = t.line(dst, text[:at], rest); err != nil {
			return nil, err
		}
		text, rest = text[at:], true
	}
	return t.line(dst, text, rest)
}

// longestLine bounds what a regular expression can match at once: llama.cpp
// recurses over it (shim.cpp).
const longestLine = 64 << 10

// lineCut is where a text with too long a line is to be cut, before a space if
// there is one; 0 for other texts. White space belongs to the line before it.
func lineCut(text []byte) int {
	if len(text) <= longestLine {
		return 0
	}
	start, ended := 0, false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if ended && !unicode.IsSpace(r) {
			start, ended = i, false
		}
		ended = ended || r == '\n'
		if i+size-start > longestLine {
			if space := bytes.LastIndexByte(text[start+longestLine/2:i], ' '); space > 0 {
				return start + longestLine/2 + space
			}
			return i
		}
		i += size
	}
	return 0
}

// line is ordinary for text that needs no cut.
func (t *tokenizing) line(dst []llama.Token, text []byte, rest bool) ([]llama.Token, error) {
	if len(text) == 0 {
		return dst, nil
	}
	start := len(dst)
	var err error
	if rest && t.leadTokens > 0 {
		t.lead = append(append(t.lead[:0], t.tokenizer.lead...), text...)
		if dst, err = t.raw(dst, t.lead, false); err == nil {
			dst = slices.Delete(dst, start, start+t.leadTokens)
		}
	} else {
		dst, err = t.raw(dst, text, false)
	}
	if err != nil {
		return nil, err
	}
	for i := start; i < len(dst); i++ {
		if !t.isMark(dst[i]) {
			continue
		}
		// SentencePiece merges characters to any token, control tokens too.
		spelled, err := t.spell(dst[i])
		if err != nil {
			return nil, err
		}
		dst = slices.Replace(dst, i, i+1, spelled...)
		i += len(spelled) - 1
	}
	return dst, nil
}

func (t *tokenizing) isMark(token llama.Token) bool {
	kind := t.vocab.Kind(token)
	return kind == llama.KindControl || kind == llama.KindUser
}

// spell is the text of a mark in ordinary tokens.
func (t *tokenizing) spell(token llama.Token) ([]llama.Token, error) {
	text := t.vocab.Piece(token)
	_, size := utf8.DecodeRune(text)
	if size == len(text) {
		return nil, fmt.Errorf("%q cannot be spelled without token %d: %w", text, token, llama.ErrInvalid)
	}
	dst, err := t.ordinary(nil, text[:size], true)
	if err != nil {
		return nil, err
	}
	return t.ordinary(dst, text[size:], true)
}

// raw appends llama.cpp's tokens of a text (llama_tokenize). Tests alone ask it
// to parse special texts.
func (t *tokenizing) raw(dst []llama.Token, text []byte, parseSpecial bool) ([]llama.Token, error) {
	room := len(text)/2 + 16
	for {
		dst = slices.Grow(dst, room)
		room = cap(dst) - len(dst)
		free := dst[len(dst):cap(dst)]
		code := C.b3_tokenize(t.model, (*C.char)(ptr(text)), C.int32_t(len(text)), (*C.int32_t)(ptr(free)), C.int32_t(min(room, math.MaxInt32)), cbool(parseSpecial), &t.count, &t.cerr)
		if code != C.B3_OK {
			return nil, shimError(code, &t.cerr)
		}
		if int(t.count) <= room {
			return dst[:len(dst)+int(t.count)], nil
		}
		room = int(t.count)
	}
}
