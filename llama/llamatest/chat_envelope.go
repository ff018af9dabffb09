package llamatest

import (
	"encoding/json"
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
	var b parserBuilder
	parser, err := b.answer(in)
	return llama.Envelope{
		Parser:     parser,
		Generation: generation,
		Preserved:  []string{"<think>", "</think>", "<tool_call>", "</tool_call>"},
		Triggers:   []string{"<tool_call>"},
		Example:    turnStart + answerStart + thinkOpen + "REASONING-A\n</think>\n\n" + call + call + turnEnd,
	}, err
}

// A parserBuilder writes a parser as common/chat serializes it (common_peg_arena).
type parserBuilder struct{ nodes []map[string]any }

func (b *parserBuilder) node(kind string, fields map[string]any) int {
	if fields == nil {
		fields = map[string]any{}
	}
	fields["type"] = kind
	b.nodes = append(b.nodes, fields)
	return len(b.nodes) - 1
}

func (b *parserBuilder) literal(s string) int {
	return b.node("literal", map[string]any{"literal": s})
}

func (b *parserBuilder) until(s string) int {
	return b.node("until", map[string]any{"delimiters": []string{s}})
}

func (b *parserBuilder) seq(children ...int) int {
	return b.node("sequence", map[string]any{"children": children})
}

func (b *parserBuilder) tag(tag string, child int) int {
	return b.node("tag", map[string]any{"tag": tag, "child": child})
}

func (b *parserBuilder) repeat(child, least, most int) int {
	return b.node("repetition", map[string]any{"child": child, "min_count": least, "max_count": most})
}

// plainParser is the parser of an answer without calls.
func plainParser() (string, error) {
	var b parserBuilder
	return b.done(b.seq(
		b.literal(turnStart+answerStart), b.reasoning(),
		b.tag("content", b.node("until", map[string]any{"delimiters": []string{}})), b.node("end", nil),
	))
}

// reasoning is what may stand in front of an answer.
func (b *parserBuilder) reasoning() int {
	return b.repeat(b.seq(b.literal(thinkOpen), b.tag("reasoning", b.until("\n</think>\n\n")), b.literal("\n</think>\n\n")), 0, 1)
}

// answer is the parser of an answer with calls of the tools.
func (b *parserBuilder) answer(in llama.EnvelopeInput) (string, error) {
	var tools []int
	for _, t := range in.Tools {
		tools = append(tools, b.tag("tool", b.seq(
			b.tag("tool-open", b.seq(b.literal(`<tool_call>{"name": "`), b.tag("tool-name", b.literal(t.Name)), b.literal(`", "arguments": `))),
			b.tag("tool-args", b.node("schema", map[string]any{"child": b.until("}</tool_call>"), "name": "tool-" + t.Name + "-schema", "raw": false})),
			b.tag("tool-close", b.literal("}</tool_call>")),
		)))
	}
	choice := b.node("choice", map[string]any{"children": tools})
	least, most := 0, 1
	if in.Required {
		least = 1
	}
	if in.Parallel {
		most = -1
	}
	return b.done(b.seq(
		b.literal(turnStart+answerStart), b.reasoning(),
		b.tag("content", b.until("<tool_call>")), b.repeat(choice, least, most), b.node("end", nil),
	))
}

// done is the parser with this root, as text.
func (b *parserBuilder) done(root int) (string, error) {
	text, err := json.Marshal(map[string]any{"parsers": b.nodes, "rules": map[string]int{}, "root": root})
	return string(text), err
}
