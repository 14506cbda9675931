-- Rounds of visits: when a page is looked at again, and how its earlier visits ended.

-- When the URL is to be visited again (NULL: never), how long its pages are left alone, whether the last visit found
-- something else than the one before it (NULL: there was none to compare with), and by what that is told next time.
ALTER TABLE outcome ADD COLUMN next_visit INTEGER;
ALTER TABLE outcome ADD COLUMN interval_ms INTEGER;
ALTER TABLE outcome ADD COLUMN changed INTEGER CHECK (changed IN (0, 1));
ALTER TABLE outcome ADD COLUMN content BLOB;
CREATE INDEX outcome_next_visit ON outcome (next_visit) WHERE next_visit IS NOT NULL;

-- How the earlier visits of URLs ended that were, or are to be, visited again: one row for each generation they left.
CREATE TABLE visit (
  id INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  state INTEGER NOT NULL CHECK (state IN (3, 4, 6)),
  at INTEGER NOT NULL,
  url TEXT NOT NULL,
  reason TEXT,
  requested_at INTEGER,
  status INTEGER,
  segment INTEGER,
  offset INTEGER,
  length INTEGER,
  digest BLOB,
  mime TEXT,
  size INTEGER,
  etag TEXT,
  last_modified TEXT,
  target TEXT,
  copy_of INTEGER,
  interval_ms INTEGER,
  changed INTEGER,
  content BLOB,
  PRIMARY KEY (id, generation)
) STRICT, WITHOUT ROWID;

-- How visits ended, by generation, state and change (-1: not known): rows of `outcome` beyond the first generation, and
-- rows of `visit`. Kept by the triggers below, so that no way to move a URL can forget it; those of the first generation
-- are in `tally`, and cost nothing here.
CREATE TABLE round (
  generation INTEGER NOT NULL,
  state INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  present INTEGER NOT NULL DEFAULT 0 CHECK (present >= 0),
  past INTEGER NOT NULL DEFAULT 0 CHECK (past >= 0),
  PRIMARY KEY (generation, state, changed)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER outcome_comes AFTER INSERT ON outcome WHEN NEW.generation > 0
BEGIN
  INSERT INTO round (generation, state, changed, present) VALUES (NEW.generation, NEW.state, coalesce(NEW.changed, -1), 1)
  ON CONFLICT DO UPDATE SET present = present + 1;
END;
CREATE TRIGGER outcome_goes AFTER DELETE ON outcome WHEN OLD.generation > 0
BEGIN
  UPDATE round SET present = present - 1
  WHERE generation = OLD.generation AND state = OLD.state AND changed = coalesce(OLD.changed, -1);
END;
CREATE TRIGGER outcome_turns AFTER UPDATE OF state ON outcome WHEN NEW.generation > 0 AND NEW.state <> OLD.state
BEGIN
  UPDATE round SET present = present - 1
  WHERE generation = OLD.generation AND state = OLD.state AND changed = coalesce(OLD.changed, -1);
  INSERT INTO round (generation, state, changed, present) VALUES (NEW.generation, NEW.state, coalesce(NEW.changed, -1), 1)
  ON CONFLICT DO UPDATE SET present = present + 1;
END;
CREATE TRIGGER visit_comes AFTER INSERT ON visit
BEGIN
  INSERT INTO round (generation, state, changed, past) VALUES (NEW.generation, NEW.state, coalesce(NEW.changed, -1), 1)
  ON CONFLICT DO UPDATE SET past = past + 1;
END;
CREATE TRIGGER visit_goes AFTER DELETE ON visit
BEGIN
  UPDATE round SET past = past - 1
  WHERE generation = OLD.generation AND state = OLD.state AND changed = coalesce(OLD.changed, -1);
END;
