package models

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write puts a file into a folder of the test's own and returns its path.
func write(t *testing.T, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInspect(t *testing.T) {
	file := small().
		key("general.name", "Small").
		key("general.file_type", uint32(15)).
		key("general.sampling.temp", float32(0.5)).
		key("general.sampling.top_k", int32(20)).
		key("llama.context_length", uint32(4096)).
		key("llama.feed_forward_length", []uint32{64, 96}).
		key("llama.attention.sliding_window", uint32(512)).
		key("tokenizer.ggml.tokens", []string{"a", "b", "c", "d"}).
		key("tokenizer.chat_template", "{{ messages }}").bytes()
	path := write(t, t.TempDir(), "Small.gguf", file)
	got, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Facts{
		Files: []string{path}, Architecture: "llama", Name: "Small", Quantization: "Q4_K_M",
		Parameters: 32*4 + 32*32, WeightBytes: 32*4*4 + 32*34,
		Context: 4096, Embedding: 32, FeedForward: 96, Vocabulary: 4, Window: 512, ChatTemplate: true,
		Layers:   []Layer{{Key: 32, Value: 32}},
		Sampling: Sampling{Temperature: new(float32(0.5)), TopK: new(20)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestInspectSplit(t *testing.T) {
	folder := t.TempDir()
	first := write(t, folder, "m-00001-of-00003.gguf", small().key("split.count", uint32(3)).bytes())
	second := write(t, folder, "m-00002-of-00003.gguf", (&builder{}).tensor("blk.0.attn_v.weight", 0, 32, 32).bytes())
	third := (&builder{}).tensor("output.weight", 0, 32, 4).bytes()

	last := filepath.Join(folder, "m-00003-of-00003.gguf")
	wantError(t, first, "part 3 of 3: "+last+": no such file or directory")
	write(t, folder, "m-00003-of-00003.gguf", third[:len(third)-1])
	wantError(t, first, fmt.Sprintf("part 3 of 3: %s: file is cut short: has %d bytes, needs %d", last, len(third)-1, len(third)))
	write(t, folder, "m-00003-of-00003.gguf", third)
	got, err := Inspect(first)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{first, second, last}; !cmp.Equal(got.Files, want) {
		t.Errorf("got files %v, want %v", got.Files, want)
	}
	if want := uint64(32*4 + 3*32*32/3 + 32*32 + 32*4); got.Parameters != want {
		t.Errorf("got %d parameters, want %d", got.Parameters, want)
	}

	renamed := write(t, folder, "renamed.gguf", small().key("split.count", uint32(3)).bytes())
	wantError(t, renamed, renamed+": is one of 3 parts, whose names must end in -00001-of-00003.gguf and so on")
	other := write(t, folder, "n-00002-of-00003.gguf", small().key("split.count", uint32(3)).bytes())
	wantError(t, other, other+": is part 2 of 3; give the first: n-00001-of-00003.gguf")
}

func wantError(t *testing.T, path, want string) {
	t.Helper()
	_, err := Inspect(path)
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestInspectErrors(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing.gguf")
	wantError(t, missing, missing+": no such file or directory")
	wantError(t, folder, folder+": not a file")
	projector := write(t, folder, "empty.gguf", (&builder{}).key("general.type", "vocab").bytes())
	wantError(t, projector, projector+": names no architecture: not a language model")
}

// The layers of each family as llama.cpp makes them.
func TestLayers(t *testing.T) {
	// model has the keys and tensors that all of these models share.
	model := func(arch string, layers int) *builder {
		b := &builder{}
		return b.key("general.architecture", arch).
			key(arch+".block_count", uint32(layers)).
			key(arch+".embedding_length", uint32(64))
	}
	attention := func(b *builder, layers ...int) *builder {
		for _, l := range layers {
			b.tensor(fmt.Sprintf("blk.%d.attn_k.weight", l), 0, 64, 16)
		}
		return b
	}
	recurrent := func(b *builder, part string, layers ...int) *builder {
		for _, l := range layers {
			b.tensor(fmt.Sprintf("blk.%d.%s", l, part), 0, 1)
		}
		return b
	}
	tests := []struct {
		name string
		file *builder
		want []Layer
	}{
		{"grouped heads", attention(model("llama", 2).
			key("llama.attention.head_count", uint32(8)).
			key("llama.attention.head_count_kv", uint32(2)), 0, 1),
			[]Layer{{Key: 16, Value: 16}, {Key: 16, Value: 16}}},
		{"head lengths", attention(model("qwen3", 1).
			key("qwen3.attention.head_count", uint32(8)).
			key("qwen3.attention.head_count_kv", uint32(2)).
			key("qwen3.attention.key_length", uint32(128)).
			key("qwen3.attention.value_length", uint32(64)), 0),
			[]Layer{{Key: 256, Value: 128}}},
		{"heads by layer", attention(model("deci", 3).
			key("deci.attention.head_count", []uint32{8, 8, 0}).
			key("deci.attention.head_count_kv", []uint32{2, 4, 0}), 0, 1),
			[]Layer{{Key: 16, Value: 16}, {Key: 32, Value: 32}, {}}},
		{"latent attention", model("deepseek2", 1).
			key("deepseek2.attention.head_count", uint32(16)).
			key("deepseek2.attention.head_count_kv", uint32(1)).
			key("deepseek2.attention.key_length", uint32(576)).
			key("deepseek2.attention.value_length", uint32(512)).
			key("deepseek2.attention.key_length_mla", uint32(192)).
			tensor("blk.0.attn_kv_a_mqa.weight", 0, 1),
			[]Layer{{Key: 576}}},
		{"windows with heads of their own", attention(model("gemma4", 4).
			key("gemma4.attention.head_count", uint32(8)).
			key("gemma4.attention.head_count_kv", []uint32{4, 2, 4, 2}).
			key("gemma4.attention.key_length", uint32(512)).
			key("gemma4.attention.value_length", uint32(512)).
			key("gemma4.attention.key_length_swa", uint32(256)).
			key("gemma4.attention.value_length_swa", uint32(256)).
			key("gemma4.attention.sliding_window_pattern", []bool{true, false, true, false}).
			key("gemma4.attention.shared_kv_layers", uint32(2)), 0, 1, 2, 3),
			[]Layer{{Key: 1024, Value: 1024}, {Key: 1024, Value: 1024}, {}, {}}},
		{"interval", recurrent(attention(model("qwen35", 5).
			key("qwen35.attention.head_count", uint32(4)).
			key("qwen35.attention.head_count_kv", uint32(1)).
			key("qwen35.attention.key_length", uint32(64)).
			key("qwen35.attention.value_length", uint32(64)).
			key("qwen35.full_attention_interval", uint32(4)).
			key("qwen35.nextn_predict_layers", uint32(1)).
			key("qwen35.ssm.conv_kernel", uint32(4)).
			key("qwen35.ssm.state_size", uint32(64)).
			key("qwen35.ssm.group_count", uint32(2)).
			key("qwen35.ssm.inner_size", uint32(128)), 3, 4), "ssm_conv1d.weight", 0, 1, 2),
			[]Layer{{State: 3*384 + 8192}, {State: 3*384 + 8192}, {State: 3*384 + 8192}, {Key: 64, Value: 64}}},
		{"recurrent layers by name", recurrent(attention(model("qwen35", 2).
			key("qwen35.attention.head_count", uint32(4)).
			key("qwen35.attention.recurrent_layers", []bool{false, true}).
			key("qwen35.ssm.state_size", uint32(8)).
			key("qwen35.ssm.inner_size", uint32(16)), 0), "ssm_a", 1),
			[]Layer{{Key: 64, Value: 64}, {State: 128}}},
		{"no heads in recurrent layers", recurrent(attention(model("lfm2", 2).
			key("lfm2.attention.head_count", uint32(4)).
			key("lfm2.attention.head_count_kv", []uint32{0, 2}).
			key("lfm2.shortconv.l_cache", uint32(3)), 1), "shortconv.conv.weight", 0),
			[]Layer{{State: 128}, {Key: 32, Value: 32}}},
		{"both in each layer", recurrent(attention(model("falcon-h1", 1).
			key("falcon-h1.attention.head_count", uint32(4)).
			key("falcon-h1.ssm.state_size", uint32(8)).
			key("falcon-h1.ssm.inner_size", uint32(16)), 0), "ssm_a", 0),
			[]Layer{{Key: 64, Value: 64, State: 128}}},
		{"no attention", recurrent(model("rwkv7", 1).
			key("rwkv7.attention.head_count", uint32(0)).
			key("rwkv7.wkv.head_size", uint32(16)), "time_mix_w0.weight", 0),
			[]Layer{{State: 64 * 18}}},
		{"delta attention", recurrent(model("kimi-linear", 1).
			key("kimi-linear.attention.head_count", uint32(4)).
			key("kimi-linear.attention.head_count_kv", []uint32{0}).
			key("kimi-linear.ssm.conv_kernel", uint32(4)).
			key("kimi-linear.kda.head_dim", uint32(8)), "ssm_conv1d_q.weight", 0),
			[]Layer{{State: 4*8*8 + 3*3*4*8}}},
		{"no key tells anything", model("llama", 1).tensor("x", 0, 1), []Layer{{}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := test.file.bytes()
			h, err := readHeader(bytes.NewReader(file), int64(len(file)))
			if err != nil {
				t.Fatal(err)
			}
			f, err := facts([]*header{h})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, f.Layers); diff != "" {
				t.Errorf("layers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCellBytes(t *testing.T) {
	f := Facts{Layers: []Layer{{Key: 64, Value: 64}, {State: 100}, {Key: 32, Value: 0}}}
	for format, want := range map[string]uint64{"f16": 320, "q8_0": 170, "q4_0": 90} {
		if got, ok := f.CellBytes(format); got != want || !ok {
			t.Errorf("%s: got %d, %v, want %d", format, got, ok, want)
		}
	}
	if got, ok := f.CellBytes("q3_0"); ok {
		t.Errorf("q3_0: got %d, want none", got)
	}
	if got := f.RecurrentBytes(); got != 400 {
		t.Errorf("recurrent: got %d, want 400", got)
	}
}

func TestID(t *testing.T) {
	for path, want := range map[string]string{
		"/models/SmolLM2-135M-Instruct.Q4_1.gguf": "SmolLM2-135M-Instruct.Q4_1",
		"m-00001-of-00003.gguf":                   "m",
		"dir/Model.GGUF":                          "Model",
		"plain":                                   "plain",
		".gguf":                                   ".gguf",
	} {
		if got := ID(path); got != want {
			t.Errorf("ID(%q): got %q, want %q", path, got, want)
		}
	}
}

func TestInspectVocabulary(t *testing.T) {
	path := write(t, t.TempDir(), "vocab.gguf", (&builder{}).key("general.architecture", "llama").bytes())
	got, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Facts{Files: []string{path}, Architecture: "llama", Layers: []Layer{}}, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestQuantizationGuess(t *testing.T) {
	f, err := Inspect(write(t, t.TempDir(), "m.gguf", small().bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if f.Quantization != "Q8_0" { // 1,024 numbers of Q8_0, 128 of F32
		t.Errorf("got %q, want Q8_0", f.Quantization)
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(small().bytes())
	f.Add(small().key("split.count", uint32(2)).bytes())
	f.Add(small().key("llama.attention.head_count_kv", []uint32{0}).key("llama.ssm.inner_size", uint32(1<<31)).
		tensor("blk.0.ssm_a", 0, 1).bytes())
	f.Add(rawTensor(0, 1<<40, 1<<20))
	f.Add([]byte(strings.Repeat("GGUF", 16)))
	f.Fuzz(func(t *testing.T, file []byte) {
		h, err := readHeader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		got, err := facts([]*header{h})
		if err != nil {
			return
		}
		if got.WeightBytes > uint64(len(file)) {
			t.Errorf("got %d bytes of weights in a file of %d", got.WeightBytes, len(file))
		}
		if len(got.Layers) > maxLayers {
			t.Errorf("got %d layers", len(got.Layers))
		}
	})
}
