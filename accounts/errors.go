package accounts

import (
	"errors"
	"fmt"
	"strconv"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What is wrong with a credential.
var (
	ErrMalformed = errors.New("this is not an API key: they look like b3os_sk_… or b3os_pat_…; check that the whole key was copied")
	ErrChecksum  = errors.New("API key checksum does not match; check that the whole key was copied")
	ErrUnknown   = errors.New("this API key is not known; check that it belongs to this server")
	ErrExpired   = errors.New("this API key has expired; create a new one")
	ErrRevoked   = errors.New("this API key was revoked; use another one")
	ErrNoSession = errors.New("this session has ended; sign in again")
)

// ErrNotFound says that no key, request, organization or project of that id is
// in the store.
var ErrNotFound = errors.New("not found")

// An InvalidError is a value that cannot be stored.
type InvalidError struct {
	Field   string // as in JSON: name, scopes, expires_at, spend_cap, …
	Message string // what was wrong and what is allowed
}

func (e *InvalidError) Error() string { return e.Message }

func quote(text string) string { return strconv.Quote(text) }

// fileError says of a failure of SQLite what the user can do about it. Others
// are returned with the file's name.
func fileError(path string, err error) error {
	if err == nil {
		return nil
	}
	advice := ""
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff { // the rest of the code says more than is needed
		case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
			advice = "is damaged or not a database: put back a copy, or move it away to start anew"
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
			advice = "cannot be written: check the permissions of the file and its folder"
		case sqlite3.SQLITE_FULL:
			advice = "cannot grow: the disk is full"
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			advice = "is locked by another program"
		}
	}
	if advice == "" {
		return fmt.Errorf("accounts: %s: %w", path, err)
	}
	return fmt.Errorf("accounts: %s %s (%w)", path, advice, err)
}
