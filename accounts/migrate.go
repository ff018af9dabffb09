package accounts

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// migrations are numbered from 0001 and run in order, each once. One that was
// released is never changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks our files among all SQLite databases: "b3os".
const applicationID = 0x62336f73

var (
	errForeign = errors.New("this is the database of another program")
	errNewer   = errors.New("this was written by a newer b3infer: upgrade this one")
)

// migrationNames lists the migrations in order.
func migrationNames() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	slices.Sort(names)
	return names, err
}

// migrate runs the migrations that a database has not seen, of which an empty
// one has seen none.
func migrate(ctx context.Context, db *sql.DB, names []string) (err error) {
	for done := false; !done && err == nil; {
		err = transact(ctx, db, func(tx *sql.Tx) (err error) {
			done, err = migrateOne(ctx, tx, names)
			return err
		})
	}
	return err
}

// migrateOne runs the next migration. Its transaction holds the lock for
// writing from its start, so a second process does not run the same one.
func migrateOne(ctx context.Context, tx *sql.Tx, names []string) (done bool, err error) {
	var version, id, tables int
	err = tx.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&version, &id, &tables)
	switch {
	case err != nil:
		return false, err
	case tables > 0 && id != applicationID:
		return false, errForeign
	case version > len(names):
		return false, errNewer
	case version == len(names):
		return true, nil
	}
	text, err := migrations.ReadFile(names[version])
	if err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return false, fmt.Errorf("%s: %w", names[version], err)
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version+1))
	return false, err
}
