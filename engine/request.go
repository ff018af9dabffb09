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
	// Thinking lets the model reason before it answers.
	Thinking bool
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
)

// An Event is a piece of an answer. An answer is any number of Text events, of
// reasoning first and content after it, and one Finish.
type Event interface{ event() }

// Text is a piece of the answer: valid UTF-8, never empty.
type Text struct {
	Text string
	// Reasoning marks text that comes before the answer proper.
	Reasoning bool
}

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

func (First) event()  {}
func (Text) event()   {}
func (Finish) event() {}

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
