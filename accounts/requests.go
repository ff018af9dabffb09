package accounts

import (
	"context"
	"database/sql"
)

// Request is the record of the request of that id, or ErrNotFound. It is found
// as soon as Log has returned.
func (s *Store) Request(ctx context.Context, id string) (Record, error) {
	if r, ok := s.books.find(id); ok {
		return r, nil
	}
	records, err := all(ctx, s.reader, scanRecord, "SELECT "+recordColumns+" FROM requests WHERE id = ?", id)
	if err != nil {
		return Record{}, s.failure(err)
	}
	if len(records) == 0 {
		return Record{}, ErrNotFound
	}
	return records[0], nil
}

// A RequestFilter says which records are wanted; empty fields leave all.
type RequestFilter struct {
	ProjectID string
	KeyID     string
	Before    string // only requests with smaller ids, which came earlier
	Limit     int    // the most records
}

// Requests lists records, the newest first. What is queued is written first.
func (s *Store) Requests(ctx context.Context, f RequestFilter) ([]Record, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	query, args := "SELECT "+recordColumns+" FROM requests WHERE true", []any{}
	for _, condition := range []struct{ text, value string }{
		{" AND project_id = ?", f.ProjectID}, {" AND key_id = ?", f.KeyID}, {" AND id < ?", f.Before},
	} {
		if condition.value != "" {
			query += condition.text
			args = append(args, condition.value)
		}
	}
	limit := sql.NullInt64{Int64: int64(f.Limit), Valid: f.Limit > 0}
	records, err := all(ctx, s.reader, scanRecord, query+" ORDER BY id DESC LIMIT coalesce(?, -1)", append(args, limit)...)
	return records, s.failure(err)
}
