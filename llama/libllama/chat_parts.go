//go:build cgo

package libllama

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/b3os/b3infer/llama"
)

// parts splits a prompt. Where the request's text spells a special token, or
// spells one together with the text beside it, the request's bytes of it are a
// literal part. All else may be Special: the only special texts in it are the
// template's own.
func (c *chat) parts(r *rendering, images *imageMarks) []llama.Part {
	literal := c.literal(r)
	var parts []llama.Part
	at := 0
	for _, s := range literal {
		parts = images.split(parts, r.prompt[at:s.from], true)
		parts = images.split(parts, r.prompt[s.from:s.to], false)
		at = s.to
	}
	return images.split(parts, r.prompt[at:], true)
}

// literal finds the bytes that come from the request and are part of a special
// text, in order.
func (c *chat) literal(r *rendering) []span {
	var found []span
	var ranks []int32
	for _, in := range r.inputs {
		// A text may start in front of the input and end in it.
		for i := max(in.from-c.longest+1, 0); i < in.to; i++ {
			ranks = c.specials.at(r.prompt[i:], ranks[:0])
			for _, rank := range ranks {
				from, to := max(i, in.from), min(i+len(c.specials.list[rank].text), in.to)
				if from < to {
					found = append(found, span{from, to})
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	var merged []span
	for _, s := range found {
		if last := len(merged) - 1; last >= 0 && s.from < merged[last].to {
			merged[last].to = max(merged[last].to, s.to)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// imageMarks are the texts that stand for images while a prompt is rendered.
type imageMarks struct {
	before, after string
	used          bool
}

func (m *imageMarks) mark(image int) string {
	if m == nil {
		return ""
	}
	m.used = true
	return m.before + strconv.Itoa(image) + m.after
}

// split appends text as parts, with the images that are marked in it.
func (m *imageMarks) split(parts []llama.Part, text []byte, special bool) []llama.Part {
	for m.used {
		before, rest, found := bytes.Cut(text, []byte(m.before))
		number, behind, closed := bytes.Cut(rest, []byte(m.after))
		image, err := strconv.Atoi(string(number))
		if !found || !closed || err != nil {
			break
		}
		if len(before) > 0 {
			parts = append(parts, llama.Part{Text: before, Special: special})
		}
		parts = append(parts, llama.Part{Image: image})
		text = behind
	}
	if len(text) == 0 {
		return parts
	}
	return append(parts, llama.Part{Text: text, Special: special})
}

// unusedMark is a text that no part of a conversation contains, made of
// characters that stand for nothing (Unicode's noncharacters).
func unusedMark(in llama.ChatInput, texts jsonTexts) string {
	for n := 0; ; n++ {
		mark := string(rune(0xFDD0+n%32)) + strings.Repeat("\uFFFE", n/32)
		if !mentions(in, texts, mark) {
			return mark
		}
	}
}

func mentions(in llama.ChatInput, texts jsonTexts, mark string) bool {
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, mark) })
	}
	for _, m := range in.Messages {
		if has(m.Name, m.Reasoning, m.ToolCallID) ||
			slices.ContainsFunc(m.Content, func(p llama.ChatPart) bool { return has(p.Text) }) ||
			slices.ContainsFunc(m.Calls, func(c llama.ChatCall) bool { return has(c.ID, c.Name) }) {
			return true
		}
	}
	for _, j := range texts {
		if bytes.Contains(j.text, []byte(mark)) {
			return true
		}
	}
	return slices.ContainsFunc(in.Tools, func(t llama.ChatTool) bool { return has(t.Name, t.Description) })
}

// markLike are the spellings of control tokens in the templates that there are.
var markLike = regexp.MustCompile(`<[^<>\s{}]{1,64}>|\[/?[A-Z_]{2,32}\]|\]<\]\w+\[>\[`)

// markTexts finds texts in a template's source that look like control tokens.
func markTexts(source string) []string {
	found := markLike.FindAllString(source, -1)
	slices.Sort(found)
	return slices.Compact(found)
}
