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

-- name: begin
-- What follows is one change of the store, whole or not at all.
BEGIN;

-- name: one_moment
-- All that follows sees the store as it is now, and changes nothing.
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- name: commit
-- That was all.
COMMIT;

-- name: end_silent
-- End sessions of this user's workers that have a transaction open and let the server wait, for more of their orders or
-- to take its answer, for so long. Workers of one crawl hold the same rows, and each of them may be stopped.
SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.usename = current_user
  AND a.application_name = current_setting('application_name') AND a.pid <> pg_backend_pid()
  AND a.xact_start IS NOT NULL AND a.wait_event_type = 'Client'
  AND greatest(a.query_start, a.state_change) < clock_timestamp() - %(silent_ms)s * interval '1 millisecond';
