//go:build cgo

package libllama

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/b3os/b3infer/llama"
)

// testBackend is the backend of all tests, opened by the first that asks. With the
// tag dl its devices come from the folder that scripts/build-llama made.
var testBackend = sync.OnceValues(func() (*Backend, error) {
	return Open(Params{
		Log:     slog.New(slog.DiscardHandler),
		Threads: 4,
		LibDir:  filepath.Join(os.Getenv("LLAMA_DIR"), "lib"),
	})
})

func TestMain(m *testing.M) {
	code := m.Run()
	if b, err := testBackend(); err == nil {
		if err := b.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "a test left something open:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func openBackend(t testing.TB) *Backend {
	t.Helper()
	b, err := testBackend()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The models that scripts/models makes.
const (
	tinyModel   = "tiny.gguf"                       // qwen2, random weights
	hybridModel = "tiny35.gguf"                     // qwen35, random weights
	smolModel   = "SmolLM2-135M-Instruct.Q4_1.gguf" // real, quantized
)

// testModelPath is a model's file. The test is skipped when it is not there.
func testModelPath(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("B3INFER_TEST_MODELS")
	if dir == "" {
		dir = filepath.Join(cacheDir(), "models")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no test model: %v (scripts/models test makes it)", err)
	}
	return path
}

// cacheDir is where the scripts keep what they fetch and build.
func cacheDir() string {
	if dir := os.Getenv("B3INFER_CACHE"); dir != "" {
		return dir
	}
	dir, _ := os.UserCacheDir()
	return filepath.Join(dir, "b3infer")
}

// vocabPath is a vocabulary of llama.cpp's own tests: ggml-vocab-NAME.gguf.
func vocabPath(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("LLAMA_DIR")
	if dir == "" {
		t.Skip("LLAMA_DIR is not set (source the env file of scripts/build-llama)")
	}
	return filepath.Join(dir, "models", "ggml-vocab-"+name+".gguf")
}

// gpuLayers is how many layers the tests keep on a GPU, -1 for all
// (B3INFER_TEST_GPU_LAYERS; by default none).
func gpuLayers(t testing.TB) int {
	t.Helper()
	text := os.Getenv("B3INFER_TEST_GPU_LAYERS")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal("B3INFER_TEST_GPU_LAYERS: ", err)
	}
	return n
}

// loadModel opens a model for the time of a test.
func loadModel(t testing.TB, path string, p llama.ModelParams) *Model {
	t.Helper()
	if p.GPULayers == 0 {
		p.GPULayers = gpuLayers(t)
	}
	m, err := openBackend(t).Load(path, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIt(t, m) })
	return m.(*Model)
}

// loadVocabOnly opens the vocabulary of a file alone.
func loadVocabOnly(t testing.TB, path string) *Model {
	t.Helper()
	return loadModel(t, path, llama.ModelParams{VocabOnly: true})
}

// newTestContext opens a context of m for the time of a test; zero fields of p
// get small values.
func newTestContext(t testing.TB, m *Model, p llama.ContextParams) *Context {
	t.Helper()
	orDefault(&p.Cells, 1024)
	orDefault(&p.Sequences, 16)
	orDefault(&p.Batch, 256)
	orDefault(&p.UBatch, min(p.Batch, 128))
	orDefault(&p.Outputs, min(p.Batch, 32))
	orDefault(&p.Threads, 1)
	c, err := m.NewContext(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIt(t, c) })
	return c.(*Context)
}

func orDefault(v *int, otherwise int) {
	if *v == 0 {
		*v = otherwise
	}
}

func closeIt(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
