package engine

import (
	"strings"
	"unicode"

	"github.com/b3os/b3infer/llama"
)

// A reasoningSplitter divides an answer into reasoning and content by the texts
// that the model's template puts around the reasoning. White space around these
// texts belongs to neither side. Reasoning comes at the beginning or not at all:
// later start texts are content.
type reasoningSplitter struct {
	start string
	ends  *stopMatcher
	phase reasoningPhase
	space string // white space that may be at the end of the reasoning
	begin string // text that may be a start text
}

type reasoningPhase int

const (
	phaseBegin   reasoningPhase = iota // nothing but white space or a part of the start text has come
	phaseOpen                          // after the start text, before anything but white space
	phaseThink                         // inside the reasoning
	phaseClosed                        // after the end text, before anything but white space
	phaseContent                       // the rest is content
)

func newReasoningSplitter(p *llama.Prompt) reasoningSplitter {
	r := reasoningSplitter{start: strings.TrimSpace(p.ThinkStart)}
	var ends []string
	for _, end := range p.ThinkEnd {
		if end = strings.TrimSpace(end); end != "" {
			ends = append(ends, end)
		}
	}
	r.ends = newStopMatcher(ends)
	switch {
	case len(ends) == 0:
		r.phase = phaseContent
	case p.Thinking:
		r.phase = phaseOpen
	case r.start == "":
		r.phase = phaseContent
	}
	return r
}

// thinking tells that the next text may be reasoning.
func (r *reasoningSplitter) thinking() bool { return r.phase == phaseOpen || r.phase == phaseThink }

// push takes more of the answer and returns the pieces that are certain.
func (r *reasoningSplitter) push(text string) []Text {
	var out []Text
	for text != "" {
		var piece Text
		piece, text = r.next(text)
		if piece.Text != "" {
			out = append(out, piece)
		}
	}
	return out
}

// next takes a piece off text, in the phase that the answer is in.
func (r *reasoningSplitter) next(text string) (Text, string) {
	switch r.phase {
	case phaseBegin:
		return r.open(text)
	case phaseOpen, phaseThink:
		return r.think(text)
	case phaseClosed:
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text != "" {
			r.phase = phaseContent
		}
		return Text{Text: text}, ""
	}
	return Text{Text: text}, ""
}

// open decides whether the answer begins with the start text.
func (r *reasoningSplitter) open(text string) (Text, string) {
	r.begin += text
	seen := strings.TrimLeftFunc(r.begin, unicode.IsSpace)
	switch {
	case strings.HasPrefix(seen, r.start):
		r.phase, r.begin = phaseOpen, ""
		return Text{}, seen[len(r.start):]
	case strings.HasPrefix(r.start, seen):
		return Text{}, ""
	}
	all := r.begin
	r.phase, r.begin = phaseContent, ""
	return Text{Text: all}, ""
}

// think looks for an end text.
func (r *reasoningSplitter) think(text string) (Text, string) {
	clear, end, rest := r.ends.push(text)
	piece := r.space + clear
	if r.phase == phaseOpen {
		piece = strings.TrimLeftFunc(piece, unicode.IsSpace)
		if piece != "" {
			r.phase = phaseThink
		}
	}
	trimmed := strings.TrimRightFunc(piece, unicode.IsSpace)
	r.space = piece[len(trimmed):]
	if end != "" {
		r.phase = phaseClosed
	}
	return Text{Text: trimmed, Reasoning: true}, rest
}

// flush returns what was held back: the answer is over.
func (r *reasoningSplitter) flush() Text {
	switch r.phase {
	case phaseBegin:
		return Text{Text: r.begin}
	case phaseOpen, phaseThink:
		if held := r.ends.flush(); held != "" {
			return Text{Text: r.space + held, Reasoning: true}
		}
	}
	return Text{}
}
