package accounts

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// A directory is what is kept in memory of a store at one moment. It is never
// changed: a new one takes its place. A key takes about 600 bytes of it.
type directory struct {
	generation int64
	byHash     map[hash]*Principal // revoked and expired ones too
	byID       map[string]*Principal
	anonymous  *Principal
	rules      map[ruleKey]int64
}

// How often the store looks for changes by other processes: in any case, and
// when a key is not known.
const (
	watchEvery = 50 * time.Millisecond
	askEvery   = 5 * time.Millisecond
)

// watch looks for the changes of other processes until ctx ends.
func (s *Store) watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	report := s.reporter("changes of keys and limits are not seen")
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			report(fileError(s.path, s.refresh(ctx)))
		}
	}
}

// refresh replaces the directory if the file says something else by now.
func (s *Store) refresh(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	return s.refreshLocked(ctx)
}

func (s *Store) refreshLocked(ctx context.Context) error {
	var version int64
	if err := s.probe.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version); err != nil {
		return err
	}
	if version == s.version {
		return nil
	}
	if err := s.reload(ctx); err != nil {
		return err
	}
	s.version = version
	return nil
}

// ask is refresh for an unknown key: now, but not again within askEvery, and
// not if someone else is at it.
func (s *Store) ask(ctx context.Context) error {
	now := time.Now().UnixNano()
	last := s.asked.Load()
	if now-last < int64(askEvery) || !s.asked.CompareAndSwap(last, now) || !s.reloading.TryLock() {
		return nil
	}
	defer s.reloading.Unlock()
	return s.refreshLocked(ctx)
}

// reload reads the directory if its generation is another one than that of the
// current one, else only what was spent, which another process may have written.
func (s *Store) reload(ctx context.Context) error {
	tx, err := s.reader.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing is changed
	d := &directory{byHash: map[hash]*Principal{}, byID: map[string]*Principal{}, rules: map[ruleKey]int64{}}
	if err := tx.QueryRowContext(ctx, "SELECT n FROM generation").Scan(&d.generation); err != nil {
		return err
	}
	if old := s.current.Load(); old != nil && old.generation == d.generation {
		booked, err := loadSpent(ctx, tx, day(s.now()))
		if err == nil {
			s.admission.catchUp(booked)
		}
		return err
	}
	booked, err := d.load(ctx, tx, day(s.now()))
	if err != nil {
		return err
	}
	for id, p := range d.byID {
		if s.uses[id] == nil {
			s.uses[id] = new(atomic.Int64)
		}
		p.used = s.uses[id]
	}
	s.admission.learn(d, booked)
	s.current.Store(d)
	s.sessions.clear() // after the store, so that none is found by the old directory
	return nil
}

// load fills the directory and returns what the ledger says was spent.
func (d *directory) load(ctx context.Context, tx *sql.Tx, today int64) (booked booked, err error) {
	booked = newBooked()
	projects, err := d.loadProjects(ctx, tx, booked)
	if err != nil {
		return booked, err
	}
	if err := d.loadKeys(ctx, tx, projects, booked); err != nil {
		return booked, err
	}
	if err := d.loadRules(ctx, tx); err != nil {
		return booked, err
	}
	return booked, booked.loadDay(ctx, tx, today)
}

// loadSpent is what the ledger says about all that limits are about.
func loadSpent(ctx context.Context, tx *sql.Tx, today int64) (booked, error) {
	b := newBooked()
	for _, list := range []struct {
		spent map[string]Credits
		query string
	}{
		{b.organizations, "SELECT id, spent FROM organizations WHERE credit IS NOT NULL"},
		{b.keys, "SELECT id, spent FROM keys WHERE spend_cap IS NOT NULL"},
	} {
		err := each(ctx, tx, func(rows *sql.Rows) error {
			var id string
			var spent Credits
			err := rows.Scan(&id, &spent)
			list.spent[id] = spent
			return err
		}, list.query)
		if err != nil {
			return b, err
		}
	}
	return b, b.loadDay(ctx, tx, today)
}

// loadDay reads the tokens of a day.
func (b *booked) loadDay(ctx context.Context, tx *sql.Tx, today int64) error {
	b.day = today
	return each(ctx, tx, func(rows *sql.Rows) error {
		var organization string
		var tokens int64
		err := rows.Scan(&organization, &tokens)
		b.tokens[organization] = tokens
		return err
	}, "SELECT organization_id, sum(prompt + completion) FROM ledger WHERE day = ? GROUP BY 1", today)
}

func (d *directory) loadProjects(ctx context.Context, tx *sql.Tx, booked booked) (map[string]Principal, error) {
	projects := map[string]Principal{}
	err := each(ctx, tx, func(rows *sql.Rows) error {
		var p Principal
		var created, credit, projectCreated sql.NullInt64
		o := &p.Organization
		if err := rows.Scan(&o.ID, &o.Name, &created, &credit, &o.Spent, &p.Project.ID, &p.Project.Name, &projectCreated); err != nil {
			return err
		}
		o.CreatedAt, o.Credit, p.Project.CreatedAt = toTime(created), toCredits(credit), toTime(projectCreated)
		p.Project.OrganizationID = o.ID
		booked.organizations[o.ID] = o.Spent
		projects[p.Project.ID] = p
		return nil
	}, `SELECT o.id, o.name, o.created_at, o.credit, o.spent, p.id, p.name, p.created_at
		FROM projects p JOIN organizations o ON o.id = p.organization_id`)
	anonymous := projects[DefaultProject]
	anonymous.Scopes = Scopes{ScopeRun, ScopeRead}
	d.anonymous = &anonymous
	return projects, err
}

func (d *directory) loadKeys(ctx context.Context, tx *sql.Tx, projects map[string]Principal, booked booked) error {
	return each(ctx, tx, func(rows *sql.Rows) error {
		key, sum, err := scanKey(rows)
		if err != nil {
			return err
		}
		p := projects[key.ProjectID]
		p.Key, p.Scopes, p.hash = key, key.Scopes, sum
		d.byHash[p.hash], d.byID[key.ID] = &p, &p
		booked.keys[key.ID] = key.Spent
		return nil
	}, "SELECT "+keyColumns+" FROM keys")
}

func (d *directory) loadRules(ctx context.Context, tx *sql.Tx) error {
	return each(ctx, tx, func(rows *sql.Rows) error {
		var key ruleKey
		var value int64
		err := rows.Scan(&key.Organization, &key.Model, &key.rule, &value)
		d.rules[key] = value
		return err
	}, "SELECT organization_id, model, name, value FROM rules")
}

// A querier is a transaction or a database.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls scan for all rows of a query.
func each(ctx context.Context, q querier, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// all collects what scan makes of the rows of a query; none is an empty list.
func all[T any](ctx context.Context, q querier, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	list := []T{}
	err := each(ctx, q, func(rows *sql.Rows) error {
		v, err := scan(rows)
		list = append(list, v)
		return err
	}, query, args...)
	return list, err
}
