package handlers

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/engine"
)

// An encoder says one request's events in the words of a dialect: as frames of
// a stream, or folded into one body. One of the two is used.
type encoder interface {
	// frame appends what a stream sends for ev.
	frame(dst []byte, ev engine.Event) []byte
	// failure appends what a stream sends when it fails.
	failure(dst []byte, e *engine.Error, v verdict) []byte
	// fold takes ev into the body.
	fold(ev engine.Event)
	// body appends the body. All events have been folded.
	body(dst []byte) []byte
}

// errNoEnding is an engine that broke its promise of exactly one ending.
var errNoEnding = errors.New("the answer has no ending")

// answer generates for p and sends what comes. Leaving the loop over the
// events is what cancels the generation.
func (s *server) answer(c *echo.Context, e Engine, p *engine.Prepared, enc encoder, streamed bool) error {
	of(c).used = func() engine.Usage { return e.Used(p) }
	if streamed {
		return streamAnswer(c, e, p, enc)
	}
	return wholeAnswer(c, e, p, enc)
}

func wholeAnswer(c *echo.Context, e Engine, p *engine.Prepared, enc encoder) error {
	x := of(c)
	for ev, err := range e.Generate(c.Request().Context(), p) {
		if err != nil {
			return err
		}
		x.note(ev)
		enc.fold(ev)
	}
	if !x.finished {
		return errNoEnding
	}
	writeJSON(c, http.StatusOK, enc.body(nil))
	return nil
}

func streamAnswer(c *echo.Context, e Engine, p *engine.Prepared, enc encoder) error {
	x := of(c)
	for ev, err := range e.Generate(c.Request().Context(), p) {
		if err != nil {
			return err
		}
		x.note(ev)
		if x.stream == nil {
			openStream(c.Response(), x, enc)
		}
		if x.stream.send(ev) != nil {
			x.gone = true
			return nil
		}
	}
	if !x.finished {
		return errNoEnding
	}
	return nil
}
