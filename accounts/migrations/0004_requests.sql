-- What was asked, never the content. Durations are microseconds.
CREATE TABLE requests (
	id              TEXT PRIMARY KEY,
	time            INTEGER NOT NULL,
	organization_id TEXT NOT NULL,
	project_id      TEXT NOT NULL,
	key_id          TEXT NOT NULL,            -- '' without a key
	route           TEXT NOT NULL,
	model           TEXT NOT NULL,
	streamed        INTEGER NOT NULL,
	status          INTEGER NOT NULL,
	error           TEXT NOT NULL,
	finish_reason   TEXT NOT NULL,
	client_gone     INTEGER NOT NULL,
	prompt          INTEGER NOT NULL,
	cached          INTEGER NOT NULL,
	completion      INTEGER NOT NULL,
	reasoning       INTEGER NOT NULL,
	cost            INTEGER NOT NULL,
	auth            INTEGER NOT NULL,
	render          INTEGER NOT NULL,
	queue           INTEGER NOT NULL,
	prefill         INTEGER NOT NULL,
	ttft            INTEGER NOT NULL,
	decode          INTEGER NOT NULL,
	total           INTEGER NOT NULL
) STRICT;

CREATE INDEX requests_by_time ON requests (time);
CREATE INDEX requests_by_project ON requests (project_id, id);
CREATE INDEX requests_by_key ON requests (key_id, id);

-- The ledger: sums of the requests above by day, which outlive them.
CREATE TABLE ledger (
	day             INTEGER NOT NULL,         -- since 1970, UTC
	organization_id TEXT NOT NULL,
	project_id      TEXT NOT NULL,
	key_id          TEXT NOT NULL,
	model           TEXT NOT NULL,
	requests        INTEGER NOT NULL,
	prompt          INTEGER NOT NULL,
	cached          INTEGER NOT NULL,
	completion      INTEGER NOT NULL,
	reasoning       INTEGER NOT NULL,
	cost            INTEGER NOT NULL,
	PRIMARY KEY (day, organization_id, project_id, key_id, model)
) STRICT, WITHOUT ROWID;
