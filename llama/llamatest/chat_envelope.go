package llamatest

import "github.com/b3os/b3infer/llama"

// Envelope implements llama.Chat: calls are JSON objects between <tool_call> and
// </tool_call>, one behind the other.
func (c *Chat) Envelope(in llama.EnvelopeInput) (llama.Envelope, error) {
	e := llama.Envelope{
		Generation: turnStart + answerStart + thinkOpen,
		Thinking:   in.Thinking,
		Preserved:  []string{"<think>", "</think>", "<tool_call>", "</tool_call>"},
	}
	if !in.Thinking {
		e.Generation += thinkClosed
	}
	var err error
	if len(in.Tools) == 0 {
		e.Parser, err = plainParser()
		return e, err
	}
	call := `<tool_call>{"name": ` + quote(in.Tools[0].Name) + `, "arguments": {}}</tool_call>`
	e.Triggers = []string{"<tool_call>"}
	e.Example = turnStart + answerStart + thinkOpen + "REASONING-A\n</think>\n\n" + call + call + turnEnd
	e.Parser, err = answerParser(in)
	return e, err
}
