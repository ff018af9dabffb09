package llama

// KVType is the number format of the KV cache.
type KVType string

// The formats that flash attention works with on every backend.
const (
	KVF16  KVType = "f16"
	KVQ8_0 KVType = "q8_0"
	KVQ4_0 KVType = "q4_0"
)

// ContextParams sizes a context (llama_context_params). The KV cache is one
// unified pool of cells that all sequences share, and flash attention is on.
type ContextParams struct {
	Cells     int    // tokens that the KV cache holds in all (n_ctx)
	Sequences int    // sequence ids, at most MaxSequences (n_seq_max)
	Batch     int    // most rows of one Decode (n_batch)
	UBatch    int    // most rows computed at a time (n_ubatch)
	Outputs   int    // most rows with logits of one Decode (n_outputs_max)
	Threads   int    // CPU threads that this context uses (n_threads)
	KV        KVType // format of keys and values; empty means f16
}

// MaxSequences is llama.cpp's limit on sequence ids (LLAMA_MAX_SEQ).
const MaxSequences = 256

// Limits is what a context really has; llama.cpp rounds some of what was asked.
type Limits struct {
	Cells, Sequences, Batch, UBatch, Outputs int
	// RangeCopy: SeqCopy may copy a part of a sequence. False on hybrids, whose
	// recurrent state is copied whole, so that only all of a sequence makes sense.
	RangeCopy bool
	// PartialRemove: SeqRemove may cut off the end of a sequence. False on
	// hybrids, whose recurrent state cannot be taken back.
	PartialRemove bool
}

// A Batch is what one Decode computes (llama_batch): rows of tokens or of
// embeddings, never both. All slices have one entry a row, but for Embd (see
// Info.Embedding) and the positions of embedding rows (see Info.PosPerRow).
type Batch struct {
	Token     []Token
	Embd      []float32
	Pos       []Pos
	Seq       []SeqID
	Output    []bool // rows whose logits are wanted
	NonCausal bool   // rows see each other both ways; all must fit one UBatch
}

// Len is the number of rows.
func (b *Batch) Len() int { return len(b.Seq) }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Token, b.Embd, b.Pos = b.Token[:0], b.Embd[:0], b.Pos[:0]
	b.Seq, b.Output, b.NonCausal = b.Seq[:0], b.Output[:0], false
}

// Add appends a row that holds a token.
func (b *Batch) Add(t Token, pos Pos, seq SeqID, output bool) {
	b.Token = append(b.Token, t)
	b.Pos = append(b.Pos, pos)
	b.Seq = append(b.Seq, seq)
	b.Output = append(b.Output, output)
}

// A Context is a KV cache and the means to compute (llama_context). It is for
// one goroutine at a time. Arguments are checked in Go: what llama.cpp would
// answer with an abort of the process is an error that wraps ErrInvalid.
type Context interface {
	Limits() Limits
	// Decode computes a batch and waits for the result (llama_decode,
	// llama_synchronize). The positions of a sequence must follow on each other,
	// from 0 or from where the sequence ends. It returns ErrNoKVSpace when the
	// cells do not suffice, with the cache as it was before, or a *DecodeError.
	Decode(b *Batch) error
	// Sample draws one token per row from the logits of the last Decode, all rows
	// in one crossing, rows in parallel. The results do not depend on the other
	// rows, on their order or on earlier calls. masks holds the bitmasks that rows
	// refer to, each of MaskWords(vocabulary) words; out has one entry a row.
	Sample(rows []SampleRow, masks []uint64, out []Sampled) error
	// SeqCopy makes dst share the cells of src in [from, to); negative bounds are
	// open (llama_memory_seq_cp). dst must not hold anything at these positions.
	SeqCopy(src, dst SeqID, from, to Pos) error
	// SeqRemove takes the cells in [from, to) from a sequence; negative bounds are
	// open (llama_memory_seq_rm). It returns ErrPartial when this would cut a
	// state that cannot be cut, and then changes nothing.
	SeqRemove(s SeqID, from, to Pos) error
	// SeqRange is the first and last position held, -1 and -1 for an empty
	// sequence (llama_memory_seq_pos_min, _max). On hybrids both are where the
	// recurrent state is.
	SeqRange(s SeqID) (first, last Pos)
	// StateSize is the buffer that StateSave needs (llama_state_seq_get_size_ext).
	// partial means only what cannot be recomputed from cells: recurrent state and
	// sliding windows.
	StateSize(s SeqID, partial bool) (int, error)
	// StateSave copies a sequence's state to dst and returns its length
	// (llama_state_seq_get_data_ext).
	StateSave(s SeqID, dst []byte, partial bool) (int, error)
	// StateLoad puts a saved state into s (llama_state_seq_set_data_ext). Unless
	// partial, s must be empty.
	StateLoad(s SeqID, src []byte, partial bool) error
	// Close frees the context (llama_free). It may be called twice.
	Close() error
}
