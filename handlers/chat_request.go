package handlers

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/b3os/b3infer/engine"
)

// chatRequest is the body of a chat completion.
type chatRequest struct {
	Model               *string             `json:"model"`
	Messages            []chatMessage       `json:"messages"`
	Temperature         *float64            `json:"temperature"`
	TopP                *float64            `json:"top_p"`
	TopK                *limit              `json:"top_k"`
	MinP                *float64            `json:"min_p"`
	PresencePenalty     *float64            `json:"presence_penalty"`
	FrequencyPenalty    *float64            `json:"frequency_penalty"`
	RepetitionPenalty   *float64            `json:"repetition_penalty"`
	LogitBias           map[string]*float64 `json:"logit_bias"`
	MaxTokens           *limit              `json:"max_tokens"`
	MaxCompletionTokens *limit              `json:"max_completion_tokens"`
	Stop                chatStop            `json:"stop"`
	Seed                *integer            `json:"seed"`
	N                   *limit              `json:"n"`
	Stream              *bool               `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage *bool `json:"include_usage"`
	} `json:"stream_options"`
	ChatTemplateKwargs *struct {
		EnableThinking *bool `json:"enable_thinking"`
	} `json:"chat_template_kwargs"`
	Tools             []chatTool      `json:"tools"`
	ToolChoice        *chatToolChoice `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	ResponseFormat    *chatFormat     `json:"response_format"`
	Logprobs          *bool           `json:"logprobs"`
	TopLogprobs       *limit          `json:"top_logprobs"`
	Route             *string         `json:"route"`

	// Taken and ignored.
	User        *string                   `json:"user"`
	Metadata    map[string]jsontext.Value `json:"metadata"`
	Store       *bool                     `json:"store"`
	ServiceTier *string                   `json:"service_tier"`
}

// chatMessage is one turn. Tool calls, reasoning and refusal mean something on
// assistant turns, the call id on tool turns; elsewhere they are ignored.
type chatMessage struct {
	Role             *string        `json:"role"`
	Content          chatContent    `json:"content"`
	Name             *string        `json:"name"`
	ToolCalls        []chatToolCall `json:"tool_calls"`
	ToolCallID       *string        `json:"tool_call_id"`
	Refusal          *string        `json:"refusal"`
	ReasoningContent *string        `json:"reasoning_content"`
}

