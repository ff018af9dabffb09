package engine

import (
	"sync"

	"github.com/b3os/b3infer/llama"
)

// An outbox carries a sequence's tokens from the scheduler to the goroutine
// that serves the request. Putting never blocks: the number of tokens is
// bounded by the request's MaxTokens.
type outbox struct {
	ready chan struct{} // holds one signal when there is something to take

	mu     sync.Mutex
	tokens []llama.Token
	ending *ending
}

// An ending is the last thing in an outbox.
type ending struct {
	reason FinishReason
	err    error
}

func newOutbox() *outbox { return &outbox{ready: make(chan struct{}, 1)} }

// put adds a token.
func (o *outbox) put(t llama.Token) {
	o.mu.Lock()
	o.tokens = append(o.tokens, t)
	o.mu.Unlock()
	o.signal()
}

// end adds the ending. There is exactly one per sequence.
func (o *outbox) end(e ending) {
	o.mu.Lock()
	if o.ending != nil {
		panic("engine: a second ending for one sequence")
	}
	o.ending = &e
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take returns what has come since the last call, in into's memory. The ending
// is nil until all tokens have been taken together with it.
func (o *outbox) take(into []llama.Token) ([]llama.Token, *ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	into = append(into[:0], o.tokens...)
	o.tokens = o.tokens[:0]
	return into, o.ending
}
