package accounts

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAuthenticate(t *testing.T) {
	s, c := openStore(t)
	ctx := t.Context()
	limit := 5 * Credit
	o, _, err := s.EnsureOrganization(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	project, _, err := s.EnsureProject(ctx, o.ID, "web")
	if err != nil {
		t.Fatal(err)
	}
	expires := c.Now().Add(time.Hour)
	key, secret := createKey(t, s, NewKey{Name: "ci", ProjectID: project.ID, Scopes: Scopes{ScopeRead, ScopeRun, ScopeRead}, ExpiresAt: expires, SpendCap: &limit})
	p, err := s.Authenticate(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	want := &Principal{
		Key: Key{ID: key.ID, Kind: KindKey, Name: "ci", ProjectID: project.ID, Scopes: Scopes{ScopeRun, ScopeRead},
			CreatedAt: c.Now(), ExpiresAt: expires, SpendCap: &limit},
		Organization: o, Project: project, Scopes: Scopes{ScopeRun, ScopeRead},
	}
	if diff := cmp.Diff(want, p, cmpopts.IgnoreUnexported(Principal{})); diff != "" {
		t.Errorf("principal (-want +got):\n%s", diff)
	}
	_, other := createKey(t, s, NewKey{Kind: KindToken, User: "ada", Scopes: AllScopes()})
	if p, err := s.Authenticate(ctx, other); err != nil || p.Key.User != "ada" || p.Project.ID != DefaultProject {
		t.Errorf("%+v, %v, want ada's token", p, err)
	}
	for name, test := range map[string]struct {
		secret string
		want   error
	}{
		"malformed": {secret[3:], ErrMalformed},
		"checksum":  {secret[:len(secret)-1] + "!", ErrChecksum},
		"unknown":   {newSecret(KindKey), ErrUnknown},
	} {
		if _, err := s.Authenticate(ctx, test.secret); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	c.advance(time.Hour - time.Nanosecond)
	if _, err := s.Authenticate(ctx, secret); err != nil {
		t.Errorf("right before it expires: %v", err)
	}
	c.advance(time.Nanosecond)
	if _, err := s.Authenticate(ctx, secret); !errors.Is(err, ErrExpired) {
		t.Errorf("when it expires: %v, want %v", err, ErrExpired)
	}
	revoked, err := s.RevokeKey(ctx, key.ID)
	if err != nil || !revoked.RevokedAt.Equal(c.Now().Truncate(time.Millisecond)) {
		t.Errorf("revoked: %+v, %v", revoked, err)
	}
	if _, err := s.Authenticate(ctx, secret); !errors.Is(err, ErrRevoked) {
		t.Errorf("revoked: %v, want %v", err, ErrRevoked)
	}
	c.advance(time.Hour)
	if again, err := s.RevokeKey(ctx, key.ID); err != nil || !again.RevokedAt.Equal(revoked.RevokedAt) {
		t.Errorf("revoked again: %+v, %v", again, err)
	}
	if _, err := s.RevokeKey(ctx, "key_none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked an unknown key: %v", err)
	}
}

func TestCreateKeyRefuses(t *testing.T) {
	s, c := openStore(t)
	if s.HasKeys() {
		t.Error("an empty store has keys")
	}
	negative := Credits(-1)
	for field, n := range map[string]NewKey{
		"kind":       {Kind: "cookie", Scopes: AllScopes()},
		"scopes":     {Scopes: Scopes{"infer:walk"}},
		"user":       {Kind: KindToken, Scopes: AllScopes()},
		"name":       {Name: "a\x00", Scopes: AllScopes()},
		"expires_at": {ExpiresAt: c.Now(), Scopes: AllScopes()},
		"spend_cap":  {SpendCap: &negative, Scopes: AllScopes()},
	} {
		_, _, err := s.CreateKey(t.Context(), n)
		if e, ok := errors.AsType[*InvalidError](err); !ok || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, _, err := s.CreateKey(t.Context(), NewKey{}); err == nil {
		t.Error("a key without scopes was made")
	}
	if _, _, err := s.CreateKey(t.Context(), NewKey{ProjectID: "prj_none", Scopes: AllScopes()}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a key of no project: %v", err)
	}
	if keys, err := s.Keys(t.Context(), ""); err != nil || len(keys) > 0 || s.HasKeys() {
		t.Errorf("%v, %v, want no keys", keys, err)
	}
	key, _ := createKey(t, s, NewKey{})
	if _, err := s.RevokeKey(t.Context(), key.ID); err != nil || !s.HasKeys() {
		t.Errorf("%v; a revoked key must keep the door shut", err)
	}
}

func TestAnonymous(t *testing.T) {
	s, _ := openStore(t)
	p := s.Anonymous()
	if p.Key.ID != "" || p.Organization.ID != DefaultOrganization || p.Project.ID != DefaultProject || p.Scopes.Has(ScopeManage) || !p.Scopes.Has(ScopeRun) {
		t.Errorf("%+v", p)
	}
	if ticket, err := s.Admit(p, "m", Estimate{Prompt: 1}); err != nil {
		t.Error(err)
	} else {
		ticket.Settle(Usage{})
	}
}

func TestScopes(t *testing.T) {
	if !AllScopes().Covers(Scopes{ScopeRun}) || (Scopes{ScopeRun}).Covers(AllScopes()) || !(Scopes{}).Covers(nil) {
		t.Error("Covers")
	}
}

// Nothing in the files is a secret, nor can one be had again.
func TestOnlyHashesAreStored(t *testing.T) {
	s, _ := openStore(t)
	key, secret := createKey(t, s, NewKey{Name: "n"})
	p, err := s.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, err := s.CreateSession(t.Context(), p, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(s.path + "*")
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	sum := sha256.Sum256([]byte(secret))
	if !bytes.Contains(all, sum[:]) || !bytes.Contains(all, []byte(key.ID)) {
		t.Error("the hash or the id is not in the files")
	}
	for _, part := range []string{"b3os_sk_", "b3os_pat_", secret[8:40], cookie} {
		if bytes.Contains(all, []byte(part)) {
			t.Errorf("%q is in the files", part)
		}
	}
}

// A key that was used shows when, once the writer has passed.
func TestLastUse(t *testing.T) {
	s, c := openStore(t)
	key, secret := createKey(t, s, NewKey{})
	for _, wait := range []time.Duration{0, time.Minute} {
		c.advance(wait)
		if _, err := s.Authenticate(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Key(t.Context(), key.ID); err != nil || !got.LastUsedAt.Equal(c.Now()) {
			t.Errorf("last used %v, %v, want %v", got.LastUsedAt, err, c.Now())
		}
	}
}

// A known key costs no disk access: it is found when the file is gone.
func TestAuthenticateWithoutDisk(t *testing.T) {
	s, _ := openStore(t)
	_, secret := createKey(t, s, NewKey{})
	s.stop() // the goroutines have work to do that needs the file
	s.running.Wait()
	if err := s.closeFiles(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(t.Context(), secret); err != nil {
		t.Error(err)
	}
	if allocs := testing.AllocsPerRun(100, func() { _, _ = s.Authenticate(context.Background(), secret) }); allocs > 3 {
		t.Errorf("%v allocations", allocs)
	}
	if _, err := s.Authenticate(t.Context(), newSecret(KindKey)); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown key when the file is gone: %v, want another error than %v", err, ErrUnknown)
	}
	reopened, err := Open(t.Context(), s.path, Options{}) // so that the test's own Close is fine
	if err != nil {
		t.Fatal(err)
	}
	s.writer, s.reader, s.probe = reopened.writer, reopened.reader, reopened.probe
	reopened.stop()
	reopened.running.Wait()
}

// Unknown keys are not remembered.
func TestUnknownKeysTakeNoMemory(t *testing.T) {
	s, _ := openStore(t)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	try := func() {
		for range 20_000 {
			if _, err := s.Authenticate(t.Context(), newSecret(KindKey)); !errors.Is(err, ErrUnknown) {
				t.Fatal(err)
			}
		}
	}
	try()
	before := heap()
	try()
	if after := heap(); after > before+1<<20 {
		t.Errorf("%d bytes more after 20,000 unknown keys", after-before)
	}
}

// Once RevokeKey has returned nobody gets in, whoever was asking meanwhile.
func TestRevokeHoldsAtOnce(t *testing.T) {
	s := openAt(t, storePath(t), Options{})
	for range 5 {
		key, secret := createKey(t, s, NewKey{})
		var revoked, stop atomic.Bool
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				for !stop.Load() {
					late := revoked.Load()
					_, err := s.Authenticate(context.Background(), secret)
					if late && !errors.Is(err, ErrRevoked) || err != nil && !errors.Is(err, ErrRevoked) {
						t.Errorf("revoked: %v, error %v", late, err)
						return
					}
				}
			})
		}
		if _, err := s.RevokeKey(t.Context(), key.ID); err != nil {
			t.Error(err)
		}
		revoked.Store(true)
		time.Sleep(5 * time.Millisecond)
		stop.Store(true)
		asking.Wait()
	}
}

// TestMain makes of the test's program another process with the same store.
func TestMain(m *testing.M) {
	switch os.Getenv("ACCOUNTS_TEST_PROCESS") {
	case "":
		os.Exit(m.Run())
	case "change":
		changeInProcess()
	case "log":
		logInProcess()
	}
}

// changeInProcess creates or revokes keys as stdin says.
func changeInProcess() {
	ctx := context.Background()
	s, err := Open(ctx, os.Getenv("ACCOUNTS_TEST_PATH"), Options{})
	fatal(err)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		verb, id, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "create":
			_, secret, err := s.CreateKey(ctx, NewKey{Scopes: AllScopes()})
			fatal(err)
			os.Stdout.WriteString(secret + "\n")
		case "revoke":
			_, err := s.RevokeKey(ctx, id)
			fatal(err)
			os.Stdout.WriteString("revoked\n")
		case "limit":
			fatal(s.SetRules(ctx, Target{}, map[Rule]int64{RequestsPerMinute: 0}, nil))
			os.Stdout.WriteString("limited\n")
		}
	}
	fatal(s.Close())
}

