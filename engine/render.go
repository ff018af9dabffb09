package engine

import (
	"time"

	"github.com/b3os/b3infer/llama"
)

// Render is what a chat template makes of a request, for those who want to see
// the prompt and need no engine. Errors are as Prepare's.
func Render(chat llama.Chat, r *Request) (llama.Prompt, error) {
	prompt, err := chat.Render(r.chatInput(time.Now()))
	if err != nil {
		return llama.Prompt{}, refused(err, "messages")
	}
	return prompt, nil
}
