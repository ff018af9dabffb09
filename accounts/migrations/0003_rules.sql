-- Limits and prices. The row that says most about who asks for what counts.
CREATE TABLE rules (
	organization_id TEXT NOT NULL,            -- '': every organization
	model           TEXT NOT NULL,            -- '': every model
	name            TEXT NOT NULL,
	value           INTEGER NOT NULL,         -- -1: no limit
	PRIMARY KEY (organization_id, model, name)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER rules_insert AFTER INSERT ON rules BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER rules_update AFTER UPDATE ON rules BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER rules_delete AFTER DELETE ON rules BEGIN UPDATE generation SET n = n + 1; END;
