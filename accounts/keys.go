package accounts

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"time"
)

// A Key is what is known of an API key or a token; never its secret.
type Key struct {
	ID        string    `json:"id"`
	Kind      Kind      `json:"kind"`
	Name      string    `json:"name"`
	User      string    `json:"user,omitempty"` // whom a token stands for
	ProjectID string    `json:"project_id"`
	Scopes    Scopes    `json:"scopes"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
	RevokedAt time.Time `json:"revoked_at,omitzero"` // zero: not revoked
	// SpendCap is all that it may ever spend; nil is any amount.
	SpendCap *Credits `json:"spend_cap"`
	// Spent and LastUsedAt are as last read from the file, which lags behind by
	// up to a second.
	Spent      Credits   `json:"spent"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"` // zero: not yet
}

// Err is ErrRevoked or ErrExpired if the key is no longer good at that time.
func (k Key) Err(now time.Time) error {
	switch {
	case !k.RevokedAt.IsZero():
		return ErrRevoked
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return ErrExpired
	}
	return nil
}

// NewKey says what kind of key is wanted.
type NewKey struct {
	Kind      Kind   // empty is KindKey
	Name      string // may be empty
	User      string // for tokens, which need one, alone
	ProjectID string // empty is DefaultProject
	Scopes    Scopes
	ExpiresAt time.Time // zero: never
	SpendCap  *Credits  // nil: none
}

// Check completes n and tells what is wrong with it as an *InvalidError.
func (n *NewKey) Check(now time.Time) (err error) {
	if n.Kind == "" {
		n.Kind = KindKey
	}
	if n.ProjectID == "" {
		n.ProjectID = DefaultProject
	}
	if n.Name != "" {
		if err := checkName("name", n.Name); err != nil {
			return err
		}
	}
	switch {
	case prefixes[n.Kind] == "":
		return &InvalidError{"kind", "kind must be key or token"}
	case n.Kind == KindToken:
		if err := checkName("user", n.User); err != nil {
			return err
		}
	case n.User != "":
		return &InvalidError{"user", "only a token stands for a user"}
	}
	if len(n.Scopes) == 0 {
		return &InvalidError{"scopes", "scopes must name at least one scope"}
	}
	if n.Scopes, err = n.Scopes.normal(); err != nil {
		return err
	}
	switch {
	case !n.ExpiresAt.IsZero() && !n.ExpiresAt.After(now):
		return &InvalidError{"expires_at", "expires_at must be in the future"}
	case n.SpendCap != nil && (*n.SpendCap < 0 || *n.SpendCap > maxCredits):
		return &InvalidError{"spend_cap", "spend_cap must be between 0 and " + maxCredits.String()}
	}
	return nil
}

// CreateKey makes a key. Its secret is returned once and cannot be had again.
// The error is an *InvalidError, ErrNotFound if there is no such project, or
// what the file failed with.
func (s *Store) CreateKey(ctx context.Context, n NewKey) (key Key, secret string, err error) {
	now := s.now()
	if err := n.Check(now); err != nil {
		return Key{}, "", err
	}
	secret = newSecret(n.Kind)
	sum := sha256.Sum256([]byte(secret))
	id := newID("key_", now)
	err = s.change(ctx, func(tx *sql.Tx) error {
		return changed(tx.ExecContext(ctx, `INSERT INTO keys (id, kind, hash, project_id, name, user, scopes, created_at, expires_at, spend_cap)
			SELECT ?, ?, ?, id, ?, ?, ?, ?, ?, ? FROM projects WHERE id = ?`,
			id, n.Kind, sum[:], n.Name, n.User, n.Scopes.String(), fromTime(now), fromTime(n.ExpiresAt), fromCredits(n.SpendCap), n.ProjectID))
	})
	if err != nil {
		return Key{}, "", err
	}
	key, err = s.Key(ctx, id)
	return key, secret, err
}

// Key is the key of that id, or ErrNotFound.
func (s *Store) Key(ctx context.Context, id string) (Key, error) {
	keys, err := all(ctx, s.reader, onlyKey, "SELECT "+keyColumns+" FROM keys WHERE id = ?", id)
	if err != nil {
		return Key{}, s.failure(err)
	}
	if len(keys) == 0 {
		return Key{}, ErrNotFound
	}
	return keys[0], nil
}

// Keys lists the keys of a project, or of all if projectID is empty, oldest
// first; revoked and expired ones too.
func (s *Store) Keys(ctx context.Context, projectID string) ([]Key, error) {
	keys, err := all(ctx, s.reader, onlyKey, "SELECT "+keyColumns+" FROM keys WHERE ?1 = '' OR project_id = ?1 ORDER BY id", projectID)
	return keys, s.failure(err)
}

// HasKeys tells whether any key was ever created, revoked ones included: a
// store whose keys are all revoked lets nobody in. It does not wait for the
// disk.
func (s *Store) HasKeys() bool { return len(s.current.Load().byID) > 0 }

// RevokeKey ends a key and its sessions for good. When it returns this process
// accepts the key no more, and others within a second. A key that is revoked
// already stays as it is. The error may be ErrNotFound.
func (s *Store) RevokeKey(ctx context.Context, id string) (Key, error) {
	err := s.change(ctx, func(tx *sql.Tx) error {
		err := changed(tx.ExecContext(ctx, "UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?", fromTime(s.now()), id))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM sessions WHERE key_id = ?", id)
		return err
	})
	if err != nil {
		return Key{}, err
	}
	return s.Key(ctx, id)
}

const keyColumns = "id, kind, hash, project_id, name, user, scopes, created_at, expires_at, revoked_at, spend_cap, spent, last_used_at"

func scanKey(rows *sql.Rows) (k Key, sum hash, err error) {
	var raw sql.RawBytes
	var scopes string
	var created, expires, revoked, limit, used sql.NullInt64
	err = rows.Scan(&k.ID, &k.Kind, &raw, &k.ProjectID, &k.Name, &k.User, &scopes, &created, &expires, &revoked, &limit, &k.Spent, &used)
	copy(sum[:], raw)
	k.Scopes, k.SpendCap = scopesFrom(scopes), toCredits(limit)
	k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsedAt = toTime(created), toTime(expires), toTime(revoked), toTime(used)
	return k, sum, err
}

func onlyKey(rows *sql.Rows) (Key, error) {
	key, _, err := scanKey(rows)
	return key, err
}
