-- Notes that an agent keeps for itself, beyond any one room.
CREATE TABLE memories (
    id         UUID PRIMARY KEY,
    agent_id   UUID NOT NULL,
    text       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX memories_by_agent ON memories (agent_id, id);
