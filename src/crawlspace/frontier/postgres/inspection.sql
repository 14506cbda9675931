-- name: way
-- A look at everything may take long, and changes nothing.
SELECT
  set_config('search_path', %(schema)s, false),
  set_config('application_name', 'crawlspace check', false),
  set_config('statement_timeout', '0', false),
  set_config('default_transaction_isolation', 'repeatable read', false),
  set_config('default_transaction_read_only', 'on', false);

-- name: shards
-- How many shards there are.
SELECT value::integer FROM meta WHERE key = 'shards';

-- name: files
-- How far settled captures reach into the files of some workers' archives.
SELECT s.name, s.length FROM segment s JOIN worker w ON w.id = s.worker WHERE w.name = ANY (%(names)s) ORDER BY s.name;

-- name: captures
-- Captures in the archives of some workers, in the order of their keys, from the first above one; and URLs that should
-- have a capture and have none.
SELECT o.shard, o.id, o.hid, o.url, o.state, s.name, o."offset", o.length, o.digest, o.status
FROM outcome o LEFT JOIN segment s ON s.id = o.segment LEFT JOIN worker w ON w.id = s.worker
WHERE (o.shard, o.id) > (%(shard)s, %(id)s)
  AND (w.name = ANY (%(names)s) OR (o.segment IS NULL AND o.state IN (2, 3)))
ORDER BY o.shard, o.id LIMIT %(limit)s;
