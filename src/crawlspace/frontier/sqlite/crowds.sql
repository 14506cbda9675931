-- name: of_domain
-- How many hosts of a domain were queued at least once, and how many were refused and are known.
SELECT hosts, refused FROM crowd WHERE name = ?;

-- name: grow
-- So many hosts more.
INSERT INTO crowd (name, hosts, refused) VALUES (:name, :hosts, :refused)
ON CONFLICT (name) DO UPDATE SET hosts = hosts + :hosts, refused = refused + :refused;

-- name: newcomer
-- Whether a host's address is not known yet, and whether it is a seed's.
SELECT address IS NULL, seed FROM host WHERE hid = ?;

-- name: park
-- A free host rests, since too many have its address.
UPDATE host SET parked = 'address_hosts', ready = 0 WHERE hid = ? AND parked IS NULL;

-- name: crowded
-- Hosts that rest so, by address and number, from the first behind a place.
SELECT address, hid FROM host WHERE parked = 'address_hosts' AND (address, hid) > (?, ?) ORDER BY address, hid LIMIT ?;

-- name: counted_only
-- A refusal that is only counted, of a host that nobody knows.
INSERT INTO refusal (hid, reason, kept, beyond) VALUES (0, ?, 0, ?)
ON CONFLICT (hid, reason) DO UPDATE SET beyond = beyond + excluded.beyond;
