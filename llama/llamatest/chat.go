package llamatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/b3os/b3infer/llama"
)

// A Chat is the fake's own chat template, in the manner of ChatML:
//
//	<|im_start|>system
//	Be brief.
//
//	<tools>
//	{"name": "add", "description": "Adds.", "parameters": {}}
//	</tools><|im_end|>
//	<|im_start|>user name=Bob
//	1 + 1?<|im_end|>
//	<|im_start|>assistant
//	<think>
//	A sum.
//	</think>
//
//	<tool_call>{"name": "add", "arguments": {"a": 1, "b": 1}}</tool_call><|im_end|>
//	<|im_start|>tool call_id=1
//	2<|im_end|>
//	<|im_start|>assistant
//	<think>
//
// Reasoning stays in the history only behind the last user turn, as many
// templates have it. Without thinking the prompt ends in an empty reasoning.
type Chat struct{ model *Model }

var _ llama.Chat = (*Chat)(nil)

// NewChat implements llama.Model. The fake runs no Jinja: any template that is
// given counts as broken.
func (m *Model) NewChat(p llama.ChatParams) (llama.Chat, error) {
	switch {
	case m.closed.Load():
		return nil, fmt.Errorf("new chat: %w", llama.ErrClosed)
	case p.Template != "":
		return nil, fmt.Errorf("new chat: %w: the fake has no template but its own", llama.ErrTemplate)
	}
	return &Chat{m}, nil
}

// Caps implements llama.Chat.
func (c *Chat) Caps() llama.ChatCaps {
	return llama.ChatCaps{System: true, Tools: true, Calls: true, Parallel: true, Thinking: true}
}

// Render implements llama.Chat.
func (c *Chat) Render(in llama.ChatInput) (llama.Prompt, error) {
	if refuse := c.model.options.Refuse; refuse != nil {
		if err := refuse(in); err != nil {
			return llama.Prompt{}, fmt.Errorf("%w: %w", llama.ErrTemplate, err)
		}
	}
	var w promptWriter
	w.system(in, c.model.options.PrintDate)
	messages := in.Messages
	if len(messages) > 0 && isSystem(messages[0].Role) {
		messages = messages[1:]
	}
	lastUser := lastOf(messages, "user")
	for i, m := range messages {
		if err := w.turn(m, i > lastUser); err != nil {
			return llama.Prompt{}, err
		}
	}
	p := llama.Prompt{
		ThinkStart: "<think>",
		ThinkEnd:   []string{"</think>"},
		Preserved:  []string{"<think>", "</think>", "<tool_call>", "</tool_call>"},
	}
	if !in.NoGenerationPrompt {
		p.Generation = turnStart + answerStart + thinkOpen
		if !in.Thinking {
			p.Generation += thinkClosed
		}
		p.Thinking = in.Thinking
		w.control(p.Generation)
	}
	p.Parts = w.parts
	return p, nil
}

func isSystem(role string) bool { return role == "system" || role == "developer" }

func lastOf(messages []llama.ChatMessage, role string) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == role {
			return i
		}
	}
	return -1
}

// A promptWriter collects parts; neighbours of a kind become one.
type promptWriter struct{ parts []llama.Part }

func (w *promptWriter) control(text string) { w.write(text, true) }

func (w *promptWriter) literal(text string) { w.write(text, false) }

func (w *promptWriter) write(text string, special bool) {
	if text == "" {
		return
	}
	if n := len(w.parts); n > 0 && w.parts[n-1].Image == 0 && w.parts[n-1].Special == special {
		w.parts[n-1].Text = append(w.parts[n-1].Text, text...)
		return
	}
	w.parts = append(w.parts, llama.Part{Text: []byte(text), Special: special})
}

// system writes the first turn if it is a system turn or there are tools.
func (w *promptWriter) system(in llama.ChatInput, date bool) {
	has := len(in.Messages) > 0 && isSystem(in.Messages[0].Role)
	if !has && len(in.Tools) == 0 {
		return
	}
	w.control(turnStart + "system\n")
	if date {
		w.control(in.Now.Format("Today is 2006-01-02.\n"))
	}
	if has {
		w.content(in.Messages[0].Content)
	}
	if len(in.Tools) > 0 {
		w.control("\n\n<tools>\n")
		for _, t := range in.Tools {
			w.tool(t)
		}
		w.control("</tools>")
	}
	w.control(turnEnd)
}

func (w *promptWriter) tool(t llama.ChatTool) {
	w.control(`{"name": `)
	w.literal(quote(t.Name))
	w.control(`, "description": `)
	w.literal(quote(t.Description))
	w.control(`, "parameters": `)
	w.literal(orEmptyObject(t.Parameters))
	w.control("}\n")
}

// turn writes a message that is not the first system turn; recent ones keep
// their reasoning.
func (w *promptWriter) turn(m llama.ChatMessage, recent bool) error {
	role := m.Role
	switch role {
	case "developer":
		role = "system"
	case "system", "user", "assistant", "tool":
	default:
		return fmt.Errorf("%w: unknown role %q", llama.ErrTemplate, role)
	}
	w.control(turnStart + role)
	w.attribute(" name=", m.Name)
	w.attribute(" call_id=", m.ToolCallID)
	w.control("\n")
	if m.Reasoning != "" && recent {
		w.control(thinkOpen)
		w.literal(m.Reasoning)
		w.control("\n</think>\n\n")
	}
	w.content(m.Content)
	for _, call := range m.Calls {
		w.control(`<tool_call>{"name": `)
		w.literal(quote(call.Name))
		w.control(`, "arguments": `)
		w.literal(orEmptyObject(call.Arguments))
		w.control("}</tool_call>")
	}
	w.control(turnEnd)
	return nil
}

func (w *promptWriter) attribute(name, value string) {
	if value != "" {
		w.control(name)
		w.literal(value)
	}
}

func (w *promptWriter) content(parts []llama.ChatPart) {
	for _, p := range parts {
		if p.Image == 0 {
			w.literal(p.Text)
			continue
		}
		w.control("<|vision_start|>")
		w.parts = append(w.parts, llama.Part{Image: p.Image})
		w.control("<|vision_end|>")
	}
}

// quote is text as a JSON string.
func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // strings are always encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func orEmptyObject(text string) string {
	if text == "" {
		return "{}"
	}
	return text
}
