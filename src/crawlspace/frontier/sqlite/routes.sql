-- name: used
-- What one batch of settlements has moved.
INSERT INTO route (name, requests, pages, blocked, bytes) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
  requests = requests + excluded.requests, pages = pages + excluded.pages, blocked = blocked + excluded.blocked,
  bytes = bytes + excluded.bytes;

-- name: meet
-- A route that has a budget is known from its first request on.
INSERT INTO route (name) VALUES (?) ON CONFLICT DO NOTHING;

-- name: take
-- One request more, if the budget has it.
UPDATE route SET taken = taken + 1 WHERE name = ? AND taken < ?;

-- name: give_back
-- It was not made after all.
UPDATE route SET taken = taken - 1 WHERE name = ? AND taken > 0;

-- name: figures
-- All routes in numbers.
SELECT name, taken, requests, pages, blocked, bytes FROM route ORDER BY name;
