-- So many keys were added.
UPDATE facts SET known = known + ?;
