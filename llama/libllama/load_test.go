//go:build cgo

package libllama

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/b3os/b3infer/llama"
)

func TestLoadErrors(t *testing.T) {
	b := openBackend(t)
	dir := t.TempDir()
	good, err := os.ReadFile(testModelPath(t, smolModel))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name, path, want string
	}{
		{"missing", filepath.Join(dir, "nothing.gguf"), "no such file or directory"},
		{"folder", dir, "is a folder, not a GGUF file"},
		{"device", "/dev/null", "not a regular file"},
		{"empty", write("empty.gguf", nil), "not a GGUF file"},
		{"not a GGUF", write("text.gguf", []byte(strings.Repeat("hello\n", 100))), "not a GGUF file"},
		{"cut in the header", write("head.gguf", good[:100]), "failed to read key-value pairs"},
		{"cut in the metadata", write("meta.gguf", good[:300_000]), "failed to read key-value pairs"},
		{"cut in the tensors", write("cut.gguf", good[:len(good)/2]), "tensor 'blk.15.attn_output.weight' data is not within the file bounds, model is corrupted or incomplete"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := b.Load(tt.path, llama.ModelParams{})
			if err == nil {
				closeIt(t, m)
				t.Fatal("loaded")
			}
			if !errors.Is(err, llama.ErrLoad) {
				t.Errorf("%v is no ErrLoad", err)
			}
			want := "load " + tt.path + ": model cannot be loaded: " + tt.want
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoadProgress(t *testing.T) {
	path := testModelPath(t, smolModel)
	var shares []float32
	m := loadModel(t, path, llama.ModelParams{Progress: func(done float32) bool {
		shares = append(shares, done)
		return true
	}})
	if n := len(shares); n < 2 || !slices.IsSorted(shares) || shares[n-1] != 1 {
		t.Errorf("progress %v does not rise to 1", shares)
	}
	if m.Info().Name == "" {
		t.Error("no name")
	}
	_, err := openBackend(t).Load(path, llama.ModelParams{Progress: func(done float32) bool { return done < 0.1 }})
	want := "load " + path + ": model cannot be loaded: cancelled"
	if err == nil || err.Error() != want || !errors.Is(err, llama.ErrLoad) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestInfo(t *testing.T) {
	tests := []struct {
		file string
		p    llama.ModelParams
		want llama.Info
	}{
		{smolModel, llama.ModelParams{}, llama.Info{
			Name: "Smollm2 135M 8k Lc100K Mix1 Ep2", Description: "llama 256M Q4_1", Parameters: 134515008, Size: 96576768,
			TrainContext: 8192, Embedding: 576, PosPerRow: 1,
		}},
		{tinyModel, llama.ModelParams{}, llama.Info{
			Name: "tiny", Description: "qwen2 ?B all F32", Parameters: 39224704, Size: 156898816,
			TrainContext: 32768, Embedding: 128, PosPerRow: 1,
		}},
		{hybridModel, llama.ModelParams{}, llama.Info{
			Name: "tiny35", Description: "qwen35 ?B all F32", Parameters: 32497100, Size: 129988400,
			TrainContext: 32768, Embedding: 128, PosPerRow: 4, Hybrid: true, RecurrentBytes: 112228,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			m := loadModel(t, testModelPath(t, tt.file), tt.p)
			if diff := cmp.Diff(tt.want, m.Info()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCloseOrder(t *testing.T) {
	b := openBackend(t)
	opened, err := b.Load(testModelPath(t, tinyModel), llama.ModelParams{})
	if err != nil {
		t.Fatal(err)
	}
	m := opened.(*Model)
	c, err := m.NewContext(llama.ContextParams{Cells: 256, Sequences: 1, Batch: 8, UBatch: 8, Outputs: 1, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); !errors.Is(err, llama.ErrInvalid) {
		t.Errorf("closing a model with a context: %v", err)
	}
	if err := b.Close(); !errors.Is(err, llama.ErrInvalid) {
		t.Errorf("closing a backend with a model: %v", err)
	}
	for range 2 {
		closeIt(t, c)
	}
	for range 2 {
		closeIt(t, m)
	}
	var batch llama.Batch
	batch.Add(0, 0, 0, true)
	_, tokenizeErr := m.Tokenize(nil, []llama.Part{{Text: []byte("x")}}, false)
	_, contextErr := m.NewContext(llama.ContextParams{})
	_, chatErr := m.NewChat(llama.ChatParams{})
	_, sizeErr := c.StateSize(0, false)
	for name, err := range map[string]error{
		"Decode": c.Decode(&batch), "Sample": c.Sample(nil, nil, nil), "SeqRemove": c.SeqRemove(0, -1, -1),
		"SeqCopy": c.SeqCopy(0, 0, -1, -1), "StateSize": sizeErr, "StateLoad": c.StateLoad(0, nil, false),
		"Tokenize": tokenizeErr, "NewContext": contextErr, "NewChat": chatErr,
	} {
		if !errors.Is(err, llama.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

// A handle that is dropped unclosed is reported, with the line that opened it.
func TestDroppedHandle(t *testing.T) {
	lines := make(chan string, 1)
	previous := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(lineWriter(lines), nil)))
	defer slog.SetDefault(previous)

	func() {
		owner := new(struct{ _ [1 << 16]byte })
		if _, err := open(owner, "thing", nil); err != nil {
			t.Fatal(err)
		}
	}()
	runtime.GC()
	if line := <-lines; !strings.Contains(line, `level=WARN msg="never closed" what=thing opened=`) {
		t.Errorf("got %s", line)
	}
}

type lineWriter chan<- string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestOpenTwice(t *testing.T) {
	b := openBackend(t)
	if _, err := Open(Params{}); !errors.Is(err, llama.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	devices := b.Devices()
	if !slices.ContainsFunc(devices, func(d llama.Device) bool { return d.Name == "CPU" && !d.GPU && d.Total > 0 }) {
		t.Errorf("no CPU in %v", devices)
	}
	if v := b.Version(); !strings.HasPrefix(v, "0.5.0") {
		t.Errorf("version %q", v)
	}
}
