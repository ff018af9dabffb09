package llamatest

import (
	"fmt"

	"github.com/b3os/b3infer/llama"
)

// Envelope implements llama.Chat: calls are JSON objects between <tool_call> and
// </tool_call>, one on a line if there are several.
func (c *Chat) Envelope(in llama.EnvelopeInput) (llama.Envelope, error) {
	if len(in.Tools) == 0 {
		return llama.Envelope{}, fmt.Errorf("%w: no tools", llama.ErrTemplate)
	}
	generation := turnStart + answerStart + thinkOpen
	if !in.Thinking {
		generation += thinkClosed
	}
	first := in.Tools[0].Name
	call := `<tool_call>{"name": ` + quote(first) + `, "arguments": {}}</tool_call>`
	parser, err := answerParser(in)
	return llama.Envelope{
		Parser:     parser,
		Generation: generation,
		Preserved:  []string{"<think>", "</think>", "<tool_call>", "</tool_call>"},
		Triggers:   []string{"<tool_call>"},
		Example:    turnStart + answerStart + thinkOpen + "REASONING-A\n</think>\n\n" + call + call + turnEnd,
	}, err
}
