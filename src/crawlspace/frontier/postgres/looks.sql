-- name: way
-- A look at everything may take long, and changes nothing. Whoever asks may think between two rows, and wants the first
-- ones soon.
SELECT
  set_config('search_path', %(schema)s, false),
  set_config('application_name', %(purpose)s, false),
  set_config('statement_timeout', '0', false),
  set_config('idle_in_transaction_session_timeout', '0', false),
  set_config('cursor_tuple_fraction', '0.001', false),
  set_config('default_transaction_isolation', 'repeatable read', false),
  set_config('default_transaction_read_only', 'on', false);

-- name: shards
-- How many shards there are.
SELECT value::integer FROM meta WHERE key = 'shards';

-- name: owner
-- Who made an archive file, if it was none of these workers, and where his directory is.
SELECT w.id, (SELECT m.value FROM meta m WHERE m.key = 'place of worker ' || w.id)
FROM segment s JOIN worker w ON w.id = s.worker
WHERE s.name = %(name)s::text AND w.name <> ALL (%(names)s::text[]);

-- name: others
-- The workers that have archive files and are none of these, and where their directories are.
SELECT w.id, (SELECT m.value FROM meta m WHERE m.key = 'place of worker ' || w.id)
FROM worker w
WHERE w.name <> ALL (%(names)s::text[]) AND EXISTS (SELECT 1 FROM segment s WHERE s.worker = w.id) ORDER BY w.id;
