package engine

import (
	"errors"
	"time"

	"github.com/b3os/b3infer/llama"
)

// Render is what a chat template makes of a request, for those who want to see
// the prompt and need no engine. Errors are as Prepare's.
func Render(chat llama.Chat, r *Request) (llama.Prompt, error) {
	prompt, err := renderChat(chat, r.chatInput(time.Now()))
	if err != nil {
		return llama.Prompt{}, refused(err, "messages")
	}
	return prompt, nil
}

// renderChat renders a conversation, and if the template refuses it, once more with
// shorter ids of calls.
func renderChat(chat llama.Chat, in llama.ChatInput) (llama.Prompt, error) {
	p, err := chat.Render(in)
	if !errors.Is(err, llama.ErrTemplate) {
		return p, err
	}
	if short, ok := shortIDs(in); ok {
		if p, err := chat.Render(short); err == nil {
			return p, nil
		}
	}
	return llama.Prompt{}, err
}
