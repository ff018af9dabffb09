package llamatest

import (
	"encoding/json"

	"github.com/b3os/b3infer/llama"
)

// A parserBuilder writes a parser as common/chat serializes it (common_peg_arena).
type parserBuilder struct {
	nodes []map[string]any
	rules map[string]int
}

func newParserBuilder() *parserBuilder { return &parserBuilder{rules: make(map[string]int)} }

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

func (b *parserBuilder) until(delimiters ...string) int {
	if delimiters == nil {
		delimiters = []string{}
	}
	return b.node("until", map[string]any{"delimiters": delimiters})
}

func (b *parserBuilder) seq(children ...int) int {
	return b.node("sequence", map[string]any{"children": children})
}

func (b *parserBuilder) choice(children ...int) int {
	return b.node("choice", map[string]any{"children": children})
}

func (b *parserBuilder) tag(tag string, child int) int {
	return b.node("tag", map[string]any{"tag": tag, "child": child})
}

func (b *parserBuilder) repeat(child, least, most int) int {
	return b.node("repetition", map[string]any{"child": child, "min_count": least, "max_count": most})
}

func (b *parserBuilder) space() int { return b.node("space", nil) }

func (b *parserBuilder) ref(rule string) int { return b.node("ref", map[string]any{"name": rule}) }

func (b *parserBuilder) rule(name string, child int) {
	b.rules[name] = b.node("rule", map[string]any{"name": name, "child": child, "trigger": false})
}

// digits are one character or more of a number.
func (b *parserBuilder) digits() int {
	one := func(r rune) map[string]any { return map[string]any{"start": r, "end": r} }
	return b.node("chars", map[string]any{
		"pattern": "[-+.eE0-9]", "negated": false, "min_count": 1, "max_count": -1,
		"ranges": []map[string]any{one('-'), one('+'), one('.'), one('e'), one('E'), {"start": '0', "end": '9'}},
	})
}

// json makes the rules of JSON values.
func (b *parserBuilder) json() {
	list := func(open string, item func() int, close string) int {
		more := b.repeat(b.seq(b.space(), b.literal(","), b.space(), item()), 0, -1)
		items := b.repeat(b.seq(item(), more), 0, 1)
		return b.seq(b.literal(open), b.space(), items, b.space(), b.literal(close))
	}
	text := func() int {
		return b.seq(b.literal(`"`), b.node("string", map[string]any{"delimiter": `"`}), b.literal(`"`))
	}
	value := func() int { return b.ref("json-value") }
	member := func() int { return b.seq(text(), b.space(), b.literal(":"), b.space(), value()) }
	b.rule("json-object", list("{", member, "}"))
	b.rule("json-value", b.choice(
		b.ref("json-object"), list("[", value, "]"), text(), b.digits(),
		b.literal("true"), b.literal("false"), b.literal("null"),
	))
}

// reasoning is what may stand in front of an answer.
func (b *parserBuilder) reasoning() int {
	return b.repeat(b.seq(
		b.literal("<think>"), b.space(), b.tag("reasoning", b.until("</think>")), b.literal("</think>"), b.space(),
	), 0, 1)
}

// done is the parser with this root, as text.
func (b *parserBuilder) done(root int) (string, error) {
	text, err := json.Marshal(map[string]any{"parsers": b.nodes, "rules": b.rules, "root": root})
	return string(text), err
}

// plainParser is the parser of answers without calls.
func plainParser() (string, error) {
	b := newParserBuilder()
	return b.done(b.seq(b.literal(turnStart+answerStart), b.reasoning(), b.tag("content", b.until()), b.node("end", nil)))
}

// answerParser is the parser of answers with calls of the tools.
func answerParser(in llama.EnvelopeInput) (string, error) {
	b := newParserBuilder()
	b.json()
	var tools []int
	for _, t := range in.Tools {
		schema := map[string]any{"child": b.ref("json-object"), "name": "tool-" + t.Name + "-schema", "raw": false}
		tools = append(tools, b.tag("tool", b.seq(
			b.tag("tool-open", b.seq(b.literal(`<tool_call>{"name": "`), b.tag("tool-name", b.literal(t.Name)), b.literal(`", "arguments": `))),
			b.tag("tool-args", b.node("schema", schema)),
			b.tag("tool-close", b.literal("}</tool_call>")),
		)))
	}
	least, most := 0, 1
	if in.Required {
		least = 1
	}
	if in.Parallel {
		most = -1
	}
	return b.done(b.seq(
		b.literal(turnStart+answerStart), b.reasoning(),
		b.tag("content", b.until("<tool_call>")), b.repeat(b.choice(tools...), least, most), b.node("end", nil),
	))
}
