-- What most repeated links ask is answered where their keys lie.

-- The best way in which the URL was claimed, ten times the depth and the class: a claim that is no better in either
-- changes nothing. NULL where its row must be looked at: refused, of another class since, or older than this step.
ALTER TABLE seen ADD COLUMN way INTEGER;
