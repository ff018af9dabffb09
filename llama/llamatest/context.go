package llamatest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/b3os/b3infer/llama"
)

// A Context is a fake llama.Context. The methods of llama.Context panic when
// two goroutines are in them at once; the others may be called at any time.
type Context struct {
	model  *Model
	limits llama.Limits
	busy   atomic.Bool // a method of llama.Context is at work

	mu        sync.Mutex
	closed    bool
	cells     cache
	sequences []sequence

	rows    []outlook // of the last Decode
	wanted  []bool    // its rows that have logits
	tokens  []llama.Token
	order   order
	sampler *sampler
}

var _ llama.Context = (*Context)(nil)

func newContext(m *Model, p llama.ContextParams) *Context {
	return &Context{
		model: m,
		limits: llama.Limits{
			Cells: p.Cells, Sequences: p.Sequences, Batch: p.Batch, UBatch: p.UBatch,
			Outputs:   max(p.Outputs, p.Sequences),
			RangeCopy: !m.options.Hybrid, PartialRemove: !m.options.Hybrid,
		},
		cells:     newCache(p.Cells),
		sequences: newSequences(p.Sequences),
		order:     newOrder(p.Sequences),
		rows:      make([]outlook, 0, p.Batch),
		wanted:    make([]bool, 0, p.Batch),
		sampler:   newSampler(m.vocab.Len()),
	}
}

// Limits implements llama.Context.
func (c *Context) Limits() llama.Limits { return c.limits }

// enter claims the context for one call of llama.Context's methods.
func (c *Context) enter() {
	if !c.busy.CompareAndSwap(false, true) {
		panic("llamatest: two goroutines use a context at once")
	}
}

func (c *Context) leave() { c.busy.Store(false) }

// lock is for the part of a call that reads or changes the context's state.
func (c *Context) lock(verb string) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return fmt.Errorf("%s: %w", verb, llama.ErrClosed)
	}
	return nil
}

// Sample implements llama.Context.
func (c *Context) Sample(rows []llama.SampleRow, masks []uint64, out []llama.Sampled) error {
	c.enter()
	defer c.leave()
	if err := c.lock("sample"); err != nil {
		return err
	}
	defer c.mu.Unlock()
	if len(out) != len(rows) {
		return fmt.Errorf("sample: %w: %d rows, %d results", llama.ErrInvalid, len(rows), len(out))
	}
	for i := range rows {
		row := &rows[i]
		if row.Output < 0 || int(row.Output) >= len(c.wanted) || !c.wanted[row.Output] {
			return fmt.Errorf("sample: row %d: %w: batch row %d has no logits", i, llama.ErrInvalid, row.Output)
		}
		if err := c.sampler.check(row, masks); err != nil {
			return fmt.Errorf("sample: row %d: %w", i, err)
		}
	}
	words := llama.MaskWords(c.model.vocab.Len())
	for i := range rows {
		var mask []uint64
		if m := int(rows[i].Mask); m >= 0 {
			mask = masks[m*words : (m+1)*words]
			if n := rows[i].Allowed; n != 0 && int(n) != setBits(mask, c.model.vocab.Len()) {
				return fmt.Errorf("sample: row %d: %w: the mask does not allow %d tokens", i, llama.ErrInvalid, n)
			}
		}
		c.model.logits(c.rows[rows[i].Output], c.sampler.logits)
		c.sampler.sample(&rows[i], mask, &out[i])
	}
	return nil
}

// Close implements llama.Context.
func (c *Context) Close() error {
	c.enter()
	defer c.leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.model.forget(c)
	}
	return nil
}

// UsedCells is the number of cells that some sequence holds.
func (c *Context) UsedCells() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cells.used
}

// UsedSequences are the sequence ids that hold cells, in order.
func (c *Context) UsedSequences() []llama.SeqID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var used []llama.SeqID
	for s := range c.sequences {
		if len(c.sequences[s].cells) > 0 {
			used = append(used, llama.SeqID(s))
		}
	}
	return used
}

// Tokens are the tokens that a sequence holds, in order; embeddings are
// NoToken.
func (c *Context) Tokens(s llama.SeqID) []llama.Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.appendTokens(nil, c.sequences[s].cells)
}

// AssertEmpty fails the test when a sequence still holds cells.
func (c *Context) AssertEmpty(t testing.TB) {
	t.Helper()
	if used := c.UsedSequences(); len(used) > 0 {
		t.Errorf("sequences %v still hold %d cells", used, c.UsedCells())
	}
}

func (c *Context) appendTokens(dst []llama.Token, cells []int32) []llama.Token {
	for _, i := range cells {
		dst = append(dst, c.cells.cells[i].token)
	}
	return dst
}
