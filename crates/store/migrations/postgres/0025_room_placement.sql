-- Where people have put a room in their lists: pinned, out of sight, in a folder. Times, so that a list can be sorted by them.
ALTER TABLE rooms ADD COLUMN pinned_at BIGINT;
ALTER TABLE rooms ADD COLUMN archived_at BIGINT;
ALTER TABLE rooms ADD COLUMN folder TEXT;
