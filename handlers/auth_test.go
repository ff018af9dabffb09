package handlers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/b3os/b3infer/accounts"
)

// newKey makes a key; without scopes it has all.
func newKey(t testing.TB, store *accounts.Store, n accounts.NewKey) (accounts.Key, string) {
	t.Helper()
	if n.Scopes == nil {
		n.Scopes = accounts.AllScopes()
	}
	key, secret, err := store.CreateKey(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return key, secret
}

// with gives a request a bearer key.
func with(secret string, r *http.Request) *http.Request {
	r.Header.Set("Authorization", "Bearer "+secret)
	return r
}

func denied(message string) wireError {
	return wireError{message, "authentication_error", "unauthorized", ""}
}

func forbidden(message string) wireError {
	return wireError{message, "permission_error", "forbidden", ""}
}

const (
	noKey      = "no API key was sent; send Authorization: Bearer KEY"
	unknownKey = "this API key is not known; check that it belongs to this server"
)

func TestContractCredentials(t *testing.T) {
	h := serve(t, says("Hi"), func(c *Config) { c.Keys = []string{"good", "other"} })
	runRefusals(t, h, []refusal{
		{"C004_no_credential", post(chatPath, chatBody("")), 401, denied(noKey)},
		{"C004_wrong_credential", with("bad", post(chatPath, chatBody(""))), 401, denied(unknownKey)},
		{"C004_prefix_of_a_key", with("goo", post(chatPath, chatBody(""))), 401, denied(unknownKey)},
		{"C004_other_scheme", post(chatPath, chatBody(""), "Authorization", "Basic good"), 401, denied(noKey)},
		{"C004_empty_bearer", post(chatPath, chatBody(""), "Authorization", "Bearer "), 401, denied(noKey)},
		{"C004_models", get("/v1/infer/models"), 401, denied(noKey)},
		{"C004_one_model", get("/v1/models/" + testModel), 401, denied(noKey)},
		{"C004_metrics", get("/metrics"), 401, denied(noKey)},
		{"C004_request", get("/v1/requests/x"), 401, denied(noKey)},
		{"before_content_type_and_body", post(chatPath, "x", "Content-Type", "text/plain"), 401, denied(noKey)},
	})
	for name, r := range map[string]*http.Request{
		"C003_C017_bearer": with("good", post(chatPath, chatBody(""))),
		"C003_any_case":    post(chatPath, chatBody(""), "Authorization", "bearer  other"),
		"x_api_key":        post(chatPath, chatBody(""), "x-api-key", "good"),
		"one_of_two_good":  post(chatPath, chatBody(""), "x-api-key", "good", "Authorization", "Bearer placeholder"),
		"health_is_open":   get("/healthz"),
		"root_is_open":     get("/"),
		"file_is_open":     get("/openapi.yaml"),
	} {
		t.Run(name, func(t *testing.T) {
			if w := do(t, h, r); w.Code != 200 {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
	if w := do(t, h, get("/v1/models")); w.Header().Get("WWW-Authenticate") != "Bearer" {
		t.Error("a 401 must name the scheme")
	}
}

func TestContractKeys(t *testing.T) {
	h := serve(t, says("Hi"))
	if w := do(t, h, with("any", post(chatPath, chatBody("")))); w.Code != 200 {
		t.Errorf("without keys any credential is let in, got %d", w.Code)
	}
	_, all := newKey(t, h.accounts, accounts.NewKey{})
	_, token := newKey(t, h.accounts, accounts.NewKey{Kind: accounts.KindToken, User: "ada"})
	revoked, dead := newKey(t, h.accounts, accounts.NewKey{})
	if _, err := h.accounts.RevokeKey(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(20 * time.Millisecond)
	_, old := newKey(t, h.accounts, accounts.NewKey{ExpiresAt: end})
	time.Sleep(time.Until(end) + time.Millisecond)

	chat := func() *http.Request { return post(chatPath, chatBody("")) }
	flipped := all[:8] + flip(all[8:9]) + all[9:]
	runRefusals(t, h, []refusal{
		{"C004_closed_by_the_first_key", chat(), 401, denied(noKey)},
		{"C004_malformed", with("sk-123", chat()), 401, denied(accounts.ErrMalformed.Error())},
		{"C007_checksum", with(flipped, chat()), 401,
			denied("API key checksum does not match; check that the whole key was copied")},
		{"C007_cut", with(all[:len(all)-1], chat()), 401, denied(accounts.ErrMalformed.Error())},
		{"C004_unknown", with(secretOfAnother(t), chat()), 401, denied(unknownKey)},
		{"C004_revoked", with(dead, chat()), 401, denied("this API key was revoked; use another one")},
		{"C004_C009_expired", with(old, chat()), 401, denied("this API key has expired; create a new one")},
	})
	for name, secret := range map[string]string{"C003_key": all, "C006_token": token} {
		if w := do(t, h, with(secret, chat())); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	for _, secret := range []string{all, dead, old, flipped} {
		if strings.Contains(h.log.String(), secret) {
			t.Error("the log has a key")
		}
	}
}

// flip is another character of the keys' alphabet.
func flip(c string) string {
	if c == "0" {
		return "1"
	}
	return "0"
}

func secretOfAnother(t *testing.T) string {
	t.Helper()
	_, secret := newKey(t, openAccounts(t, t.TempDir()), accounts.NewKey{})
	return secret
}

func TestContractScopes(t *testing.T) {
	h := serve(t, says("Hi"))
	_, run := newKey(t, h.accounts, accounts.NewKey{Scopes: accounts.Scopes{accounts.ScopeRun}})
	_, read := newKey(t, h.accounts, accounts.NewKey{Scopes: accounts.Scopes{accounts.ScopeRead}})
	lacks := func(scope string) wireError {
		return forbidden("this API key lacks the scope " + scope + "; use one that has it, or make one with: b3infer keys create --scope " + scope)
	}
	runRefusals(t, h, []refusal{
		{"C018_C022_C051_chat", with(read, post(chatPath, chatBody(""))), 403, lacks("infer:run")},
		{"C018_before_content_type", with(read, post(chatPath, "x", "Content-Type", "text/plain")), 403, lacks("infer:run")},
		{"C021_models", with(run, get("/v1/infer/models")), 403, lacks("infer:read")},
		{"C021_model", with(run, get("/v1/models/"+testModel)), 403, lacks("infer:read")},
		{"C021_request", with(run, get("/v1/requests/req_01m5t4yg394wegr3j4y01qb363")), 403, lacks("infer:read")},
		{"metrics", with(run, get("/metrics")), 403, lacks("infer:read")},
		{"keys", with(read, get("/v1/keys")), 403, lacks("keys:manage")},
		{"new_key", with(read, post("/v1/keys", "{}")), 403, lacks("keys:manage")},
	})
	for secret, r := range map[string]*http.Request{run: post(chatPath, chatBody("")), read: get("/v1/infer/models")} { // C009
		if w := do(t, h, with(secret, r)); w.Code != 200 {
			t.Errorf("%s: %d", r.URL.Path, w.Code)
		}
	}
	open := serve(t, says("Hi"))
	runRefusals(t, open, []refusal{{"keys_without_a_key", post("/v1/keys", "{}"), 403,
		forbidden("this needs an API key with the scope keys:manage; use one that has it, or make one with: b3infer keys create --scope keys:manage")}})
}

// A web page must not drive a server that asks for no key.
func TestBrowserGuard(t *testing.T) {
	h := serve(t, says("Hi"), func(c *Config) { c.Hosts, c.Origins = []string{"box.lan"}, []string{"https://app.example"} })
	asked := func(host, origin string) *http.Request {
		r := post(chatPath, chatBody(""))
		r.Host = host
		return withHeaders(r, "Origin", origin)
	}
	name := forbidden("without API keys this server is asked by its address or as localhost, not as evil.example; " +
		"allow the name with --allow-host, or create a key")
	page := func(origin string) wireError {
		return forbidden("without API keys this server does not answer web pages of " + origin + "; allow them with --cors-origin")
	}
	runRefusals(t, h, []refusal{
		{"rebound_name", asked("evil.example:7700", ""), 403, name},
		{"rebound_name_same_origin", asked("evil.example:7700", "http://evil.example:7700"), 403, name},
		{"other_origin", asked("127.0.0.1:7700", "https://evil.example"), 403, page("https://evil.example")},
		{"other_port", asked("localhost:7700", "http://localhost:3000"), 403, page("http://localhost:3000")},
		{"opaque_origin", asked("127.0.0.1:7700", "null"), 403, page("null")},
	})
	for _, c := range [][2]string{
		{"127.0.0.1:7700", ""}, {"[::1]:7700", ""}, {"LOCALHOST", ""}, {"box.lan:7700", ""}, {"", ""}, {"192.168.1.5:80", ""},
		{"127.0.0.1:7700", "http://127.0.0.1:7700"}, {"box.lan", "http://box.lan"}, {"localhost:7700", "https://app.example"},
	} {
		if w := do(t, h, asked(c[0], c[1])); w.Code != 200 {
			t.Errorf("host %q, origin %q: %d %s", c[0], c[1], w.Code, w.Body)
		}
	}
	newKey(t, h.accounts, accounts.NewKey{})
	if w := do(t, h, asked("evil.example", "https://evil.example")); w.Code != 401 {
		t.Errorf("with keys the key alone counts, got %d", w.Code)
	}
}

func TestCORS(t *testing.T) {
	preflight := func(origin string) *http.Request {
		r := get(chatPath, "Origin", origin, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,content-type,x-stainless-lang")
		r.Method = http.MethodOptions
		return r
	}
	off := serve(t, says("Hi"))
	if w := do(t, off, preflight("https://app.example")); w.Code != 405 || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("CORS is off by default: %d %v", w.Code, w.Header())
	}
	h := serve(t, says("Hi"), func(c *Config) { c.Keys, c.Origins = []string{"good"}, []string{"https://app.example"} })
	w := do(t, h, preflight("https://app.example"))
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example" ||
		w.Header().Get("Access-Control-Allow-Headers") != "authorization,content-type,x-stainless-lang" ||
		!strings.Contains(w.Header().Get("Access-Control-Allow-Methods"), "POST") || w.Header().Get("Vary") != "Origin" ||
		w.Header().Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	w = do(t, h, withHeaders(with("good", post(chatPath, chatBody(""))), "Origin", "https://app.example"))
	if w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example" ||
		!strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "X-Request-Id") {
		t.Errorf("call: %d %v", w.Code, w.Header())
	}
	w = do(t, h, withHeaders(post(chatPath, chatBody("")), "Origin", "https://app.example"))
	if w.Code != 401 || w.Header().Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("errors must be readable too: %d %v", w.Code, w.Header())
	}
	if w := do(t, h, preflight("https://evil.example")); w.Code != 405 || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %d %v", w.Code, w.Header())
	}
	every := serve(t, says("Hi"), func(c *Config) { c.Origins = []string{"*"} })
	if w := do(t, every, preflight("https://any.example")); w.Code != 204 {
		t.Errorf("every origin: %d", w.Code)
	}
}
