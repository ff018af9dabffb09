package llama

// Token is an index into a model's vocabulary (llama_token).
type Token int32

// Pos is a place in a sequence as the model's positional encoding counts it
// (llama_pos). A text token advances it by one; an image may advance it by
// less than its number of rows.
type Pos int32

// SeqID names a sequence in a context's KV cache (llama_seq_id). Valid ids are
// 0 to Limits.Sequences-1.
type SeqID int32

// A Backend holds what is one per process: the compute devices and llama.cpp's
// log.
type Backend interface {
	// Devices lists what models can run on (ggml_backend_dev_count).
	Devices() []Device
	// Version is llama.cpp's version and commit.
	Version() string
	// Load reads a GGUF file (llama_model_load_from_file). It returns an error
	// that wraps ErrLoad when the file is missing, cut short or not understood.
	Load(path string, p ModelParams) (Model, error)
	// Close ends the use of llama.cpp. Models must be closed before.
	Close() error
}

// A Device is something that llama.cpp can compute on (ggml_backend_dev_t).
type Device struct {
	Name        string // as ggml names it: CPU, CUDA0
	Description string // the hardware's own name
	GPU         bool
	Free, Total uint64 // bytes of memory; 0 when the device does not say
}

// ModelParams says how a model file is loaded (llama_model_params).
type ModelParams struct {
	// GPULayers is the number of layers kept in device memory; negative means all.
	GPULayers int
	// Progress is called with the loaded share, 0 to 1, from the loading
	// goroutine. When it returns false, loading stops with ErrLoad.
	Progress func(done float32) bool
	// VocabOnly reads the vocabulary and metadata alone: enough to tokenize and
	// to render, not to create a context.
	VocabOnly bool
}

// A Model is the weights and vocabulary of one GGUF file (llama_model).
type Model interface {
	Info() Info
	Vocab() *Vocab
	// Tokenize appends the tokens of parts to dst (llama_tokenize). Only parts
	// with Special set may yield control or user-defined tokens; any text in the
	// other parts, whatever it spells, becomes ordinary tokens. A
	// beginning-of-sequence token is put in front when bos is set and the model's
	// vocabulary asks for one. Image parts are not accepted.
	Tokenize(dst []Token, parts []Part, bos bool) ([]Token, error)
	// NewContext allocates a KV cache and compute buffers (llama_init_from_model).
	NewContext(p ContextParams) (Context, error)
	// NewChat prepares a chat template (common_chat_templates_init).
	NewChat(p ChatParams) (Chat, error)
	// Close frees the model (llama_model_free). It may be called twice.
	Close() error
}

// Info is what a model file says about itself.
type Info struct {
	Name           string // general.name, may be empty
	Description    string // llama_model_desc: architecture, size and quantization
	Parameters     uint64 // llama_model_n_params
	Size           uint64 // llama_model_size: bytes of all tensors
	TrainContext   int    // llama_model_n_ctx_train
	Embedding      int    // llama_model_n_embd_inp: floats in an input row
	PosPerRow      int    // positions that an embedding row takes: 4 with M-RoPE, else 1
	Hybrid         bool   // llama_model_is_hybrid or _is_recurrent: state that cannot be cut back
	SWA            bool   // llama_model_n_swa: some layers see a sliding window only
	RecurrentBytes uint64 // bytes of one sequence's recurrent state; 0 without
	// Sampling is what the file recommends (general.sampling.*); nil fields are
	// not given there.
	Sampling SamplingDefaults
}

// SamplingDefaults are the sampling parameters that a model's file recommends.
type SamplingDefaults struct {
	Temperature, TopP, MinP, RepetitionPenalty *float32
	TopK                                       *int32
}

// A Part is a piece of a rendered prompt: control text of the template, text
// of a user or tool, or an image.
type Part struct {
	Text    []byte
	Special bool // written by the template: may become control tokens
	Image   int  // 1 for the request's first image, 2 for the next; 0 for text
}
