-- name: captures
-- The table of captures, as it was written while crawling or by `crawlspace index --table`.
CREATE VIEW captures AS SELECT *, "at" AS fetched_at FROM captures_;

-- name: captured
-- What the store knows of captures, where there is no table of them: the newest of each URL.
CREATE VIEW captures AS SELECT
  id, url, canonical, host, requested_at AS "at", requested_at AS fetched_at, status, mime, digest AS body_digest,
  size AS wire_size, elapsed_ms, depth, hops, parent, relation, generation, target, state AS outcome, file, "offset",
  "length"
FROM outcomes WHERE file IS NOT NULL;

-- name: captures_of_some
-- Where workers share a store, and only some of their tables are here: captures of the others as the store knows them.
CREATE VIEW captures AS SELECT *, "at" AS fetched_at FROM captures_
UNION ALL BY NAME
SELECT
  id, url, canonical, host, requested_at AS "at", requested_at AS fetched_at, status, mime, digest AS body_digest,
  size AS wire_size, elapsed_ms, depth, hops, parent, relation, generation, target, state AS outcome, file, "offset",
  "length"
FROM outcomes WHERE file IS NOT NULL AND file NOT IN (SELECT DISTINCT file FROM captures_);
