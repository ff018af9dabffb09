package llamatest

import (
	"fmt"
	"sync"

	"github.com/b3os/b3infer/llama"
)

// Backend is a fake llama.Backend.
type Backend struct {
	files map[string]Options

	mu     sync.Mutex
	models []*Model
}

var _ llama.Backend = (*Backend)(nil)

// NewBackend makes a backend that loads the named files and no others.
func NewBackend(files map[string]Options) *Backend { return &Backend{files: files} }

// Devices implements llama.Backend: there is one CPU.
func (b *Backend) Devices() []llama.Device {
	return []llama.Device{{Name: "CPU", Description: "fake CPU"}}
}

// Version implements llama.Backend.
func (b *Backend) Version() string { return "fake" }

// Load implements llama.Backend. It reports progress four times.
func (b *Backend) Load(path string, p llama.ModelParams) (llama.Model, error) {
	options, ok := b.files[path]
	if !ok {
		return nil, fmt.Errorf("load %s: %w: no such file", path, llama.ErrLoad)
	}
	for quarter := 1; quarter <= 4 && p.Progress != nil; quarter++ {
		if !p.Progress(float32(quarter) / 4) {
			return nil, fmt.Errorf("load %s: %w: cancelled", path, llama.ErrLoad)
		}
	}
	m := New(options)
	m.vocabOnly = p.VocabOnly
	b.mu.Lock()
	defer b.mu.Unlock()
	b.models = append(b.models, m)
	return m, nil
}

// Close implements llama.Backend. It refuses while models are open.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.models {
		if !m.closed.Load() {
			return fmt.Errorf("close backend: %w: model %s is open", llama.ErrInvalid, m.options.Name)
		}
	}
	return nil
}
