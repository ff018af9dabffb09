package engine

import (
	"slices"
	"testing"

	"github.com/b3os/b3infer/llama"
)

func TestThinkMeter(t *testing.T) {
	think := llama.Prompt{ThinkStart: "<think>", ThinkEnd: []string{"</think>"}}
	open := think
	open.Thinking = true
	tests := []struct {
		name           string
		prompt         llama.Prompt
		text           string
		thinking, over bool
	}{
		{"template without reasoning", llama.Prompt{}, "<think>a", false, true},
		{"nothing yet", think, "\n", false, false},
		{"no reasoning", think, "hello", false, true},
		{"begun by the model", think, "\n<think>\na", true, false},
		{"ended", think, "<think>a</think>", false, true},
		{"begun by the prompt", open, "a", true, false},
		{"begun by the prompt and ended", open, "a</think>b", false, true},
		{"inside the end text", open, "a </thi", true, false},
		{"start text later is content", think, "x<think>a", false, true},
		{"part of the start text only", think, " <thi", false, false},
		{"other tag", think, "<thing>", false, true},
	}
	for _, tt := range tests {
		// Whatever the pieces are, it is told the same.
		for size := 1; size <= len(tt.text); size++ {
			m := newThinkMeter(&tt.prompt)
			for piece := range slices.Chunk([]byte(tt.text), size) {
				m.push(string(piece))
			}
			if m.thinking() != tt.thinking || m.over() != tt.over {
				t.Errorf("%s, pieces of %d: thinking %v, over %v; want %v, %v", tt.name, size, m.thinking(), m.over(), tt.thinking, tt.over)
			}
		}
	}
}

func TestThinkBudget(t *testing.T) {
	vocab := llama.NewVocab([]llama.VocabToken{
		0: {Piece: []byte("a")},
		1: {Piece: []byte("</")},
		2: {Piece: []byte("think>")},
		3: {Piece: []byte("<think>"), Kind: llama.KindUser},
	}, llama.NoToken)
	think := llama.Prompt{ThinkStart: "<think>", ThinkEnd: []string{"</think>"}}
	open := think
	open.Thinking = true
	tests := []struct {
		name        string
		prompt      llama.Prompt
		left        int
		drawn, want []llama.Token
	}{
		{"spent", open, 2, []llama.Token{0, 0, 0, 0, 0, 0}, []llama.Token{0, 0, 1, 2, 0, 0}},
		{"ended before", open, 4, []llama.Token{0, 1, 2, 0, 0, 0}, []llama.Token{0, 1, 2, 0, 0, 0}},
		{"begun by the model", think, 2, []llama.Token{3, 0, 0, 0, 0}, []llama.Token{3, 0, 1, 2, 0}},
		{"no reasoning", think, 2, []llama.Token{0, 0, 0, 0}, []llama.Token{0, 0, 0, 0}},
	}
	for _, tt := range tests {
		b := thinkBudget{meter: newThinkMeter(&tt.prompt), left: tt.left, closing: []llama.Token{1, 2}}
		var got []llama.Token
		for _, drawn := range tt.drawn {
			got = append(got, b.next(drawn, vocab))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
