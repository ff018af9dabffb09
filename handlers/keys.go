package handlers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
)

// keyRequest is the body of POST /v1/keys.
type keyRequest struct {
	Name      *string          `json:"name"`
	Scopes    []accounts.Scope `json:"scopes"`
	ExpiresAt *string          `json:"expires_at"`
	SpendCap  *float64         `json:"spend_cap"`
}

// wanted are the body's words as a key to be made for p.
func (r *keyRequest) wanted(p *accounts.Principal) (n accounts.NewKey, f *fault) {
	n = accounts.NewKey{Name: value(r.Name), ProjectID: p.Project.ID, Scopes: r.Scopes}
	if r.Scopes == nil {
		n.Scopes = accounts.Scopes{accounts.ScopeRun, accounts.ScopeRead}
	}
	if r.ExpiresAt != nil {
		t, err := time.Parse(time.RFC3339, *r.ExpiresAt)
		if err != nil {
			return n, invalid("expires_at", "must be a time such as 2027-01-31T00:00:00Z")
		}
		n.ExpiresAt = t
	}
	if r.SpendCap != nil {
		limit := toCredits(*r.SpendCap)
		n.SpendCap = &limit
	}
	return n, nil
}

// mostCredits is the largest spend cap.
const mostCredits = 1e9

// toCredits rounds an amount, but never one that is out of range into it.
func toCredits(amount float64) accounts.Credits {
	millionths := min(max(amount, -1), mostCredits+1) * float64(accounts.Credit)
	switch {
	case amount < 0:
		return accounts.Credits(math.Floor(millionths))
	case amount > mostCredits:
		return accounts.Credits(math.Ceil(millionths))
	}
	return accounts.Credits(math.Round(millionths))
}

// keyBody is a key as it is answered.
type keyBody struct {
	Object string `json:"object"`
	accounts.Key
	Secret string `json:"secret,omitempty"`
}

func newKeyBody(k accounts.Key, secret string) keyBody { return keyBody{"api_key", k, secret} }

// createKey is POST /v1/keys: a key of the caller's project, which may do no
// more than the caller. Its secret is told here and never again.
func (s *server) createKey(c *echo.Context) error {
	body, err := readBody(c.Response(), c.Request(), s.maxBody)
	if err != nil {
		return err
	}
	var wire keyRequest
	if err := decode(body, &wire, strict); err != nil {
		return err
	}
	p := of(c).principal
	n, f := wire.wanted(p)
	if f != nil {
		return f.public()
	}
	if err := n.Check(time.Now()); err != nil {
		return keyError(err)
	}
	if !p.Scopes.Covers(n.Scopes) {
		message := fmt.Sprintf("this needs a key with the scopes %v: one may hand on only what it has, and this one has %v", n.Scopes, p.Scopes)
		return &engine.Error{Code: codeForbidden, Message: message, Param: "scopes"}
	}
	key, secret, err := s.accounts.CreateKey(c.Request().Context(), n)
	if err != nil {
		return keyError(err)
	}
	return sendPrivate(c, http.StatusCreated, newKeyBody(key, secret))
}

// keyError says an error of the store to the client where it is the client's.
func keyError(err error) error {
	if e, ok := errors.AsType[*accounts.InvalidError](err); ok {
		return &engine.Error{Code: engine.CodeInvalid, Message: e.Error(), Param: cmp.Or(e.Field, "name")}
	}
	return err
}

// listKeys is GET /v1/keys: the keys of the caller's project, revoked and expired
// ones too.
func (s *server) listKeys(c *echo.Context) error {
	keys, err := s.accounts.Keys(c.Request().Context(), of(c).principal.Project.ID)
	if err != nil {
		return err
	}
	list := struct {
		Object string    `json:"object"`
		Data   []keyBody `json:"data"`
	}{"list", make([]keyBody, len(keys))}
	for i, k := range keys {
		list.Data[i] = newKeyBody(k, "")
	}
	return sendPrivate(c, http.StatusOK, list)
}

// ownKey is the key that the path names, if it is of the caller's project.
func (s *server) ownKey(c *echo.Context) (accounts.Key, error) {
	key, err := s.accounts.Key(c.Request().Context(), c.Param("id"))
	if err == nil && key.ProjectID != of(c).principal.Project.ID {
		err = accounts.ErrNotFound
	}
	if errors.Is(err, accounts.ErrNotFound) {
		message := fmt.Sprintf("no key of this project has the id %s; GET /v1/keys lists them", clip(c.Param("id")))
		return key, &engine.Error{Code: codePath, Message: message, Param: "key_id"}
	}
	return key, err
}

// getKey is GET /v1/keys/{id}.
func (s *server) getKey(c *echo.Context) error {
	key, err := s.ownKey(c)
	if err != nil {
		return err
	}
	return sendPrivate(c, http.StatusOK, newKeyBody(key, ""))
}

// revokeKey is DELETE /v1/keys/{id}. A key that is revoked stays as it is.
func (s *server) revokeKey(c *echo.Context) error {
	key, err := s.ownKey(c)
	if err != nil {
		return err
	}
	if key, err = s.accounts.RevokeKey(c.Request().Context(), key.ID); err != nil {
		return err
	}
	return sendPrivate(c, http.StatusOK, newKeyBody(key, ""))
}
