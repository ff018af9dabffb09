package libllama

// #include "shim.h"
import "C"

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/b3os/b3infer/llama"
)

// Token attributes (llama_token_attr).
const (
	attrUnknown = 1 << 0
	attrUnused  = 1 << 1
	attrNormal  = 1 << 2
	attrControl = 1 << 3
	attrUser    = 1 << 4
	attrByte    = 1 << 5
	attrLStrip  = 1 << 7
	attrRStrip  = 1 << 8
)

// Kinds of vocabularies: LLAMA_VOCAB_TYPE_SPM and _BPE.
const vocabSPM, vocabBPE = 1, 2

// loadVocab reads the table of tokens in two crossings.
func loadVocab(model *C.struct_llama_model) (*llama.Vocab, []special, error) {
	var tokens C.int32_t
	var bytes C.size_t
	var cerr C.b3_error
	if code := C.b3_vocab_size(model, &tokens, &bytes, &cerr); code != C.B3_OK {
		return nil, nil, shimError(code, &cerr)
	}
	n := int(tokens)
	text := make([]byte, int(bytes)+1) // never empty, so that it has an address
	offsets := make([]C.uint32_t, n+1)
	attr := make([]C.uint16_t, n+1)
	eog := make([]C.uint8_t, n+1)
	code := C.b3_vocab_fill(model, (*C.char)(ptr(text)), &offsets[0], &attr[0], &eog[0], &cerr)
	if code != C.B3_OK {
		return nil, nil, shimError(code, &cerr)
	}

	table := make([]llama.VocabToken, n)
	var specials []special
	for t := range table {
		piece := text[offsets[t]:offsets[t+1]]
		a := int(attr[t])
		table[t] = llama.VocabToken{Piece: piece, Kind: kind(a, piece), End: eog[t] != 0}
		// Tokens that llama.cpp looks for first; the user-defined that are no marks
		// it finds without our help.
		if a&(attrControl|attrUnknown) != 0 && len(piece) > 0 || table[t].Kind == llama.KindUser {
			specials = append(specials, special{
				token:  llama.Token(t),
				text:   string(piece),
				lstrip: a&attrLStrip != 0,
				rstrip: a&attrRStrip != 0,
			})
		}
	}
	return llama.NewVocab(table, llama.Token(C.b3_vocab_bos(model))), specials, nil
}

// kind maps a token's attributes. User-defined tokens that are no marks are
// pieces of text like any other.
func kind(attr int, piece []byte) llama.Kind {
	switch {
	case attr&attrControl != 0:
		return llama.KindControl
	case attr&attrUser != 0 && isMark(string(piece)):
		return llama.KindUser
	case attr&attrUser != 0, attr&attrNormal != 0:
		return llama.KindNormal
	case attr&attrByte != 0:
		return llama.KindByte
	default:
		return llama.KindUnused
	}
}

// isMark tells whether a user-defined token can mean anything but its text.
// Some vocabularies define runs of white space (GPT-NeoX, Gemma) or single
// characters (DeepSeek) as user-defined only to keep them whole: models know
// ordinary text by them.
func isMark(text string) bool {
	if utf8.RuneCountInString(text) <= 1 {
		return false
	}
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\u2581' && !unicode.IsSpace(r) })
}
