-- Pace groups, and how many hosts a domain or an address may have.

-- The address to which the host's name resolved, once it was looked up.
ALTER TABLE host ADD COLUMN address TEXT;
-- The group whose turn it has (while it is leased), or for which it waits (`parked` is then 'group'); later a memory.
ALTER TABLE host ADD COLUMN pace_group TEXT;
CREATE INDEX host_of_group ON host (pace_group) WHERE token IS NOT NULL AND pace_group IS NOT NULL;
CREATE INDEX host_for_group ON host (pace_group, next_at) WHERE parked = 'group';
CREATE INDEX host_crowded ON host (address) WHERE parked = 'address_hosts';
CREATE INDEX host_held ON host (held) WHERE held IS NOT NULL AND token IS NOT NULL;

-- The clocks of groups. Who holds a group's turns is said by its hosts. `wanted` is set whenever a turn comes back, and
-- when a host begins to wait although a turn is free; it is taken away when all turns are given, or nobody waits.
CREATE TABLE pace_group (
  name TEXT PRIMARY KEY,
  next_at INTEGER NOT NULL,
  wanted INTEGER NOT NULL CHECK (wanted IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX pace_group_due ON pace_group (next_at) WHERE wanted;

-- How many hosts a domain or an address has that were queued at least once, those met before this step apart; and how
-- many hosts of a domain are known although they were refused for its number of hosts.
CREATE TABLE crowd (
  name TEXT PRIMARY KEY,
  hosts INTEGER NOT NULL CHECK (hosts >= 0),
  refused INTEGER NOT NULL CHECK (refused >= 0)
) STRICT, WITHOUT ROWID;

-- Counts the changes that all who work on the crawl must hear of: its scope, what it ignores, hosts that are held.
INSERT INTO meta (key, value) VALUES ('edition', '0');
