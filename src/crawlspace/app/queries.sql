-- name: broken_links
-- Links to pages that could not be had, with the pages they stand on. Needs the parser links.
SELECT
  l.target_canonical AS target, o.state, o.reason, o.status, l.source, l.relation
FROM links l JOIN outcomes o ON o.canonical = l.target_canonical
WHERE o.state = 'dead' OR o.status >= 400
ORDER BY target, l.source;

-- name: redirect_chains
-- Redirects that lead to other redirects, from their first address to their last, and how that answered.
WITH RECURSIVE moved AS (
  SELECT canonical, canonical(target) AS target FROM outcomes WHERE state = 'redirected' AND target IS NOT NULL
),
chain AS (
  SELECT canonical AS first, target AS last, 1 AS hops, [canonical, target] AS way FROM moved
  WHERE canonical NOT IN (SELECT target FROM moved WHERE target IS NOT NULL)
  UNION ALL
  SELECT c.first, m.target, c.hops + 1, list_append(c.way, m.target) FROM chain c JOIN moved m ON m.canonical = c.last
  WHERE c.hops < 20 AND NOT list_contains(c.way, m.target)
)
SELECT c.first, c.last, c.hops, c.way, o.state, o.status FROM chain c LEFT JOIN outcomes o ON o.canonical = c.last
WHERE c.hops > 1 AND c.last NOT IN (SELECT canonical FROM moved)
ORDER BY c.hops DESC, c.first;

-- name: canonical_conflicts
-- Pages that declare another address as their own which is no good page, or declares yet another one. Needs links.
SELECT d.canonical AS page, d.says, CASE
    WHEN o.id IS NULL THEN 'not known'
    WHEN o.state = 'redirected' THEN 'redirects'
    WHEN o.state <> 'done' OR o.status >= 300 THEN 'no good page'
    WHEN other.says IS NOT NULL AND other.says <> d.says THEN 'declares another'
  END AS conflict, o.state, o.status, other.says AS other_says
FROM declared d LEFT JOIN outcomes o ON o.canonical = d.says LEFT JOIN declared other ON other.canonical = d.says
WHERE d.says IS NOT NULL AND d.says <> d.canonical AND conflict IS NOT NULL
ORDER BY page;

-- name: hreflang_conflicts
-- Versions in other languages that do not name the page in return, or are no good pages. Needs the parser links.
WITH pairs AS (
  SELECT canonical AS page, version.hreflang AS hreflang, canonical(version.url) AS version
  FROM (SELECT canonical, unnest(alternates) AS version FROM declared)
)
SELECT p.page, p.hreflang, p.version, CASE
    WHEN o.id IS NULL THEN 'not known'
    WHEN o.state <> 'done' OR o.status >= 300 THEN 'no good page'
    ELSE 'does not name the page in return'
  END AS conflict, o.state, o.status
FROM pairs p LEFT JOIN outcomes o ON o.canonical = p.version
WHERE p.version <> p.page AND (
  o.id IS NULL OR o.state <> 'done' OR o.status >= 300
  OR NOT EXISTS (SELECT 1 FROM pairs back WHERE back.page = p.version AND back.version = p.page)
)
ORDER BY p.page, p.hreflang;

-- name: sitemap_orphans
-- Pages that a sitemap announced and that no page links to. Needs the parser links.
SELECT o.canonical AS page, o.state, o.status, o.depth FROM outcomes o
WHERE o.relation = 'sitemap' AND o.state = 'done'
  AND o.canonical NOT IN (SELECT target_canonical FROM links WHERE target_canonical IS NOT NULL)
ORDER BY page;

-- name: changes
-- What is new and what has changed since a time, field by field: -p since=2026-11-01. Without: since the last run.
SELECT
  parser, identity, fetched_at, canonical AS page, CASE WHEN is_new THEN 'new' ELSE 'changed' END AS what, changed,
  is_significant, data_before, data
FROM history
WHERE fetched_at >= coalesce(
    TRY_CAST($since AS TIMESTAMPTZ),
    (SELECT min(fetched_at) FROM looks WHERE generation = (SELECT max(generation) FROM looks))
  ) AND fetched_at < coalesce(TRY_CAST($until AS TIMESTAMPTZ), 'infinity'::TIMESTAMPTZ)
ORDER BY fetched_at, parser, identity;

-- name: gone
-- Things that were seen before a time and not since then: -p since=2026-11-01. Without: since the last run.
SELECT parser, identity, last_seen, canonical AS page, data FROM records
WHERE last_seen < coalesce(
    TRY_CAST($since AS TIMESTAMPTZ),
    (SELECT min(fetched_at) FROM looks WHERE generation = (SELECT max(generation) FROM looks))
  )
ORDER BY parser, identity;

-- name: parser_failures
-- Captures on which a parser raised an error.
SELECT parser, version, url, error FROM parses WHERE error IS NOT NULL ORDER BY parser, url;
