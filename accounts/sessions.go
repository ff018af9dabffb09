package accounts

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"errors"
	"sync"
	"time"
)

const (
	// sessionBytes are the random bytes of a session's secret.
	sessionBytes = 32
	// maxSessions is how many sessions a key may have; the oldest gives way.
	maxSessions = 50
	// maxCached is how many sessions are kept in memory.
	maxCached = 10_000
)

// A Session is a browser that signed in with a key.
type Session struct {
	KeyID     string
	CreatedAt time.Time
	ExpiresAt time.Time
	// CSRF is the token that requests which change something must carry besides
	// the cookie. It follows from the session's secret and is not stored.
	CSRF string
}

// CheckCSRF tells whether token is the session's, in constant time.
func (n *Session) CheckCSRF(token string) bool {
	return subtle.ConstantTimeCompare([]byte(n.CSRF), []byte(token)) == 1
}

// sessions are those in use, by the hashes of their secrets.
type sessions struct {
	mu    sync.Mutex
	known map[hash]Session
}

func (c *sessions) get(sum hash) (Session, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.known[sum]
	return n, ok
}

// put keeps a session that was read while a directory was the current one.
// If another has come since, the session may have ended and is not kept.
func (c *sessions) put(sum hash, n Session, current func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !current() {
		return
	}
	if len(c.known) >= maxCached {
		clear(c.known)
	}
	if c.known == nil {
		c.known = map[hash]Session{}
	}
	c.known[sum] = n
}

func (c *sessions) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
}

// CreateSession signs a browser in with the principal's key. The secret is the
// cookie's value; only its hash is stored. It ends after ttl, or with its key.
// The error is ErrNotFound for a principal without a key.
func (s *Store) CreateSession(ctx context.Context, p *Principal, ttl time.Duration) (secret string, n Session, err error) {
	secret = randomText(sessionBytes)
	sum := sha256.Sum256([]byte(secret))
	now := s.now().UTC().Truncate(time.Millisecond) // as it is stored
	n = Session{KeyID: p.Key.ID, CreatedAt: now, ExpiresAt: now.Add(ttl), CSRF: csrf(secret)}
	err = s.change(ctx, func(tx *sql.Tx) error {
		err := changed(tx.ExecContext(ctx, "INSERT INTO sessions (hash, key_id, created_at, expires_at) SELECT ?, id, ?, ? FROM keys WHERE id = ?",
			sum[:], fromTime(n.CreatedAt), fromTime(n.ExpiresAt), n.KeyID))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM sessions WHERE key_id = ? AND hash NOT IN
			(SELECT hash FROM sessions WHERE key_id = ? ORDER BY created_at DESC LIMIT ?)`, n.KeyID, n.KeyID, maxSessions)
		return err
	})
	if err != nil {
		return "", Session{}, err
	}
	return secret, n, nil
}

// AuthenticateSession finds who signed in with this cookie, and the session.
// The error is ErrNoSession, or ErrRevoked or ErrExpired of the key. Only a
// session's first use costs a look at the disk.
func (s *Store) AuthenticateSession(ctx context.Context, secret string) (*Principal, Session, error) {
	if len(secret) != crockford.EncodedLen(sessionBytes) {
		return nil, Session{}, ErrNoSession
	}
	sum := sha256.Sum256([]byte(secret))
	d := s.current.Load()
	n, ok := s.sessions.get(sum)
	if !ok {
		var err error
		if n, err = s.readSession(ctx, sum); err != nil {
			return nil, Session{}, err
		}
		n.CSRF = csrf(secret)
		s.sessions.put(sum, n, func() bool { return s.current.Load() == d })
	}
	p := s.current.Load().byID[n.KeyID]
	if p == nil || !s.now().Before(n.ExpiresAt) {
		return nil, Session{}, ErrNoSession
	}
	p, err := s.admitKey(p)
	return p, n, err
}

func (s *Store) readSession(ctx context.Context, sum hash) (n Session, err error) {
	var created, expires sql.NullInt64
	err = s.reader.QueryRowContext(ctx, "SELECT key_id, created_at, expires_at FROM sessions WHERE hash = ?", sum[:]).
		Scan(&n.KeyID, &created, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return n, ErrNoSession
	}
	n.CreatedAt, n.ExpiresAt = toTime(created), toTime(expires)
	return n, s.failure(err)
}

// EndSession signs the browser out, everywhere within a second. A session that
// has ended is fine.
func (s *Store) EndSession(ctx context.Context, secret string) error {
	sum := sha256.Sum256([]byte(secret))
	return s.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE hash = ?", sum[:])
		return err
	})
}

// csrf derives a session's token from its secret, so that it can be told again
// but not guessed without the cookie.
func csrf(secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("csrf"))
	return crockford.EncodeToString(mac.Sum(nil))
}
