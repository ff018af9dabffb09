package models

import (
	"strconv"
	"strings"
)

// A Layer is what one layer keeps of the tokens that it has seen.
type Layer struct {
	// Key and Value are the numbers that a token adds to the KV cache; 0 in a
	// layer without attention.
	Key, Value uint64
	// State is the numbers of a sequence's recurrent state, which are kept as
	// 32-bit floats; 0 in a layer without.
	State uint64
}

// maxLayers is LLAMA_MAX_LAYERS.
const maxLayers = 512

// layers works out what each layer keeps, as llama.cpp does when it makes a
// context (llama_model::create_memory). Layers that predict further tokens
// (nextn) are not part of it.
//
// Which layers are recurrent is told by keys in some families and by the
// model's code in others, so the tensors decide where no key does.
func (h *header) layers(arch string) []Layer {
	n := h.size(arch + ".block_count")
	if next := h.size(arch + ".nextn_predict_layers"); next < n {
		n -= next
	}
	n = min(n, maxLayers)
	blocks := h.blocks(n)
	shared := min(h.size(arch+".attention.shared_kv_layers"), n)
	layers := make([]Layer, n)
	for i := range layers {
		recurrent := h.recurrent(arch, i, blocks[i])
		if recurrent {
			layers[i].State = min(h.stateSize(arch), 1<<40)
		}
		if uint64(i) < n-shared && (!recurrent || blocks[i].attention) {
			layers[i].Key, layers[i].Value = h.cellSize(arch, i)
		}
	}
	return layers
}

// A block is what the names of a layer's tensors say about it.
type block struct {
	recurrent bool // it has tensors of a recurrence
	attention bool // it has a key projection of its own
}

func (h *header) blocks(n uint64) []block {
	blocks := make([]block, n)
	for _, t := range h.tensors {
		rest, ok := strings.CutPrefix(t.name, "blk.")
		if !ok {
			continue
		}
		number, part, _ := strings.Cut(rest, ".")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(blocks) {
			continue
		}
		switch {
		case strings.HasPrefix(part, "ssm_"), strings.HasPrefix(part, "shortconv."), strings.HasPrefix(part, "time_mix_"):
			blocks[i].recurrent = true
		case part == "attn_k.weight":
			blocks[i].attention = true
		}
	}
	return blocks
}

func (h *header) recurrent(arch string, layer int, b block) bool {
	if is, ok := h.perLayer(arch+".attention.recurrent_layers", layer); ok {
		return is != 0
	}
	if every := h.size(arch + ".full_attention_interval"); every > 0 {
		return (uint64(layer)+1)%every != 0
	}
	return b.recurrent
}

// cellSize is the numbers that a token adds to an attention layer's keys and
// values (llama_hparams::n_embd_k_gqa, n_embd_v_gqa).
func (h *header) cellSize(arch string, layer int) (key, value uint64) {
	prefix := arch + ".attention."
	heads, _ := h.perLayer(prefix+"head_count", layer)
	cached, ok := h.perLayer(prefix+"head_count_kv", layer)
	if !ok {
		cached = heads
	}
	if cached == 0 {
		return 0, 0
	}
	// Families that vary the number of heads name the length of one, but for
	// layers without any: there, as in llama.cpp, the first layer's counts.
	if first, _ := h.perLayer(prefix+"head_count", 0); first > 0 {
		key = h.size(arch+".embedding_length") / first
		value = key
	}
	suffix := ""
	if window, ok := h.perLayer(prefix+"sliding_window_pattern", layer); ok && window != 0 {
		suffix = "_swa"
	}
	key = h.headLength(prefix+"key_length", suffix, key)
	value = h.headLength(prefix+"value_length", suffix, value)
	if _, latent := h.uint(prefix + "key_length_mla"); latent {
		value = 0 // the values are a part of the keys (MLA)
	}
	return cached * key, cached * value
}

// headLength is the length of one head: a layer's with a sliding window may
// differ from the others'.
func (h *header) headLength(key, suffix string, otherwise uint64) uint64 {
	for _, k := range []string{key + suffix, key} {
		if n, ok := h.uint(k); ok {
			return min(n, maxSize)
		}
	}
	return otherwise
}

// stateSize is the numbers of a recurrent layer's state of one sequence
// (llama_hparams::n_embd_r, n_embd_s).
func (h *header) stateSize(arch string) uint64 {
	size := func(key string) uint64 { return min(h.size(arch+"."+key), 1<<20) }
	embedding := size("embedding_length")
	heads, _ := h.perLayer(arch+".attention.head_count", 0)
	heads = min(heads, 1<<20)
	kernel := size("ssm.conv_kernel")
	if head := size("wkv.head_size"); head > 0 { // RWKV
		shifts := uint64(2)
		if n, ok := h.uint(arch + ".token_shift_count"); ok {
			shifts = min(n, 1<<10)
		}
		return embedding * (shifts + head)
	}
	if taps := size("shortconv.l_cache"); taps > 0 { // LFM2
		return embedding * (taps - 1)
	}
	if head := size("kda.head_dim"); head > 0 { // Kimi delta attention
		taps := uint64(3)
		if kernel > 0 {
			taps = kernel - 1
		}
		return heads*head*head + 3*taps*heads*head
	}
	inner, state := size("ssm.inner_size"), size("ssm.state_size")
	if inner == 0 && heads > 0 { // MiniMax's linear attention
		head := min(h.headLength(arch+".attention.key_length", "", embedding/heads), 1<<20)
		return heads * head * head
	}
	conv := uint64(0)
	if kernel > 0 {
		conv = (kernel - 1) * (inner + 2*size("ssm.group_count")*state)
	}
	return conv + inner*state
}
