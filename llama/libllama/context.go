package libllama

// #include "shim.h"
import "C"

import (
	"fmt"
	"slices"

	"github.com/b3os/b3infer/llama"
)

// Context is a KV cache and the means to compute (llama_context).
type Context struct {
	handle *handle
	model  *Model
	c      *C.b3_context
	limits llama.Limits
	// ends are the sequences' last rows: what llama_memory_seq_pos_max says, kept
	// here so that a step need not ask.
	ends []end
	rows []end       // scratch of Decode: ends after the batch
	cerr *C.b3_error // scratch of Decode
	// outputs are the rows of the last Decode that have logits.
	outputs []bool
	sampler *sampler
}

// An end is the last row of a sequence.
type end struct {
	pos   llama.Pos // -1 when the sequence is empty
	image bool      // it is, or may be, a row of an image
}

var _ llama.Context = (*Context)(nil)

// ggmlType is ggml's number (ggml_type) for a format of the KV cache.
var ggmlType = map[llama.KVType]C.int32_t{"": 1, llama.KVF16: 1, llama.KVQ4_0: 2, llama.KVQ8_0: 8}

// NewContext allocates a KV cache and compute buffers (llama_init_from_model).
// Sliding windows get a full cache, so that their sequences can be cut back and
// copied like others.
func (m *Model) NewContext(p llama.ContextParams) (llama.Context, error) {
	c := &Context{model: m}
	h, err := open(c, "context", m.handle)
	if err != nil {
		return nil, err
	}
	c.handle = h
	if err := c.create(p); err != nil {
		_ = h.close(c.free)
		return nil, err
	}
	return c, nil
}

// create fills a context of c.model.
func (c *Context) create(p llama.ContextParams) error {
	m := c.model
	if err := m.checkContext(p); err != nil {
		return err
	}
	params := C.b3_context_params{
		cells:     C.uint32_t(p.Cells),
		sequences: C.uint32_t(p.Sequences),
		batch:     C.uint32_t(p.Batch),
		ubatch:    C.uint32_t(p.UBatch),
		// llama.cpp aborts when there are more sequences than outputs.
		outputs: C.uint32_t(max(p.Outputs, p.Sequences)),
		threads: C.int32_t(p.Threads),
		kv_type: ggmlType[p.KV],
	}
	c.cerr = new(C.b3_error)
	var limits [4]C.uint32_t
	if code := C.b3_context_new(m.c, &params, &c.c, &limits[0], c.cerr); code != C.B3_OK {
		return fmt.Errorf("create context: %w", shimError(code, c.cerr))
	}
	var err error
	if c.sampler, err = newSampler(m.vocab.Len(), p.Threads, bestKernels); err != nil {
		return err
	}
	c.limits = llama.Limits{
		Cells:         int(limits[0]),
		Sequences:     int(limits[1]),
		Batch:         int(limits[2]),
		UBatch:        int(limits[3]),
		Outputs:       int(params.outputs),
		RangeCopy:     !m.info.Hybrid,
		PartialRemove: !m.info.Hybrid,
	}
	c.ends = slices.Repeat([]end{{pos: -1}}, c.limits.Sequences)
	c.rows = slices.Clone(c.ends)
	return nil
}

func (m *Model) checkContext(p llama.ContextParams) error {
	_, kv := ggmlType[p.KV]
	bad := ""
	switch {
	case m.vocabOnly:
		bad = "the model was loaded without its weights"
	case m.encoder:
		bad = "the model is not one that only decodes"
	case p.Cells < 1:
		bad = fmt.Sprintf("%d cells", p.Cells)
	case p.Sequences < 1 || p.Sequences > llama.MaxSequences:
		bad = fmt.Sprintf("%d sequences", p.Sequences)
	case p.Batch < 1 || p.UBatch < 1 || p.UBatch > p.Batch:
		bad = fmt.Sprintf("batch %d, ubatch %d", p.Batch, p.UBatch)
	case p.Outputs < 0 || p.Outputs > p.Batch:
		bad = fmt.Sprintf("%d outputs of a batch of %d", p.Outputs, p.Batch)
	case p.Threads < 1 || p.Threads > m.backend.threads:
		bad = fmt.Sprintf("%d threads of %d", p.Threads, m.backend.threads)
	case !kv:
		bad = fmt.Sprintf("KV type %q", p.KV)
	default:
		return nil
	}
	return fmt.Errorf("create context: %s: %w", bad, llama.ErrInvalid)
}

// Limits is what the context really has.
func (c *Context) Limits() llama.Limits { return c.limits }

// Close frees the context (llama_free).
func (c *Context) Close() error { return c.handle.close(c.free) }

func (c *Context) free() {
	c.sampler.close()
	C.b3_context_free(c.c)
	c.c = nil
}

// checkSequence refuses ids that llama.cpp would abort on, and a closed context.
func (c *Context) checkSequence(ids ...llama.SeqID) error {
	if c.c == nil {
		return fmt.Errorf("context: %w", llama.ErrClosed)
	}
	for _, s := range ids {
		if s < 0 || int(s) >= len(c.ends) {
			return fmt.Errorf("sequence %d of %d: %w", s, len(c.ends), llama.ErrInvalid)
		}
	}
	return nil
}
