package handlers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/oklog/ulid/v2"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// An exchange is what is known of one request, from its head to its log line.
// Its goroutine owns it.
type exchange struct {
	id      string
	arrived time.Time
	model   string  // as it was asked for, if it is one that is served
	stream  *stream // set when a stream's head is written

	principal *accounts.Principal // who asks, once that is known
	ticket    *accounts.Ticket    // of the admission
	standing  *accounts.Standing  // of the limit that is closest to exhaustion

	auth     time.Duration // finding out who asks
	total    time.Duration // set at the end
	timed    bool          // timing holds something
	timing   engine.Timing
	usage    engine.Usage
	used     func() engine.Usage // what an answer took that has not finished
	cost     accounts.Credits
	finish   engine.FinishReason
	finished bool
	code     engine.Code // of the error that ended it
	gone     bool        // the client left
}

const exchangeKey = "exchange"

// of is the exchange that observe made for this request.
func of(c *echo.Context) *exchange { return c.Get(exchangeKey).(*exchange) }

// newID is prefix and 26 characters of lower-case Crockford base32: a ULID.
func newID(prefix string, now time.Time) string {
	return prefix + strings.ToLower(ulid.MustNew(ulid.Timestamp(now), rand.Reader).String())
}

// note keeps what an event tells about the request.
func (x *exchange) note(ev engine.Event) {
	switch ev := ev.(type) {
	case engine.First:
		x.timed, x.timing = true, ev.Timing
		x.usage.Prompt, x.usage.Cached = ev.PromptTokens, ev.CachedTokens
	case engine.Finish:
		x.timed, x.timing = true, ev.Timing
		x.usage, x.finish, x.finished = ev.Usage, ev.Reason, true
	}
}

// observe is the outermost layer: it gives the request its id, turns errors
// and panics into answers, and writes the log line.
func (s *server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		now := time.Now()
		x := &exchange{id: newID("req_", now), arrived: now}
		c.Set(exchangeKey, x)
		w, err := echo.UnwrapResponse(c.Response())
		if err != nil {
			return err
		}
		w.Header().Set("X-Request-Id", x.id)
		w.Before(func() {
			x.setTiming(w.Header())
			x.setLimits(w.Header(), w.Status)
		})
		defer s.end(c, x, w)
		if err := caught(bounded(next), c); err != nil {
			s.fail(c, x, w, err)
		}
		return nil
	}
}

// end is the last of a request, however it ended.
func (s *server) end(c *echo.Context, x *exchange, w *echo.Response) {
	if x.stream != nil {
		x.stream.close()
	}
	x.settle()
	x.total = time.Since(x.arrived)
	status := w.Status
	if x.gone {
		status = statusGone
	}
	s.logRequest(c, x, status)
	s.record(c, x, status)
}

// maxURI is the length of the longest path and query.
const maxURI = 8 << 10

// maxHeaders are the bytes of all headers together.
const maxHeaders = 64 << 10

// headerSize is the size of all headers, as HTTP/1.1 writes them.
func headerSize(h http.Header) (n int) {
	for name, values := range h {
		for _, value := range values {
			n += len(name) + len(": ") + len(value) + len("\r\n")
		}
	}
	return n
}

// bounded refuses what no path of ours is as long as, and more headers than
// anyone needs.
func bounded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		if n := len(c.Request().RequestURI); n > maxURI {
			return &engine.Error{Code: codeURI, Message: fmt.Sprintf("the path and query are %d bytes; at most %d are allowed", n, maxURI)}
		}
		if n := headerSize(c.Request().Header); n > maxHeaders {
			return &engine.Error{Code: codeHeaders, Message: fmt.Sprintf("the headers are %d bytes; at most %d are allowed", n, maxHeaders)}
		}
		return next(c)
	}
}

// A panicError is a panic that was caught on the way of a request.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// caught calls next and returns its panic as an error. The panic that asks
// net/http to cut the connection goes on.
func caught(next echo.HandlerFunc, c *echo.Context) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			err = &panicError{v, debug.Stack()}
		}
	}()
	return next(c)
}

