package handlers

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/engine"
)

// anyone stands in a list for all.
const anyone = "*"

// A crowd is a list of hosts or origins; "*" in it stands for all.
type crowd []string

func (l crowd) has(name string) bool {
	return slices.Contains(l, anyone) || slices.ContainsFunc(l, func(known string) bool { return strings.EqualFold(known, name) })
}

// checkBrowser refuses, on a server that needs no key, what a web page of
// another origin may have sent through the user's browser. A page whose name
// was made to point here (DNS rebinding) is known by its name in Host, any
// other by its Origin.
func (s *server) checkBrowser(r *http.Request) error {
	if host := hostname(r.Host); !ownName(host) && !s.hosts.has(host) {
		message := fmt.Sprintf("without API keys this server is asked by its address or as localhost, not as %s; "+
			"allow the name with --allow-host, or create a key", clip(host))
		return &engine.Error{Code: codeForbidden, Message: message}
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameHost(origin, r.Host) && !s.origins.has(origin) {
		message := fmt.Sprintf("without API keys this server does not answer web pages of %s; "+
			"allow them with --cors-origin", clip(origin))
		return &engine.Error{Code: codeForbidden, Message: message}
	}
	return nil
}

// hostname is a Host header without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// ownName tells whether a page of another origin cannot have this name: it
// would have to be an address. HTTP/1.0 programs send none.
func ownName(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "" || strings.EqualFold(host, "localhost")
}

// sameHost tells whether an Origin is that of pages of ours.
func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// exposed are the headers that scripts of other origins may read.
const exposed = "X-Request-Id, Server-Timing, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"

// cors lets pages of the listed origins call. They have to send a key like
// everyone else: cookies are not for them.
func (s *server) cors(next echo.HandlerFunc) echo.HandlerFunc {
	if len(s.origins) == 0 {
		return next
	}
	return func(c *echo.Context) error {
		r, h := c.Request(), c.Response().Header()
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin == "" || !s.origins.has(origin) {
			return next(c)
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			h.Set("Access-Control-Expose-Headers", exposed)
			return next(c)
		}
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE")
		if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
			h.Set("Access-Control-Allow-Headers", asked)
		}
		h.Set("Access-Control-Max-Age", "600")
		c.Response().WriteHeader(http.StatusNoContent)
		return nil
	}
}
