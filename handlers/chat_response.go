package handlers

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/b3os/b3infer/engine"
)

// chatAnswer is what all chunks of an answer have in common.
type chatAnswer struct {
	id          string
	created     time.Time // when the request arrived
	model       string
	fingerprint string
	node        string
	route       string // local or gateway
	usage       bool   // of a stream: with a usage chunk
	logprobs    bool   // of the content
}

// chatEncoder says events as chat completion chunks, or as one completion.
type chatEncoder struct {
	chatAnswer
	head []byte // of every chunk, up to its choices
	tail []byte // of every chunk but the last, after its choices

	calls              []chatCall // that have begun
	content, reasoning []byte     // of the whole answer
	tokens             []byte     // of the content: of the whole answer, or of a chunk
	finish             engine.Finish
}

// chatCall is a tool call of the answer.
type chatCall struct {
	id, name  string
	arguments []byte // of a whole answer
}

func newChatEncoder(a chatAnswer) *chatEncoder {
	e := &chatEncoder{chatAnswer: a}
	e.head = e.appendHead([]byte("data: "), "chat.completion.chunk")
	if a.usage {
		e.tail = append(e.tail, `,"usage":null`...)
	}
	e.tail = append(e.tail, "}\n\n"...)
	return e
}

// appendHead appends the members before choices.
func (e *chatEncoder) appendHead(dst []byte, object string) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, e.id)
	dst = append(dst, `,"object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, e.created.Unix(), 10)
	dst = append(dst, `,"model":`...)
	dst = appendString(dst, e.model)
	dst = append(dst, `,"system_fingerprint":`...)
	return appendString(dst, e.fingerprint)
}

// frame implements encoder.
func (e *chatEncoder) frame(dst []byte, ev engine.Event) []byte {
	switch ev := ev.(type) {
	case engine.First:
		return e.closeDelta(e.openDelta(dst, `"role":"assistant","content":""`), "")
	case engine.Text:
		return e.appendText(dst, ev)
	case engine.CallStart:
		return e.appendCallStart(dst, e.begin(ev))
	case engine.CallArguments:
		return e.appendArguments(dst, ev.Text)
	case engine.Finish:
		return e.appendEnd(dst, ev)
	}
	return dst
}

// openDelta appends a chunk up to the members of its delta, of which first is the
// start.
func (e *chatEncoder) openDelta(dst []byte, first string) []byte {
	dst = append(dst, e.head...)
	dst = append(dst, `,"choices":[{"index":0,"delta":{`...)
	return append(dst, first...)
}

// closeDelta appends what follows the members of a delta, of which last is the end.
func (e *chatEncoder) closeDelta(dst []byte, last string) []byte {
	dst = append(dst, last...)
	dst = append(dst, `},"logprobs":null`...)
	return e.closeChunk(dst)
}

// closeChunk appends what follows the delta and the logprobs of a chunk.
func (e *chatEncoder) closeChunk(dst []byte) []byte {
	dst = append(dst, `,"finish_reason":null}]`...)
	return append(dst, e.tail...)
}

func (e *chatEncoder) appendText(dst []byte, t engine.Text) []byte {
	if t.Reasoning {
		dst = e.openDelta(dst, `"reasoning_content":`)
	} else {
		dst = e.openDelta(dst, `"content":`)
	}
	dst = appendString(dst, t.Text)
	if !e.logprobs || t.Reasoning {
		return e.closeDelta(dst, "")
	}
	e.tokens = appendTokens(e.tokens[:0], t.Tokens)
	dst = append(dst, `},"logprobs":`...)
	return e.closeChunk(appendLogprobs(dst, e.tokens))
}

// appendCallStart appends the chunk that names the last call.
func (e *chatEncoder) appendCallStart(dst []byte, call *chatCall) []byte {
	dst = e.openDelta(dst, `"tool_calls":[{"index":`)
	dst = strconv.AppendInt(dst, int64(len(e.calls)-1), 10)
	dst = append(dst, ',')
	dst = call.append(dst)
	return e.closeDelta(dst, `}]`)
}

// appendArguments appends a chunk with a piece of the last call's arguments.
func (e *chatEncoder) appendArguments(dst []byte, piece string) []byte {
	dst = e.openDelta(dst, `"tool_calls":[{"index":`)
	dst = strconv.AppendInt(dst, int64(len(e.calls)-1), 10)
	dst = append(dst, `,"function":{"arguments":`...)
	dst = appendString(dst, piece)
	return e.closeDelta(dst, `}}]`)
}

// begin adds a call. It gets an id of ours if the model gave it none, or one that
// an earlier call of the answer has.
func (e *chatEncoder) begin(ev engine.CallStart) *chatCall {
	id := ev.ID
	if id == "" || slices.ContainsFunc(e.calls, func(c chatCall) bool { return c.id == id }) {
		id = newID("call_", e.created)
	}
	e.calls = append(e.calls, chatCall{id: id, name: ev.Name})
	return &e.calls[len(e.calls)-1]
}

// append appends the members of a call.
func (c *chatCall) append(dst []byte) []byte {
	dst = append(dst, `"id":`...)
	dst = appendString(dst, c.id)
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = appendString(dst, c.name)
	dst = append(dst, `,"arguments":`...)
	dst = appendString(dst, string(c.arguments))
	return append(dst, '}')
}

// appendEnd appends the chunk with the finish reason, the usage chunk if it is
// wanted, and the end of the stream.
func (e *chatEncoder) appendEnd(dst []byte, f engine.Finish) []byte {
	dst = append(dst, e.head...)
	dst = append(dst, `,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, chatReason(f.Reason)...)
	dst = append(dst, `"}]`...)
	if e.usage {
		dst = append(dst, e.tail...)
		dst = append(dst, e.head...)
		dst = append(dst, `,"choices":[],"usage":`...)
		dst = appendChatUsage(dst, f.Usage)
	}
	dst = e.appendExtension(dst, `"ttft_ms":`, f.Timing.TTFT)
	return append(dst, "}\n\ndata: [DONE]\n\n"...)
}

