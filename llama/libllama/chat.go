package libllama

// #include "shim_chat.h"
import "C"

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/b3os/b3infer/llama"
)

// A chat renders conversations through a model's chat template by llama.cpp's
// common/chat, whose Jinja engine is made exact in jinja_exact.h. What common/chat
// does to a conversation before that is done here (chat_messages.go), so that
// it can be seen and tested.
type chat struct {
	template *template
	toolUse  *template // used when there are tools; nil if the model has no such template
	specials *specials // what must not stand in text of a request
	longest  int       // the longest of their texts
	bos      []byte    // a prompt's first text that Tokenize puts there itself
}

var _ llama.Chat = (*chat)(nil)

// chatML is what models without a template get.
const chatML = `{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\n' -}}
{%- endif -%}`

func newChat(m *Model, p llama.ChatParams) (llama.Chat, error) {
	source, toolUse := p.Template, ""
	if source == "" {
		source, toolUse = m.meta("tokenizer.chat_template"), m.meta("tokenizer.chat_template.tool_use")
		source = cmp.Or(source, toolUse, chatML)
	}
	var cBOS, cEOS C.int32_t
	C.b3_model_bos_eos(m.c, &cBOS, &cEOS)
	bos, eos := m.piece(llama.Token(cBOS)), m.piece(llama.Token(cEOS))
	c, err := newChatOf(source, toolUse, bos, eos, m.tokenizer.all)
	if err != nil {
		return nil, err
	}
	if m.vocab.BOS() != llama.NoToken {
		c.bos = []byte(bos)
	}
	return c, nil
}

func (m *Model) piece(t llama.Token) string {
	if !m.vocab.Valid(t) {
		return ""
	}
	return string(m.vocab.Piece(t))
}

// NewTemplate prepares a chat template without a model. bos and eos are what it
// prints for the vocabulary's tokens; nothing is cut from its prompts. Texts
// count as special if they look like it in the source: <…>, […] and the like.
func NewTemplate(source, bos, eos string) (llama.Chat, error) {
	var list []special
	for i, text := range markTexts(source) {
		list = append(list, special{token: llama.Token(i), text: text})
	}
	for _, text := range []string{bos, eos} {
		if text != "" {
			list = append(list, special{token: llama.Token(len(list)), text: text})
		}
	}
	return newChatOf(source, "", bos, eos, newSpecials(list))
}

func newChatOf(source, toolUse, bos, eos string, specials *specials) (*chat, error) {
	c := &chat{specials: specials}
	if len(specials.list) > 0 {
		c.longest = len(specials.list[0].text)
	}
	var err error
	if c.template, err = newTemplate(source, bos, eos); err != nil {
		return nil, err
	}
	if toolUse != "" && toolUse != source {
		if c.toolUse, err = newTemplate(toolUse, bos, eos); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Caps tells what the template can express.
func (c *chat) Caps() llama.ChatCaps {
	if c.toolUse != nil {
		return c.toolUse.caps
	}
	return c.template.caps
}

// Render turns a conversation into a prompt.
func (c *chat) Render(in llama.ChatInput) (llama.Prompt, error) {
	t := c.template
	if len(in.Tools) > 0 && c.toolUse != nil {
		t = c.toolUse
	}
	r, images, err := t.render(in)
	if err != nil {
		return llama.Prompt{}, err
	}
	if len(c.bos) > 0 && bytes.HasPrefix(r.prompt, c.bos) && !r.isInput(0) {
		r.cut(len(c.bos))
	}
	p := llama.Prompt{
		Parts:      c.parts(r, images),
		Generation: r.generation,
		ThinkStart: r.thinkStart,
		ThinkEnd:   r.thinkEnds,
		Stops:      r.stops,
		Preserved:  r.preserved,
	}
	if in.NoGenerationPrompt {
		p.Generation = ""
	}
	p.Thinking = opens(p.Generation, p.ThinkStart, p.ThinkEnd)
	return p, nil
}

// opens tells whether text leaves the thinking open that starts in it.
func opens(text, start string, ends []string) bool {
	at := strings.LastIndex(text, start)
	if start == "" || at < 0 {
		return false
	}
	for _, end := range ends {
		if strings.Contains(text[at+len(start):], end) {
			return false
		}
	}
	return true
}

// refused is an error about a conversation or template, in one line.
func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", llama.ErrTemplate, fmt.Sprintf(format, args...))
}
