package handlers

import (
	"context"
	"iter"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/engine"
)

// Engine is what the handlers need of an *engine.Engine.
type Engine interface {
	Prepare(ctx context.Context, r *engine.Request) (*engine.Prepared, error)
	Generate(ctx context.Context, p *engine.Prepared) iter.Seq2[engine.Event, error]
	Used(p *engine.Prepared) engine.Usage
	Info() engine.Info
	Health() engine.Health
}

var _ Engine = (*engine.Engine)(nil)

// A Model is what clients can ask for by its id. It is listed from the start
// and answers once its engine is set.
type Model struct {
	id              string
	created         time.Time
	owner           string
	maxRequestBytes int64
	engine          atomic.Pointer[Engine]
}

// ModelParams describes a Model.
type ModelParams struct {
	ID      string
	Created time.Time // as clients see it, such as the time of the model's file
	Owner   string    // owned_by; empty means b3infer
	// MaxRequestBytes bounds a request's body, unpacked; 0 means 10 MiB.
	MaxRequestBytes int64
}

const defaultMaxRequestBytes = 10 << 20

// NewModel returns a model that is loading.
func NewModel(p ModelParams) *Model {
	m := &Model{id: p.ID, created: p.Created, owner: p.Owner, maxRequestBytes: p.MaxRequestBytes}
	if m.owner == "" {
		m.owner = "b3infer"
	}
	if m.maxRequestBytes == 0 {
		m.maxRequestBytes = defaultMaxRequestBytes
	}
	return m
}

// Serve sets the engine that answers from now on. It may be called at any time.
func (m *Model) Serve(e Engine) { m.engine.Store(&e) }

// loaded is the model's engine, or nil while it loads.
func (m *Model) loaded() Engine {
	if e := m.engine.Load(); e != nil {
		return *e
	}
	return nil
}

// models is what the node serves, in the order of the list.
type models []*Model

func (ms models) find(id string) *Model {
	for _, m := range ms {
		if m.id == id {
			return m
		}
	}
	return nil
}

// openAIModel is an entry of OpenAI's model list.
type openAIModel struct {
	ID              string `json:"id"`
	Object          string `json:"object"`
	Created         int64  `json:"created"`
	OwnedBy         string `json:"owned_by"`
	ContextLength   int    `json:"context_length,omitzero"`
	MaxRequestBytes int64  `json:"max_request_bytes"`
	ImageInput      bool   `json:"image_input"`
}

func (m *Model) openAI() openAIModel {
	out := openAIModel{
		ID: m.id, Object: "model", Created: m.created.Unix(), OwnedBy: m.owner, MaxRequestBytes: m.maxRequestBytes,
	}
	if e := m.loaded(); e != nil {
		out.ContextLength = e.Info().Context
	}
	return out
}

// anthropicModel is an entry of Anthropic's model list.
type anthropicModel struct {
	Type        string    `json:"type"`
	ID          string    `json:"id"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

func (m *Model) anthropic() anthropicModel {
	return anthropicModel{Type: "model", ID: m.id, DisplayName: m.id, CreatedAt: m.created.UTC().Truncate(time.Second)}
}

// asksAnthropic tells whether the client expects Anthropic's shapes.
func asksAnthropic(h http.Header) bool { return h.Get("Anthropic-Version") != "" }

// listModels is GET /v1/infer/models.
func (s *server) listModels(c *echo.Context) error {
	if asksAnthropic(c.Request().Header) {
		return s.listAnthropicModels(c)
	}
	list := struct {
		Object string        `json:"object"`
		Data   []openAIModel `json:"data"`
	}{Object: "list"}
	for _, m := range s.models {
		list.Data = append(list.Data, m.openAI())
	}
	return sendJSON(c, http.StatusOK, list)
}

func (s *server) listAnthropicModels(c *echo.Context) error {
	list := struct {
		Data    []anthropicModel `json:"data"`
		HasMore bool             `json:"has_more"`
		FirstID *string          `json:"first_id"`
		LastID  *string          `json:"last_id"`
	}{}
	for _, m := range s.models {
		list.Data = append(list.Data, m.anthropic())
	}
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
	}
	return sendJSON(c, http.StatusOK, list)
}

// getModel is GET /v1/infer/models/{id}. The id may contain slashes, escaped or
// not.
func (s *server) getModel(c *echo.Context) error {
	id := c.Param("*")
	m := s.models.find(id)
	switch {
	case id == "":
		return unknownPath(c)
	case m == nil:
		return unknownModel(id)
	case asksAnthropic(c.Request().Header):
		return sendJSON(c, http.StatusOK, m.anthropic())
	}
	return sendJSON(c, http.StatusOK, m.openAI())
}

// sendJSON answers with v.
func sendJSON(c *echo.Context, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	writeJSON(c, status, body)
	return nil
}
