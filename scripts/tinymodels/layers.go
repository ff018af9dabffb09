package main

import "fmt"

// Sizes that both models share. 512 cells of context would do for most tests; the long ones
// need the rest.
const (
	width       = 128
	feedForward = 256
	heads       = 2
	context     = 32768
	spread      = 0.08 // of most weights
)

// common is the metadata that every architecture has, without its prefix.
func common(layers, keyValueHeads uint32) []pair {
	return []pair{
		{"context_length", uint32(context)},
		{"embedding_length", uint32(width)},
		{"block_count", layers},
		{"feed_forward_length", uint32(feedForward)},
		{"attention.head_count", uint32(heads)},
		{"attention.head_count_kv", keyValueHeads},
		{"attention.layer_norm_rms_epsilon", float32(1e-6)},
		{"rope.freq_base", float32(1e6)},
	}
}

// qwen2 is a plain transformer of two layers (src/models/qwen2.cpp).
func qwen2(rows int) ([]pair, []tensor) {
	const layers = 2
	tensors := []tensor{
		random("token_embd.weight", 0.3, width, rows),
		// Were the output tied to the embedding, a greedy answer would repeat its last token.
		random("output.weight", 0.3, width, rows),
		constant("output_norm.weight", 1, width),
	}
	for layer := range layers {
		block := fmt.Sprintf("blk.%d.", layer)
		tensors = append(tensors,
			constant(block+"attn_norm.weight", 1, width),
			constant(block+"ffn_norm.weight", 1, width),
			random(block+"attn_output.weight", spread, width, width))
		for _, part := range []string{"attn_q", "attn_k", "attn_v"} {
			tensors = append(tensors,
				random(block+part+".weight", spread, width, width),
				random(block+part+".bias", 0.01, width))
		}
		tensors = append(tensors, feedForwardTensors(block)...)
	}
	return common(layers, heads), tensors
}

// Sizes of qwen35's layers.
const (
	headSize   = 64
	stateHeads = 2
	stateSize  = 64
	innerSize  = stateHeads * stateSize
	kernel     = 4
)

// qwen35 is a hybrid: three recurrent layers and one of attention (src/models/qwen35.cpp).
func qwen35(rows int) ([]pair, []tensor) {
	const layers, attentionEvery = 4, 4
	sizes := append(common(layers, 1),
		pair{"attention.key_length", uint32(headSize)},
		pair{"attention.value_length", uint32(headSize)},
		pair{"rope.dimension_count", uint32(32)},
		pair{"rope.dimension_sections", []int32{6, 5, 5, 0}},
		pair{"full_attention_interval", uint32(attentionEvery)},
		pair{"ssm.conv_kernel", uint32(kernel)},
		pair{"ssm.state_size", uint32(stateSize)},
		pair{"ssm.group_count", uint32(stateHeads)},
		pair{"ssm.time_step_rank", uint32(stateHeads)},
		pair{"ssm.inner_size", uint32(innerSize)})
	tensors := []tensor{
		random("token_embd.weight", 0.3, width, rows),
		constant("output_norm.weight", 1, width),
	}
	for layer := range layers {
		block := fmt.Sprintf("blk.%d.", layer)
		tensors = append(tensors,
			constant(block+"attn_norm.weight", 1, width),
			constant(block+"post_attention_norm.weight", 1, width))
		if (layer+1)%attentionEvery == 0 {
			tensors = append(tensors, gatedAttention(block)...)
		} else {
			tensors = append(tensors, deltaNet(block)...)
		}
		tensors = append(tensors, feedForwardTensors(block)...)
	}
	return sizes, tensors
}

// gatedAttention is qwen35's attention; attn_q makes the query and the gate.
func gatedAttention(block string) []tensor {
	return []tensor{
		random(block+"attn_q.weight", spread, width, 2*heads*headSize),
		random(block+"attn_k.weight", spread, width, headSize),
		random(block+"attn_v.weight", spread, width, headSize),
		random(block+"attn_output.weight", spread, heads*headSize, width),
		constant(block+"attn_q_norm.weight", 1, headSize),
		constant(block+"attn_k_norm.weight", 1, headSize),
	}
}

// deltaNet is qwen35's recurrent layer.
func deltaNet(block string) []tensor {
	return []tensor{
		random(block+"attn_qkv.weight", spread, width, 3*innerSize),
		random(block+"attn_gate.weight", spread, width, innerSize),
		random(block+"ssm_conv1d.weight", 0.5, kernel, 3*innerSize),
		constant(block+"ssm_dt.bias", 0.1, stateHeads),
		constant(block+"ssm_a", -1, stateHeads),
		random(block+"ssm_beta.weight", spread, width, stateHeads),
		random(block+"ssm_alpha.weight", spread, width, stateHeads),
		constant(block+"ssm_norm.weight", 1, stateSize),
		random(block+"ssm_out.weight", spread, innerSize, width),
	}
}

func feedForwardTensors(block string) []tensor {
	return []tensor{
		random(block+"ffn_gate.weight", spread, width, feedForward),
		random(block+"ffn_up.weight", spread, width, feedForward),
		random(block+"ffn_down.weight", spread, feedForward, width),
	}
}
