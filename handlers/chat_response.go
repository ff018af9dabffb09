package handlers

import (
	"math"
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
	usage       bool // of a stream: with a usage chunk
}

// chatEncoder says events as chat completion chunks, or as one completion.
type chatEncoder struct {
	chatAnswer
	head []byte // of every chunk, up to its choices
	tail []byte // of every chunk but the last, after its choices

	content, reasoning []byte // of the whole answer
	finish             engine.Finish
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
		dst = e.appendChoice(dst, `"role":"assistant","content":""`)
		return append(dst, e.tail...)
	case engine.Text:
		return e.appendText(dst, ev)
	case engine.Finish:
		return e.appendEnd(dst, ev)
	}
	return dst
}

// appendChoice appends a chunk up to and with its choices.
func (e *chatEncoder) appendChoice(dst []byte, delta string) []byte {
	dst = append(dst, e.head...)
	dst = append(dst, `,"choices":[{"index":0,"delta":{`...)
	dst = append(dst, delta...)
	return append(dst, `},"logprobs":null,"finish_reason":null}]`...)
}

func (e *chatEncoder) appendText(dst []byte, t engine.Text) []byte {
	dst = append(dst, e.head...)
	if t.Reasoning {
		dst = append(dst, `,"choices":[{"index":0,"delta":{"reasoning_content":`...)
	} else {
		dst = append(dst, `,"choices":[{"index":0,"delta":{"content":`...)
	}
	dst = appendString(dst, t.Text)
	dst = append(dst, `},"logprobs":null,"finish_reason":null}]`...)
	return append(dst, e.tail...)
}

// appendEnd appends the chunk with the finish reason, the usage chunk if it is
// wanted, and the end of the stream.
func (e *chatEncoder) appendEnd(dst []byte, f engine.Finish) []byte {
	dst = append(dst, e.head...)
	dst = append(dst, `,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, f.Reason...)
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
		}
	case engine.Finish:
		e.finish = ev
	}
}

// body implements encoder.
func (e *chatEncoder) body(dst []byte) []byte {
	dst = e.appendHead(dst, "chat.completion")
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	dst = appendString(dst, string(e.content))
	if len(e.reasoning) > 0 {
		dst = append(dst, `,"reasoning_content":`...)
		dst = appendString(dst, string(e.reasoning))
	}
	dst = append(dst, `},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, e.finish.Reason...)
	dst = append(dst, `"}],"usage":`...)
	dst = appendChatUsage(dst, e.finish.Usage)
	dst = e.appendExtension(dst, `"model_ms":`, e.finish.Timing.Total)
	return append(dst, '}')
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
	dst = append(dst, `,"b3os":{"route":"local","node":`...)
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
