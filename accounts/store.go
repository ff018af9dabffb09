package accounts

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Options are how a store is opened. The zero value is fine for commands that
// look at or change something and end.
type Options struct {
	// KeepRequests is how long records of requests are kept; 0 is for ever.
	KeepRequests time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log takes what fails in the background; nil is slog.Default().
	Log *slog.Logger
}

// A Store is an open file of accounts. Several processes may have one file
// open, and several may serve.
type Store struct {
	path string
	now  func() time.Time
	log  *slog.Logger
	keep time.Duration

	writer *sql.DB   // one connection: SQLite has one writer at a time
	reader *sql.DB   // never changes anything
	probe  *sql.Conn // of reader, for data_version, which compares with the same connection's last answer

	current atomic.Pointer[directory]
	// reloading guards what follows. It is held while current is replaced, so
	// that an older state never follows a newer one.
	reloading sync.Mutex
	version   int64                    // data_version when current was known to be true
	uses      map[string]*atomic.Int64 // last uses by key id, in milliseconds
	asked     atomic.Int64             // when an unknown key last made the store look, in nanoseconds

	sessions  sessions
	admission *admission
	books     books
	flushing  sync.Mutex       // held by Flush
	used      map[string]int64 // the last uses that are written; Flush's

	stop    context.CancelFunc
	running sync.WaitGroup
}

// Open opens the file at path, or makes it and its folder, readable by its
// owner alone, and brings it to this version's form. Close must be called.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Store{path: path, now: o.Now, log: o.Log, keep: o.KeepRequests, uses: map[string]*atomic.Int64{}, used: map[string]int64{}}
	s.books.init()
	s.admission = newAdmission(o.Now)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fileError(path, err), s.closeFiles())
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.running.Go(func() { s.watch(background) })
	s.running.Go(func() { s.write(background) })
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if err := create(s.path); err != nil {
		return err
	}
	if s.writer, err = connect(s.path, "immediate"); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	names, err := migrationNames()
	if err != nil {
		return err
	}
	if err := migrate(ctx, s.writer, names); err != nil {
		return err
	}
	if s.reader, err = connect(s.path, "deferred", "query_only(1)"); err != nil {
		return err
	}
	s.reader.SetMaxIdleConns(4)
	if s.probe, err = s.reader.Conn(ctx); err != nil {
		return err
	}
	return s.refresh(ctx)
}

// create makes an empty file that only its owner can read. SQLite gives the
// files that it puts beside it the same permissions.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// busyTimeout is how long a statement waits for another process's transaction.
const busyTimeout = "busy_timeout(5000)"

func connect(path, lock string, pragmas ...string) (*sql.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// synchronous(full) keeps a revoked key revoked when the power fails.
	pragmas = append(pragmas, busyTimeout, "journal_mode(wal)", "synchronous(full)", "foreign_keys(1)")
	query := url.Values{"_pragma": pragmas, "_txlock": {lock}}
	name := url.URL{Scheme: "file", Path: absolute, RawQuery: query.Encode()}
	return sql.Open("sqlite", name.String())
}

// Close writes what is queued and closes the file. No method may be called
// after it.
func (s *Store) Close() error {
	s.stop()
	s.running.Wait()
	err := s.Flush(context.Background())
	return errors.Join(err, s.closeFiles())
}

func (s *Store) closeFiles() error {
	var errs []error
	if s.probe != nil {
		errs = append(errs, s.probe.Close())
	}
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return fileError(s.path, errors.Join(errs...))
}

// change runs f in a transaction and, when it has changed what is kept in
// memory, loads that before it returns.
func (s *Store) change(ctx context.Context, f func(*sql.Tx) error) error {
	err := transact(ctx, s.writer, f)
	if err == nil {
		err = s.refresh(context.WithoutCancel(ctx)) // the change is made: it must be seen
	}
	return s.failure(err)
}

// failure names the file in errors of SQLite and leaves others as they are.
func (s *Store) failure(err error) error {
	if _, ok := errors.AsType[*InvalidError](err); ok || errors.Is(err, ErrNotFound) {
		return err
	}
	return fileError(s.path, err)
}

// transact commits what f does, or nothing of it.
func transact(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Times are stored as milliseconds since 1970; the zero time is NULL.

func fromTime(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

func toTime(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMilli(n.Int64).UTC()
}
