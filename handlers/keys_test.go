package handlers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/b3os/b3infer/accounts"
)

// jsonOf reads an answer.
func jsonOf(t *testing.T, w *httptest.ResponseRecorder, status int, into any) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status %d, want %d: %s", w.Code, status, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}

// wireKey is a key as clients read it.
type wireKey struct {
	ID, Name, Secret string
	ProjectID        string   `json:"project_id"`
	Scopes           []string `json:"scopes"`
	SpendCap         *float64 `json:"spend_cap"`
	ExpiresAt        string   `json:"expires_at"`
	RevokedAt        string   `json:"revoked_at"`
}

func del(path string) *http.Request { return httptest.NewRequest(http.MethodDelete, path, nil) }

func TestKeysOverHTTP(t *testing.T) {
	h := serve(t, says("Hi"))
	_, admin := newKey(t, h.accounts, accounts.NewKey{})
	var made wireKey
	w := do(t, h, with(admin, post("/v1/keys", `{"name":"ci","scopes":["infer:run"],"spend_cap":2.5,"expires_at":"2099-01-31T00:00:00Z"}`)))
	jsonOf(t, w, 201, &made)
	if made.Name != "ci" || len(made.Scopes) != 1 || made.SpendCap == nil || *made.SpendCap != 2.5 || made.ExpiresAt != "2099-01-31T00:00:00Z" {
		t.Errorf("got %s", w.Body)
	}
	if !regexp.MustCompile(`^b3os_sk_[0-9a-hjkmnp-tv-z]{32}_[0-9a-hjkmnp-tv-z]{7}$`).MatchString(made.Secret) { // C005
		t.Errorf("the secret is %q", made.Secret)
	}
	if w.Header().Get("Cache-Control") != "no-store" {
		t.Error("a secret may be kept by nobody on the way")
	}
	if w := do(t, h, with(made.Secret, post(chatPath, chatBody("")))); w.Code != 200 {
		t.Errorf("the new key: %d %s", w.Code, w.Body)
	}

	// C010: the secret is shown once.
	for _, path := range []string{"/v1/keys", "/v1/keys/" + made.ID} {
		w := do(t, h, with(admin, get(path)))
		if w.Code != 200 || !strings.Contains(w.Body.String(), made.ID) || strings.Contains(w.Body.String(), "b3os_sk_") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for range 2 { // revoking twice is fine
		var revoked wireKey
		jsonOf(t, do(t, h, with(admin, del("/v1/keys/"+made.ID))), 200, &revoked)
		if revoked.RevokedAt == "" {
			t.Error("not revoked")
		}
	}
	if w := do(t, h, with(made.Secret, post(chatPath, chatBody("")))); w.Code != 401 {
		t.Errorf("a revoked key is let in: %d", w.Code)
	}
	var plain wireKey
	jsonOf(t, do(t, h, with(admin, post("/v1/keys", `{}`))), 201, &plain)
	if strings.Join(plain.Scopes, " ") != "infer:run infer:read" || plain.SpendCap != nil || plain.ExpiresAt != "" {
		t.Errorf("the default key is %+v", plain)
	}
}

func TestKeysRefused(t *testing.T) {
	h := serve(t, says("Hi"))
	_, admin := newKey(t, h.accounts, accounts.NewKey{Scopes: accounts.Scopes{accounts.ScopeManage, accounts.ScopeRead}})
	organization, _, err := h.accounts.EnsureOrganization(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	project, _, err := h.accounts.EnsureProject(t.Context(), organization.ID, "theirs")
	if err != nil {
		t.Fatal(err)
	}
	foreign, _ := newKey(t, h.accounts, accounts.NewKey{ProjectID: project.ID})
	ask := func(body string) *http.Request { return with(admin, post("/v1/keys", body)) }
	inv := func(param, message string) wireError { return wireError{message, badRequest, "invalid_request", param} }
	absent := wireError{"no key of this project has the id " + foreign.ID + "; GET /v1/keys lists them", badRequest, "not_found", "key_id"}
	runRefusals(t, h, []refusal{
		{"more_than_it_has", ask(`{}`), 403, wireError{"this needs a key with the scopes infer:run infer:read: one may hand on only what it has, and this one has infer:read keys:manage", "permission_error", "forbidden", "scopes"}},
		{"unknown_scope", ask(`{"scopes":["root"]}`), 400, inv("scopes", `scope "root" is not known; there are infer:run, infer:read, keys:manage`)},
		{"no_scope", ask(`{"scopes":[]}`), 400, inv("scopes", "scopes must name at least one scope")},
		{"past", ask(`{"scopes":["infer:read"],"expires_at":"2001-01-01T00:00:00Z"}`), 400, inv("expires_at", "expires_at must be in the future")},
		{"no_time", ask(`{"expires_at":"soon"}`), 400, inv("expires_at", "expires_at must be a time such as 2027-01-31T00:00:00Z")},
		{"negative_cap", ask(`{"scopes":["infer:read"],"spend_cap":-1e300}`), 400, inv("spend_cap", "spend_cap must be between 0 and 1000000000")},
		{"huge_cap", ask(`{"scopes":["infer:read"],"spend_cap":1e300}`), 400, inv("spend_cap", "spend_cap must be between 0 and 1000000000")},
		{"cap_a_little_below", ask(`{"scopes":["infer:read"],"spend_cap":-1e-300}`), 400, inv("spend_cap", "spend_cap must be between 0 and 1000000000")},
		{"cap_a_little_above", ask(`{"scopes":["infer:read"],"spend_cap":1000000000.0000002}`), 400, inv("spend_cap", "spend_cap must be between 0 and 1000000000")},
		{"null", ask(` null`), 400, inv("", "the body must be an object")},
		{"unknown_member", ask(`{"kind":"token"}`), 400, wireError{"kind is not supported on this node", badRequest, "unsupported_parameter", "kind"}},
		{"media_type", with(admin, post("/v1/keys", "{}", "Content-Type", "text/plain")), 415,
			wireError{"expected Content-Type: application/json", badRequest, "unsupported_media_type", ""}},
		{"key_of_another_project", with(admin, get("/v1/keys/"+foreign.ID)), 404, absent},
		{"revoke_in_another_project", with(admin, del("/v1/keys/"+foreign.ID)), 404, absent},
	})
	if w := do(t, h, with(admin, get("/v1/keys"))); strings.Contains(w.Body.String(), foreign.ID) {
		t.Error("the list has another project's key")
	}
}

func TestSession(t *testing.T) {
	h := serve(t, says("Hi"))
	key, secret := newKey(t, h.accounts, accounts.NewKey{})
	w := do(t, h, with(secret, httptest.NewRequest("POST", "/v1/auth/session", nil)))
	var session struct {
		KeyID string `json:"key_id"`
		CSRF  string `json:"csrf_token"`
	}
	jsonOf(t, w, 201, &session)
	set := w.Header().Get("Set-Cookie")
	cookie, err := http.ParseSetCookie(set)
	if err != nil {
		t.Fatal(err)
	}
	// C014, C016
	if cookie.Name != "__Host-b3os_session" || !cookie.Secure || !cookie.HttpOnly || cookie.Path != "/" || cookie.Domain != "" ||
		cookie.SameSite != http.SameSiteLaxMode || cookie.Expires.IsZero() {
		t.Errorf("Set-Cookie: %s", set)
	}
	if session.KeyID != key.ID || session.CSRF == "" {
		t.Errorf("got %s", w.Body)
	}
	browser := func(r *http.Request, csrf string) *http.Request {
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
		return withHeaders(r, "x-b3os-csrf", csrf)
	}
	token := forbidden("with the session cookie the header x-b3os-csrf is needed; GET /v1/auth/session tells its value")
	runRefusals(t, h, []refusal{
		{"C015_post_without_token", browser(post(chatPath, chatBody("")), ""), 403, token},
		{"C015_post_with_another", browser(post(chatPath, chatBody("")), "x"+session.CSRF), 403, token},
		{"C015_delete_without_token", browser(del("/v1/auth/session"), ""), 403, token},
		{"bad_cookie", withHeaders(get("/v1/models"), "Cookie", cookie.Name+"=x"), 401, denied("this session has ended; sign in again")},
		{"no_cookie", get("/v1/auth/session"), 401, denied("this session has ended; sign in again")},
		{"no_key", httptest.NewRequest("POST", "/v1/auth/session", nil), 401,
			denied("a browser is signed in with an API key; send Authorization: Bearer KEY")},
		{"no_session_from_a_session", browser(httptest.NewRequest("POST", "/v1/auth/session", nil), session.CSRF), 401,
			denied("a browser is signed in with an API key; send Authorization: Bearer KEY")},
	})
	for name, r := range map[string]*http.Request{
		"C014_post":    browser(post(chatPath, chatBody("")), session.CSRF),
		"C015_get":     browser(get("/v1/models"), ""),
		"C015_session": browser(get("/v1/auth/session"), ""),
	} {
		if w := do(t, h, r); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	w = do(t, h, browser(del("/v1/auth/session"), session.CSRF))
	if w.Code != 204 || !strings.Contains(w.Header().Get("Set-Cookie"), "Expires=Thu, 01 Jan 1970") {
		t.Errorf("signing out: %d %v", w.Code, w.Header())
	}
	if w := do(t, h, browser(get("/v1/models"), "")); w.Code != 401 {
		t.Errorf("after signing out: %d", w.Code)
	}
	if w := do(t, h, browser(del("/v1/auth/session"), session.CSRF)); w.Code != 204 {
		t.Errorf("signing out twice: %d", w.Code)
	}
	for _, s := range []string{cookie.Value, session.CSRF, secret} {
		if strings.Contains(h.log.String(), s) {
			t.Error("the log has a secret")
		}
	}
}
