package llamatest_test

import (
	"testing"

	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/llama/llamatest"
)

func TestContract(t *testing.T) {
	for name, options := range map[string]llamatest.Options{
		"plain":            {},
		"hybrid":           {Hybrid: true},
		"with BOS":         {BOS: true},
		"large vocabulary": {VocabSize: 1000},
		"M-RoPE":           {PosPerRow: 4},
		"hybrid M-RoPE":    {PosPerRow: 4, Hybrid: true, RecurrentBytes: 1 << 16},
	} {
		t.Run(name, func(t *testing.T) {
			llamatest.TestModel(t, func(*testing.T) llama.Model { return llamatest.New(options) })
		})
	}
}
