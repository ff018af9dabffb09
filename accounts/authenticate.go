package accounts

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"sync/atomic"
)

// A Principal is who asks. It is shared: nobody changes it.
type Principal struct {
	// Key is the zero Key for requests without one.
	Key          Key
	Organization Organization
	Project      Project
	Scopes       Scopes

	hash hash
	used *atomic.Int64 // when, in milliseconds; nil without a key
}

// Anonymous is the principal of requests that need no key, with all scopes but
// ScopeManage. They are booked on the default project.
func (s *Store) Anonymous() *Principal { return s.current.Load().anonymous }

// Authenticate finds whose secret this is. The error is ErrMalformed,
// ErrChecksum, ErrUnknown, ErrRevoked or ErrExpired, with nothing of the secret
// in it. Keys that are known cost no disk access, unknown ones little and no
// memory. A spend cap is no matter of this: Admit looks at it, since counting
// tokens and reading stay allowed.
func (s *Store) Authenticate(ctx context.Context, secret string) (*Principal, error) {
	if err := checkSecret(secret); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(secret))
	p := s.current.Load().lookUp(&sum)
	if p == nil {
		if err := s.ask(ctx); err != nil {
			return nil, s.failure(err)
		}
		if p = s.current.Load().lookUp(&sum); p == nil {
			return nil, ErrUnknown
		}
	}
	return s.admitKey(p)
}

// lookUp finds a key by its secret's hash. The map's buckets depend on the hash
// alone, of which an attacker cannot choose a prefix; the whole is compared in
// constant time.
func (d *directory) lookUp(sum *hash) *Principal {
	p := d.byHash[*sum]
	if p == nil || subtle.ConstantTimeCompare(p.hash[:], sum[:]) != 1 {
		return nil
	}
	return p
}

// admitKey notes the use of a key that is good now.
func (s *Store) admitKey(p *Principal) (*Principal, error) {
	now := s.now()
	if err := p.Key.Err(now); err != nil {
		return nil, err
	}
	p.used.Store(now.UnixMilli())
	return p, nil
}
