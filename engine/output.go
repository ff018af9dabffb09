package engine

import (
	"bytes"
	"slices"

	"github.com/b3os/b3infer/llama"
)

// An output turns a sequence's tokens into events, in the goroutine that
// serves the request: pieces → UTF-8 → the template's stop texts → reasoning
// and content → the client's stop texts.
type output struct {
	vocab     *llama.Vocab
	preserved [][]byte // control texts that mean something in the answer

	utf8    utf8Joiner
	raw     *stopMatcher // Prompt.Stops
	split   reasoningSplitter
	content *stopMatcher // Request.Stop

	answer    int // tokens seen
	reasoning int // of these, the ones of the reasoning
	stopped   bool
	stop      string // the client's stop text that ended the answer
}

func newOutput(vocab *llama.Vocab, prompt *llama.Prompt, stops []string) *output {
	o := &output{
		vocab:   vocab,
		raw:     newStopMatcher(prompt.Stops),
		split:   newReasoningSplitter(prompt),
		content: newStopMatcher(stops),
	}
	for _, text := range slices.Concat(prompt.Preserved, prompt.ThinkEnd, []string{prompt.ThinkStart}) {
		if text != "" {
			o.preserved = append(o.preserved, []byte(text))
		}
	}
	return o
}

// piece is a token's text in an answer: control tokens have none, unless the
// template gives them a meaning there.
func (o *output) piece(t llama.Token) []byte {
	if o.vocab.IsEnd(t) {
		return nil
	}
	switch o.vocab.Kind(t) {
	case llama.KindUnused:
		return nil
	case llama.KindControl:
		piece := o.vocab.Piece(t)
		if !slices.ContainsFunc(o.preserved, func(p []byte) bool { return bytes.Equal(p, piece) }) {
			return nil
		}
	}
	return o.vocab.Piece(t)
}

// push appends the events that tokens bring to into. Once stopped is set the
// answer is over, and later tokens are not looked at.
func (o *output) push(into []Event, tokens []llama.Token) []Event {
	for _, t := range tokens {
		if o.stopped {
			break
		}
		o.answer++
		thinking := o.split.thinking()
		into = o.text(into, o.utf8.push(o.piece(t)))
		if thinking || o.split.thinking() {
			o.reasoning++
		}
	}
	return into
}

// close appends what was held back for the answer's end.
func (o *output) close(into []Event) []Event {
	if o.stopped {
		return into
	}
	// An incomplete character at the end says nothing; it is left out.
	into = o.parts(into, o.raw.flush())
	into = o.part(into, o.split.flush())
	return emit(into, o.content.flush(), false)
}

func (o *output) text(into []Event, text string) []Event {
	clear, stop, _ := o.raw.push(text)
	into = o.parts(into, clear)
	if stop != "" && !o.stopped {
		into = o.close(into)
		o.stopped = true
	}
	return into
}

func (o *output) parts(into []Event, text string) []Event {
	for _, part := range o.split.push(text) {
		into = o.part(into, part)
	}
	return into
}

func (o *output) part(into []Event, part Text) []Event {
	if part.Reasoning {
		return emit(into, part.Text, true)
	}
	if o.stopped {
		return into
	}
	clear, stop, _ := o.content.push(part.Text)
	if stop != "" {
		o.stopped, o.stop = true, stop
	}
	return emit(into, clear, false)
}

// emit appends text, to the last event if it is of the same kind.
func emit(into []Event, text string, reasoning bool) []Event {
	if text == "" {
		return into
	}
	if n := len(into); n > 0 {
		if last, ok := into[n-1].(Text); ok && last.Reasoning == reasoning {
			last.Text += text
			into[n-1] = last
			return into
		}
	}
	return append(into, Text{Text: text, Reasoning: reasoning})
}
