-- name: observations
-- Every record of every capture that counts: of each parser, URL and generation the rows that were written last.
-- `seen_at` is the time of its capture, or of the last visit since then that found the page as it was.
CREATE VIEW observations AS
SELECT r.*, greatest(r.fetched_at, c.at) AS seen_at
FROM all_rows r SEMI JOIN live USING (parser, id, generation, seq)
LEFT JOIN confirmed c ON c.parser = r.parser AND c.id = r.id AND c.generation = r.generation
WHERE r.place >= 0;

-- name: again
-- Visits that found the page as it was, by the word of its site (304).
CREATE VIEW again AS
SELECT r.id, r.generation, r.fetched_at FROM all_rows r SEMI JOIN live USING (parser, id, generation, seq)
WHERE r.place = -3;

-- name: confirmed
-- When what a parser made of a capture was seen last, where such visits followed it, and no other capture before them.
CREATE VIEW confirmed AS
SELECT l.parser, l.id, l.generation, max(a.fetched_at) AS at
FROM (
  SELECT parser, id, generation, lead(generation) OVER (PARTITION BY parser, id ORDER BY generation) AS next
  FROM live WHERE parser <> ''
) l
JOIN again a ON a.id = l.id AND a.generation >= l.generation AND (l.next IS NULL OR a.generation < l.next)
GROUP BY ALL;

-- name: looks
-- All visits that had a good answer.
CREATE VIEW looks AS
SELECT id, generation, fetched_at FROM parses UNION ALL SELECT id, generation, fetched_at FROM again;

-- name: live
-- What was written last of each parser, URL and generation, captures that do not count apart.
CREATE VIEW live AS
SELECT parser, id, generation, max(seq) AS seq FROM all_rows r
WHERE place <> -2 AND NOT EXISTS (
  SELECT 1 FROM voids v WHERE v.id = r.id AND v.generation = r.generation AND v.file = r.file AND v."offset" = r."offset"
)
GROUP BY ALL;

-- name: voids
-- Captures that do not count.
CREATE VIEW voids AS SELECT id, generation, file, "offset" FROM all_rows WHERE place = -2;

-- name: parses
-- What each parser came to on each capture, with the failure where there was one.
CREATE VIEW parses AS
SELECT
  r.parser, any_value(r.version) AS version, r.id, r.generation, any_value(r.url) AS url,
  any_value(r.canonical) AS canonical, any_value(r.fetched_at) AS fetched_at, any_value(r.file) AS file,
  any_value(r."offset") AS "offset", any_value(r."length") AS "length",
  count(*) FILTER (WHERE r.place >= 0) AS records, any_value(r.error) AS error
FROM all_rows r SEMI JOIN live USING (parser, id, generation, seq) WHERE r.place >= -1
GROUP BY r.parser, r.id, r.generation;

-- name: sightings
-- Each record once for each page it was seen on: canonical URL and digest are unique within a parser.
CREATE VIEW sightings AS
SELECT
  parser, coalesce(canonical, url) AS canonical, digest, any_value(identity) AS identity,
  min(fetched_at) AS first_seen, max(seen_at) AS last_seen, count(*) AS times,
  arg_max(data, (fetched_at, seq)) AS data, arg_max(file, (fetched_at, seq)) AS file, arg_max("offset", (fetched_at, seq)) AS "offset"
FROM keyed GROUP BY parser, coalesce(canonical, url), digest;

-- name: keyed
-- Observations with what they are of: the parser's key, or the page where it has none.
CREATE VIEW keyed AS
SELECT *, coalesce(key, 'page:' || coalesce(canonical, url)) AS identity FROM observations;

-- name: steps
-- Each observation of a thing with the one before it.
CREATE VIEW steps AS
SELECT
  *, lag(digest) OVER w AS digest_before, lag(data) OVER w AS data_before
FROM keyed WINDOW w AS (PARTITION BY parser, identity ORDER BY fetched_at, seq, place);

-- name: history
-- When a thing was seen for the first time, or otherwise than before, and which of its fields had changed.
CREATE VIEW history AS
SELECT
  parser, identity, fetched_at, canonical, url, version, digest, data, digest_before, data_before,
  digest_before IS NULL AS is_new, changed,
  digest_before IS NOT NULL AND list_has_any(changed, significant) AS is_significant
FROM (
  SELECT *, CASE WHEN digest_before IS NULL THEN [] ELSE list_sort(list_filter(
    list_distinct(list_concat(json_keys(data), json_keys(data_before))),
    lambda name: json_extract(data, '/' || replace(replace(name, '~', '~0'), '/', '~1'))
      IS DISTINCT FROM json_extract(data_before, '/' || replace(replace(name, '~', '~0'), '/', '~1'))
  )) END AS changed
  FROM steps WHERE digest_before IS DISTINCT FROM digest
);