type chatToolCall struct {
	ID       *string `json:"id"`
	Type     *string `json:"type"`
	Function *struct {
		Name      *string `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

// chatContent is a string or a list of parts; nil parts without either.
type chatContent []chatPart

type chatPart struct {
	Type     *string        `json:"type"`
	Text     *string        `json:"text"`
	ImageURL jsontext.Value `json:"image_url"`
}

func (c *chatContent) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case 'n':
		return d.SkipValue()
	case '[':
		return json.UnmarshalDecode(d, (*[]chatPart)(c))
	case '"':
		kind, text := "text", ""
		err := json.UnmarshalDecode(d, &text)
		*c = chatContent{{Type: &kind, Text: &text}}
		return err
	}
	return invalid("", "must be a string or an array of parts")
}

// chatStop is a string or a list of strings.
type chatStop []text

func (s *chatStop) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case 'n':
		return d.SkipValue()
	case '[':
		return json.UnmarshalDecode(d, (*[]text)(s))
	case '"':
		*s = make(chatStop, 1)
		return json.UnmarshalDecode(d, &(*s)[0])
	}
	return invalid("", "must be a string or an array of strings")
}

func (r *chatRequest) streamed() bool { return r.Stream != nil && *r.Stream }

func (r *chatRequest) includeUsage() bool {
	return r.StreamOptions != nil && isTrue(r.StreamOptions.IncludeUsage)
}

// maxTokens bounds the answer; 0 means that the request does not.
func (r *chatRequest) maxTokens() int {
	if r.MaxCompletionTokens != nil {
		return clamp(r.MaxCompletionTokens)
	}
	return clamp(r.MaxTokens)
}

// DecodeChat is what the body of a chat completion asks of an engine, for the
// commands that show what becomes of a request. Errors are *engine.Error.
func DecodeChat(body []byte) (*engine.Request, error) {
	var wire chatRequest
	if err := decode(body, &wire, strict); err != nil {
		return nil, err
	}
	return wire.toRequest()
}

// toRequest checks the parameters and says them in the engine's words.
func (r *chatRequest) toRequest() (*engine.Request, error) {
	for _, check := range []func() *fault{r.checkRanges, r.checkLogprobs, r.checkOffered} {
		if f := check(); f != nil {
			return nil, f.public()
		}
	}
	bias, f := readBias(r.LogitBias)
	if f != nil {
		return nil, f.public()
	}
	request := &engine.Request{
		MaxTokens:   r.maxTokens(),
		Sampling:    r.sampling(),
		OneCall:     r.ParallelToolCalls != nil && !*r.ParallelToolCalls,
		Thinking:    r.ChatTemplateKwargs != nil && isTrue(r.ChatTemplateKwargs.EnableThinking),
		Logprobs:    isTrue(r.Logprobs),
		TopLogprobs: clamp(r.TopLogprobs),
	}
	request.Sampling.Bias = bias
	if f := r.fill(request); f != nil {
		return nil, f.public()
	}
	for _, s := range r.Stop {
		request.Stop = append(request.Stop, string(s))
	}
	return request, nil
}

// fill adds the conversation and what the answer to it may be.
func (r *chatRequest) fill(request *engine.Request) (f *fault) {
	if request.Messages, f = toMessages(r.Messages); f != nil {
		return f
	}
	if request.Tools, f = toTools(r.Tools); f != nil {
		return f
	}
	if request.Choice, f = r.ToolChoice.toChoice(request.Tools); f != nil {
		return f
	}
	if request.Format, f = r.ResponseFormat.toFormat(); f != nil {
		return f
	}
	return checkSchemas(request)
}

// maxStops is how many stop texts a request may have.
const maxStops = 16

// checkRanges finds values that no version takes.
func (r *chatRequest) checkRanges() *fault {
	for _, n := range []struct {
		path     string
		value    *float64
		min, max float64
	}{
		{"temperature", r.Temperature, 0, 2},
		{"top_p", r.TopP, 0, 1},
		{"min_p", r.MinP, 0, 1},
		{"presence_penalty", r.PresencePenalty, -2, 2},
		{"frequency_penalty", r.FrequencyPenalty, -2, 2},
		{"repetition_penalty", r.RepetitionPenalty, 0, 100},
	} {
		if n.value != nil && (*n.value < n.min || *n.value > n.max) {
			return invalid(n.path, "must be between %v and %v", n.min, n.max)
		}
	}
	for _, n := range []struct {
		path  string
		value *limit
		min   limit
	}{
		{"top_k", r.TopK, -1},
		{"max_tokens", r.MaxTokens, 1},
		{"max_completion_tokens", r.MaxCompletionTokens, 1},
	} {
		if n.value != nil && *n.value < n.min {
			return invalid(n.path, "must be at least %d", n.min)
		}
	}
	if len(r.Stop) > maxStops {
		return invalid("stop", "must have at most %d texts", maxStops)
	}
	if i := slices.Index(r.Stop, ""); i >= 0 {
		return invalid("", "must not be empty").within("stop", i)
	}
	return nil
}

// checkOffered finds what this node does not offer.
func (r *chatRequest) checkOffered() *fault {
	switch {
	case r.N != nil && *r.N != 1:
		return &fault{engine.CodeUnsupported, "n", "must be 1 on this node"}
	case r.Route != nil && *r.Route != "local" && *r.Route != "gateway":
		return invalid("route", "must be local or gateway")
	}
	return nil
}

func (r *chatRequest) sampling() engine.Sampling {
	s := engine.Sampling{
		Temperature: r.Temperature,
		TopP:        readTopP(r.TopP),
		MinP:        r.MinP,
		Presence:    r.PresencePenalty,
		Frequency:   r.FrequencyPenalty,
		Repetition:  r.RepetitionPenalty,
		Seed:        (*int64)(r.Seed),
	}
	if r.TopK != nil {
		k := clamp(r.TopK)
		s.TopK = &k
	}
	return s
}

var chatRoles = []string{"system", "developer", "user", "assistant", "tool"}

// toMessages checks a conversation and says it in the engine's words.
func toMessages(wire []chatMessage) ([]engine.Message, *fault) {
	if len(wire) == 0 {
		return nil, invalid("messages", "must have at least one message")
	}
	messages := make([]engine.Message, len(wire))
	calls := map[string]bool{} // ids of the calls so far
	for i := range wire {
		m, f := wire[i].toMessage()
		if f == nil && m.Role == engine.RoleTool && !calls[m.CallID] {
			f = invalid("tool_call_id", "names no tool call of an earlier message")
		}
		if f != nil {
			return nil, f.within("messages", i)
		}
		for _, call := range m.Calls {
			calls[call.ID] = true
		}
		messages[i] = m
	}
	return messages, nil
}

func (m *chatMessage) toMessage() (engine.Message, *fault) {
	if m.Role == nil {
		return engine.Message{}, missing("role")
	}
	if !slices.Contains(chatRoles, *m.Role) {
		return engine.Message{}, invalid("role", "must be one of %s", strings.Join(chatRoles, ", "))
	}
	out := engine.Message{Role: engine.Role(*m.Role), Name: value(m.Name)}
	var f *fault
	if out.Content, f = m.Content.texts(); f != nil {
		return out, f
	}
	if out.Calls, f = toCalls(m.ToolCalls); f != nil {
		return out, f
	}
	if out.Role != engine.RoleAssistant {
		out.Calls = nil
	} else {
		out.Reasoning = value(m.ReasoningContent)
		if out.Content == nil && m.Refusal != nil {
			out.Content = []string{*m.Refusal}
		}
	}
	if out.Role == engine.RoleTool {
		if m.ToolCallID == nil {
			return out, missing("tool_call_id")
		}
		out.CallID = *m.ToolCallID
	}
	return out, nil
}

// texts are the text parts.
func (c chatContent) texts() ([]string, *fault) {
	if c == nil {
		return nil, nil
	}
	out := make([]string, len(c))
	for i, part := range c {
		if f := part.check(); f != nil {
			return nil, f.within("content", i)
		}
		out[i] = *part.Text
	}
	return out, nil
}

func (p *chatPart) check() *fault {
	switch {
	case p.Type == nil:
		return missing("type")
	case *p.Type == "image_url":
		return &fault{engine.CodeUnsupported, "", "is an image_url, which is not supported on this node"}
	case *p.Type != "text":
		return invalid("type", "must be text or image_url")
	case p.Text == nil:
		return missing("text")
	case isSet(p.ImageURL):
		return invalid("image_url", "does not belong to a part of type text")
	}
	return nil
}

// toCalls checks the tool calls of an earlier assistant turn.
func toCalls(wire []chatToolCall) ([]engine.Call, *fault) {
	var calls []engine.Call
	for i, c := range wire {
		if f := c.check(); f != nil {
			return nil, f.within("tool_calls", i)
		}
		calls = append(calls, engine.Call{ID: *c.ID, Name: *c.Function.Name, Arguments: *c.Function.Arguments})
	}
	return calls, nil
}

func (c *chatToolCall) check() *fault {
	switch {
	case c.ID == nil:
		return missing("id")
	case c.Type == nil:
		return missing("type")
	case *c.Type != "function":
		return invalid("type", "must be function")
	case c.Function == nil:
		return missing("function")
	case c.Function.Name == nil:
		return missing("function.name")
	case c.Function.Arguments == nil:
		return missing("function.arguments")
	}
	return nil
}
