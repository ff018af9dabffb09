//go:build cgo

package libllama

import (
	"bytes"
	"time"

	"github.com/b3os/b3infer/llama"
)

// probe renders small conversations to learn what the template takes.
func (t *template) probe() {
	hello := said("user", "USER-A")
	off, _ := t.prompt(llama.ChatInput{Messages: []llama.ChatMessage{hello}})
	on, _ := t.prompt(llama.ChatInput{Messages: []llama.ChatMessage{hello}, Thinking: true})
	t.caps.Thinking = !bytes.Equal(off, on)

	bare := llama.ChatInput{Messages: []llama.ChatMessage{hello}, Tools: []llama.ChatTool{{Name: "TOOL-A"}}}
	if _, err := t.prompt(bare); err != nil {
		t.fullTools = true
	}
	if !t.caps.System {
		return
	}
	// Without an error or a text left out, the template takes them as they are.
	t.systemFront, t.systemLater = true, true
	answer := said("assistant", "ANSWER-A")
	t.systemFront = t.shows([]llama.ChatMessage{said("system", "SYSTEM-A"), said("system", "SYSTEM-B"), hello})
	t.systemLater = t.shows([]llama.ChatMessage{said("system", "SYSTEM-A"), hello, answer, said("system", "SYSTEM-B"), said("user", "USER-B")})
}

// shows tells whether the template renders the texts of all messages in order.
func (t *template) shows(messages []llama.ChatMessage) bool {
	prompt, err := t.prompt(llama.ChatInput{Messages: messages})
	if err != nil {
		return false
	}
	for _, m := range messages {
		_, rest, found := bytes.Cut(prompt, []byte(m.Content[0].Text))
		if !found {
			return false
		}
		prompt = rest
	}
	return true
}

func (t *template) prompt(in llama.ChatInput) ([]byte, error) {
	in.Now = time.Unix(0, 0).UTC()
	r, _, err := t.render(in)
	if err != nil {
		return nil, err
	}
	return r.prompt, nil
}

func said(role, text string) llama.ChatMessage {
	return llama.ChatMessage{Role: role, Content: []llama.ChatPart{{Text: text}}}
}
