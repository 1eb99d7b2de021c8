-- Deleted rooms and agents, until everything of them is erased. `purge`: without the grace period. `files` names what is on
-- disk, as JSON, written before the rows that tell it are erased. Where several servers share the database, `erased_at` is set
-- and the row is kept for a while: each removes its own files. It refers to nothing, because it outlives what it names.
CREATE TABLE erasures (
    id         UUID PRIMARY KEY,
    kind       TEXT NOT NULL,
    owner      TEXT NOT NULL,
    deleted_at BIGINT NOT NULL,
    purge      BIGINT NOT NULL,
    files      TEXT,
    erased_at  BIGINT
);
INSERT INTO erasures (id, kind, owner, deleted_at, purge)
SELECT id, 'room', owner, deleted_at, 0 FROM rooms WHERE deleted_at IS NOT NULL
UNION ALL SELECT id, 'agent', owner, deleted_at, 0 FROM agents WHERE deleted_at IS NOT NULL;

-- What a run of an erased room has cost is still counted: its row stays, without its room and its message, and with the user
-- whom it cost.
ALTER TABLE runs ADD COLUMN erased_at BIGINT;
ALTER TABLE runs ADD COLUMN user_id UUID;
