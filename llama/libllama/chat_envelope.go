package libllama

// #include "shim_chat.h"
import "C"

import (
	"bytes"
	"encoding/json"
	"time"
	"unsafe"

	"github.com/b3os/b3infer/llama"
)

// Envelope tells how the template writes answers. common/chat makes a parser of
// answers for the tools, and the history shows how calls are spaced.
func (c *chat) Envelope(in llama.EnvelopeInput) (llama.Envelope, error) {
	t := c.template
	if len(in.Tools) > 0 && c.toolUse != nil {
		t = c.toolUse
	}
	calls := calling{choice: C.B3_CHOICE_AUTO, parallel: in.Parallel}
	if in.Required {
		calls.choice = C.B3_CHOICE_REQUIRED
	}
	asked := llama.ChatInput{
		Messages: []llama.ChatMessage{said("user", "USER-A")},
		Tools:    in.Tools, Thinking: in.Thinking, Now: time.Unix(0, 0).UTC(),
	}
	r, _, err := t.renderOnce(asked, calls, true)
	if err != nil {
		return llama.Envelope{}, err
	}
	return llama.Envelope{
		Parser: r.parser, Format: r.format, Generation: r.generation,
		Thinking:  opens(r.generation, r.thinkStart, r.thinkEnds),
		Preserved: r.preserved, Triggers: r.triggers,
		Example: t.example(asked, r, in.Parallel),
	}, nil
}

// example is the turn of an assistant that calls the first tool, twice if it may,
// in the history of the conversation asked, which renders as r.
func (t *template) example(asked llama.ChatInput, r *rendering, parallel bool) string {
	for _, calls := range []int{2, 1} {
		if calls > 1 && !parallel || len(asked.Tools) == 0 {
			continue
		}
		turn := llama.ChatMessage{Role: "assistant", Reasoning: "REASONING-A"}
		for i := range calls {
			turn.Calls = append(turn.Calls, llama.ChatCall{
				ID: []string{"call00001", "call00002"}[i], Name: asked.Tools[0].Name,
				Arguments: exampleArguments(asked.Tools[0].Parameters),
			})
		}
		answered := asked
		answered.Messages = append(asked.Messages[:1:1], turn)
		answered.NoGenerationPrompt = true
		history, _, err := t.renderOnce(answered, noCalls, true)
		if err != nil {
			continue
		}
		// The turn starts where the two conversations part, or with the generation
		// prompt as far as the history repeats it.
		start := len(r.prompt) - len(r.generation)
		if start <= len(history.prompt) && bytes.HasPrefix(history.prompt, r.prompt[:start]) {
			return string(history.prompt[start:])
		}
	}
	return ""
}

// exampleArguments has a value for each parameter of a tool.
func exampleArguments(schema string) string {
	var s struct {
		Properties map[string]struct{ Type string }
	}
	if json.Unmarshal([]byte(schema), &s) != nil {
		return "{}"
	}
	values := map[string]any{}
	for name, p := range s.Properties {
		if values[name] = any(1); p.Type == "string" {
			values[name] = "VALUE-A"
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// A parsedAnswer is what common/chat reads in an answer.
type parsedAnswer struct {
	content, reasoning string
	calls              []llama.ChatCall
}

// parseAnswer is common_chat_peg_parse for a whole answer: what other parsers and
// the grammars of calls are held against.
func parseAnswer(e llama.Envelope, answer string) (parsedAnswer, error) {
	text := []byte(e.Parser + e.Generation + answer)
	sizes := [C.B3_ANSWER_COUNT]C.size_t{
		C.B3_ANSWER_PARSER:     C.size_t(len(e.Parser)),
		C.B3_ANSWER_GENERATION: C.size_t(len(e.Generation)),
		C.B3_ANSWER_TEXT:       C.size_t(len(answer)),
	}
	var out *C.b3_answer
	var cerr C.b3_error
	if C.b3_answer_parse((*C.char)(ptr(text)), &sizes[0], C.int32_t(e.Format), &out, &cerr) != C.B3_OK {
		return parsedAnswer{}, refused("%s", oneLine(C.GoString(&cerr.text[0])))
	}
	defer C.b3_answer_free(out)
	next := textsOf(unsafe.Pointer(out.text), out.sizes)
	p := parsedAnswer{content: string(next()), reasoning: string(next())}
	for range out.calls {
		p.calls = append(p.calls, llama.ChatCall{Name: string(next()), Arguments: string(next()), ID: string(next())})
	}
	return p, nil
}
