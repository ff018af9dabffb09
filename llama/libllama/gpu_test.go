//go:build cgo

package libllama

import (
	"math"
	"slices"
	"testing"

	"github.com/b3os/b3infer/llama"
)

// What a GPU computes is what the CPU does, but for rounding: its kernels sum up in another
// order, and multiply with fewer bits.
func TestGPULogprobs(t *testing.T) {
	layers := gpuLayers(t)
	if layers == 0 {
		t.Skip("B3INFER_TEST_GPU_LAYERS is not set")
	}
	if !slices.ContainsFunc(openBackend(t).Devices(), func(d llama.Device) bool { return d.GPU }) {
		t.Fatal("llama.cpp finds no GPU")
	}
	const tolerance = 0.2
	for _, file := range []string{tinyModel, hybridModel, smolModel} {
		for _, kv := range []llama.KVType{llama.KVF16, llama.KVQ8_0, llama.KVQ4_0} {
			t.Run(file+"/"+string(kv), func(t *testing.T) {
				path := testModelPath(t, file)
				cpu, gpu := nextTokens(t, path, 0, kv), nextTokens(t, path, layers, kv)
				apart := 0.0
				for i := range cpu {
					apart = max(apart, logprobDistance(&cpu[i], &gpu[i]))
				}
				t.Logf("result: logprobs are %.4f apart at most", apart)
				if apart > tolerance {
					t.Errorf("CPU %v\nGPU %v", cpu, gpu)
				}
			})
		}
	}
}

// nextTokens computes each prompt and reports the likeliest tokens that follow it.
func nextTokens(t *testing.T, path string, layers int, kv llama.KVType) []llama.Sampled {
	t.Helper()
	m, err := openBackend(t).Load(path, llama.ModelParams{GPULayers: layers})
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, m)
	c := newTestContext(t, m.(*Model), llama.ContextParams{KV: kv})
	defer closeIt(t, c)
	var next []llama.Sampled
	for i, prompt := range promptTokens(t, m.(*Model)) {
		var b llama.Batch
		addRun(&b, llama.SeqID(i), 0, prompt)
		decode(t, c, &b)
		out := make([]llama.Sampled, 1)
		row := llama.SampleRow{Output: int32(len(prompt) - 1), P: &llama.Sampling{}, Mask: -1, Top: llama.MaxTop}
		if err := c.Sample([]llama.SampleRow{row}, nil, out); err != nil {
			t.Fatal(err)
		}
		next = append(next, out[0])
	}
	return next
}

// logprobDistance is how far the logprobs of either's likeliest token are apart.
func logprobDistance(a, b *llama.Sampled) float64 {
	apart := func(a, b *llama.Sampled) float64 {
		for _, top := range b.Top[:b.N] {
			if top.Token == a.Token {
				return math.Abs(float64(top.Logprob - a.Logprob))
			}
		}
		return math.Inf(1)
	}
	return max(apart(a, b), apart(b, a))
}