func fatal(err error) {
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// startProcess runs this program as another process on the store at path.
func startProcess(t *testing.T, what, path string) (say func(string), hear func() string, cmd *exec.Cmd) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ACCOUNTS_TEST_PROCESS="+what, "ACCOUNTS_TEST_PATH="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails when it has ended
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	say = func(text string) {
		if _, err := in.Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	hear = func() string {
		text, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(text, "\n")
	}
	return say, hear, cmd
}

// What another process does holds here within a second; what it creates, at
// once.
func TestTwoProcesses(t *testing.T) {
	path := storePath(t)
	s := openAt(t, path, Options{})
	key, secret := createKey(t, s, NewKey{})
	p, err := s.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, err := s.CreateSession(t.Context(), p, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.AuthenticateSession(t.Context(), cookie); err != nil {
		t.Fatal(err)
	}
	say, hear, _ := startProcess(t, "change", path)

	say("create")
	if p, err := s.Authenticate(t.Context(), hear()); err != nil || p == nil {
		t.Errorf("a key that another process has just created: %v", err)
	}

	within := func(what string, f func() bool) {
		t.Helper()
		for start := time.Now(); !f(); time.Sleep(5 * time.Millisecond) {
			if time.Since(start) > time.Second {
				t.Errorf("%s is not seen within a second", what)
				return
			}
		}
	}
	say("revoke " + key.ID)
	if got := hear(); got != "revoked" {
		t.Fatal(got)
	}
	within("a key's revocation", func() bool {
		_, err := s.Authenticate(t.Context(), secret)
		return errors.Is(err, ErrRevoked)
	})
	if _, _, err := s.AuthenticateSession(t.Context(), cookie); err == nil {
		t.Error("the session outlives its key")
	}
	say("limit")
	if got := hear(); got != "limited" {
		t.Fatal(got)
	}
	within("a limit", func() bool {
		ticket, err := s.Admit(p, "m", Estimate{Prompt: 1})
		if err == nil {
			ticket.Settle(Usage{})
		}
		return err != nil
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	s, _ := openStore(b)
	_, secret := createKey(b, s, NewKey{})
	unknown := newSecret(KindKey)
	for name, secret := range map[string]string{"known": secret, "unknown": unknown} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = s.Authenticate(b.Context(), secret)
			}
		})
	}
}

// What a change costs when there are many keys: all of them are read anew.
func BenchmarkReload(b *testing.B) {
	s, _ := openStore(b)
	const n = 10_000
	if _, err := s.writer.Exec(`WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?)
		INSERT INTO keys (id, kind, hash, project_id, name, user, scopes, created_at)
		SELECT 'key_' || n, 'key', randomblob(32), 'prj_default', 'name ' || n, '', 'infer:run infer:read', 1 FROM i`, n); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.RevokeKey(b.Context(), "key_1"); err != nil {
			b.Fatal(err)
		}
	}
	if got := len(s.current.Load().byID); got != n {
		b.Errorf("%d keys, want %d", got, n)
	}
}
