package handlers

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// keys are the hashes of the API keys that the server was started with.
type keys [][sha256.Size]byte

func newKeys(secrets []string) keys {
	k := make(keys, len(secrets))
	for i, secret := range secrets {
		k[i] = sha256.Sum256([]byte(secret))
	}
	return k
}

// accept tells whether secret is a key. Every key is compared, so that the time
// taken tells nothing about them.
func (k keys) accept(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	found := 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(sum[:], k[i][:])
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

// open tells that no key is needed: none was given to the server, and none was
// ever created. Whoever creates the first one closes the server at once.
func (s *server) open() bool { return len(s.keys) == 0 && !s.accounts.HasKeys() }

// needs wraps handlers that only those may reach who hold the scope.
func (s *server) needs(scope accounts.Scope) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			x, begun := of(c), time.Now()
			p, err := s.identify(c.Request())
			x.auth = time.Since(begun)
			if err != nil {
				return err
			}
			x.principal = p
			if !p.Scopes.Has(scope) {
				return s.lacking(scope)
			}
			return next(c)
		}
	}
}

// lacking is the error for those who do not hold the scope.
func (s *server) lacking(scope accounts.Scope) error {
	message := "this API key lacks the scope "
	if s.open() {
		message = "this needs an API key with the scope "
	}
	message += fmt.Sprintf("%s; use one that has it, or make one with: b3infer keys create --scope %[1]s", scope)
	return &engine.Error{Code: codeForbidden, Message: message}
}

// identify finds out who asks. A key counts before a session's cookie, of which
// a client need not know.
func (s *server) identify(r *http.Request) (*accounts.Principal, error) {
	if s.open() {
		return s.accounts.Anonymous(), s.checkBrowser(r)
	}
	sent := credentials(r.Header)
	if len(sent) == 0 {
		if cookie := sessionCookie(r); cookie != "" {
			return s.identifySession(r, cookie)
		}
		return nil, unauthorized("no API key was sent; send Authorization: Bearer KEY")
	}
	var first error // of several wrong keys
	for _, secret := range sent {
		p, err := s.principalOf(r, secret)
		if err == nil {
			return p, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// principalOf is whose key this is. The keys that the server was started with
// stand for the default project.
func (s *server) principalOf(r *http.Request, secret string) (*accounts.Principal, error) {
	if s.keys.accept(secret) {
		return s.accounts.Anonymous(), nil
	}
	p, err := s.accounts.Authenticate(r.Context(), secret)
	if errors.Is(err, accounts.ErrMalformed) && len(s.keys) > 0 {
		err = accounts.ErrUnknown // those keys look like anything
	}
	return p, credentialError(err)
}

// credentialFaults are what a client may be told about its credential.
var credentialFaults = []error{
	accounts.ErrMalformed, accounts.ErrChecksum, accounts.ErrUnknown, accounts.ErrRevoked, accounts.ErrExpired, accounts.ErrNoSession,
}

// credentialError is an error of the look-up of a credential, said to the
// client; anything else is our failure.
func credentialError(err error) error {
	for _, known := range credentialFaults {
		if errors.Is(err, known) {
			return unauthorized(known.Error())
		}
	}
	return err
}

func unauthorized(message string) error {
	return &engine.Error{Code: codeUnauthorized, Message: message}
}
