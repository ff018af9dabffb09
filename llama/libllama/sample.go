package libllama

// #include "shim_sample.h"
// #cgo noescape b3_sample
// #cgo noescape b3_sample_logits
// #cgo nocallback b3_sample_logits
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/b3os/b3infer/llama"
)

// C reads and writes these types of package llama in place.
var (
	_ [unsafe.Sizeof(llama.TokenCount{})]byte    = [unsafe.Sizeof(C.b3_count{})]byte{}
	_ [unsafe.Sizeof(llama.TokenBias{})]byte     = [unsafe.Sizeof(C.b3_bias{})]byte{}
	_ [unsafe.Sizeof(llama.Sampled{})]byte       = [unsafe.Sizeof(C.b3_sampled{})]byte{}
	_ [unsafe.Offsetof(llama.Sampled{}.N)]byte   = [unsafe.Offsetof(C.b3_sampled{}.n)]byte{}
	_ [unsafe.Offsetof(llama.Sampled{}.Top)]byte = [unsafe.Offsetof(C.b3_sampled{}.top)]byte{}
	_ [llama.MaxTop]byte                         = [C.B3_MAX_TOP]byte{}
)

// A sampler draws tokens (shim_sample.h). It keeps no state between calls, only
// memory and sleeping threads. It is for one goroutine at a time.
type sampler struct {
	c     *C.b3_sampler
	vocab int
	err   C.b3_error
	rows  []C.b3_sample_row
	pins  []runtime.Pinner // one per row: a Pinner holds five pointers without allocating
}

// bestKernels asks for the widest instruction set that the CPU has.
const bestKernels = -1

// newSampler makes a sampler for rows of vocab logits that uses up to threads
// threads. level is the instruction set, bestKernels but in tests.
func newSampler(vocab, threads, level int) (*sampler, error) {
	s := &sampler{vocab: vocab}
	if C.b3_sampler_new(C.int32_t(vocab), C.int32_t(max(threads, 1)), C.int32_t(level), &s.c, &s.err) != C.B3_OK {
		return nil, fmt.Errorf("create sampler: %s", C.GoString(&s.err.text[0]))
	}
	return s, nil
}

// close may be called twice, and on nil.
func (s *sampler) close() {
	if s != nil {
		C.b3_sampler_free(s.c)
		s.c = nil
	}
}

// Sample draws one token per row from the logits of the last Decode, all rows
// in one crossing (b3_sample over llama_get_logits_ith). The context's threads
// share the rows where that pays. It does not allocate.
func (c *Context) Sample(rows []llama.SampleRow, masks []uint64, out []llama.Sampled) error {
	if c.c == nil {
		return fmt.Errorf("sample: %w", llama.ErrClosed)
	}
	for i := range rows {
		if o := int(rows[i].Output); o < 0 || o >= len(c.outputs) || !c.outputs[o] {
			return fmt.Errorf("sample row %d: row %d of the last Decode has no logits: %w", i, o, llama.ErrInvalid)
		}
	}
	return c.sampler.sample(c.c, rows, masks, out)
}

// sample draws from the last decode of ctx. The outputs of rows must have
// logits.
func (s *sampler) sample(ctx *C.b3_context, rows []llama.SampleRow, masks []uint64, out []llama.Sampled) error {
	if err := s.take(rows, masks, out); err != nil || len(rows) == 0 {
		return err
	}
	defer s.release()
	return s.result(C.b3_sample(s.c, ctx, &s.rows[0], C.int32_t(len(rows)),
		(*C.uint64_t)(unsafe.SliceData(masks)), sampledPointer(out), &s.err))
}

// sampleLogits draws from rows of logits that stand end to end.
func (s *sampler) sampleLogits(logits []float32, rows []llama.SampleRow, masks []uint64, out []llama.Sampled) error {
	for i := range rows {
		if o := int(rows[i].Output); o < 0 || (o+1)*s.vocab > len(logits) {
			return fmt.Errorf("sample row %d: output %d: %w", i, o, llama.ErrInvalid)
		}
	}
	if err := s.take(rows, masks, out); err != nil || len(rows) == 0 {
		return err
	}
	defer s.release()
	return s.result(C.b3_sample_logits(s.c, (*C.float)(&logits[0]), &s.rows[0], C.int32_t(len(rows)),
		(*C.uint64_t)(unsafe.SliceData(masks)), sampledPointer(out), &s.err))
}

