package handlers

import (
	"bytes"
	_ "embed"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/b3os/b3infer/engine"
)

//go:embed openapi.yaml
var openAPI []byte

// getOpenAPI is GET /openapi.yaml.
func getOpenAPI(c *echo.Context) error {
	writeBody(c, http.StatusOK, "application/yaml", openAPI)
	return nil
}

//go:embed docs.html
var docs []byte

// getDocs is GET /docs: one page, which asks for nothing else.
func getDocs(c *echo.Context) error {
	c.Response().Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	writeBody(c, http.StatusOK, "text/html; charset=utf-8", docs)
	return nil
}

// getRoot is GET /.
func (s *server) getRoot(c *echo.Context) error {
	return sendJSON(c, http.StatusOK, struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Docs    string `json:"docs"`
	}{"b3infer", s.version, "/docs"})
}

// stateLoading is the state of a model that has no engine yet.
const stateLoading engine.State = "loading"

// worst lists the states from best to worst.
var worst = map[engine.State]int{engine.StateReady: 0, stateLoading: 1, engine.StateDraining: 2, engine.StateStuck: 3}

// modelHealth is a model's entry in /healthz.
type modelHealth struct {
	ID       string       `json:"id"`
	Status   engine.State `json:"status"`
	LastStep *float64     `json:"last_step_ms,omitempty"`
	Running  *int         `json:"running,omitempty"`
	Waiting  *int         `json:"waiting,omitempty"`
}

func (m *Model) health() modelHealth {
	e := m.loaded()
	if e == nil {
		return modelHealth{ID: m.id, Status: stateLoading}
	}
	h := e.Health()
	age := float64(h.LastStep) / float64(time.Millisecond)
	return modelHealth{m.id, h.State, &age, &h.Running, &h.Waiting}
}

// getHealth is GET /healthz. It asks the engines for snapshots that need no
// lock of their loops, so it answers also when one is stuck.
func (s *server) getHealth(c *echo.Context) error {
	health := struct {
		Status engine.State  `json:"status"`
		Node   string        `json:"node"`
		Models []modelHealth `json:"models"`
	}{Status: engine.StateReady, Node: s.node}
	for _, m := range s.models {
		h := m.health()
		health.Models = append(health.Models, h)
		if worst[h.Status] > worst[health.Status] {
			health.Status = h.Status
		}
	}
	status := http.StatusOK
	if health.Status != engine.StateReady {
		status = http.StatusServiceUnavailable
	}
	return sendJSON(c, status, health)
}

func metricsHandler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{DisableCompression: true})
}

// getMetrics is GET /metrics. The page is built before it is sent, so that its
// length and time are known.
func (s *server) getMetrics(c *echo.Context) error {
	page := memoryWriter{header: c.Response().Header(), status: http.StatusOK}
	s.metrics.ServeHTTP(&page, c.Request())
	writeBody(c, page.status, page.header.Get("Content-Type"), page.body.Bytes())
	return nil
}

// A memoryWriter keeps a response's body.
type memoryWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *memoryWriter) Header() http.Header         { return w.header }
func (w *memoryWriter) WriteHeader(status int)      { w.status = status }
func (w *memoryWriter) Write(b []byte) (int, error) { return w.body.Write(b) }
