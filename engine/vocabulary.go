package engine

import (
	"strings"
	"time"

	"github.com/b3os/b3infer/grammar/mask"
	"github.com/b3os/b3infer/llama"
)

// MaskVocabulary prepares a model's vocabulary as the engine does, with the marks of
// the model's own chat template, for measuring grammars without an engine.
func MaskVocabulary(m llama.Model) (*mask.Vocabulary, error) {
	chat, err := m.NewChat(llama.ChatParams{})
	if err != nil {
		return nil, err
	}
	return maskVocabulary(m.Vocab(), chat), nil
}

// maskVocabulary is a model's vocabulary as masks are computed from it. User-defined
// tokens are texts that a vocabulary keeps whole: marks if the template gives them a
// meaning in answers, such as <think>, else text like any other, such as runs of blanks.
func maskVocabulary(v *llama.Vocab, chat llama.Chat) *mask.Vocabulary {
	marks := answerMarks(chat)
	pieces, kinds := make([][]byte, v.Len()), make([]mask.Kind, v.Len())
	for i := range pieces {
		t := llama.Token(i)
		pieces[i] = v.Piece(t)
		switch kind := v.Kind(t); {
		case v.IsEnd(t):
			kinds[i] = mask.End
		case kind == llama.KindControl, kind == llama.KindUnused:
			kinds[i] = mask.Control
		case kind == llama.KindUser && marks[string(pieces[i])]:
			kinds[i] = mask.Marker
		}
	}
	return mask.NewVocabulary(pieces, kinds)
}

// answerMarks are the texts that mean something in answers of a template, with and
// without tools. What the template refuses has none.
func answerMarks(chat llama.Chat) map[string]bool {
	marks := make(map[string]bool)
	add := func(texts ...string) {
		for _, text := range texts {
			marks[strings.TrimSpace(text)] = true
		}
	}
	asked := []llama.ChatMessage{{Role: "user", Content: []llama.ChatPart{{Text: "Hi."}}}}
	tool := llama.ChatTool{Name: "probe", Description: "Probes.", Parameters: `{"type":"object","properties":{}}`}
	for _, thinking := range []bool{false, true} {
		if p, err := chat.Render(llama.ChatInput{Messages: asked, Thinking: thinking, Now: time.Now()}); err == nil {
			add(answerTexts(&p)...)
		}
		in := llama.EnvelopeInput{Tools: []llama.ChatTool{tool}, Parallel: true, Thinking: thinking}
		if e, err := chat.Envelope(in); err == nil {
			add(e.Preserved...)
		}
	}
	return marks
}

// answerTexts are the control texts that mean something in the answer to a prompt.
func answerTexts(p *llama.Prompt) []string {
	texts := append([]string{p.ThinkStart}, p.ThinkEnd...)
	return append(texts, p.Preserved...)
}
