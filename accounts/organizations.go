package accounts

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The organization and the project that every store has. Requests without a
// key are booked on them.
const (
	DefaultOrganization = "org_default"
	DefaultProject      = "prj_default"
)

// An Organization is who pays: limits and credit are its own.
type Organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	// Credit is all that it may ever spend, Spent included; nil is any amount.
	Credit *Credits `json:"credit"`
	// Spent is as last read from the file.
	Spent Credits `json:"spent"`
}

// A Project is a part of an organization, with keys of its own.
type Project struct {
	ID             string    `json:"id"`
	OrganizationID string    `json:"organization_id"`
	Name           string    `json:"name"`
	CreatedAt      time.Time `json:"created_at"`
}

// Organizations lists all organizations by name.
func (s *Store) Organizations(ctx context.Context) ([]Organization, error) {
	list, err := all(ctx, s.reader, func(rows *sql.Rows) (o Organization, err error) {
		var created, credit sql.NullInt64
		err = rows.Scan(&o.ID, &o.Name, &created, &credit, &o.Spent)
		o.CreatedAt, o.Credit = toTime(created), toCredits(credit)
		return o, err
	}, "SELECT id, name, created_at, credit, spent FROM organizations ORDER BY name")
	return list, s.failure(err)
}

// Projects lists all projects, those of an organization together, by name.
func (s *Store) Projects(ctx context.Context) ([]Project, error) {
	list, err := all(ctx, s.reader, func(rows *sql.Rows) (p Project, err error) {
		var created sql.NullInt64
		err = rows.Scan(&p.ID, &p.OrganizationID, &p.Name, &created)
		p.CreatedAt = toTime(created)
		return p, err
	}, "SELECT id, organization_id, name, created_at FROM projects ORDER BY organization_id, name")
	return list, s.failure(err)
}

// EnsureOrganization is the organization of that name, made if there is none.
func (s *Store) EnsureOrganization(ctx context.Context, name string) (o Organization, created bool, err error) {
	if err := checkName("organization", name); err != nil {
		return o, false, err
	}
	id := newID("org_", s.now())
	err = s.change(ctx, func(tx *sql.Tx) error {
		var at, credit sql.NullInt64
		const query = "SELECT id, name, created_at, credit, spent FROM organizations WHERE name = ?"
		scan := func() error {
			return tx.QueryRowContext(ctx, query, name).Scan(&o.ID, &o.Name, &at, &credit, &o.Spent)
		}
		err := scan()
		if created = errors.Is(err, sql.ErrNoRows); created {
			if _, err = tx.ExecContext(ctx, "INSERT INTO organizations (id, name, created_at) VALUES (?, ?, ?)", id, name, fromTime(s.now())); err == nil {
				err = scan()
			}
		}
		o.CreatedAt, o.Credit = toTime(at), toCredits(credit)
		return err
	})
	return o, created, err
}

// EnsureProject is the project of that name in the organization of that id,
// made if there is none.
func (s *Store) EnsureProject(ctx context.Context, organizationID, name string) (p Project, created bool, err error) {
	if err := checkName("project", name); err != nil {
		return p, false, err
	}
	id := newID("prj_", s.now())
	err = s.change(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `INSERT INTO projects (id, organization_id, name, created_at)
			SELECT ?, id, ?, ? FROM organizations WHERE id = ? ON CONFLICT DO NOTHING`, id, name, fromTime(s.now()), organizationID)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		created = n > 0
		var at sql.NullInt64
		err = tx.QueryRowContext(ctx, "SELECT id, organization_id, name, created_at FROM projects WHERE organization_id = ? AND name = ?",
			organizationID, name).Scan(&p.ID, &p.OrganizationID, &p.Name, &at)
		p.CreatedAt = toTime(at)
		return notFound(err)
	})
	return p, created, err
}

// SetCredit lets the organization of that id spend so much from now on; nil is
// any amount. Once it is spent requests are refused with 402.
func (s *Store) SetCredit(ctx context.Context, organizationID string, credit *Credits) error {
	if credit != nil && (*credit < 0 || *credit > maxCredits) {
		return &InvalidError{"credit", "credit must be between 0 and " + maxCredits.String()}
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		return changed(tx.ExecContext(ctx, "UPDATE organizations SET credit = spent + ? WHERE id = ?", fromCredits(credit), organizationID))
	})
}

// changed is ErrNotFound if a statement changed no row.
func changed(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return ErrNotFound
}

func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

const maxName = 100

// checkName tells why a name cannot be one.
func checkName(field, name string) error {
	switch {
	case strings.TrimSpace(name) != name || name == "":
		return &InvalidError{field, field + " must not be empty nor begin or end with a space"}
	case utf8.RuneCountInString(name) > maxName:
		return &InvalidError{field, field + " must have at most 100 characters"}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return &InvalidError{field, field + " must be one line of text"}
	}
	return nil
}

func toCredits(n sql.NullInt64) *Credits {
	if !n.Valid {
		return nil
	}
	c := Credits(n.Int64)
	return &c
}

func fromCredits(c *Credits) sql.NullInt64 {
	if c == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: int64(*c), Valid: true}
}
