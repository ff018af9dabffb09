package handlers

import (
	"github.com/labstack/echo/v5"
)

// chat is POST /v1/infer/chat/completions: OpenAI's Chat Completions.
func (s *server) chat(c *echo.Context) error {
	m, body, err := s.receive(c)
	if err != nil {
		return err
	}
	var wire chatRequest
	if err := decode(body, &wire, strict); err != nil {
		return err
	}
	if m == nil {
		return s.relay(c, body, &wire)
	}
	request, err := wire.toRequest()
	if err != nil {
		return err
	}
	e, err := s.engineOf(m)
	if err != nil {
		return err
	}
	x := of(c)
	request.Arrived = x.arrived
	prepared, err := e.Prepare(c.Request().Context(), request)
	if err != nil {
		return err
	}
	if err := s.admit(c, m.id, estimate(e, prepared, request.MaxTokens)); err != nil {
		return err
	}
	enc := newChatEncoder(chatAnswer{
		id:          newID("chatcmpl-", x.arrived),
		created:     x.arrived,
		model:       m.id,
		fingerprint: s.fingerprint,
		node:        s.node,
		route:       "local",
		usage:       wire.includeUsage(),
		logprobs:    request.Logprobs,
	})
	return s.answer(c, e, prepared, enc, wire.streamed())
}
