package grammar

import (
	"fmt"
	"slices"
	"strings"
)

// This file says what stands in the places of texts: content, reasoning, ids, blanks.

// contentless tells whether free text is left out here.
func (f *former) contentless(at spot) bool { return f.call.Mode != Auto || at.after || at.quiet }

// content is free text, or the value that stands in its place. The answer may end
// in it.
func (f *former) content(at spot) (full, stopped Node, err error) {
	if f.contentless(at) {
		return Seq{}, nil, nil
	}
	if f.call.Answer != nil {
		return nil, f.asked(), nil
	}
	delimiters := append(slices.Clip(at.forbidden), f.delimiters(at.id)...)
	part, err := f.until(delimiters, true)
	if err != nil {
		return nil, nil, err
	}
	all, err := f.until(delimiters, false)
	return part, all, err
}

// asked is Call.Answer. Blanks at the end of the generation prompt may stand in the
// place of content.
func (f *former) asked() Node {
	if f.asks == nil {
		f.asks = sequence(gap{spelled: Seq{}}, inset{f.rules.graft(f.call.Answer, "answer")})
	}
	return f.asks
}

// until is the automaton of a text before delimiters, once for each.
func (f *former) until(delimiters []string, whole bool) (*DFA, error) {
	key := fmt.Sprint(whole, len(delimiters), delimiters)
	if d := f.untils[key]; d != nil {
		return d, nil
	}
	d, err := until(f.meter, delimiters, whole)
	f.untils[key] = d
	return d, err
}

// delimiters is what ends the text in a node.
func (f *former) delimiters(id int) []string {
	for range maxPegDepth {
		n := &f.peg.Parsers[id]
		if n.Type == "until" {
			return n.Delimiters
		}
		under := n.under()
		if len(under) == 0 {
			break
		}
		id = under[0]
	}
	return nil
}

// idChars are what ids of calls consist of, idLength how many there are: so many
// as Mistral's templates ask for.
var idChars = Class{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}

const idLength = 9

// maxIndex is how many digits a call's number has at most.
const maxIndex = 3

func (f *former) text(at spot, delimiters []string) (Node, error) {
	if at.tag == tagToolID {
		return Repeat{idChars, idLength, idLength}, nil
	}
	d, err := f.until(append(slices.Clip(at.forbidden), delimiters...), true)
	if at.tag == tagReasoning || err != nil {
		return d, err
	}
	return maybe{d, f.spelled(at)}, nil
}

func (f *former) chars(at spot, n *pegNode) (Node, error) {
	if at.tag == tagToolID && n.MaxCount == Unbounded {
		return Repeat{n.class(), n.MinCount, max(n.MinCount, maxIndex)}, nil
	}
	body := repeated(n.class(), n.MinCount, n.MaxCount)
	if texts := f.e.manner.texts[at.key()]; len(texts) > 0 {
		return maybe{body, f.spelled(at)}, nil
	}
	return body, nil
}

// space is blanks as the template writes them. Behind reasoning the model may
// have written none, since it may not have reasoned.
func (f *former) space(at spot) Node {
	n := f.spelled(at)
	if at.thought {
		if len(f.e.manner.texts[at.key()]) == 0 {
			n = Repeat{Literal("\n"), 0, 2}
		}
		n = alternatives(Seq{}, n)
	}
	return gap{spelled: n}
}

// spelled is what the template writes at a place. In place of one tool's name it
// has the other's.
func (f *former) spelled(at spot) Node {
	texts := f.e.manner.texts[at.key()]
	if n := len(texts); !f.call.Parallel && n > 1 && at.param == "" {
		if at.after {
			texts = texts[n-1:] // behind the last call
		} else {
			texts = texts[:1]
		}
	}
	var parts []Node
	for _, text := range texts {
		if slices.Contains(f.peg.facts[f.peg.Root].names, text) && at.tool != "" {
			text = at.tool
		}
		if strings.Contains(text, `"number"`) && at.argument == tagValue {
			for _, kind := range f.kindsOf(at) {
				parts = append(parts, Literal(strings.Replace(text, `"number"`, `"`+kind+`"`, 1)))
			}
			continue
		}
		parts = append(parts, sequence(Literal(text)))
	}
	if len(parts) == 0 {
		return Seq{}
	}
	return alternatives(parts...)
}
