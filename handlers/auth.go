package handlers

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/engine"
)

// keys are the hashes of the accepted API keys. None means that every request
// is let in, whatever credential it carries: SDKs insist on sending one.
type keys [][sha256.Size]byte

func newKeys(secrets []string) keys {
	k := make(keys, len(secrets))
	for i, secret := range secrets {
		k[i] = sha256.Sum256([]byte(secret))
	}
	return k
}

// accept tells whether one of the credentials is a key. Every pair is compared,
// so that the time taken tells nothing about the keys.
func (k keys) accept(credentials []string) bool {
	found := 0
	for _, credential := range credentials {
		sum := sha256.Sum256([]byte(credential))
		for i := range k {
			found |= subtle.ConstantTimeCompare(sum[:], k[i][:])
		}
	}
	return found == 1
}

// credentials are the keys that a request carries: the bearer token of OpenAI
// clients and the x-api-key of Anthropic clients.
func credentials(h http.Header) []string {
	var found []string
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token != "" && strings.EqualFold(scheme, "Bearer") {
		found = append(found, token)
	}
	if key := h.Get("X-Api-Key"); key != "" {
		found = append(found, key)
	}
	return found
}

// keyed wraps a handler that only requests with a valid key may reach.
func (s *server) keyed(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		if len(s.keys) == 0 {
			return next(c)
		}
		sent := credentials(c.Request().Header)
		switch {
		case len(sent) == 0:
			return &engine.Error{Code: codeUnauthorized, Message: "no API key was sent; send Authorization: Bearer KEY"}
		case !s.keys.accept(sent):
			return &engine.Error{Code: codeUnauthorized, Message: "this API key is not known; check that the whole key was copied"}
		}
		return next(c)
	}
}
