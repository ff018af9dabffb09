//go:build cgo

package libllama

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/b3os/b3infer/llama"
)

// Before a conversation is rendered it is made such that the template takes
// it. A raw template fails on, or drops, what clients send every day: common/chat
// departs from the template's own input in these ways, and so does this file.
//
//	developer        the role becomes system, except in gpt-oss, which knows it
//	system_joined    system turns become one at the front, where the template
//	                 does not take them elsewhere
//	system_into_next without a system role its text goes before the next turn's
//	flat_content     parts become one text where the template wants a string, and
//	                 a string becomes a part where it wants parts
//	null_content     a turn without content has an empty one
//	full_tools       a tool without description or parameters gets empty ones
//	                 where the template fails on it
//	trimmed          StepFun: blanks around content and reasoning are cut
//	text_arguments   arguments of a call that are no JSON, as of a call that was
//	                 cut, are a string; where the template fails on that, the
//	                 member "arguments" of an object
//
// More departures are in common/chat's handlers of single families. The test
// that compares all templates with Jinja2 lists them (scripts/templates).

// prepared is the conversation's messages as the template takes them. join tells
// whether system turns may become one.
func (t *template) prepared(messages []llama.ChatMessage, join bool) []llama.ChatMessage {
	out := slices.Clone(messages)
	for i := range out {
		if out[i].Role == "developer" && !t.developer {
			out[i].Role = "system"
		}
		if t.trims {
			out[i] = trimmed(out[i])
		}
	}
	if join && t.mustJoinSystem(out) {
		out = joinSystem(out)
	}
	if !t.caps.System && len(out) > 0 && out[0].Role == "system" {
		out = systemIntoNext(out)
	}
	return out
}

func isSystem(m llama.ChatMessage) bool { return m.Role == "system" || m.Role == "developer" }

// mustJoinSystem tells whether system turns stand where the template does not
// take them.
func (t *template) mustJoinSystem(messages []llama.ChatMessage) bool {
	front := 0
	for front < len(messages) && isSystem(messages[front]) {
		front++
	}
	return front > 1 && !t.systemFront || slices.ContainsFunc(messages[front:], isSystem) && !t.systemLater
}

// joinSystem makes one turn at the front of all system turns.
func joinSystem(messages []llama.ChatMessage) []llama.ChatMessage {
	var texts []string
	out := []llama.ChatMessage{{}}
	for _, m := range messages {
		if !isSystem(m) {
			out = append(out, m)
			continue
		}
		if len(texts) == 0 {
			out[0].Role, out[0].Name = m.Role, m.Name
		}
		texts = append(texts, textOf(m.Content, nil))
	}
	out[0].Content = []llama.ChatPart{{Text: strings.Join(texts, "\n\n")}}
	return out
}

// systemIntoNext puts the text of the first turn before that of the second.
func systemIntoNext(messages []llama.ChatMessage) []llama.ChatMessage {
	system, rest := messages[0], slices.Clone(messages[1:])
	if len(rest) == 0 {
		system.Role = "user"
		return []llama.ChatMessage{system}
	}
	rest[0].Content = slices.Concat([]llama.ChatPart{{Text: textOf(system.Content, nil)}}, rest[0].Content)
	return rest
}

// cBlanks is what isspace knows.
const cBlanks = " \t\n\v\f\r"

func trimmed(m llama.ChatMessage) llama.ChatMessage {
	m.Reasoning = strings.Trim(m.Reasoning, cBlanks)
	m.Content = slices.Clone(m.Content)
	for i := range m.Content {
		m.Content[i].Text = strings.Trim(m.Content[i].Text, cBlanks)
	}
	return m
}

// textOf joins parts to one text: texts by newlines, images as their marks
// without.
func textOf(parts []llama.ChatPart, images *imageMarks) string {
	var b strings.Builder
	afterImage := false
	for _, p := range parts {
		switch {
		case p.Image != 0:
			b.WriteString(images.mark(p.Image))
			afterImage = true
			continue
		case b.Len() > 0 && !afterImage:
			b.WriteByte('\n')
		}
		b.WriteString(p.Text)
		afterImage = false
	}
	return b.String()
}

// hasText tells whether a call's arguments are a text that is no JSON object.
func hasText(c llama.ChatCall) bool {
	arguments := strings.Trim(argumentsOf(c), cBlanks)
	return arguments[0] != '{' || !json.Valid([]byte(arguments))
}

// wrapText makes objects of the arguments that are texts, and tells whether
// there are any.
func wrapText(messages []llama.ChatMessage) ([]llama.ChatMessage, bool) {
	out, found := slices.Clone(messages), false
	for i, m := range out {
		if !slices.ContainsFunc(m.Calls, hasText) {
			continue
		}
		found = true
		out[i].Calls = slices.Clone(m.Calls)
		for k, c := range m.Calls {
			if hasText(c) {
				out[i].Calls[k].Arguments = string(appendJSONString([]byte(`{"arguments": `), c.Arguments)) + "}"
			}
		}
	}
	return out, found
}

// roles are those that a message may have.
var roles = []string{"system", "developer", "user", "assistant", "tool"}

