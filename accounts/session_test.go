package accounts

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func signIn(t *testing.T, s *Store) (key Key, cookie string, n Session) {
	t.Helper()
	key, secret := createKey(t, s, NewKey{})
	p, err := s.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	cookie, n, err = s.CreateSession(t.Context(), p, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return key, cookie, n
}

func TestSession(t *testing.T) {
	s, c := openStore(t)
	key, cookie, created := signIn(t, s)
	for range 2 { // from the file, then from memory
		p, n, err := s.AuthenticateSession(t.Context(), cookie)
		if err != nil || p.Key.ID != key.ID {
			t.Fatalf("%+v, %v, want key %s", p, err, key.ID)
		}
		if diff := cmp.Diff(created, n); diff != "" {
			t.Errorf("session (-created +found):\n%s", diff)
		}
		if !n.CheckCSRF(created.CSRF) || n.CheckCSRF("") || n.CheckCSRF(cookie) {
			t.Error("CheckCSRF")
		}
	}
	_, other, second := signIn(t, s)
	if other == cookie || second.CSRF == created.CSRF {
		t.Error("two sessions are alike")
	}
	if err := s.EndSession(t.Context(), cookie); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.AuthenticateSession(t.Context(), cookie); !errors.Is(err, ErrNoSession) {
		t.Errorf("after its end: %v, want %v", err, ErrNoSession)
	}
	if err := s.EndSession(t.Context(), cookie); err != nil {
		t.Errorf("ended twice: %v", err)
	}
	if _, _, err := s.AuthenticateSession(t.Context(), other); err != nil {
		t.Errorf("the other session: %v", err)
	}
	c.advance(time.Hour)
	if _, _, err := s.AuthenticateSession(t.Context(), other); !errors.Is(err, ErrNoSession) {
		t.Errorf("when it expires: %v, want %v", err, ErrNoSession)
	}
	for _, cookie := range []string{"", "x", randomText(sessionBytes)} {
		if _, _, err := s.AuthenticateSession(t.Context(), cookie); !errors.Is(err, ErrNoSession) {
			t.Errorf("%q: %v, want %v", cookie, err, ErrNoSession)
		}
	}
	if _, _, err := s.CreateSession(t.Context(), s.Anonymous(), time.Hour); !errors.Is(err, ErrNotFound) {
		t.Errorf("a session without a key: %v", err)
	}
}

func TestSessionEndsWithItsKey(t *testing.T) {
	s, _ := openStore(t)
	key, cookie, _ := signIn(t, s)
	if _, _, err := s.AuthenticateSession(t.Context(), cookie); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.AuthenticateSession(t.Context(), cookie); !errors.Is(err, ErrNoSession) {
		t.Errorf("%v, want %v", err, ErrNoSession)
	}
}

// A key has so many sessions; the oldest gives way.
func TestSessionsPerKey(t *testing.T) {
	s, c := openStore(t)
	_, secret := createKey(t, s, NewKey{})
	p, err := s.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	var cookies []string
	for range maxSessions + 1 {
		cookie, _, err := s.CreateSession(t.Context(), p, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, cookie)
		c.advance(time.Second)
	}
	for i, cookie := range cookies {
		if _, _, err := s.AuthenticateSession(t.Context(), cookie); (err == nil) != (i > 0) {
			t.Errorf("session %d: %v", i, err)
		}
	}
}

// What was read from the file before the directory was replaced may have ended
// since, and the memory for sessions is bounded.
func TestSessionsInMemory(t *testing.T) {
	var c sessions
	c.put(hash{1}, Session{KeyID: "old"}, func() bool { return false })
	if n, ok := c.get(hash{1}); ok {
		t.Errorf("%+v is kept", n)
	}
	for i := range maxCached + 1 {
		c.put(hash{byte(i), byte(i >> 8)}, Session{KeyID: "new"}, func() bool { return true })
	}
	if _, ok := c.get(hash{}); ok || len(c.known) != 1 {
		t.Errorf("%d sessions are kept, want the last one", len(c.known))
	}
}
