package handlers

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/labstack/echo/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// Config is what the handlers serve and how.
type Config struct {
	Models []*Model
	// Accounts has the keys and limits, and takes the records of requests. It stays
	// the caller's.
	Accounts *accounts.Store
	// Keys are API keys besides those of Accounts. As long as there is neither kind
	// every request is let in.
	Keys []string
	// Hosts are names by which a server without keys may be asked, besides localhost
	// and addresses; "*" allows all.
	Hosts []string
	// Origins are those of the web pages that may call; "*" allows all.
	Origins []string
	// Proxies are the networks of proxies whose X-Forwarded-For is believed.
	Proxies []netip.Prefix
	// Gateway answers for other models.
	Gateway Gateway
	// Node is this node's name in answers and messages.
	Node string
	// Version is the program's version.
	Version string
	// MaxBody bounds every request's body, unpacked; 0 means the constant. It should
	// lie above every model's own limit, whose error says more.
	MaxBody int64
	Log     *slog.Logger        // nil: slog.Default
	Metrics prometheus.Gatherer // what /metrics shows; nil: prometheus.DefaultGatherer
}

// MaxBody is how many bytes of any request's body are read at most.
const MaxBody = 64 << 20

// A server is what all handlers share. It does not change after New.
type server struct {
	models      models
	accounts    *accounts.Store
	keys        keys
	hosts       crowd
	origins     crowd
	proxies     []netip.Prefix
	gateway     *gateway // nil: none
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
		accounts:    cfg.Accounts,
		keys:        newKeys(cfg.Keys),
		hosts:       cfg.Hosts,
		origins:     cfg.Origins,
		proxies:     cfg.Proxies,
		gateway:     newGateway(cfg.Gateway, cfg.Version),
		node:        cfg.Node,
		version:     cfg.Version,
		fingerprint: "b3infer-" + cfg.Version,
		maxBody:     cfg.MaxBody,
		log:         cfg.Log,
	}
	if s.maxBody == 0 {
		s.maxBody = MaxBody
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
	e.Use(s.observe, s.cors)
	run, read, manage := s.needs(accounts.ScopeRun), s.needs(accounts.ScopeRead), s.needs(accounts.ScopeManage)
	for _, path := range []string{"/v1/infer/chat/completions", "/v1/chat/completions"} {
		e.POST(path, s.chat, run)
	}
	for _, path := range []string{"/v1/infer/models", "/v1/models", "/v1/infer/v1/models"} {
		e.GET(path, s.listModels, read)
		e.GET(path+"/*", s.getModel, read)
	}
	e.GET("/v1/requests/:id", s.getRequest, read)
	e.POST("/v1/keys", s.createKey, manage)
	e.GET("/v1/keys", s.listKeys, manage)
	e.GET("/v1/keys/:id", s.getKey, manage)
	e.DELETE("/v1/keys/:id", s.revokeKey, manage)
	e.POST("/v1/auth/session", s.createSession)
	e.GET("/v1/auth/session", s.getSession)
	e.DELETE("/v1/auth/session", s.endSession)
	e.GET("/metrics", s.getMetrics, read)
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
// them, but for the origins that may call (cors).
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
