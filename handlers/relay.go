package handlers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// bytesPerToken is what a prompt's length is estimated by where the node does not
// have the model.
const bytesPerToken = 4

// relay has the gateway answer a chat completion, and passes on what it says.
func (s *server) relay(c *echo.Context, body []byte, wire *chatRequest) error {
	if f := wire.checkRanges(); f != nil {
		return f.public()
	}
	x := of(c)
	prompt := len(body)/bytesPerToken + 1
	if err := s.admit(c, gatewayModel, accounts.Estimate{Prompt: prompt, MaxTokens: wire.maxTokens()}); err != nil {
		return err
	}
	asked, err := forGateway(body, wire)
	if err != nil {
		return err
	}
	sent := time.Now()
	k, err := s.gateway.ask(c.Request().Context(), x.id, asked)
	if err != nil {
		return s.noteGateway(c, x, err)
	}
	defer k.close()
	r := &relayed{
		call: k, x: x, w: c.Response(), sent: sent, wantsUsage: wire.includeUsage(), usage: engine.Usage{Prompt: prompt},
		enc: newChatEncoder(chatAnswer{created: x.arrived, node: s.node, route: "gateway"}),
	}
	x.used = func() engine.Usage { return r.usage }
	if wire.streamed() {
		err = r.stream()
	} else {
		err = r.whole(c)
	}
	return s.noteGateway(c, x, err)
}

// noteGateway logs why the gateway has failed, which clients are not told.
func (s *server) noteGateway(c *echo.Context, x *exchange, err error) error {
	if e, ok := errors.AsType[*engine.Error](err); ok && e.Err != nil {
		s.log.LogAttrs(c.Request().Context(), slog.LevelWarn, "gateway", slog.String("id", x.id), slog.Any("err", e.Err))
	}
	return err
}

// forGateway is a request as the gateway is to have it: without the route, and
// with the usage of a stream, which is needed here.
func forGateway(body []byte, wire *chatRequest) ([]byte, error) {
	more := ""
	ours := map[string]bool{"route": true}
	if wire.streamed() {
		ours["stream_options"] = true
		more = `"stream_options":{"include_usage":true}`
	}
	return appendObject(nil, body, ours, more)
}

// A relayed answer is on its way from the gateway to the client.
type relayed struct {
	*call
	x          *exchange
	w          http.ResponseWriter
	sent       time.Time
	wantsUsage bool // the client asks for the usage of a stream
	enc        *chatEncoder

	usage    engine.Usage // the gateway's word, until then a guess
	reported bool         // usage is the gateway's word
	first    time.Time    // when the first piece of a stream came
	finish   string
	frame    []byte // reused
}

// gatewayChunk is what is read of an answer, or of a piece of one.
type gatewayChunk struct {
	Choices []struct {
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		PromptOf   *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionOf *struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// note keeps what a piece tells about the request.
func (r *relayed) note(piece *gatewayChunk) {
	for _, choice := range piece.Choices {
		r.finish = value(choice.FinishReason)
	}
	if u := piece.Usage; u != nil {
		r.reported = true
		r.usage = engine.Usage{Prompt: max(0, u.Prompt), Answer: max(0, u.Completion)}
		if u.PromptOf != nil {
			r.usage.Cached = min(max(0, u.PromptOf.Cached), r.usage.Prompt)
		}
		if u.CompletionOf != nil {
			r.usage.Reasoning = min(max(0, u.CompletionOf.Reasoning), r.usage.Answer)
		}
	}
}

// end notes that the answer is complete.
func (r *relayed) end() {
	r.x.usage, r.x.finish, r.x.finished = r.usage, engine.FinishReason(r.finish), true
}

// whole passes on an answer in one piece.
func (r *relayed) whole(c *echo.Context) error {
	body, err := io.ReadAll(io.LimitReader(r, maxGatewayBody+1))
	if err != nil {
		return r.failure(err)
	}
	var answer gatewayChunk
	if err := json.Unmarshal(body, &answer); err != nil || len(body) > maxGatewayBody || answer.Choices == nil {
		return r.nonsense(err)
	}
	r.note(&answer)
	extension := r.enc.appendExtension(nil, `"model_ms":`, time.Since(r.sent))
	if body, err = appendObject(nil, body, map[string]bool{"b3os": true}, string(extension[1:])); err != nil {
		return r.nonsense(err)
	}
	r.end()
	writeJSON(c, http.StatusOK, body)
	return nil
}

// nonsense is the error for what is no chat completion.
func (r *relayed) nonsense(err error) error {
	return unavailable(engine.CodeUnavailable, "the gateway's answer is no chat completion", gatewayRetry, err)
}

// stream passes on the pieces of an answer as they come.
func (r *relayed) stream() error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxGatewayBody)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // comments and empty lines
		}
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			break
		}
		if err := r.piece(data); err != nil {
			return err
		}
		if r.x.gone {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return r.failure(err)
	}
	if r.finish == "" {
		return r.failure(io.ErrUnexpectedEOF)
	}
	r.end()
	return r.send([]byte("data: [DONE]\n\n"))
}

// piece passes on a piece of a stream. The extension rides on the last one that
// the client gets.
func (r *relayed) piece(data []byte) error {
	var piece gatewayChunk
	if err := json.Unmarshal(data, &piece); err != nil {
		return r.nonsense(err)
	}
	if piece.Error != nil {
		return r.failure(fmt.Errorf("the gateway says: %s", clip(piece.Error.Message)))
	}
	if r.first.IsZero() {
		r.first = time.Now()
		r.x.timed, r.x.timing.TTFT = true, r.first.Sub(r.x.arrived)
	}
	if !r.reported {
		r.usage.Answer++ // a piece is about a token
	}
	r.note(&piece)
	r.x.timing.Decode = time.Since(r.first)
	ofUsage := len(piece.Choices) == 0 && piece.Usage != nil
	if ofUsage && !r.wantsUsage {
		return nil
	}
	ours := map[string]bool{"b3os": true, "usage": !r.wantsUsage}
	more := ""
	if ofUsage || !r.wantsUsage && len(piece.Choices) > 0 && piece.Choices[0].FinishReason != nil {
		more = string(r.enc.appendExtension(nil, `"ttft_ms":`, r.x.timing.TTFT)[1:])
	}
	var err error
	r.frame = append(r.frame[:0], "data: "...)
	if r.frame, err = appendObject(r.frame, data, ours, more); err != nil {
		return r.nonsense(err)
	}
	return r.send(append(r.frame, "\n\n"...))
}

// send writes a frame. That it cannot be written means that the client has left.
func (r *relayed) send(frame []byte) error {
	if r.x.stream == nil {
		openStream(r.w, r.x, r.enc)
	}
	if r.x.stream.pass(frame) != nil {
		r.x.gone = true
	}
	return nil
}

// appendObject appends a JSON object in one line without the members named in
// drop, and with those in more, as they stand in JSON.
func appendObject(dst, text []byte, drop map[string]bool, more string) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.Join(errors.New("not a JSON object"), err)
	}
	dst = append(dst, '{')
	start := len(dst)
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		member, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if drop[name] {
			continue
		}
		if err := member.Compact(); err != nil {
			return nil, err
		}
		dst = append(appendString(dst, name), ':')
		dst = append(append(dst, member...), ',')
	}
	if more != "" {
		return append(append(dst, more...), '}'), nil
	}
	if len(dst) > start {
		dst = dst[:len(dst)-1] // the last comma
	}
	return append(dst, '}'), nil
}
