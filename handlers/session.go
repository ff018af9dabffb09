package handlers

import (
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

const (
	// cookieName has the prefix that binds the cookie to this host: browsers take
	// it only with Secure, with Path=/ and without a Domain.
	cookieName  = "__Host-b3os_session"
	sessionTime = 12 * time.Hour
	csrfHeader  = "X-B3os-Csrf"
)

// sessionCookie is the secret in a request's session cookie, or "".
func sessionCookie(r *http.Request) string {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// identifySession finds out whose browser this is. What changes something must
// carry the session's token, which no page of another origin can know.
func (s *server) identifySession(r *http.Request, cookie string) (*accounts.Principal, error) {
	p, session, err := s.accounts.AuthenticateSession(r.Context(), cookie)
	if err != nil {
		return nil, credentialError(err)
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !safe && !session.CheckCSRF(r.Header.Get(csrfHeader)) {
		message := "with the session cookie the header x-b3os-csrf is needed; GET /v1/auth/session tells its value"
		return nil, &engine.Error{Code: codeForbidden, Message: message}
	}
	return p, nil
}

// sessionBody is what a browser is told of its session.
type sessionBody struct {
	Object    string          `json:"object"`
	KeyID     string          `json:"key_id"`
	ProjectID string          `json:"project_id"`
	Scopes    accounts.Scopes `json:"scopes"`
	CreatedAt time.Time       `json:"created_at"`
	ExpiresAt time.Time       `json:"expires_at"`
	CSRF      string          `json:"csrf_token"`
}

func sendSession(c *echo.Context, status int, p *accounts.Principal, n accounts.Session) error {
	return sendPrivate(c, status, sessionBody{
		"session", n.KeyID, p.Project.ID, p.Scopes, n.CreatedAt.UTC().Truncate(time.Second), n.ExpiresAt.UTC().Truncate(time.Second), n.CSRF,
	})
}

// createSession is POST /v1/auth/session: a key signs its browser in.
func (s *server) createSession(c *echo.Context) error {
	r := c.Request()
	sent := credentials(r.Header)
	if len(sent) == 0 {
		return unauthorized("a browser is signed in with an API key; send Authorization: Bearer KEY")
	}
	p, err := s.accounts.Authenticate(r.Context(), sent[0])
	if err != nil {
		return credentialError(err)
	}
	of(c).principal = p
	secret, session, err := s.accounts.CreateSession(r.Context(), p, sessionTime)
	if err != nil {
		return err
	}
	http.SetCookie(c.Response(), newCookie(secret, session.ExpiresAt))
	return sendSession(c, http.StatusCreated, p, session)
}

// newCookie is the session cookie with a secret, which is none to end it.
func newCookie(secret string, expires time.Time) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: secret, Path: "/", Expires: expires, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// getSession is GET /v1/auth/session: who is signed in, and the token that its
// changes must carry.
func (s *server) getSession(c *echo.Context) error {
	p, session, err := s.accounts.AuthenticateSession(c.Request().Context(), sessionCookie(c.Request()))
	if err != nil {
		return credentialError(err)
	}
	return sendSession(c, http.StatusOK, p, session)
}

// endSession is DELETE /v1/auth/session. A session that has ended is fine.
func (s *server) endSession(c *echo.Context) error {
	r, cookie := c.Request(), sessionCookie(c.Request())
	p, err := s.identifySession(r, cookie)
	switch e, ok := errors.AsType[*engine.Error](err); {
	case ok && e.Code == codeUnauthorized:
	case err != nil:
		return err
	default:
		of(c).principal = p
		if err := s.accounts.EndSession(r.Context(), cookie); err != nil {
			return err
		}
	}
	http.SetCookie(c.Response(), newCookie("", time.Unix(0, 0)))
	c.Response().WriteHeader(http.StatusNoContent)
	return nil
}

// sendPrivate answers with v, which nobody may keep.
func sendPrivate(c *echo.Context, status int, v any) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return sendJSON(c, status, v)
}
