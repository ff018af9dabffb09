package handlers

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/b3os/b3infer/engine"
)

// Config is what the handlers serve and how.
type Config struct {
	Models []*Model
	// Keys are the accepted API keys. None: every request is let in.
	Keys []string
	// Node is this node's name in answers and messages.
	Node string
	// Version is the program's version.
	Version string
	// MaxBody bounds every request's body, unpacked; 0 means 64 MiB. It should lie
	// above every model's own limit, whose error says more.
	MaxBody int64
	Log     *slog.Logger        // nil: slog.Default
	Metrics prometheus.Gatherer // what /metrics shows; nil: prometheus.DefaultGatherer
}

const defaultMaxBody = 64 << 20

// A server is what all handlers share. It does not change after New.
type server struct {
	models      models
	keys        keys
	node        string
	version     string
	fingerprint string // system_fingerprint: the build that answers
	maxBody     int64
	log         *slog.Logger
	metrics     http.Handler
}

// New builds the handler of all paths.
func New(cfg Config) http.Handler {
	s := &server{
		models:      cfg.Models,
		keys:        newKeys(cfg.Keys),
		node:        cfg.Node,
		version:     cfg.Version,
		fingerprint: "b3infer-" + cfg.Version,
		maxBody:     cfg.MaxBody,
		log:         cfg.Log,
	}
	if s.maxBody == 0 {
		s.maxBody = defaultMaxBody
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.DefaultGatherer
	}
	s.metrics = metricsHandler(cfg.Metrics)
	return s.routes()
}

// routes is the one list of paths.
func (s *server) routes() http.Handler {
	e := echo.NewWithConfig(echo.Config{
		Logger: s.log,
		Router: echo.NewRouter(echo.RouterConfig{
			NotFoundHandler:         unknownPath,
			MethodNotAllowedHandler: wrongMethod,
			OptionsMethodHandler:    wrongMethod,
			UnescapePathParamValues: true,
			AutoHandleHEAD:          true,
		}),
	})
	e.Use(s.observe)
	for _, path := range []string{"/v1/infer/chat/completions", "/v1/chat/completions"} {
		e.POST(path, s.chat, s.keyed)
	}
	for _, path := range []string{"/v1/infer/models", "/v1/models", "/v1/infer/v1/models"} {
		e.GET(path, s.listModels, s.keyed)
		e.GET(path+"/*", s.getModel, s.keyed)
	}
	e.GET("/metrics", s.getMetrics, s.keyed)
	e.GET("/healthz", s.getHealth)
	e.GET("/openapi.yaml", getOpenAPI)
	e.GET("/", s.getRoot)
	return e
}

// unknownPath answers paths that no route has.
func unknownPath(c *echo.Context) error {
	message := fmt.Sprintf("there is no %s here; GET /openapi.yaml lists the paths", clip(c.Request().URL.Path))
	return &engine.Error{Code: codePath, Message: message}
}

// wrongMethod answers methods that a path does not have. OPTIONS is one of
// them: no other origin may call this server from a browser.
func wrongMethod(c *echo.Context) error {
	known, _ := c.Get(echo.ContextKeyHeaderAllow).(string)
	allowed := slices.DeleteFunc(strings.Split(known, ", "), func(method string) bool { return method == http.MethodOptions })
	if i := slices.Index(allowed, http.MethodGet); i >= 0 && !slices.Contains(allowed, http.MethodHead) {
		allowed = slices.Insert(allowed, i+1, http.MethodHead)
	}
	list := strings.Join(allowed, ", ")
	c.Response().Header().Set("Allow", list)
	message := fmt.Sprintf("%s is not allowed here; use %s", clip(c.Request().Method), list)
	return &engine.Error{Code: codeMethod, Message: message}
}
