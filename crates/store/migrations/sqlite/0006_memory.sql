-- Notes that an agent keeps for itself, beyond any one room.
CREATE TABLE memories (
    id         BLOB PRIMARY KEY,
    agent_id   BLOB NOT NULL,
    text       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX memories_by_agent ON memories (agent_id, id);