// failure implements encoder.
func (e *chatEncoder) failure(dst []byte, err *engine.Error, v verdict) []byte {
	dst = append(dst, "data: "...)
	dst = appendError(dst, err, v)
	return append(dst, "\n\n"...)
}

// fold implements encoder.
func (e *chatEncoder) fold(ev engine.Event) {
	switch ev := ev.(type) {
	case engine.Text:
		if ev.Reasoning {
			e.reasoning = append(e.reasoning, ev.Text...)
		} else {
			e.content = append(e.content, ev.Text...)
			e.tokens = appendTokens(e.tokens, ev.Tokens)
		}
	case engine.CallStart:
		e.begin(ev)
	case engine.CallArguments:
		last := &e.calls[len(e.calls)-1]
		last.arguments = append(last.arguments, ev.Text...)
	case engine.Finish:
		e.finish = ev
	}
}

// chatReason is OpenAI's word for why an answer ended.
func chatReason(r engine.FinishReason) string {
	if r == engine.FinishCalls {
		return "tool_calls"
	}
	return string(r)
}

// body implements encoder.
func (e *chatEncoder) body(dst []byte) []byte {
	dst = e.appendHead(dst, "chat.completion")
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if len(e.content) == 0 && len(e.calls) > 0 {
		dst = append(dst, `null`...)
	} else {
		dst = appendString(dst, string(e.content))
	}
	if len(e.reasoning) > 0 {
		dst = append(dst, `,"reasoning_content":`...)
		dst = appendString(dst, string(e.reasoning))
	}
	dst = e.appendCalls(dst)
	dst = append(dst, `},"logprobs":`...)
	if e.logprobs {
		dst = appendLogprobs(dst, e.tokens)
	} else {
		dst = append(dst, `null`...)
	}
	dst = append(dst, `,"finish_reason":"`...)
	dst = append(dst, chatReason(e.finish.Reason)...)
	dst = append(dst, `"}],"usage":`...)
	dst = appendChatUsage(dst, e.finish.Usage)
	dst = e.appendExtension(dst, `"model_ms":`, e.finish.Timing.Total)
	return append(dst, '}')
}

// appendCalls appends the member tool_calls if there are any. In an answer that was
// cut off, whose reason is length, the last one may be a part.
func (e *chatEncoder) appendCalls(dst []byte) []byte {
	if len(e.calls) == 0 {
		return dst
	}
	dst = append(dst, `,"tool_calls":[`...)
	for i := range e.calls {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		dst = e.calls[i].append(dst)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendChatUsage(dst []byte, u engine.Usage) []byte {
	dst = append(dst, `{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, int64(u.Prompt), 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, int64(u.Answer), 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, int64(u.Prompt+u.Answer), 10)
	dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, int64(u.Cached), 10)
	dst = append(dst, `},"completion_tokens_details":{"reasoning_tokens":`...)
	dst = strconv.AppendInt(dst, int64(u.Reasoning), 10)
	return append(dst, `}}`...)
}

// appendExtension appends the member b3os, with a phase and its name as it
// stands in the JSON.
func (e *chatEncoder) appendExtension(dst []byte, name string, phase time.Duration) []byte {
	total := max(phase, time.Since(e.created))
	dst = append(dst, `,"b3os":{"route":"`...)
	dst = append(dst, e.route...)
	dst = append(dst, `","node":`...)
	dst = appendString(dst, e.node)
	dst = append(dst, `,"timing":{`...)
	dst = append(dst, name...)
	dst = appendMilliseconds(dst, phase)
	dst = append(dst, `,"total_ms":`...)
	dst = appendMilliseconds(dst, total)
	return append(dst, `}}`...)
}

// appendMilliseconds appends d with one decimal at most.
func appendMilliseconds(dst []byte, d time.Duration) []byte {
	tenths := math.Round(float64(d) / float64(time.Millisecond/10))
	return strconv.AppendFloat(dst, tenths/10, 'f', -1, 64)
}
