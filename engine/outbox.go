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

	mu sync.Mutex
	delivery
	ending *ending
}

// A delivery is tokens in the order of the answer.
type delivery struct {
	tokens []llama.Token
	// logprobs are those of each token, if the request asks for them.
	logprobs [][]llama.TokenLogprob
}

// An ending is the last thing in an outbox.
type ending struct {
	reason FinishReason
	err    error
}

func newOutbox() *outbox { return &outbox{ready: make(chan struct{}, 1)} }

// put adds a token. Its logprobs are nil for all tokens of a sequence, or for none.
func (o *outbox) put(t llama.Token, logprobs []llama.TokenLogprob) {
	o.mu.Lock()
	o.tokens = append(o.tokens, t)
	if logprobs != nil {
		o.logprobs = append(o.logprobs, logprobs)
	}
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
func (o *outbox) take(into delivery) (delivery, *ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	into.tokens = append(into.tokens[:0], o.tokens...)
	into.logprobs = append(into.logprobs[:0], o.logprobs...)
	o.tokens, o.logprobs = o.tokens[:0], o.logprobs[:0]
	return into, o.ending
}
