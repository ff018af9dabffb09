package handlers

import (
	"errors"
	"net/http"
	"regexp"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// phases are how long the parts of the request took, so far.
func (x *exchange) phases() accounts.Phases {
	t := x.timing
	return accounts.Phases{
		Auth: x.auth, Render: t.Render, Queue: t.Queue, Prefill: t.Prefill, TTFT: t.TTFT, Decode: t.Decode, Total: x.total,
	}
}

// record hands the request's record to the log of requests. Only those are in it
// whose sender is known, and reading leaves none.
func (s *server) record(c *echo.Context, x *exchange, status int) {
	method := c.Request().Method
	if x.principal == nil || method == http.MethodGet || method == http.MethodHead {
		return
	}
	p := x.principal
	s.accounts.Log(accounts.Record{
		ID:             x.id,
		Time:           x.arrived,
		OrganizationID: p.Organization.ID,
		ProjectID:      p.Project.ID,
		KeyID:          p.Key.ID,
		Route:          c.Path(),
		Model:          x.model,
		Streamed:       x.stream != nil,
		Status:         status,
		Error:          string(x.code),
		FinishReason:   string(x.finish),
		ClientGone:     x.gone,
		Usage:          x.paid(),
		Cost:           x.cost,
		Phases:         x.phases(),
	})
}

var requestIDs = regexp.MustCompile(`^req_[0-9a-hjkmnp-tv-z]{26}$`)

// getRequest is GET /v1/requests/{id}. A project sees its own requests alone;
// to others it looks as if there were none.
func (s *server) getRequest(c *echo.Context) error {
	id := c.Param("id")
	if !requestIDs.MatchString(id) {
		message := "a request id is req_ and 26 characters, as the header x-request-id has it"
		return &engine.Error{Code: codePath, Message: message, Param: "request_id"}
	}
	r, err := s.accounts.Request(c.Request().Context(), id)
	if err == nil && r.ProjectID != of(c).principal.Project.ID {
		err = accounts.ErrNotFound
	}
	if errors.Is(err, accounts.ErrNotFound) {
		message := "no request of this project has the id " + id + "; records are kept for a time, and of requests that were let in"
		return &engine.Error{Code: codePath, Message: message, Param: "request_id"}
	}
	if err != nil {
		return err
	}
	return sendPrivate(c, http.StatusOK, r)
}
