//go:build cgo

package libllama

import (
	"fmt"
	"testing"

	"github.com/b3os/b3infer/llama"
)

// BenchmarkRender is what a render costs by kind of conversation: with a
// template that common/chat has a handler for, and with one that it analyses.
func BenchmarkRender(b *testing.B) {
	sources := testTemplates(b)
	long := llama.ChatInput{Messages: []llama.ChatMessage{said("system", "You are brief.")}, Now: testNow}
	for i := range 10_000 {
		long.Messages = append(long.Messages, said("user", fmt.Sprintf("Question %d?", i)), said("assistant", "Answer."))
	}
	long.Messages = append(long.Messages, said("user", "And?"))
	for _, name := range []string{"Qwen3.5-4B", "Qwen-Qwen2.5-7B-Instruct", "google-gemma-4-31B-it"} {
		c, err := NewTemplate(sources[name], testBOS, testEOS)
		if err != nil {
			b.Fatal(err)
		}
		for _, bench := range []struct {
			name string
			in   llama.ChatInput
		}{
			{"short", llama.ChatInput{Messages: user("Hello, who are you?"), Now: testNow}},
			{"60 tools", llama.ChatInput{Messages: user("Hello"), Tools: manyTools(60), Now: testNow}},
			{"20000 turns", long},
		} {
			b.Run(name+"/"+bench.name, func(b *testing.B) {
				for b.Loop() {
					if _, err := c.Render(bench.in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func manyTools(n int) []llama.ChatTool {
	var tools []llama.ChatTool
	for i := range n {
		tools = append(tools, llama.ChatTool{
			Name:        fmt.Sprintf("tool_%d", i),
			Description: "Looks something up and answers with what it found there.",
			Parameters: `{"type": "object", "properties": {"query": {"type": "string", "description": "what to look for"},
				"limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}, "exact": {"type": "boolean"},
				"where": {"type": "object", "properties": {"city": {"type": "string"}, "country": {"type": "string", "enum": ["no", "it"]}}}},
				"required": ["query"], "additionalProperties": false}`,
		})
	}
	return tools
}