// fail answers a request that err ended: with an error body, or with an error
// event when a stream is under way.
func (s *server) fail(c *echo.Context, x *exchange, w *echo.Response, err error) {
	ctx := c.Request().Context()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		x.gone = true
		return
	}
	e, v := public(err, x.id)
	x.code = e.Code
	if e.Code == engine.CodeInternal {
		s.logFailure(ctx, x, err)
	}
	switch {
	case x.stream != nil:
		x.stream.fail(e, v)
	case w.Committed:
		panic(http.ErrAbortHandler) // half a body is sent: cut it so that it cannot pass for whole
	default:
		setErrorHeaders(w.Header(), e, v)
		writeJSON(c, v.status, appendError(nil, e, v))
	}
}

// setTiming writes the Server-Timing header. It runs right before the response
// head is written.
func (x *exchange) setTiming(h http.Header) {
	var b []byte
	add := func(name string, d time.Duration) {
		if d == 0 {
			return // a part that the request did not have
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(b, name...)
		b = append(b, ";dur="...)
		b = strconv.AppendFloat(b, float64(d.Microseconds())/1000, 'f', -1, 64)
	}
	if x.timed {
		add("auth", x.auth)
		add("render", x.timing.Render)
		add("queue", x.timing.Queue)
		add("prefill", x.timing.Prefill)
		add("ttft", x.timing.TTFT)
	}
	if x.finished {
		add("decode", x.timing.Decode)
	}
	if x.stream == nil {
		add("total", time.Since(x.arrived))
	}
	h.Set("Server-Timing", string(b))
}

// logFailure logs what the client is not told.
func (s *server) logFailure(ctx context.Context, x *exchange, err error) {
	attrs := []slog.Attr{slog.String("id", x.id), slog.String("model", x.model), slog.Any("err", err)}
	if p, ok := errors.AsType[*panicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	s.log.LogAttrs(ctx, slog.LevelError, "request failed", attrs...)
}

// logRequest writes the request's line: never its content, never a credential.
func (s *server) logRequest(c *echo.Context, x *exchange, status int) {
	level := slog.LevelInfo
	route := c.Path()
	switch route {
	case "":
		route = "none"
	case "/healthz", "/metrics":
		level = slog.LevelDebug
	}
	r := c.Request()
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	attrs := make([]slog.Attr, 0, 24)
	attrs = append(attrs,
		slog.String("id", x.id),
		slog.String("method", r.Method),
		slog.String("route", route),
		slog.Int("status", status),
		slog.String("client", s.clientOf(r)),
		milliseconds("total_ms", x.total))
	if x.principal != nil && x.principal.Key.ID != "" {
		attrs = append(attrs, slog.String("key", x.principal.Key.ID))
	}
	if x.model != "" {
		attrs = append(attrs, slog.String("model", x.model), slog.Bool("stream", x.stream != nil))
	}
	if x.code != "" {
		attrs = append(attrs, slog.String("code", string(x.code)))
	}
	s.log.LogAttrs(r.Context(), level, "request", append(attrs, x.work()...)...)
}

// work is what the model did for the request, for the log.
func (x *exchange) work() []slog.Attr {
	var attrs []slog.Attr
	if x.timed {
		attrs = append(attrs,
			milliseconds("auth_ms", x.auth),
			slog.Int("prompt", x.usage.Prompt), slog.Int("cached", x.usage.Cached),
			milliseconds("render_ms", x.timing.Render), milliseconds("queue_ms", x.timing.Queue),
			milliseconds("prefill_ms", x.timing.Prefill), milliseconds("ttft_ms", x.timing.TTFT))
	}
	if x.finished {
		attrs = append(attrs,
			slog.Int("answer", x.usage.Answer), slog.Int("reasoning", x.usage.Reasoning),
			slog.String("finish", string(x.finish)), milliseconds("decode_ms", x.timing.Decode))
	}
	return attrs
}

func milliseconds(key string, d time.Duration) slog.Attr {
	return slog.Float64(key, float64(d.Microseconds())/1000)
}

// writeJSON sends a body whose length is known.
func writeJSON(c *echo.Context, status int, body []byte) {
	writeBody(c, status, "application/json", body)
}

// writeBody sends a body. That it cannot be written means that the client has
// left.
func writeBody(c *echo.Context, status int, contentType string, body []byte) {
	w := c.Response()
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		of(c).gone = true
	}
}
