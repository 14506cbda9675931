-- name: way
-- What each session sets: the schema, and plans that stay what they are, by index, however large the tables grow.
SELECT
  set_config('search_path', %(schema)s, false),
  set_config('application_name', %(name)s, false),
  set_config('plan_cache_mode', 'force_generic_plan', false),
  set_config('enable_seqscan', 'off', false),
  set_config('enable_bitmapscan', 'off', false),
  set_config('enable_hashjoin', 'off', false),
  set_config('enable_mergejoin', 'off', false),
  set_config('jit', 'off', false),
  set_config('client_min_messages', 'error', false),
  set_config('synchronous_commit', %(commit)s, false),
  set_config('statement_timeout', %(statement_ms)s, false),
  set_config('lock_timeout', %(lock_ms)s, false),
  set_config('idle_in_transaction_session_timeout', %(idle_ms)s, false),
  set_config('tcp_keepalives_idle', %(keep_alive)s, false),
  set_config('tcp_keepalives_interval', %(keep_alive)s, false),
  set_config('tcp_keepalives_count', '3', false);

-- name: one_moment
-- All that follows sees the store as it is now, and changes nothing.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- name: clock
-- The store's own time in milliseconds.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
