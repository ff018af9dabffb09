package libllama

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/cgo"
	"strconv"
	"unsafe"

	"github.com/b3os/b3infer/llama"
)

// Model is a loaded GGUF file (llama_model).
type Model struct {
	handle    *handle
	backend   *Backend
	c         *C.struct_llama_model
	info      llama.Info
	vocab     *llama.Vocab
	tokenizer *tokenizer
	vocabOnly bool
	encoder   bool // it is no model that only decodes
}

var _ llama.Model = (*Model)(nil)

// Load reads a GGUF file (llama_model_load_from_file), mapped into memory. Its
// errors wrap ErrLoad and are one line.
func (b *Backend) Load(path string, p llama.ModelParams) (llama.Model, error) {
	m := &Model{backend: b, vocabOnly: p.VocabOnly}
	h, err := open(m, "model", b.handle)
	if err != nil {
		return nil, err
	}
	m.handle = h
	if err := m.load(path, p); err != nil {
		_ = h.close(m.free)
		return nil, fmt.Errorf("load %s: %w: %w", path, llama.ErrLoad, err)
	}
	return m, nil
}

func (m *Model) load(path string, p llama.ModelParams) error {
	if err := checkFile(path); err != nil {
		return err
	}
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	progress := cgo.NewHandle(p.Progress)
	defer progress.Delete()
	var cerr C.b3_error
	code := C.b3_model_load(cpath, C.int32_t(p.GPULayers), cbool(p.VocabOnly), C.uintptr_t(progress), &m.c, &cerr)
	if code != C.B3_OK {
		return shimError(code, &cerr)
	}
	vocab, specials, err := loadVocab(m.c)
	if err != nil {
		return err
	}
	m.vocab = vocab
	if m.tokenizer, err = newTokenizer(m.c, vocab, specials); err != nil {
		return err
	}
	return m.readInfo()
}

// checkFile finds what llama.cpp would report in its own words or hang on.
func checkFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			return pathErr.Err // Load names the path
		}
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.IsDir() {
		return errors.New("is a folder, not a GGUF file")
	}
	if !st.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	magic := make([]byte, 4)
	if n, _ := io.ReadFull(f, magic); string(magic[:n]) != "GGUF" {
		return errors.New("not a GGUF file")
	}
	return nil
}

func (m *Model) readInfo() error {
	var c C.b3_model_info
	C.b3_model_get_info(m.c, &c)
	m.encoder = c.encoder != 0 || c.decoder == 0
	m.info = llama.Info{
		Name:         m.meta("general.name"),
		Description:  cstring(func(buf *C.char, n C.size_t) C.int32_t { return C.b3_model_desc(m.c, buf, n) }),
		Parameters:   uint64(c.parameters),
		Size:         uint64(c.size),
		TrainContext: int(c.train_context),
		Embedding:    int(c.embedding),
		PosPerRow:    1,
		Hybrid:       c.recurrent != 0,
		SWA:          c.swa > 0,
		Sampling: llama.SamplingDefaults{
			Temperature:       m.metaFloat("general.sampling.temp"),
			TopK:              m.metaInt("general.sampling.top_k"),
			TopP:              m.metaFloat("general.sampling.top_p"),
			MinP:              m.metaFloat("general.sampling.min_p"),
			RepetitionPenalty: m.metaFloat("general.sampling.penalty_repeat"),
		},
	}
	if c.mrope != 0 {
		m.info.PosPerRow = 4
	}
	if !m.info.Hybrid || m.vocabOnly || m.encoder {
		return nil
	}
	var err error
	m.info.RecurrentBytes, err = m.measureRecurrent()
	return err
}

// measureRecurrent is the length of a sequence's recurrent state. llama.h does
// not tell it, so one token is computed and its state measured.
func (m *Model) measureRecurrent() (uint64, error) {
	c := &Context{model: m}
	defer c.free()
	if err := c.create(llama.ContextParams{Cells: 256, Sequences: 1, Batch: 1, UBatch: 1, Outputs: 1, Threads: 1}); err != nil {
		return 0, err
	}
	var b llama.Batch
	b.Add(0, 0, 0, false)
	if err := c.Decode(&b); err != nil {
		return 0, err
	}
	n, err := c.StateSize(0, true)
	return uint64(n), err
}

// meta is a metadata value as text, empty when the file has none
// (llama_model_meta_val_str).
func (m *Model) meta(key string) string {
	ckey := C.CString(key)
	defer C.free(unsafe.Pointer(ckey))
	return cstring(func(buf *C.char, n C.size_t) C.int32_t { return C.b3_model_meta(m.c, ckey, buf, n) })
}

func (m *Model) metaFloat(key string) *float32 {
	v, err := strconv.ParseFloat(m.meta(key), 32)
	if err != nil {
		return nil
	}
	f := float32(v)
	return &f
}

func (m *Model) metaInt(key string) *int32 {
	v, err := strconv.ParseInt(m.meta(key), 10, 32)
	if err != nil {
		return nil
	}
	i := int32(v)
	return &i
}

// Info is what the file says about itself.
func (m *Model) Info() llama.Info { return m.info }

// Vocab is the table of tokens. It stays valid after Close.
func (m *Model) Vocab() *llama.Vocab { return m.vocab }

// NewChat prepares a chat template (common_chat_templates_init).
func (m *Model) NewChat(p llama.ChatParams) (llama.Chat, error) {
	done, err := m.handle.use()
	if err != nil {
		return nil, err
	}
	defer done()
	return newChat(m, p)
}

// Close frees the model (llama_model_free). It fails while contexts or chats
// of it are open.
func (m *Model) Close() error { return m.handle.close(m.free) }

func (m *Model) free() {
	if m.c != nil {
		C.b3_model_free(m.c)
		m.c = nil
	}
}
