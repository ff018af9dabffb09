package accounts

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"time"
)

// pruneEvery is how often old records are looked for.
const pruneEvery = time.Hour

// Log takes the record of a request that has ended. It never waits: the record
// is written within half a second, together with its line of the ledger. If
// the file cannot be written for so long that the queue is full, records are
// dropped and counted, but not what they cost.
func (s *Store) Log(r Record) { s.books.put(r.normal()) }

// Dropped is how many records had no room in the queue since the store was
// opened.
func (s *Store) Dropped() uint64 {
	s.books.mu.Lock()
	defer s.books.mu.Unlock()
	return s.books.dropped
}

// write empties the queue and removes what is too old, until ctx ends.
func (s *Store) write(ctx context.Context) {
	flush, prune := time.NewTicker(writeEvery), time.NewTimer(0)
	defer flush.Stop()
	defer prune.Stop()
	report := s.reporter("records of requests cannot be written, and are kept in memory until they can")
	reportPrune := s.reporter("old records of requests cannot be removed")
	for {
		select {
		case <-ctx.Done():
			return
		case <-flush.C:
			report(s.Flush(ctx))
		case <-s.books.full:
			report(s.Flush(ctx))
		case <-prune.C:
			reportPrune(s.prune(ctx))
			prune.Reset(pruneEvery)
		}
	}
}

// reporter logs the first of several failures in a row.
func (s *Store) reporter(message string) func(error) {
	failing := false
	return func(err error) {
		if err != nil && !failing && !errors.Is(err, context.Canceled) {
			s.log.Error(message, "err", err)
		}
		failing = err != nil
	}
}

// Flush writes all that is queued, and when keys were last used.
func (s *Store) Flush(ctx context.Context) error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	for {
		records, lost := s.books.take()
		uses := s.newUses()
		if len(records)+len(lost)+len(uses) == 0 {
			s.books.done(true, nil)
			return nil
		}
		err := transact(ctx, s.writer, func(tx *sql.Tx) error { return writeBatch(ctx, tx, records, lost, uses) })
		s.books.done(err == nil, lost)
		if err != nil {
			return fileError(s.path, err)
		}
		maps.Copy(s.used, uses)
	}
}

// newUses are the last uses of keys that are not yet written.
func (s *Store) newUses() map[string]int64 {
	uses := map[string]int64{}
	for id, p := range s.current.Load().byID {
		// A second is fine enough for the eye, and spares most writes.
		if at := p.used.Load(); at-s.used[id] >= 1000 {
			uses[id] = at
		}
	}
	return uses
}

func writeBatch(ctx context.Context, tx *sql.Tx, records []Record, lost map[line]entry, uses map[string]int64) error {
	ledger := maps.Clone(lost)
	if err := insertRecords(ctx, tx, records, ledger); err != nil {
		return err
	}
	if err := writeLedger(ctx, tx, ledger); err != nil {
		return err
	}
	for id, at := range uses {
		if _, err := tx.ExecContext(ctx, "UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?", at, id); err != nil {
			return err
		}
	}
	return nil
}

// insertRecords writes records and enters them in a ledger. One that is in the
// file already is left alone: a batch whose success was not told comes again.
func insertRecords(ctx context.Context, tx *sql.Tx, records []Record, ledger map[line]entry) (err error) {
	insert, err := tx.PrepareContext(ctx, insertRecord)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	for _, r := range records {
		result, err := insert.ExecContext(ctx, r.values()...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		if n > 0 {
			enter(ledger, r)
		}
	}
	return nil
}

func writeLedger(ctx context.Context, tx *sql.Tx, ledger map[line]entry) error {
	for l, e := range ledger {
		if _, err := tx.ExecContext(ctx, `INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
			requests = requests + excluded.requests, prompt = prompt + excluded.prompt, cached = cached + excluded.cached,
			completion = completion + excluded.completion, reasoning = reasoning + excluded.reasoning, cost = cost + excluded.cost`,
			l.day, l.organization, l.project, l.key, l.model,
			e.requests, e.usage.Prompt, e.usage.Cached, e.usage.Completion, e.usage.Reasoning, e.cost); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE organizations SET spent = spent + ? WHERE id = ?", e.cost, l.organization); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE keys SET spent = spent + ? WHERE id = ?", e.cost, l.key); err != nil {
			return err
		}
	}
	return nil
}

// prune removes records that are too old, few at a time, so that others can
// write in between. The ledger keeps what they cost.
func (s *Store) prune(ctx context.Context) error {
	if s.keep == 0 {
		return nil
	}
	oldest := s.now().Add(-s.keep).UnixMilli()
	for {
		result, err := s.writer.ExecContext(ctx, "DELETE FROM requests WHERE rowid IN (SELECT rowid FROM requests WHERE time < ? LIMIT 1000)", oldest)
		if err == nil {
			var n int64
			if n, err = result.RowsAffected(); n > 0 {
				continue
			}
		}
		return fileError(s.path, err)
	}
}
