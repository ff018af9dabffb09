package engine

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/b3os/b3infer/grammar"
	"github.com/b3os/b3infer/llama"
)

// An output turns a sequence's tokens into events, in the goroutine that serves
// the request: pieces → UTF-8 → the template's stop texts → reasoning, content and
// calls → the client's stop texts.
type output struct {
	vocab     *llama.Vocab
	preserved [][]byte // control texts that mean something in the answer

	utf8    utf8Joiner
	raw     *stopMatcher // Prompt.Stops
	think   thinkMeter
	reader  *grammar.Reader
	content *stopMatcher // Request.Stop
	trail   *trail       // nil: the tokens of the content are not told

	answer    int    // tokens seen
	reasoning int    // of these, the ones of the reasoning
	space     []byte // white space that may be at the end of the reasoning
	blank     bool   // white space at the beginning of content is left out
	called    bool   // content is left out
	calls     int    // complete calls
	stopped   bool
	stop      string // the client's stop text that ended the answer
}

func newOutput(vocab *llama.Vocab, p *Prepared) *output {
	o := &output{
		vocab:   vocab,
		raw:     newStopMatcher(p.prompt.Stops),
		think:   newThinkMeter(&p.prompt),
		reader:  p.form.envelope.Read(),
		content: newStopMatcher(p.stops),
		called:  p.form.called,
	}
	// Under a guide a call that has begun is one; a free answer may yet turn out to be text.
	o.reader.Whole = p.form.guide == nil
	if p.top >= 0 {
		o.trail = &trail{vocab: vocab}
	}
	o.blank = p.form.envelope.Calls() // blanks before a call are none of the answer's
	for _, text := range p.form.texts {
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
func (o *output) push(into []Event, d delivery) []Event {
	for i, t := range d.tokens {
		if o.stopped {
			break
		}
		o.answer++
		thinking := o.think.thinking()
		piece := o.piece(t)
		if o.trail != nil {
			o.trail.add(o.utf8.held, piece, d.logprobs[i])
		}
		text := o.utf8.push(piece)
		o.think.push(text)
		if thinking || o.think.thinking() {
			o.reasoning++
		}
		into = o.text(into, text)
	}
	return into
}

// close appends what was held back for the answer's end. An answer that is cut was
// not ended by the model.
func (o *output) close(into []Event, cut bool) []Event {
	if o.stopped {
		return into
	}
	// An incomplete character at the end says nothing; it is left out.
	into = o.pieces(into, o.reader.Push(o.raw.flush()))
	into = o.pieces(into, o.reader.Close(cut))
	if o.stopped {
		return into
	}
	return o.emit(into, o.content.flush())
}

func (o *output) text(into []Event, text string) []Event {
	clear, stop, _ := o.raw.push(text)
	into = o.pieces(into, o.reader.Push(clear))
	if stop != "" && !o.stopped {
		into = o.close(into, false)
		o.stopped = true
	}
	return into
}

func (o *output) pieces(into []Event, pieces []grammar.Piece) []Event {
	for _, p := range pieces {
		if o.stopped {
			break
		}
		if p.Kind == grammar.Content && o.called {
			continue
		}
		into = o.event(into, p)
	}
	return into
}

// event appends what a piece of the answer is for the client.
func (o *output) event(into []Event, p grammar.Piece) []Event {
	if p.Kind != grammar.Content {
		// A stop text does not reach across calls.
		into = o.emit(into, o.content.flush())
	}
	switch p.Kind {
	case grammar.Reasoning:
		o.blank = true
		text := strings.TrimRightFunc(p.Text, unicode.IsSpace)
		if text == "" {
			o.space = append(o.space, p.Text...)
			return into
		}
		into = emit(into, Text{Text: string(o.space) + text, Reasoning: true})
		o.space = append(o.space[:0], p.Text[len(text):]...)
		return into
	case grammar.Content:
		end := p.Start + len(p.Text)
		if o.blank {
			p.Text = strings.TrimLeftFunc(p.Text, unicode.IsSpace)
			o.blank = p.Text == ""
		}
		o.trail.mark(end-len(p.Text), end)
		clear, stop, _ := o.content.push(p.Text)
		if stop != "" {
			o.stopped, o.stop = true, stop
		}
		return o.emit(into, clear)
	case grammar.CallName:
		o.blank = true
		return append(into, CallStart{ID: p.ID, Name: p.Text})
	case grammar.CallArguments:
		return append(into, CallArguments{p.Text})
	default:
		o.calls++
		return append(into, CallEnd{})
	}
}

// emit appends content with its tokens.
func (o *output) emit(into []Event, content string) []Event {
	return emit(into, Text{Text: content, Tokens: o.trail.tell(len(content))})
}

// emit appends text, to the last event if it is of the same kind.
func emit(into []Event, t Text) []Event {
	if t.Text == "" {
		return into
	}
	if n := len(into); n > 0 {
		if last, ok := into[n-1].(Text); ok && last.Reasoning == t.Reasoning {
			last.Text += t.Text
			last.Tokens = append(last.Tokens, t.Tokens...)
			into[n-1] = last
			return into
		}
	}
	return append(into, t)
}