// An encoder writes a conversation as the JSON that C takes.
type encoder struct {
	*template
	messages, tools []byte
	join            bool   // system turns may become one
	number          string // what numbers start with that fit no C type; empty when there are none
	images          imageMarks
	texts           jsonTexts
}

func (e *encoder) conversation(in llama.ChatInput) error {
	if err := e.readJSON(in); err != nil {
		return err
	}
	unused := unusedMark(in, e.texts)
	if e.texts.wide() {
		e.number = unused + "n"
	}
	e.images = imageMarks{before: unused + "i", after: unused}
	messages := e.prepared(in.Messages, e.join)
	e.messages = append(e.messages, '[')
	for i := range messages {
		e.separate(i)
		e.message(&messages[i])
	}
	e.messages = append(e.messages, ']')
	if len(in.Tools) > 0 {
		e.toolList(in.Tools)
	}
	return nil
}

// readJSON checks the roles and what must be JSON.
func (e *encoder) readJSON(in llama.ChatInput) error {
	e.texts = map[string]jsonText{}
	for i, m := range in.Messages {
		if !slices.Contains(roles, m.Role) {
			return refused("messages.%d.role is %q", i, m.Role)
		}
		for _, c := range m.Calls {
			_ = e.texts.read(argumentsOf(c)) // taken as JSON only if it is
		}
		if e.parsesResults && m.Role == "tool" {
			_ = e.texts.read(textOf(m.Content, nil)) // taken as JSON only if it is
		}
	}
	for i, t := range in.Tools {
		if err := e.texts.read(parametersOf(t)); err != nil {
			return refused("tools.%d.function.parameters: %v", i, err)
		}
	}
	return nil
}

func argumentsOf(c llama.ChatCall) string {
	if strings.Trim(c.Arguments, cBlanks) == "" {
		return "{}"
	}
	return c.Arguments
}

func parametersOf(t llama.ChatTool) string { return cmp.Or(t.Parameters, "{}") }

func (e *encoder) separate(i int) {
	if i > 0 {
		e.messages = append(e.messages, ',')
	}
}

func (e *encoder) key(name string) { e.messages = append(append(e.messages, `,"`...), name+`":`...) }

func (e *encoder) string(s string) { e.messages = appendJSONString(e.messages, s) }

func (e *encoder) message(m *llama.ChatMessage) {
	e.messages = append(e.messages, `{"role":`...)
	e.string(m.Role)
	e.key("content")
	e.content(m)
	for _, f := range []struct{ key, value string }{
		{"reasoning_content", m.Reasoning},
		{"name", m.Name},
		{"tool_call_id", m.ToolCallID},
	} {
		if f.value != "" {
			e.key(f.key)
			e.string(f.value)
		}
	}
	if len(m.Calls) > 0 {
		e.calls(m.Calls)
	}
	e.messages = append(e.messages, '}')
}

func (e *encoder) content(m *llama.ChatMessage) {
	images := slices.ContainsFunc(m.Content, func(p llama.ChatPart) bool { return p.Image != 0 })
	asText := e.stringContent && (!e.partsContent || len(m.Content) <= 1 && !images || e.parsesResults && m.Role == "tool")
	if asText || len(m.Content) == 0 && e.stringContent {
		text := textOf(m.Content, &e.images)
		if j := e.texts[text]; m.Role == "tool" && len(j.wide) > 0 {
			text = string(j.append(nil, e.number)) // read as JSON
		}
		e.string(text)
		return
	}
	e.messages = append(e.messages, '[')
	for i, p := range m.Content {
		e.separate(i)
		kind, text := "text", p.Text
		if p.Image != 0 {
			kind, text = "media_marker", e.images.mark(p.Image)
		}
		e.messages = append(e.messages, `{"type":"`+kind+`","text":`...)
		e.string(text)
		e.messages = append(e.messages, '}')
	}
	e.messages = append(e.messages, ']')
}

func (e *encoder) calls(calls []llama.ChatCall) {
	e.key("tool_calls")
	e.messages = append(e.messages, '[')
	for i, c := range calls {
		e.separate(i)
		e.messages = append(e.messages, '{')
		if c.ID != "" {
			e.messages = append(e.messages, `"id":`...)
			e.string(c.ID)
			e.messages = append(e.messages, ',')
		}
		e.messages = append(e.messages, `"type":"function","function":{"name":`...)
		e.string(c.Name)
		e.key("arguments")
		arguments := argumentsOf(c)
		if j, isJSON := e.texts[arguments]; isJSON && e.objectArgs {
			e.messages = j.append(e.messages, e.number)
		} else {
			e.string(arguments)
		}
		e.messages = append(e.messages, "}}"...)
	}
	e.messages = append(e.messages, ']')
}

func (e *encoder) toolList(tools []llama.ChatTool) {
	out := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"type":"function","function":{"name":`...)
		out = appendJSONString(out, t.Name)
		if t.Description != "" || e.fullTools {
			out = append(out, `,"description":`...)
			out = appendJSONString(out, t.Description)
		}
		if t.Parameters != "" || e.fullTools {
			out = append(out, `,"parameters":`...)
			out = e.texts[parametersOf(t)].append(out, e.number)
		}
		out = append(out, "}}"...)
	}
	e.tools = append(out, ']')
}