-- name: records
-- One row for each thing: its newest observation, and all its sightings in numbers.
CREATE VIEW records AS
SELECT
  parser, identity,
  arg_max(data, (fetched_at, seq, place)) AS data,
  arg_max(digest, (fetched_at, seq, place)) AS digest,
  arg_max(url, (fetched_at, seq, place)) AS url,
  arg_max(coalesce(canonical, url), (fetched_at, seq, place)) AS canonical,
  arg_max(version, (fetched_at, seq, place)) AS version,
  min(fetched_at) AS first_seen,
  max(seen_at) AS last_seen,
  coalesce(max(fetched_at) FILTER (WHERE digest_before IS DISTINCT FROM digest), min(fetched_at)) AS changed_at,
  count(DISTINCT coalesce(canonical, url)) AS pages,
  list_sort(list_distinct(list(coalesce(canonical, url)))) AS seen_on,
  count(DISTINCT digest) AS forms,
  arg_max(file, (fetched_at, seq, place)) AS file,
  arg_max("offset", (fetched_at, seq, place)) AS "offset"
FROM steps GROUP BY parser, identity;

-- name: twins
-- A page and the same in another form, by the page's or its parser's word: linked, not merged.
CREATE VIEW twins AS
SELECT DISTINCT parser, page, canonical(twin) AS twin FROM (
  SELECT parser, coalesce(canonical, url) AS page, unnest(twins) AS twin FROM observations
);

-- name: links
-- The links of pages, by the parser `links`.
CREATE VIEW links AS
WITH found AS (
  SELECT
    id, url AS source, coalesce(canonical, url) AS source_canonical,
    unnest(from_json(json_extract(data, '/links'), '[{"url":"VARCHAR","relation":"VARCHAR","nofollow":"BOOLEAN"}]'))
      AS link
  FROM observations WHERE parser = 'links' AND generation = (
    SELECT max(o.generation) FROM live o WHERE o.parser = 'links' AND o.id = observations.id
  )
),
targets AS (SELECT url, canonical(url) AS canonical FROM (SELECT DISTINCT link.url AS url FROM found))
SELECT
  f.id AS source_id, f.source, f.source_canonical, f.link.url AS target, t.canonical AS target_canonical,
  coalesce(f.link.relation, 'hyperlink') AS relation, coalesce(f.link.nofollow, false) AS nofollow
FROM found f JOIN targets t ON t.url = f.link.url;

-- name: declared
-- What pages say of their own address and of their versions, by the parser `links`.
CREATE VIEW declared AS
SELECT
  id, url, coalesce(canonical, url) AS canonical, canonical(json_extract_string(data, '/canonical')) AS says,
  from_json(coalesce(json_extract(data, '/alternates'), '[]'), '[{"hreflang":"VARCHAR","url":"VARCHAR"}]') AS alternates
FROM observations WHERE parser = 'links' AND generation = (
  SELECT max(o.generation) FROM live o WHERE o.parser = 'links' AND o.id = observations.id
);

-- name: merged
-- Rows of some parts that no later one has replaced. Captures that do not count are told of as long as others may.
SELECT c.* FROM chosen c WHERE (
  c.place <> -2 AND EXISTS (
    SELECT 1 FROM live l
    WHERE l.parser = c.parser AND l.id = c.id AND l.generation = c.generation AND l.seq = c.seq
  )
) OR (c.place = -2 AND NOT $whole);

-- name: count_merged
-- How many rows of all are live.
SELECT count(*) FROM all_rows r SEMI JOIN live USING (parser, id, generation, seq);

-- name: parsed
-- What a parser has read, by URL and generation, and whether that was an earlier capture, which a visit found to hold
-- still: a page that was found as it was need not be read again for that.
SELECT id, generation, version, url, file, "offset", "length", epoch_ms(fetched_at), error, false
FROM parses WHERE parser = $parser
UNION ALL
SELECT p.id, a.generation, p.version, p.url, p.file, p."offset", p."length", epoch_ms(a.fetched_at), p.error, true
FROM again a JOIN parses p ON p.id = a.id AND p.generation < a.generation
WHERE p.parser = $parser AND NOT EXISTS (
  SELECT 1 FROM parses b
  WHERE b.parser = $parser AND b.id = a.id AND b.generation > p.generation AND b.generation <= a.generation
)
ORDER BY 1, 2;

-- name: noted
-- Visits that are known to have found the page as it was.
SELECT id, generation FROM again ORDER BY id, generation;

-- name: head
-- What the last word of one of several directories is on each capture, those apart that do not count. NUMBER is its place.
SELECT parser, id, generation, NUMBER AS directory, arg_max(version, seq) AS version FROM rows_NUMBER r
WHERE place <> -2 AND NOT EXISTS (
  SELECT 1 FROM rows_NUMBER v
  WHERE v.place = -2 AND v.id = r.id AND v.generation = r.generation AND v.file = r.file AND v."offset" = r."offset"
)
GROUP BY parser, id, generation

-- name: chosen_heads
-- Which directory has the word on a capture: that of the newer parser, else the first.
CREATE TABLE chosen_heads AS
SELECT parser, id, generation, arg_max(directory, (rank, -directory)) AS directory
FROM heads JOIN ranks USING (version) GROUP BY parser, id, generation;

-- name: joined
-- The rows of one of several directories that count.
SELECT r.* FROM rows_NUMBER r WHERE place = -2 OR EXISTS (
  SELECT 1 FROM chosen_heads c
  WHERE c.directory = NUMBER AND c.parser = r.parser AND c.id = r.id AND c.generation = r.generation
)
