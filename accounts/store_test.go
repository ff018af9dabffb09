package accounts

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A clock is a time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func storePath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "data", "accounts.db")
}

// openAt opens a store that is closed when the test ends.
func openAt(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openStore(t testing.TB) (*Store, *clock) {
	t.Helper()
	c := newClock()
	return openAt(t, storePath(t), Options{Now: c.Now}), c
}

func createKey(t testing.TB, s *Store, n NewKey) (Key, string) {
	t.Helper()
	if n.Scopes == nil {
		n.Scopes = Scopes{ScopeRun, ScopeRead}
	}
	key, secret, err := s.CreateKey(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return key, secret
}

func TestOpenMakesPrivateFiles(t *testing.T) {
	s, _ := openStore(t)
	createKey(t, s, NewKey{})
	folder, err := os.Stat(filepath.Dir(s.path))
	if err != nil {
		t.Fatal(err)
	}
	if got := folder.Mode().Perm(); got != 0o700 {
		t.Errorf("folder has mode %o, want 700", got)
	}
	files, err := filepath.Glob(s.path + "*")
	if err != nil || len(files) != 3 {
		t.Fatalf("files %q, %v, want the database, its log and their index", files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has mode %o, want 600", file, got)
		}
	}
}

func TestPathsWithOddNames(t *testing.T) {
	for _, name := range []string{"a b?c#d%20e.db", "ü&mode=ro.db", "file:x.db"} {
		path := filepath.Join(t.TempDir(), name)
		s := openAt(t, path, Options{})
		createKey(t, s, NewKey{})
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v, %v", name, info, err)
		}
	}
}

// A file that cannot be used is one line that says what to do.
func TestOpenFailures(t *testing.T) {
	write := func(t *testing.T, path string, text []byte) string {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	valid := func(t *testing.T) string {
		t.Helper()
		path := storePath(t)
		s, err := Open(context.Background(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		createKey(t, s, NewKey{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	exec := func(t *testing.T, path, text string) string {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name string
		path func(t *testing.T) string
		want string
	}{
		{"no database", func(t *testing.T) string {
			return write(t, filepath.Join(t.TempDir(), "x.db"), []byte(strings.Repeat("no database ", 1000)))
		}, "is damaged or not a database"},
		{"cut", func(t *testing.T) string {
			path := valid(t)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return write(t, path, text[:len(text)/2])
		}, "is damaged or not a database"},
		{"overwritten", func(t *testing.T) string {
			path := valid(t)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 4096; i < len(text); i++ {
				text[i] = 0xa5
			}
			return write(t, path, text)
		}, "is damaged or not a database"},
		{"folder", func(t *testing.T) string { return t.TempDir() }, "is a directory"},
		{"in a file", func(t *testing.T) string {
			return filepath.Join(write(t, filepath.Join(t.TempDir(), "x"), nil), "accounts.db")
		}, "not a directory"},
		{"another program's", func(t *testing.T) string {
			return exec(t, filepath.Join(t.TempDir(), "x.db"), "CREATE TABLE t (x)")
		}, errForeign.Error()},
		{"newer", func(t *testing.T) string { return exec(t, valid(t), "PRAGMA user_version = 1000") }, errNewer.Error()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := test.path(t)
			s, err := Open(context.Background(), path, Options{})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			text := err.Error()
			if !strings.Contains(text, test.want) || !strings.Contains(text, path) || strings.Contains(text, "\n") {
				t.Errorf("error %q, want one line with %q and the path", text, test.want)
			}
		})
	}
}

// What SQLite says of a file that it may only read.
func TestReadOnly(t *testing.T) {
	s, _ := openStore(t)
	_, err := s.reader.Exec("DELETE FROM keys") // query_only
	if got := fileError(s.path, err); err == nil || !strings.Contains(got.Error(), "cannot be written: check the permissions") {
		t.Errorf("error %v", got)
	}
	if os.Getuid() == 0 {
		t.Log("root may write everywhere: permissions of files are not tried")
		return
	}
	path := storePath(t)
	openAt(t, path, Options{}).Flush(context.Background())
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), path, Options{}); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("error %v", err)
	}
}

// schema is all that a database declares.
func schema(t *testing.T, db *sql.DB) []string {
	t.Helper()
	list, err := all(t.Context(), db, func(rows *sql.Rows) (text string, err error) {
		err = rows.Scan(&text)
		return text, err
	}, "SELECT name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every earlier version becomes the newest, with what it holds.
func TestMigrations(t *testing.T) {
	names, err := migrationNames()
	if err != nil {
		t.Fatal(err)
	}
	fresh, _ := openStore(t)
	for version := range names {
		path := filepath.Join(t.TempDir(), "accounts.db")
		db, err := connect(path, "immediate")
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		if err := migrate(t.Context(), db, names[:version]); err != nil {
			t.Fatal(err)
		}
		if version > 0 {
			if _, err := db.Exec(`INSERT INTO keys (id, kind, hash, project_id, name, user, scopes, created_at, spent)
				VALUES ('key_old', 'key', randomblob(32), 'prj_default', 'old', '', 'infer:run', 1000, 7)`); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		s := openAt(t, path, Options{})
		if diff := cmp.Diff(schema(t, fresh.reader), schema(t, s.reader)); diff != "" {
			t.Errorf("from version %d (-want +got):\n%s", version, diff)
		}
		keys, err := s.Keys(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		want := []Key{}
		if version > 0 {
			want = append(want, Key{ID: "key_old", Kind: KindKey, Name: "old", ProjectID: DefaultProject, Scopes: Scopes{ScopeRun}, CreatedAt: time.Unix(1, 0).UTC(), Spent: 7})
		}
		if diff := cmp.Diff(want, keys); diff != "" {
			t.Errorf("keys from version %d (-want +got):\n%s", version, diff)
		}
	}
}

// Several that open an empty file at the same time all find it whole.
func TestOpenAtOnce(t *testing.T) {
	path := storePath(t)
	var opening sync.WaitGroup
	for range 8 {
		opening.Go(func() {
			s, err := Open(context.Background(), path, Options{})
			if err == nil {
				_, _, err = s.CreateKey(context.Background(), NewKey{Scopes: AllScopes()})
				err = errors.Join(err, s.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	opening.Wait()
	s := openAt(t, path, Options{})
	keys, err := s.Keys(t.Context(), "")
	if err != nil || len(keys) != 8 {
		t.Errorf("%d keys, %v, want 8", len(keys), err)
	}
}

func TestEnsure(t *testing.T) {
	s, c := openStore(t)
	ctx := t.Context()
	for i, want := range []bool{true, false} {
		o, created, err := s.EnsureOrganization(ctx, "acme")
		if err != nil || created != want || o.Name != "acme" || o.ID == "" || !o.CreatedAt.Equal(c.Now()) {
			t.Errorf("%d: %+v, %v, %v", i, o, created, err)
		}
		p, created, err := s.EnsureProject(ctx, o.ID, "web")
		if err != nil || created != want || p.Name != "web" || p.OrganizationID != o.ID {
			t.Errorf("%d: %+v, %v, %v", i, p, created, err)
		}
	}
	if _, _, err := s.EnsureProject(ctx, "org_none", "web"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a project of no organization: %v", err)
	}
	for _, name := range []string{"", " a", "a\nb", "\xff", strings.Repeat("a", 101)} {
		if _, _, err := s.EnsureOrganization(ctx, name); err == nil {
			t.Errorf("name %q is taken", name)
		}
	}
	organizations, err := s.Organizations(ctx)
	if err != nil || len(organizations) != 2 {
		t.Errorf("%v, %v, want acme and default", organizations, err)
	}
	projects, err := s.Projects(ctx)
	if err != nil || len(projects) != 2 {
		t.Errorf("%v, %v, want web and default", projects, err)
	}
}
