package handlers

import (
	"fmt"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/engine"
)

// A target is the part of a body that says who is to answer it.
type target struct {
	Model *string `json:"model"`
	Route *string `json:"route"`
}

// maxModelID is the length of the longest model id.
const maxModelID = 256

// loadingRetry is when to try again while a model loads.
const loadingRetry = 5 * time.Second

// receive reads the body of a POST, checks that it is JSON, finds the model it
// is for, and checks that model's size limit. The model is nil if the gateway is
// to answer.
func (s *server) receive(c *echo.Context) (*Model, []byte, error) {
	body, err := readBody(c.Response(), c.Request(), s.maxBody)
	if err != nil {
		return nil, nil, err
	}
	var t target
	if err := decode(body, &t); err != nil {
		return nil, nil, err
	}
	m, err := s.find(t)
	if err != nil {
		return nil, nil, err
	}
	of(c).model = *t.Model
	if m != nil && int64(len(body)) > m.maxRequestBytes {
		return nil, nil, tooLarge(fmt.Sprint(len(body)), "this model", m.maxRequestBytes)
	}
	return m, body, nil
}

// find is the model that t asks for, or nil if that is the gateway's.
func (s *server) find(t target) (*Model, error) {
	switch {
	case t.Model == nil:
		return nil, missing("model").public()
	case *t.Model == "" || len([]rune(*t.Model)) > maxModelID:
		return nil, invalid("model", "must have 1 to %d characters", maxModelID).public()
	}
	if m := s.models.find(*t.Model); m != nil {
		return m, nil
	}
	if value(t.Route) == "gateway" {
		if s.gateway != nil {
			return nil, nil
		}
		return nil, &engine.Error{
			Code:       engine.CodeUnavailable,
			Message:    fmt.Sprintf("%s is not served on this node, and no gateway is set up", *t.Model),
			Param:      "route",
			RetryAfter: time.Minute,
		}
	}
	return nil, s.notServed(*t.Model)
}

// notServed is the error for a chat completion of a model that the node does not
// have: the gateway may have it.
func (s *server) notServed(id string) error {
	if s.gateway == nil {
		return unknownModel(id)
	}
	message := clip(id) + ` is not served on this node; set "route":"gateway" to use the B3IQ gateway`
	return &engine.Error{Code: codeModel, Message: message, Param: "model"}
}

// unknownModel is the error for a model that the node does not have.
func unknownModel(id string) error {
	message := clip(id) + " is not served on this node; GET /v1/infer/models lists the models that are"
	return &engine.Error{Code: codeModel, Message: message, Param: "model"}
}

// engineOf is the model's engine, or an error while it loads.
func (s *server) engineOf(m *Model) (Engine, error) {
	if e := m.loaded(); e != nil {
		return e, nil
	}
	return nil, &engine.Error{
		Code:       engine.CodeUnavailable,
		Message:    fmt.Sprintf("The model runtime on %s is loading; retry in %d seconds", s.node, retrySeconds(loadingRetry)),
		RetryAfter: loadingRetry,
	}
}
