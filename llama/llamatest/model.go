package llamatest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/b3os/b3infer/llama"
)

// Options describes a fake model. The zero value is a plain model.
type Options struct {
	Name         string
	TrainContext int  // 4096 if 0
	VocabSize    int  // tokens, the last of them unused; at least those that the fake knows
	BOS          bool // prompts begin with <s>
	Hybrid       bool // has a recurrent state beside its cells
	// RecurrentBytes is the size of one saved recurrent state; 1024 if 0.
	RecurrentBytes int
	PosPerRow      int // 4: embedding rows have M-RoPE positions; 1 if 0
	Sampling       llama.SamplingDefaults
	// MeanAnswer is after how many tokens an answer ends on average if it has no
	// script; 64 if 0, never if negative.
	MeanAnswer int

	// Script gives the answer to a prompt, which is the text up to and with the
	// start of the assistant's turn; false leaves the prompt without a script.
	// The answer may hold special tokens' texts. The model says it with all but
	// certainty at the usual temperatures, and <|im_end|> after it. Where the
	// answer has left the script, because a mask or a bias forced it to, it goes
	// on as if there were none. Script must be a pure function; it may be called
	// by several goroutines at once.
	Script func(prompt string) (answer string, ok bool)
	// Refuse makes the chat template refuse conversations: an error of it comes
	// out of Render as an ErrTemplate.
	Refuse func(in llama.ChatInput) error
	// PrintDate has the system turn print ChatInput.Now.
	PrintDate bool
	// OnDecode is called in each Decode of a valid batch, before anything has
	// changed: to let a fake clock run, to block, or to fail. A *Fault fails as
	// llama_decode does halfway; any other error is returned with the context as
	// it was, so that llama.ErrNoKVSpace can be claimed although there is room.
	OnDecode func(b *llama.Batch) error
}

// Model is a fake llama.Model.
type Model struct {
	options Options
	vocab   *vocabulary
	// vocabOnly models have no weights to compute with (llama.ModelParams).
	vocabOnly bool
	closed    atomic.Bool

	mu       sync.Mutex
	contexts []*Context // not closed
}

var _ llama.Model = (*Model)(nil)

// embedding is the width of an input row.
const embedding = 8

// New makes a model.
func New(o Options) *Model {
	o.Name = cmp.Or(o.Name, "fake")
	o.TrainContext = cmp.Or(o.TrainContext, 4096)
	o.PosPerRow = cmp.Or(o.PosPerRow, 1)
	o.MeanAnswer = max(cmp.Or(o.MeanAnswer, 64), 0)
	if o.Hybrid {
		o.RecurrentBytes = max(cmp.Or(o.RecurrentBytes, 1024), stateWords*8)
	} else {
		o.RecurrentBytes = 0
	}
	return &Model{options: o, vocab: newVocabulary(o.VocabSize, o.BOS)}
}

// Info implements llama.Model.
func (m *Model) Info() llama.Info {
	return llama.Info{
		Name:           m.options.Name,
		Description:    "fake model for tests",
		TrainContext:   m.options.TrainContext,
		Embedding:      embedding,
		PosPerRow:      m.options.PosPerRow,
		Hybrid:         m.options.Hybrid,
		RecurrentBytes: uint64(m.options.RecurrentBytes),
		Sampling:       m.options.Sampling,
	}
}

// Vocab implements llama.Model.
func (m *Model) Vocab() *llama.Vocab { return m.vocab.Vocab }

// NewContext implements llama.Model. Nothing is rounded up, so that tests can
// have few cells; only Outputs is at least Sequences, as llama.cpp wants it.
func (m *Model) NewContext(p llama.ContextParams) (llama.Context, error) {
	switch {
	case m.closed.Load():
		return nil, fmt.Errorf("new context: %w", llama.ErrClosed)
	case m.vocabOnly:
		return nil, fmt.Errorf("new context: %w: the model was loaded for its vocabulary alone", llama.ErrInvalid)
	case p.Cells < 1 || p.Batch < 1 || p.UBatch < 1 || p.UBatch > p.Batch:
		return nil, fmt.Errorf("new context: %w: %d cells, batch %d, ubatch %d", llama.ErrInvalid, p.Cells, p.Batch, p.UBatch)
	case p.Sequences < 1 || p.Sequences > llama.MaxSequences:
		return nil, fmt.Errorf("new context: %w: %d sequences", llama.ErrInvalid, p.Sequences)
	case !slices.Contains([]llama.KVType{"", llama.KVF16, llama.KVQ8_0, llama.KVQ4_0}, p.KV):
		return nil, fmt.Errorf("new context: %w: KV type %q", llama.ErrInvalid, p.KV)
	}
	c := newContext(m, p)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contexts = append(m.contexts, c)
	return c, nil
}

// Contexts are the contexts that are not closed, in the order of their making.
func (m *Model) Contexts() []*Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.contexts)
}

func (m *Model) forget(c *Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contexts = slices.DeleteFunc(m.contexts, func(other *Context) bool { return other == c })
}

// Close implements llama.Model. It refuses while contexts are open, since
// llama.cpp would use freed memory then.
func (m *Model) Close() error {
	if open := len(m.Contexts()); open > 0 {
		return fmt.Errorf("close model: %w: %d contexts are open", llama.ErrInvalid, open)
	}
	m.closed.Store(true)
	return nil
}
