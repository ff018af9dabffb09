package engine

import (
	"strings"
	"unicode"

	"github.com/b3os/b3infer/llama"
)

// A thinkMeter tells whether an answer has come to its end of reasoning, by the texts
// that the model's template puts around it. Reasoning comes at the beginning or not
// at all.
type thinkMeter struct {
	start string
	ends  *stopMatcher
	phase thinkPhase
	begin string // white space and what may be the start text
}

type thinkPhase int

const (
	thinkBegins thinkPhase = iota // nothing but white space or a part of the start text has come
	thinkGoesOn                   // inside the reasoning
	thinkIsOver                   // the rest is the answer proper
)

func newThinkMeter(p *llama.Prompt) thinkMeter {
	m := thinkMeter{start: strings.TrimSpace(p.ThinkStart)}
	var ends []string
	for _, end := range p.ThinkEnd {
		if end = strings.TrimSpace(end); end != "" {
			ends = append(ends, end)
		}
	}
	m.ends = newStopMatcher(ends)
	switch {
	case len(ends) == 0:
		m.phase = thinkIsOver
	case p.Thinking:
		m.phase = thinkGoesOn
	case m.start == "":
		m.phase = thinkIsOver
	}
	return m
}

// thinking tells that the next text may be reasoning.
func (m *thinkMeter) thinking() bool { return m.phase == thinkGoesOn }

// over tells that no reasoning will come.
func (m *thinkMeter) over() bool { return m.phase == thinkIsOver }

// push takes more of the answer.
func (m *thinkMeter) push(text string) {
	if m.phase == thinkBegins {
		m.begin += text
		seen := strings.TrimLeftFunc(m.begin, unicode.IsSpace)
		switch {
		case strings.HasPrefix(seen, m.start):
			m.phase, text = thinkGoesOn, seen[len(m.start):]
		case !strings.HasPrefix(m.start, seen):
			m.phase = thinkIsOver
		}
	}
	if m.phase == thinkGoesOn {
		if _, end, _ := m.ends.push(text); end != "" {
			m.phase = thinkIsOver
		}
	}
}

// A thinkBudget ends a sequence's reasoning after a number of tokens, with the text
// that ends it.
type thinkBudget struct {
	meter   thinkMeter
	left    int           // tokens of reasoning that may still come
	closing []llama.Token // spell the end text
	put     int           // of these, the ones that have come
}

// next is the token that comes in the place of the drawn one.
func (b *thinkBudget) next(drawn llama.Token, v *llama.Vocab) llama.Token {
	switch {
	case b.put > 0 && b.put < len(b.closing), b.put == 0 && b.left <= 0 && b.meter.thinking():
		b.put++
		return b.closing[b.put-1]
	case b.put == 0:
		b.see(drawn, v)
	}
	return drawn
}

// see counts a token that has come.
func (b *thinkBudget) see(t llama.Token, v *llama.Vocab) {
	if !b.meter.over() {
		b.left--
		b.meter.push(string(v.Piece(t)))
	}
}

// postpone takes back the last token of next: the drawn one comes after all.
func (b *thinkBudget) postpone(drawn llama.Token, v *llama.Vocab) {
	b.put = 0
	b.see(drawn, v)
}
