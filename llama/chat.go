package llama

import "time"

// ChatParams chooses a chat template.
type ChatParams struct {
	// Template is the Jinja source to use in place of the model's own.
	Template string
}

// A Chat renders conversations into prompts through a model's chat template
// (common_chat_templates). It may be used by several goroutines at once.
type Chat interface {
	// Render turns a conversation into a prompt (common_chat_templates_apply). An
	// error that wraps ErrTemplate means that the template refuses this
	// conversation; its text says why.
	Render(in ChatInput) (Prompt, error)
	// Envelope tells how the template writes answers, with calls of these tools if
	// there are any. An error that wraps ErrTemplate means that the template does not
	// take tools.
	Envelope(in EnvelopeInput) (Envelope, error)
	// Caps tells what the template can express.
	Caps() ChatCaps
}

// ChatInput is a conversation.
type ChatInput struct {
	Messages []ChatMessage
	Tools    []ChatTool
	// Thinking lets the model reason before it answers (enable_thinking).
	Thinking bool
	// NoGenerationPrompt leaves out the start of the assistant's turn.
	NoGenerationPrompt bool
	// Now is the time that templates print; one per request.
	Now time.Time
}

// A ChatMessage is one turn. Role is system, developer, user, assistant or tool.
type ChatMessage struct {
	Role       string
	Name       string
	Content    []ChatPart
	Reasoning  string // of an assistant turn (reasoning_content)
	Calls      []ChatCall
	ToolCallID string // of a tool turn: the call that it answers
}

// A ChatPart is text or, if Image is not 0, the request's image of that number
// (counted from 1).
type ChatPart struct {
	Text  string
	Image int
}

// A ChatCall is a tool call of an earlier assistant turn.
type ChatCall struct {
	ID, Name  string
	Arguments string // JSON text, passed on with its numbers as they are written
}

// A ChatTool describes a function that the model may call.
type ChatTool struct {
	Name, Description string
	Parameters        string // JSON Schema text, key order and numbers as written; may be empty
}

// Prompt is a rendered conversation and what is known about the answer to it.
type Prompt struct {
	Parts []Part
	// Generation is the start of the assistant's turn, which Parts ends with:
	// the answer continues it.
	Generation string
	// ThinkStart and ThinkEnd are the texts around the reasoning; empty when the
	// template knows none.
	ThinkStart string
	ThinkEnd   []string
	// Thinking tells that the reasoning has begun in Generation, so that the
	// answer starts inside it.
	Thinking bool
	// Stops are further texts that end the answer.
	Stops []string
	// Preserved are control texts that mean something inside the answer, so that
	// their tokens are text there.
	Preserved []string
}

// EnvelopeInput is what the form of an answer depends on.
type EnvelopeInput struct {
	// Tools are the tools as common/chat may see them: names, and parameters with
	// plain types (grammar.Skeleton).
	Tools []ChatTool
	// Required asks for at least one call (tool_choice required), otherwise calls
	// are optional (auto).
	Required bool
	// Parallel lets the answer have several calls (parallel_tool_calls).
	Parallel bool
	// Thinking lets the model reason before it answers (enable_thinking).
	Thinking bool
}

// Envelope is the form of an answer, as common/chat knows it (common_chat_params).
type Envelope struct {
	// Parser is common/chat's parser of the answer, serialized; it reads the
	// generation prompt first.
	Parser string
	// Format is the enum common_chat_format that goes with Parser.
	Format int
	// Generation is the start of the assistant's turn.
	Generation string
	// Thinking tells that the reasoning has begun in Generation.
	Thinking bool
	// Preserved are control texts that mean something inside the answer.
	Preserved []string
	// Triggers are the texts that begin a call, where common/chat names them as
	// words.
	Triggers []string
	// Example is the assistant's turn, from Generation on, as the template writes
	// one in the history: with a call of the first of the tools and its arguments,
	// or two such calls if they may be parallel and the template takes them. Empty if the template refuses.
	Example string
}

// ChatCaps is what a template can express (common_chat_templates_get_caps).
type ChatCaps struct {
	System   bool // a system turn
	Tools    bool // tool definitions
	Calls    bool // tool calls in history
	Parallel bool // several calls in one turn
	Thinking bool // enable_thinking changes the prompt
}