func sampledPointer(out []llama.Sampled) *C.b3_sampled {
	return (*C.b3_sampled)(unsafe.Pointer(unsafe.SliceData(out)))
}

func (s *sampler) result(code C.int) error {
	if code == C.B3_OK {
		return nil
	}
	err := shimError(code, &s.err)
	if code == C.B3_FAILED {
		return fmt.Errorf("sample: %w: %w", err, llama.ErrInvalid)
	}
	return fmt.Errorf("sample: %w", err)
}

// take checks rows and turns them into C's, with their lists pinned.
func (s *sampler) take(rows []llama.SampleRow, masks []uint64, out []llama.Sampled) error {
	if len(out) != len(rows) {
		return fmt.Errorf("sample %d rows into %d: %w", len(rows), len(out), llama.ErrInvalid)
	}
	sets := len(masks) / llama.MaskWords(s.vocab)
	for i := range rows {
		if what := s.wrong(&rows[i], sets); what != "" {
			return fmt.Errorf("sample row %d: %s: %w", i, what, llama.ErrInvalid)
		}
	}
	if n := len(rows); n > len(s.rows) {
		s.rows = make([]C.b3_sample_row, n)
		s.pins = make([]runtime.Pinner, n)
	}
	for i := range rows {
		s.fill(i, &rows[i])
	}
	return nil
}

// wrong names what is out of range in a row, or nothing.
func (s *sampler) wrong(r *llama.SampleRow, masks int) string {
	p := r.P
	switch {
	case p == nil:
		return "no parameters"
	case !(p.Temperature >= 0 && p.Temperature <= math.MaxFloat32):
		return "temperature"
	case !(p.TopP >= 0 && p.TopP <= 1):
		return "top-p"
	case !(p.MinP >= 0 && p.MinP <= 1):
		return "min-p"
	case !(p.Repetition >= 0 && p.Repetition <= math.MaxFloat32):
		return "repetition penalty"
	case !finite(p.Presence) || !finite(p.Frequency):
		return "presence or frequency penalty"
	case r.Mask < -1 || int(r.Mask) >= masks:
		return "mask"
	case r.Top < -1 || r.Top > llama.MaxTop:
		return "number of logprobs"
	case len(r.Counts) > s.vocab || len(r.Bias) > s.vocab:
		return "more counts or biases than tokens"
	}
	for _, b := range r.Bias {
		if b.Token < 0 || int(b.Token) >= s.vocab || !(b.Bias <= math.MaxFloat32) {
			return "bias"
		}
	}
	return ""
}

func finite(x float32) bool { return x >= -math.MaxFloat32 && x <= math.MaxFloat32 }

func (s *sampler) fill(i int, r *llama.SampleRow) {
	p := r.P
	c := C.b3_sample_row{
		output: C.int32_t(r.Output), mask: C.int32_t(r.Mask),
		seed: C.uint64_t(r.Seed), step: C.uint64_t(r.Step),
		temperature: C.float(p.Temperature), top_k: C.int32_t(p.TopK), top_p: C.float(p.TopP), min_p: C.float(p.MinP),
		presence: C.float(p.Presence), frequency: C.float(p.Frequency), repetition: C.float(p.Repetition),
		top: C.int32_t(r.Top),
	}
	if p.Repetition == 0 {
		c.repetition = 1
	}
	if penalizes := c.presence != 0 || c.frequency != 0 || c.repetition != 1; penalizes && len(r.Counts) > 0 {
		c.counts, c.n_counts = (*C.b3_count)(unsafe.Pointer(&r.Counts[0])), C.int32_t(len(r.Counts))
		s.pins[i].Pin(&r.Counts[0])
	}
	if len(r.Bias) > 0 {
		c.biases, c.n_biases = (*C.b3_bias)(unsafe.Pointer(&r.Bias[0])), C.int32_t(len(r.Bias))
		s.pins[i].Pin(&r.Bias[0])
	}
	s.rows[i] = c
}

// release forgets the rows. C must not meet pointers of an earlier call.
func (s *sampler) release() {
	for i := range s.pins {
		s.pins[i].Unpin()
	}
	clear(s.rows)
}
