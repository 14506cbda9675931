-- Re-keying: the crawl's URLs under other URL rules.

-- The plan of a re-keying under way: every URL by its new key, who stays first in each group. `hid` and `tail` are its key
-- of before.
CREATE TABLE rekey_plan (
  id bigint NOT NULL,
  hid bigint NOT NULL,
  fp uuid NOT NULL,
  rank smallint NOT NULL,
  place smallint NOT NULL,
  tail bytea NOT NULL,
  PRIMARY KEY (fp, rank, id)
);

-- URLs that became one with another under new rules, as they were: `winner` is who stayed, `hid` where its requests count,
-- `due_at` until when it waited if it did.
CREATE TABLE merged (
  id bigint PRIMARY KEY,
  winner bigint NOT NULL,
  hid bigint NOT NULL,
  found_at bigint NOT NULL,
  due_at bigint,
  at bigint,
  parent bigint,
  token bigint,
  requested_at bigint,
  "offset" bigint,
  length bigint,
  size bigint,
  copy_of bigint,
  next_visit bigint,
  interval_ms bigint,
  depth integer NOT NULL,
  hops integer NOT NULL,
  attempts integer NOT NULL,
  generation integer NOT NULL,
  suspect integer NOT NULL,
  status integer,
  elapsed_ms integer,
  segment integer,
  class smallint NOT NULL,
  state smallint NOT NULL CHECK (state IN (0, 2, 3, 4, 5, 6)),
  changed smallint,
  rules text NOT NULL,
  url text NOT NULL,
  relation text,
  label text,
  meta text,
  request bytea,
  history text,
  route text,
  reason text COLLATE "C",
  detail text,
  digest bytea,
  content bytea,
  mime text,
  etag text,
  last_modified text,
  target text
);
CREATE INDEX merged_winner ON merged (winner);

-- Visits of URLs that are one with another now are forgotten, and counted no more.
CREATE FUNCTION uncount_past() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO round AS r (generation, state, changed, slot, past)
  VALUES (OLD.generation, OLD.state, coalesce(OLD.changed, -1), pg_backend_pid() % 64, -1)
  ON CONFLICT (generation, state, changed, slot) DO UPDATE SET past = r.past - 1;
  RETURN NULL;
END $$;
CREATE TRIGGER visit_goes AFTER DELETE ON visit FOR EACH ROW EXECUTE FUNCTION uncount_past();
