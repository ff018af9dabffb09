-- Times are milliseconds since 1970, amounts millionths of a credit.

CREATE TABLE organizations (
	id         TEXT PRIMARY KEY,
	name       TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL,
	credit     INTEGER,                       -- all that it may ever spend; NULL: any amount
	spent      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE projects (
	id              TEXT PRIMARY KEY,
	organization_id TEXT NOT NULL REFERENCES organizations (id),
	name            TEXT NOT NULL,
	created_at      INTEGER NOT NULL,
	UNIQUE (organization_id, name)
) STRICT;

CREATE TABLE keys (
	id           TEXT PRIMARY KEY,
	kind         TEXT NOT NULL CHECK (kind IN ('key', 'token')),
	hash         BLOB NOT NULL UNIQUE,        -- SHA-256 of the secret
	project_id   TEXT NOT NULL REFERENCES projects (id),
	name         TEXT NOT NULL,
	user         TEXT NOT NULL,               -- whom a token stands for
	scopes       TEXT NOT NULL,               -- with spaces between them
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER,
	revoked_at   INTEGER,
	spend_cap    INTEGER,
	spent        INTEGER NOT NULL DEFAULT 0,
	last_used_at INTEGER
) STRICT;

CREATE INDEX keys_by_project ON keys (project_id, id);

INSERT INTO organizations (id, name, created_at) VALUES ('org_default', 'default', unixepoch() * 1000);
INSERT INTO projects (id, organization_id, name, created_at) VALUES ('prj_default', 'org_default', 'default', unixepoch() * 1000);

-- The generation grows with every change of what is kept in memory, whoever
-- makes it. Amounts spent and times of use are no such changes.
CREATE TABLE generation (n INTEGER NOT NULL) STRICT;
INSERT INTO generation VALUES (1);

CREATE TRIGGER organizations_insert AFTER INSERT ON organizations BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER organizations_update AFTER UPDATE OF id, name, credit ON organizations BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER organizations_delete AFTER DELETE ON organizations BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER projects_insert AFTER INSERT ON projects BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER projects_update AFTER UPDATE ON projects BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER projects_delete AFTER DELETE ON projects BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER keys_insert AFTER INSERT ON keys BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER keys_update AFTER UPDATE OF id, kind, hash, project_id, name, user, scopes, expires_at, revoked_at, spend_cap ON keys BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER keys_delete AFTER DELETE ON keys BEGIN UPDATE generation SET n = n + 1; END;
