//go:build cgo

package libllama

import (
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

// TestContract runs the suite that the fake passes too.
func TestContract(t *testing.T) {
	for _, file := range []string{tinyModel, hybridModel, smolModel} {
		t.Run(file, func(t *testing.T) {
			path := testModelPath(t, file)
			llamatest.TestModel(t, func(t *testing.T) llama.Model {
				m, err := openBackend(t).Load(path, llama.ModelParams{GPULayers: gpuLayers(t)})
				if err != nil {
					t.Fatal(err)
				}
				return m
			})
		})
	}
}
