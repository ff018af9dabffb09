// Package accountstest looks at a store's file from outside, for tests of programs
// that have it open.
package accountstest

import (
	"database/sql"
	"net/url"
	"testing"

	_ "github.com/b3os/b3infer/accounts" // for the driver
)

// unequal are the organizations, keys and days whose sums differ from the log's:
// one row for each, with what is entered and what was logged.
const unequal = `
	WITH log AS (SELECT *, time / 86400000 AS day FROM requests WHERE prompt + completion + cost > 0)
	SELECT 'organization ' || o.id, o.spent, total(l.cost)
		FROM organizations o LEFT JOIN log l ON l.organization_id = o.id GROUP BY o.id HAVING o.spent <> total(l.cost)
	UNION ALL
	SELECT 'key ' || k.id, k.spent, total(l.cost) FROM keys k LEFT JOIN log l ON l.key_id = k.id GROUP BY k.id HAVING k.spent <> total(l.cost)
	UNION ALL
	SELECT 'ledger ' || e.day || ' ' || e.organization_id || ' ' || e.key_id, e.cost, total(l.cost)
		FROM ledger e LEFT JOIN log l USING (day, organization_id, project_id, key_id, model)
		GROUP BY e.day, e.organization_id, e.project_id, e.key_id, e.model
		HAVING e.cost <> total(l.cost) OR e.requests <> count(l.id) OR e.prompt <> total(l.prompt) OR e.cached <> total(l.cached)
			OR e.completion <> total(l.completion) OR e.reasoning <> total(l.reasoning)
	UNION ALL
	SELECT 'all', (SELECT total(requests) FROM ledger), (SELECT count(*) FROM log)
		WHERE (SELECT total(requests) FROM ledger) <> (SELECT count(*) FROM log)`

// CheckFile checks that the file at path is whole and that its ledger, and what
// keys and organizations have spent, is the sum of its log, of which nothing may
// be too old to be kept. It returns how many requests the ledger sums up.
func CheckFile(t testing.TB, when, path string) (entered int) {
	t.Helper()
	name := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=query_only(1)&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("%s: the file: %s, %v", when, verdict, err)
	}
	rows, err := db.Query(unequal)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var what string
		var entered, logged float64
		if err := rows.Scan(&what, &entered, &logged); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s: %s: %v entered, %v logged", when, what, entered, logged)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT coalesce(sum(requests), 0) FROM ledger").Scan(&entered); err != nil {
		t.Fatal(err)
	}
	return entered
}
