-- How many bytes the events of a room take, added up by the statement that moves the head: what a workspace stores is then a
-- sum over its rooms and not over its events.
ALTER TABLE journals ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE journals SET bytes = COALESCE((
    SELECT SUM(octet_length(e.data) + COALESCE(octet_length(e.raw), 0)) FROM events e WHERE e.room_id = journals.room_id), 0);

-- Deleted rooms count too, as long as their events are stored.
CREATE INDEX rooms_of_workspace ON rooms (owner);
