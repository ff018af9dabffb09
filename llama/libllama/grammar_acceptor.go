package libllama

// #include <stdlib.h>
// #include "shim_grammar.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/b3os/b3infer/llama"
)

// A textVerdict is what llama.cpp's grammar says of a text.
type textVerdict uint8

const (
	textRefused  textVerdict = C.B3_TEXT_REFUSED
	textAccepted textVerdict = C.B3_TEXT_ACCEPTED
	textMasked   textVerdict = C.B3_TEXT_MASKED // accepted, but the mask refuses a byte of a longer character
	textLate     textVerdict = C.B3_TEXT_LATE   // it took longer than it may
)

func (v textVerdict) String() string {
	return [...]string{"refused", "accepted", "accepted behind a mask that refuses it", "too slow"}[v]
}

// errGrammar is the error for a grammar that llama.cpp refuses.
var errGrammar = errors.New("llama.cpp refuses the grammar")

// readWithGrammar gives texts to llama.cpp's grammar sampler, byte by byte, for each
// at most so long. It is what package grammar is held against in tests; the server
// uses nothing of it.
func (m *Model) readWithGrammar(gbnf string, texts []string, most time.Duration) ([]textVerdict, error) {
	if strings.ContainsRune(gbnf, 0) || len(texts) == 0 {
		return nil, fmt.Errorf("a grammar with NUL, or no texts: %w", llama.ErrInvalid)
	}
	done, err := m.handle.use()
	if err != nil {
		return nil, err
	}
	defer done()
	tokens, end, err := byteTokens(m.vocab)
	if err != nil {
		return nil, err
	}
	sizes := make([]C.size_t, len(texts))
	for i, text := range texts {
		sizes[i] = C.size_t(len(text))
	}
	all := []byte(strings.Join(texts, "") + "\x00") // never empty, so that it has an address
	verdicts := make([]textVerdict, len(texts))
	cgbnf := C.CString(gbnf)
	defer C.free(unsafe.Pointer(cgbnf))
	var cerr C.b3_error
	code := C.b3_grammar_read(m.c, cgbnf, &tokens[0], end, (*C.char)(ptr(all)), &sizes[0], C.size_t(len(sizes)),
		C.int32_t(most.Milliseconds()), (*C.uint8_t)(ptr(verdicts)), &cerr)
	switch code {
	case C.B3_OK:
		return verdicts, nil
	case C.B3_FAILED:
		return nil, fmt.Errorf("%w: %s", errGrammar, C.GoString(&cerr.text[0]))
	}
	return nil, shimError(code, &cerr)
}

// byteTokens are the tokens of one byte each, and one that ends a generation.
func byteTokens(v *llama.Vocab) (tokens [256]C.int32_t, end C.int32_t, err error) {
	missing := 256
	var have [256]bool
	for t := range v.Len() {
		token := llama.Token(t)
		if piece := v.Piece(token); len(piece) == 1 && v.Kind(token) == llama.KindNormal && !have[piece[0]] {
			tokens[piece[0]], have[piece[0]] = C.int32_t(t), true
			missing--
		}
	}
	if missing > 0 || len(v.Ends()) == 0 {
		return tokens, 0, fmt.Errorf("a vocabulary without %d bytes, with %d ends: %w", missing, len(v.Ends()), llama.ErrInvalid)
	}
	return tokens, C.int32_t(v.Ends()[0]), nil
}
