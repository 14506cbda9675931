-- name: alone
-- One process at a time makes or changes the crawl's schema; the others wait.
SELECT pg_advisory_xact_lock(hashtextextended('crawlspace ' || %(schema)s, 0));

-- name: tables
-- How many tables the schema holds, and whether the crawl's facts are among them; no row when there is no such schema.
SELECT
  (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p')),
  EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'meta' AND c.relkind = 'r')
FROM pg_namespace n WHERE n.nspname = %(schema)s;

-- name: facts
-- What the store knows of its own making.
SELECT key, value FROM meta WHERE key IN ('format', 'shards', 'program');

-- name: write_facts
-- Keep it.
INSERT INTO meta (key, value) VALUES ('format', %(format)s), ('shards', %(shards)s), ('program', 'crawlspace')
ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE meta.key = 'format';
