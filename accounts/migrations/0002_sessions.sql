-- Browsers that signed in with a key.
CREATE TABLE sessions (
	hash       BLOB PRIMARY KEY,              -- SHA-256 of the cookie's value
	key_id     TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_key ON sessions (key_id, created_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- A new session is found when it is first used; only an end must be told.
CREATE TRIGGER sessions_delete AFTER DELETE ON sessions BEGIN UPDATE generation SET n = n + 1; END;
