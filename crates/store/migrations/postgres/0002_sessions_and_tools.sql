-- What a provider's own session knows of its room: what people said up to `heard_seq`, what agents answered up to
-- `spoke_seq`. The rest is told to it with the next prompt.
ALTER TABLE provider_sessions ADD COLUMN heard_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE provider_sessions ADD COLUMN spoke_seq BIGINT;

-- Tools that a person has allowed once and for all, for one agent in one room.
CREATE TABLE room_tools (
    room_id    UUID NOT NULL,
    agent_id   UUID NOT NULL,
    tool       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (room_id, agent_id, tool)
);
