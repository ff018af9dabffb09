package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Facts are what a model file says about itself.
type Facts struct {
	Files        []string // the file, or all parts of a split model in order
	Architecture string   // general.architecture, such as qwen35
	Name         string   // general.name; may be empty
	Quantization string   // as file names spell it, such as Q4_K_M
	Parameters   uint64   // llama_model_n_params
	WeightBytes  uint64   // bytes of all tensors (llama_model_size); 0 in a file of a vocabulary alone
	Context      int      // tokens the model was trained for; 0 if it does not say
	Embedding    int      // numbers per token between the layers
	FeedForward  int      // the widest layer inside a feed-forward network
	Vocabulary   int      // tokens; 0 if the file holds none
	Window       int      // tokens that a sliding window spans; 0 without
	ChatTemplate bool     // the file holds a chat template
	Layers       []Layer
	Sampling     Sampling
}

// Sampling are the sampling parameters that the file recommends; nil where it
// does not.
type Sampling struct {
	Temperature, TopP, MinP, RepetitionPenalty *float32
	TopK                                       *int
}

// CellBytes is the size of one token in a KV cache of the given format (f16,
// q8_0, q4_0), and false if caches are not kept in that format. With sliding
// windows it is the size with all layers' caches in full.
func (f Facts) CellBytes(format string) (uint64, bool) {
	var sum uint64
	for _, l := range f.Layers {
		key, ok := rowBytes(format, l.Key)
		if !ok {
			return 0, false
		}
		value, _ := rowBytes(format, l.Value)
		sum += key + value
	}
	return sum, true
}

// RecurrentBytes is the size of one sequence's recurrent state; 0 in models
// of attention alone.
func (f Facts) RecurrentBytes() uint64 {
	var sum uint64
	for _, l := range f.Layers {
		sum += 4 * l.State
	}
	return sum
}

// ID is the name that a model file is served under when none is given: the
// file's, without folder, part number and .gguf.
func ID(path string) string {
	name := filepath.Base(path)
	if stem, _, _, ok := splitName(name); ok {
		return stem
	}
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".gguf") && len(name) > len(ext) {
		return strings.TrimSuffix(name, ext)
	}
	return name
}

// Inspect reads what a GGUF file, and with a split model all its files, say
// about themselves. The error says in one line what is wrong with which file.
func Inspect(path string) (Facts, error) {
	files, headers, err := readAll(path)
	if err != nil {
		return Facts{}, err
	}
	f, err := facts(headers)
	if err != nil {
		return Facts{}, fmt.Errorf("%s: %w", path, err)
	}
	f.Files = files
	return f, nil
}

// readFile reads one file's header.
func readFile(path string) (*header, error) {
	h, err := openAndRead(path)
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err // the path is named below
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

func openAndRead(path string) (*header, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, errors.New("not a file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readHeader(file, info.Size())
}

// facts draws a model's facts from its headers: the first one has the
// metadata, all have tensors.
func facts(headers []*header) (Facts, error) {
	h := *headers[0]
	for _, part := range headers[1:] {
		h.tensors = append(slices.Clip(h.tensors), part.tensors...)
	}
	arch := h.text("general.architecture")
	if arch == "" {
		return Facts{}, errors.New("names no architecture: not a language model")
	}
	f := Facts{
		Architecture: arch,
		Name:         h.text("general.name"),
		Context:      int(h.size(arch + ".context_length")),
		Embedding:    int(h.size(arch + ".embedding_length")),
		FeedForward:  h.widest(arch),
		Vocabulary:   int(min(h.meta["tokenizer.ggml.tokens"].count, maxSize)),
		Window:       int(h.size(arch + ".attention.sliding_window")),
		ChatTemplate: h.text("tokenizer.chat_template") != "",
		Layers:       h.layers(arch),
		Sampling: Sampling{
			Temperature:       h.float("general.sampling.temp"),
			TopP:              h.float("general.sampling.top_p"),
			MinP:              h.float("general.sampling.min_p"),
			RepetitionPenalty: h.float("general.sampling.penalty_repeat"),
		},
	}
	if k, ok := h.uint("general.sampling.top_k"); ok {
		f.Sampling.TopK = new(int(min(k, maxSize)))
	}
	kinds := map[string]uint64{}
	for _, t := range h.tensors {
		f.Parameters += t.elements
		f.WeightBytes += t.bytes
		kinds[t.kind] += t.elements
	}
	f.Quantization = h.quantization(kinds)
	return f, nil
}

// widest is the widest feed-forward network of any layer, experts included.
func (h *header) widest(arch string) int {
	var most uint64
	for _, key := range []string{".feed_forward_length", ".expert_feed_forward_length"} {
		for i := range h.meta[arch+key].numbers {
			n, _ := h.meta[arch+key].integer(i)
			most = max(most, min(n, maxSize))
		}
	}
	return int(most)
}

// quantization is what the file names itself, or else the number format that
// most of its numbers are in.
func (h *header) quantization(kinds map[string]uint64) string {
	if n, ok := h.uint("general.file_type"); ok {
		if name, ok := quantizations[n]; ok {
			return name
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(kinds)), func(a, b string) int {
		return cmp.Compare(kinds[a], kinds[b])
	})
}
