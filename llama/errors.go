package llama

import (
	"errors"
	"fmt"
)

var (
	// ErrLoad means that a model file could not be loaded.
	ErrLoad = errors.New("model cannot be loaded")
	// ErrNoKVSpace means that the KV cache has no room for a batch
	// (llama_decode's 1). The cache is as it was before.
	ErrNoKVSpace = errors.New("no room in the KV cache")
	// ErrInvalid means that an argument is out of range: a mistake of the caller
	// that llama.cpp would answer with an abort.
	ErrInvalid = errors.New("invalid argument")
	// ErrPartial means that a sequence's state cannot be cut or copied in part.
	ErrPartial = errors.New("state cannot be cut")
	// ErrTemplate means that a chat template is broken or refuses a conversation.
	ErrTemplate = errors.New("chat template")
	// ErrClosed means that a handle was used after Close.
	ErrClosed = errors.New("already closed")
)

// A DecodeError is a failed computation (llama_decode below 0 or 2). The
// sequences in Lost do not hold all of their rows any more: they must be
// removed whole and computed again or given up.
type DecodeError struct {
	Code int // llama_decode's result
	Lost []SeqID
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("llama_decode failed with %d; %d sequences lost", e.Code, len(e.Lost))
}
