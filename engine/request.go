package engine

import (
	"time"

	"github.com/b3os/b3infer/llama"
)

// A Request is what a client wants, in no dialect's words. The zero value of
// an optional field means that the client did not say.
type Request struct {
	Messages []Message
	// MaxTokens bounds the answer; 0 means as long as the context allows.
	MaxTokens int
	// Stop are texts that end the answer and are not part of it.
	Stop     []string
	Sampling Sampling
	// Tools are the functions that the model may call.
	Tools []Tool
	// Choice says whether it has to.
	Choice ToolChoice
	// OneCall keeps the answer to at most one call.
	OneCall bool
	// Format is what an answer without calls has to look like.
	Format Format
	// Thinking lets the model reason before it answers.
	Thinking bool
	// ThinkingBudget is after how many tokens of reasoning the model is made to come
	// to its answer. 0 is no budget, but for answers that are bound to a form: at most
	// half of their tokens are for the reasoning, so that the form has a chance.
	ThinkingBudget int
	// Logprobs asks how likely the tokens of the content were.
	Logprobs bool
	// TopLogprobs asks with them for so many of the likeliest tokens at each place, at
	// most llama.MaxTop.
	TopLogprobs int
	// Arrived is when the request's head was read; timings count from it. The
	// zero value means that Prepare was called then.
	Arrived time.Time
}

// Role says who speaks in a Message.
type Role string

// The roles of a conversation.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Message is one turn of a conversation.
type Message struct {
	Role      Role
	Name      string
	Content   []string // text parts
	Reasoning string   // of an assistant turn
	Calls     []Call   // of an assistant turn
	CallID    string   // of a tool turn: the call that it answers
}

// A Call is a tool call of an earlier assistant turn.
type Call struct {
	ID, Name  string
	Arguments string // JSON text
}

// A Tool is a function that the model may call.
type Tool struct {
	Name, Description string
	// Parameters is the JSON Schema of the arguments as the client wrote it; empty
	// means that there are none.
	Parameters string
	// Strict promises that the arguments of any call satisfy the schema. Without it that
	// holds where a call is required, as far as the schema can be enforced.
	Strict bool
	// Param is the path of the schema in the request, for errors.
	Param string
}

// A ToolChoice says whether the answer has to be a call.
type ToolChoice struct {
	Mode ToolMode
	Name string // of the tool, with ToolNamed
}

// ToolMode is the kind of a ToolChoice.
type ToolMode int

// The kinds of choices.
const (
	ToolAuto     ToolMode = iota // text, calls or both
	ToolNone                     // no calls
	ToolRequired                 // one call or more, of any tool
	ToolNamed                    // one call or more, of one tool
)

// A Format is what the text of an answer has to look like; the zero value asks for
// nothing.
type Format struct {
	// Schema is a JSON Schema as the client wrote it; the answer is a JSON text that
	// satisfies it. Empty means no format.
	Schema string
	// Strict refuses schemas that cannot be enforced whole.
	Strict bool
	// Param is the path of the schema in the request, for errors.
	Param string
}

// AnyObject is the schema of all JSON objects.
const AnyObject = `{"type":"object"}`

// Sampling are a client's wishes on how tokens are drawn; nil means the
// model's own default.
type Sampling struct {
	Temperature, TopP, MinP, Presence, Frequency, Repetition *float64
	TopK                                                     *int
	Seed                                                     *int64
	// Bias is added to the logits of tokens, by token id.
	Bias map[int]float64
}

// FinishReason says why an answer ended.
type FinishReason string

// The reasons for an answer's end.
const (
	FinishStop   FinishReason = "stop"   // the model ended it, or a stop text came
	FinishLength FinishReason = "length" // MaxTokens or the context was reached
	FinishCalls  FinishReason = "calls"  // the model has called tools and waits for their results
)

// An Event is a piece of an answer. An answer is First, any number of Text events, of
// reasoning first and content after it, and of calls, and one Finish. A call is a
// CallStart, any number of CallArguments and a CallEnd; calls do not overlap.
type Event interface{ event() }

// Text is a piece of the answer: valid UTF-8, never empty.
type Text struct {
	Text string
	// Reasoning marks text that comes before the answer proper.
	Reasoning bool
	// Tokens are those that the content was made of, if the request asks for them.
	// One that reaches into the next Text is not told there again.
	Tokens []Drawn
}

// A Drawn is a token of an answer.
type Drawn struct {
	Candidate
	// Top are the likeliest tokens at its place, most likely first.
	Top []Candidate
}

// A Candidate is a token that can be drawn.
type Candidate struct {
	// Piece is its text, of which a character may begin or end in another token. It is
	// not to be changed.
	Piece []byte
	// Logprob is the natural logarithm of its probability, as in llama.Sampled.
	Logprob float32
}

// CallStart begins a tool call.
type CallStart struct {
	// ID is the call's id in the model's own notation; empty if that has none.
	ID   string
	Name string
}

// CallArguments is a piece of a call's arguments. Put together the pieces are a JSON
// object, unless the answer was cut off.
type CallArguments struct{ Text string }

// CallEnd tells that a call is complete.
type CallEnd struct{}

// Finish is the last event of an answer.
type Finish struct {
	Reason FinishReason
	// Stop is the text of Request.Stop that ended the answer, if one did.
	Stop  string
	Usage Usage
	// Timing holds the phases of the request.
	Timing Timing
}

// First is the event before all others: the prompt is computed and the first
// token exists. A stream's head is written then.
type First struct {
	PromptTokens int
	CachedTokens int
	Timing       Timing // what is known so far
}

func (First) event()         {}
func (Text) event()          {}
func (CallStart) event()     {}
func (CallArguments) event() {}
func (CallEnd) event()       {}
func (Finish) event()        {}

// Usage counts a request's tokens.
type Usage struct {
	Prompt    int // tokens of the rendered prompt
	Cached    int // of these, the ones taken from the KV cache
	Answer    int // tokens generated, reasoning and end token included
	Reasoning int // of these, the ones spent on reasoning
}

// Timing holds how long the phases of a request took.
type Timing struct {
	Render  time.Duration // template and tokenizing
	Queue   time.Duration // waiting for a place among the running
	Prefill time.Duration // from the end of the queue to the first token
	TTFT    time.Duration // from Request.Arrived to the first token
	Decode  time.Duration // from the first token to the last
	Total   time.Duration // from Request.Arrived to the end
}

// Info is what an Engine says about its model and its size.
type Info struct {
	Model      llama.Info
	Context    int // tokens that one request can have, prompt and answer
	Cells      int // tokens of all requests that the KV cache holds
	Parallel   int // requests that run at a time
	VocabSize  int
	MaxWaiting int // requests that wait before new ones are refused
}
