package engine

import (
	"testing"

	"github.com/b3os/b3infer/llama"
)

func TestReasoningSplitter(t *testing.T) {
	think := llama.Prompt{ThinkStart: "<think>", ThinkEnd: []string{"</think>"}}
	open := think
	open.Thinking = true
	tests := []struct {
		name               string
		prompt             llama.Prompt
		text               string
		reasoning, content string
	}{
		{"template without reasoning", llama.Prompt{}, "<think>a</think>b", "", "<think>a</think>b"},
		{"no reasoning", think, "hello", "", "hello"},
		{"reasoning first", think, "<think>a b</think>c", "a b", "c"},
		{"white space around the texts", think, "\n<think>\na\n\nb\n</think>\n\nc\n", "a\n\nb", "c\n"},
		{"begun by the prompt", open, "a</think>b", "a", "b"},
		{"begun by the prompt, with white space", open, "\na\n</think>\n\nb", "a", "b"},
		{"empty reasoning", open, "\n\n</think>\n\nb", "", "b"},
		{"cut inside", open, "a b", "a b", ""},
		{"cut inside the end text", open, "a </thi", "a </thi", ""},
		{"nothing after", open, "a</think>", "a", ""},
		{"start text later is content", think, "x<think>a</think>", "", "x<think>a</think>"},
		{"second reasoning is content", think, "<think>a</think>b<think>c</think>", "a", "b<think>c</think>"},
		{"part of the start text only", think, " <thi", "", " <thi"},
		{"other tag", think, "<thing>", "", "<thing>"},
		{"end text in the content", open, "a</think>b</think>", "a", "b</think>"},
		{"leading white space of content stays without reasoning", think, "\n hello", "", "\n hello"},
	}
	for _, tt := range tests {
		// Whatever the pieces are, the sides are the same.
		for size := 1; size <= len(tt.text); size++ {
			r := newReasoningSplitter(&tt.prompt)
			var reasoning, content string
			add := func(part Text) {
				if part.Reasoning {
					reasoning += part.Text
				} else {
					content += part.Text
				}
			}
			for rest := tt.text; rest != ""; {
				n := min(size, len(rest))
				for _, part := range r.push(rest[:n]) {
					add(part)
				}
				rest = rest[n:]
			}
			add(r.flush())
			if reasoning != tt.reasoning || content != tt.content {
				t.Errorf("%s, pieces of %d: got %q and %q, want %q and %q", tt.name, size, reasoning, content, tt.reasoning, tt.content)
			}
		}
	}
}
