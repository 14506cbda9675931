-- name: learn
-- Add to what speaks for a rule and against it; its state moves only from where it was seen.
INSERT INTO learned (
  host, kind, detail, state, redirects, canonicals, texts, against, kinds, random, confirmed, unlike, examples,
  counter_examples, first_at, last_at
) VALUES (
  :host, :kind, :detail, :state, :redirects, :canonicals, :texts, :against, :kinds, :random, :confirmed, :unlike,
  :examples, :counter_examples, :now, :now
) ON CONFLICT (host, kind, detail) DO UPDATE SET
  state = CASE WHEN learned.state = :was THEN excluded.state ELSE learned.state END,
  redirects = learned.redirects + excluded.redirects,
  canonicals = learned.canonicals + excluded.canonicals,
  texts = learned.texts + excluded.texts,
  against = learned.against + excluded.against,
  kinds = MAX(learned.kinds, excluded.kinds),
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
FROM learned ORDER BY state = 'watched', redirects + canonicals + texts DESC, host, kind, detail LIMIT ?;

-- name: declare
-- Keep what a page declares as its own address.
REPLACE INTO declared (id, canonical) VALUES (?, ?);

-- name: declared
-- What the page with a key declares.
SELECT d.canonical FROM seen s JOIN declared d ON d.id = s.id WHERE s.fp = ?;

-- name: undeclare
-- It declares nothing any more.
DELETE FROM declared WHERE id = ?;
