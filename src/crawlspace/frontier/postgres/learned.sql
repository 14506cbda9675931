-- name: learn
-- Add to what speaks for a rule and against it; its state moves only from where it was seen.
INSERT INTO learned (
  host, kind, detail, state, redirects, canonicals, texts, against, kinds, random, confirmed, unlike, examples,
  counter_examples, first_at, last_at
) VALUES (
  %(host)s::text, %(kind)s::text, %(detail)s::text, %(state)s::text, %(redirects)s::bigint, %(canonicals)s::bigint,
  %(texts)s::bigint, %(against)s::bigint, %(kinds)s::bigint, %(random)s::bigint, %(confirmed)s::bigint,
  %(unlike)s::bigint,
  %(examples)s::text, %(counter_examples)s::text, %(now)s::bigint, %(now)s::bigint
) ON CONFLICT (host, kind, detail) DO UPDATE SET
  state = CASE WHEN learned.state = %(was)s::text THEN excluded.state ELSE learned.state END,
  redirects = learned.redirects + excluded.redirects,
  canonicals = learned.canonicals + excluded.canonicals,
  texts = learned.texts + excluded.texts,
  against = learned.against + excluded.against,
  kinds = greatest(learned.kinds, excluded.kinds),
  random = learned.random + excluded.random,
  confirmed = learned.confirmed + excluded.confirmed,
  unlike = learned.unlike + excluded.unlike,
  examples = CASE WHEN excluded.examples = '[]' THEN learned.examples ELSE excluded.examples END,
  counter_examples =
    CASE WHEN excluded.counter_examples = '[]' THEN learned.counter_examples ELSE excluded.counter_examples END,
  last_at = excluded.last_at;

-- name: learned
-- Rules, the best founded first.
SELECT
  host, kind, detail, state, redirects, canonicals, texts, against, kinds, random, confirmed, unlike, examples,
  counter_examples, first_at, last_at
FROM learned ORDER BY state = 'watched', redirects + canonicals + texts DESC, host, kind, detail LIMIT %(limit)s::bigint;

-- name: declare
-- Keep what pages declare as their own address.
INSERT INTO declared (shard, id, canonical)
SELECT * FROM unnest(%(shard)s::smallint[], %(id)s::bigint[], %(canonical)s::text[])
ON CONFLICT (shard, id) DO UPDATE SET canonical = excluded.canonical;

-- name: declared
-- What pages with these keys declare, by their place in the list.
SELECT k.place, d.canonical
FROM unnest(%(shard)s::smallint[], %(fp)s::uuid[]) WITH ORDINALITY AS k (shard, fp, place)
JOIN seen s ON s.shard = k.shard AND s.fp = k.fp
JOIN declared d ON d.shard = s.shard AND d.id = s.id;

-- name: undeclare
-- These declare nothing any more.
DELETE FROM declared d USING unnest(%(shard)s::smallint[], %(id)s::bigint[]) AS k (shard, id)
WHERE d.shard = k.shard AND d.id = k.id;
