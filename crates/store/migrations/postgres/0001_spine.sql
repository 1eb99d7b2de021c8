-- One pair of files per step, sqlite and postgres, never edited after release.
-- Times are milliseconds since 1970. Text is TEXT, not JSONB: what was appended is read back byte for byte.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE tokens (
    id         UUID PRIMARY KEY,
    owner      TEXT NOT NULL,
    label      TEXT NOT NULL,
    hash       BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);

CREATE TABLE agents (
    id         UUID PRIMARY KEY,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    spec       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE UNIQUE INDEX agents_by_name ON agents (owner, name) WHERE deleted_at IS NULL;

CREATE TABLE rooms (
    id         UUID PRIMARY KEY,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    policy     TEXT NOT NULL,
    project_id UUID,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE INDEX rooms_by_owner ON rooms (owner, updated_at) WHERE deleted_at IS NULL;

CREATE TABLE participants (
    room_id  UUID NOT NULL,
    agent_id UUID NOT NULL,
    ordinal  BIGINT NOT NULL,
    PRIMARY KEY (room_id, agent_id)
);

-- The newest seq of each room, apart from `rooms` so that the hottest row of all is a small one.
CREATE TABLE journals (
    room_id UUID PRIMARY KEY,
    head    BIGINT NOT NULL
);

-- Rows are appended in commit order; the index finds a room's place.
CREATE TABLE events (
    room_id    UUID NOT NULL,
    seq        BIGINT NOT NULL,
    id         UUID NOT NULL,
    kind       TEXT NOT NULL,
    run_id     UUID,
    agent_id   UUID,
    created_at BIGINT NOT NULL,
    data       TEXT NOT NULL,
    raw        TEXT
);
CREATE UNIQUE INDEX events_by_position ON events (room_id, seq);
CREATE UNIQUE INDEX events_by_id ON events (id);

CREATE TABLE messages (
    id         UUID PRIMARY KEY,
    room_id    UUID NOT NULL,
    seq        BIGINT NOT NULL,
    run_id     UUID,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX messages_by_position ON messages (room_id, seq);

CREATE TABLE runs (
    id          UUID PRIMARY KEY,
    owner       TEXT NOT NULL,
    room_id     UUID NOT NULL,
    agent_id    UUID NOT NULL,
    message_id  UUID NOT NULL,
    status      TEXT NOT NULL,
    queued_seq  BIGINT NOT NULL,
    usage       TEXT NOT NULL,
    cost        BIGINT,
    model       TEXT,
    duration_ms BIGINT,
    error       TEXT,
    receipt     TEXT,
    created_at  BIGINT NOT NULL,
    started_at  BIGINT,
    ended_at    BIGINT
);
CREATE INDEX runs_by_room ON runs (room_id, queued_seq);
CREATE INDEX runs_by_owner ON runs (owner, created_at);
CREATE INDEX runs_by_message ON runs (message_id);

-- Unfinished runs only: a row goes with the run's terminal event, in the same transaction. The fence counts claims; an
-- append that names an older one is refused.
CREATE TABLE queue (
    run_id      UUID PRIMARY KEY,
    room_id     UUID NOT NULL,
    owner       TEXT NOT NULL,
    queued_seq  BIGINT NOT NULL,
    fence       BIGINT NOT NULL,
    holder      TEXT,
    lease_until BIGINT,
    stop        TEXT
);
CREATE UNIQUE INDEX queue_by_room ON queue (room_id, queued_seq);

CREATE TABLE provider_sessions (
    room_id    UUID NOT NULL,
    agent_id   UUID NOT NULL,
    provider   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (room_id, agent_id, provider)
);

CREATE TABLE idempotency (
    owner       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    result      TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);
