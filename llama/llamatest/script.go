package llamatest

import (
	"bytes"

	"github.com/b3os/b3infer/llama"
)

// The texts of the chat template that a script needs to find where the answer
// begins.
const (
	turnStart   = "<|im_start|>"
	turnEnd     = "<|im_end|>\n"
	answerStart = "assistant\n"
	thinkOpen   = "<think>\n"
	thinkClosed = "\n</think>\n\n" // after thinkOpen: no reasoning is wanted
)

// scripted is what the script says after these tokens: the next token of its
// answer, the end token after the answer, or NoToken when there is no script
// for the prompt or the answer has left it.
func (m *Model) scripted(tokens []llama.Token) llama.Token {
	text, turn := m.text(tokens)
	if turn < 0 {
		return llama.NoToken
	}
	start := text[turn:]
	if answer, ok := bytes.CutPrefix(start, []byte(thinkOpen)); ok {
		start = bytes.TrimPrefix(answer, []byte(thinkClosed))
	}
	script, ok := m.options.Script(string(text[:len(text)-len(start)]))
	if !ok {
		return llama.NoToken
	}
	rest, ok := bytes.CutPrefix([]byte(script), start)
	switch {
	case !ok:
		return llama.NoToken
	case len(rest) == 0:
		return m.vocab.end
	}
	t, _ := m.vocab.next(rest, make([]bool, len(rest)))
	return t
}

// text is the text of tokens, and where in it the last turn of the assistant
// begins, behind its head, or -1.
func (m *Model) text(tokens []llama.Token) (text []byte, turn int) {
	turn = -1
	mark, head := -1, m.vocab.special[turnStart]
	for _, t := range tokens {
		if t == llama.NoToken {
			continue
		}
		text = append(text, m.vocab.Piece(t)...)
		switch {
		case t == head:
			mark = len(text)
		case mark >= 0 && len(text) >= mark+len(answerStart):
			if bytes.HasPrefix(text[mark:], []byte(answerStart)) {
				turn = mark + len(answerStart)
			}
			mark = -1
		}
	}
	return text, turn
}
