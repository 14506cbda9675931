-- Rounds of visits: when a page is looked at again, and how its earlier visits ended.

-- When the URL is to be visited again (NULL: never), how long its pages are left alone, whether the last visit found
-- something else than the one before it (NULL: there was none to compare with), and by what that is told next time.
ALTER TABLE outcome ADD COLUMN next_visit bigint;
ALTER TABLE outcome ADD COLUMN interval_ms bigint;
ALTER TABLE outcome ADD COLUMN changed smallint CHECK (changed IN (0, 1));
ALTER TABLE outcome ADD COLUMN content bytea;
CREATE INDEX outcome_next_visit ON outcome (next_visit) WHERE next_visit IS NOT NULL;

-- How the earlier visits of URLs ended that were, or are to be, visited again: one row for each generation they left.
CREATE TABLE visit (
  id bigint NOT NULL,
  at bigint NOT NULL,
  requested_at bigint,
  "offset" bigint,
  length bigint,
  size bigint,
  copy_of bigint,
  interval_ms bigint,
  generation integer NOT NULL,
  status integer,
  segment integer,
  shard smallint NOT NULL,
  state smallint NOT NULL CHECK (state IN (3, 4, 6)),
  changed smallint,
  url text NOT NULL,
  reason text,
  digest bytea,
  content bytea,
  mime text,
  etag text,
  last_modified text,
  target text,
  PRIMARY KEY (shard, id, generation)
);

-- How visits ended, by generation, state and change (-1: not known): rows of `outcome` beyond the first generation, and
-- rows of `visit`. Kept by the triggers below, so that no way to move a URL can forget it; those of the first generation
-- are in `tally`, and cost nothing here. A session changes one slot, so that writers seldom wait for each other; a slot
-- alone may be below zero, their sum never is.
CREATE TABLE round (
  present bigint NOT NULL DEFAULT 0,
  past bigint NOT NULL DEFAULT 0,
  generation integer NOT NULL,
  state smallint NOT NULL,
  changed smallint NOT NULL,
  slot smallint NOT NULL,
  PRIMARY KEY (generation, state, changed, slot)
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The functions name no schema: a session's own is the first it looks into.
CREATE FUNCTION count_present() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO round AS r (generation, state, changed, slot, present)
    VALUES (OLD.generation, OLD.state, coalesce(OLD.changed, -1), pg_backend_pid() % 64, -1)
    ON CONFLICT (generation, state, changed, slot) DO UPDATE SET present = r.present - 1;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO round AS r (generation, state, changed, slot, present)
    VALUES (NEW.generation, NEW.state, coalesce(NEW.changed, -1), pg_backend_pid() % 64, 1)
    ON CONFLICT (generation, state, changed, slot) DO UPDATE SET present = r.present + 1;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION count_past() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO round AS r (generation, state, changed, slot, past)
  VALUES (NEW.generation, NEW.state, coalesce(NEW.changed, -1), pg_backend_pid() % 64, 1)
  ON CONFLICT (generation, state, changed, slot) DO UPDATE SET past = r.past + 1;
  RETURN NULL;
END $$;
CREATE TRIGGER outcome_comes AFTER INSERT ON outcome FOR EACH ROW WHEN (NEW.generation > 0)
  EXECUTE FUNCTION count_present();
CREATE TRIGGER outcome_goes AFTER DELETE ON outcome FOR EACH ROW WHEN (OLD.generation > 0)
  EXECUTE FUNCTION count_present();
CREATE TRIGGER outcome_turns AFTER UPDATE OF state ON outcome FOR EACH ROW
  WHEN (NEW.generation > 0 AND NEW.state <> OLD.state) EXECUTE FUNCTION count_present();
CREATE TRIGGER visit_comes AFTER INSERT ON visit FOR EACH ROW EXECUTE FUNCTION count_past();
