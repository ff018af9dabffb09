package mask

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// realVocabulary is a published vocabulary, out of the files of llama.cpp that
// scripts/build-llama keeps. Without them the test is skipped.
func realVocabulary(t testing.TB, name string) *Vocabulary {
	t.Helper()
	v, err := realVocabularies[name]()
	if err != nil {
		t.Fatal(err)
	}
	if v == nil {
		t.Skipf("no file ggml-vocab-%s.gguf: run scripts/build-llama cpu", name)
	}
	return v
}

// realNames are vocabularies of different makes: byte-level BPE, and pieces with
// tokens for bytes.
var realNames = []string{"qwen2", "gemma-4", "llama-bpe", "llama-spm", "deepseek-llm"}

var realVocabularies = func() map[string]func() (*Vocabulary, error) {
	out := map[string]func() (*Vocabulary, error){}
	for _, name := range realNames {
		out[name] = sync.OnceValues(func() (*Vocabulary, error) { return loadVocabulary(name) })
	}
	return out
}()

func loadVocabulary(name string) (*Vocabulary, error) {
	cache := os.Getenv("B3INFER_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		cache = filepath.Join(home, ".cache", "b3infer")
	}
	files, err := filepath.Glob(filepath.Join(cache, "llama", "*", "models", "ggml-vocab-"+name+".gguf"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	f, err := os.Open(files[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := ggufReader{r: bufio.NewReader(f)}
	meta := r.metadata()
	if r.err != nil {
		return nil, fmt.Errorf("%s: %w", files[0], r.err)
	}
	texts, kinds := meta["tokenizer.ggml.tokens"].([]any), meta["tokenizer.ggml.token_type"].([]any)
	isByteLevel := meta["tokenizer.ggml.pre"] != nil && meta["tokenizer.ggml.model"] == "gpt2"
	outTexts, outKinds := make([][]byte, len(texts)), make([]Kind, len(texts))
	for id, text := range texts {
		outTexts[id], outKinds[id] = realToken(text.(string), kinds[id].(int32), isByteLevel)
	}
	return NewVocabulary(outTexts, outKinds), nil
}

// The types of tokens (llama_token_type).
const (
	typeUnknown, typeControl, typeUser, typeUnused, typeByte = 2, 3, 4, 5, 6
)

// endTexts are the tokens that end the generation in these vocabularies.
var endTexts = []string{"<|im_end|>", "<|endoftext|>", "<eos>", "<|eot_id|>", "<turn|>", "</s>", "<｜end▁of▁sentence｜>"}

func realToken(text string, kind int32, isByteLevel bool) ([]byte, Kind) {
	switch kind {
	case typeUnknown, typeUnused:
		return []byte(text), Control
	case typeControl:
		if slices.Contains(endTexts, text) {
			return []byte(text), End
		}
		return []byte(text), Control
	case typeUser:
		if strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") {
			return []byte(text), Marker
		}
		return []byte(text), Text
	case typeByte:
		b, _ := strconv.ParseUint(strings.Trim(text, "<>"), 0, 8)
		return []byte{byte(b)}, Text
	}
	if isByteLevel {
		return byteLevel(text), Text
	}
	return []byte(strings.ReplaceAll(text, "▁", " ")), Text
}

// byteLevel undoes the spelling of bytes by printable characters in vocabularies
// of GPT-2's kind.
func byteLevel(text string) []byte {
	var out []byte
	for _, r := range text {
		switch {
		case r < 256:
			out = append(out, byte(r))
		case r < 256+33:
			out = append(out, byte(r-256))
		case r < 256+33+34:
			out = append(out, byte(r-256-33)+0x7f)
		default:
			out = append(out, 0xad)
		}
	}
	return out
}

// A ggufReader reads the metadata of a GGUF file.
type ggufReader struct {
	r   io.Reader
	err error
}

func (r *ggufReader) read(v any) {
	if r.err == nil {
		r.err = binary.Read(r.r, binary.LittleEndian, v)
	}
}

func (r *ggufReader) text() string {
	var n uint64
	r.read(&n)
	if r.err != nil || n > 1<<24 {
		return ""
	}
	b := make([]byte, n)
	if r.err == nil {
		_, r.err = io.ReadFull(r.r, b)
	}
	return string(b)
}

func (r *ggufReader) metadata() map[string]any {
	var head struct {
		Magic, Version uint32
		Tensors, Keys  uint64
	}
	r.read(&head)
	out := map[string]any{}
	for range head.Keys {
		if r.err != nil {
			break
		}
		key := r.text()
		var kind uint32
		r.read(&kind)
		out[key] = r.value(kind)
	}
	return out
}

func (r *ggufReader) value(kind uint32) any {
	switch kind {
	case 5:
		var b [4]byte
		if _, err := io.ReadFull(r.r, b[:]); r.err == nil {
			r.err = err
		}
		return int32(binary.LittleEndian.Uint32(b[:]))
	case 8:
		return r.text()
	case 9:
		var head struct {
			Kind  uint32
			Count uint64
		}
		r.read(&head.Kind)
		r.read(&head.Count)
		out := make([]any, 0, min(head.Count, 1<<20))
		for range head.Count {
			if r.err != nil {
				break
			}
			out = append(out, r.value(head.Kind))
		}
		return out
	}
	sizes := map[uint32]int{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
	b := make([]byte, sizes[kind])
	if _, err := io.ReadFull(r.r, b); r.err == nil {
		r.err = err
	}
	return b
}
