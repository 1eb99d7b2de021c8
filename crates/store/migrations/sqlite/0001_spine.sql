-- One pair of files per step, sqlite and postgres, never edited after release.
-- Times are milliseconds since 1970. Ids are 16 raw bytes.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE tokens (
    id         BLOB PRIMARY KEY,
    owner      TEXT NOT NULL,
    label      TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE agents (
    id         BLOB PRIMARY KEY,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    spec       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
CREATE UNIQUE INDEX agents_by_name ON agents (owner, name) WHERE deleted_at IS NULL;

CREATE TABLE rooms (
    id         BLOB PRIMARY KEY,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    policy     TEXT NOT NULL,
    project_id BLOB,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
CREATE INDEX rooms_by_owner ON rooms (owner, updated_at) WHERE deleted_at IS NULL;

CREATE TABLE participants (
    room_id  BLOB NOT NULL,
    agent_id BLOB NOT NULL,
    ordinal  INTEGER NOT NULL,
    PRIMARY KEY (room_id, agent_id)
) STRICT;

-- The newest seq of each room, apart from `rooms` so that the hottest row of all is a small one.
CREATE TABLE journals (
    room_id BLOB PRIMARY KEY,
    head    INTEGER NOT NULL
) STRICT;

-- A rowid table appends at its end whatever the room; clustering on (room_id, seq) costs twice as much to write.
-- `raw` is last: a read that does not ask for it never touches its pages.
CREATE TABLE events (
    room_id    BLOB NOT NULL,
    seq        INTEGER NOT NULL,
    id         BLOB NOT NULL,
    kind       TEXT NOT NULL,
    run_id     BLOB,
    agent_id   BLOB,
    created_at INTEGER NOT NULL,
    data       TEXT NOT NULL,
    raw        TEXT
) STRICT;
CREATE UNIQUE INDEX events_by_position ON events (room_id, seq);
CREATE UNIQUE INDEX events_by_id ON events (id);

CREATE TABLE messages (
    id         BLOB PRIMARY KEY,
    room_id    BLOB NOT NULL,
    seq        INTEGER NOT NULL,
    run_id     BLOB,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX messages_by_position ON messages (room_id, seq);

CREATE TABLE runs (
    id          BLOB PRIMARY KEY,
    owner       TEXT NOT NULL,
    room_id     BLOB NOT NULL,
    agent_id    BLOB NOT NULL,
    message_id  BLOB NOT NULL,
    status      TEXT NOT NULL,
    queued_seq  INTEGER NOT NULL,
    usage       TEXT NOT NULL,
    cost        INTEGER,
    model       TEXT,
    duration_ms INTEGER,
    error       TEXT,
    receipt     TEXT,
    created_at  INTEGER NOT NULL,
    started_at  INTEGER,
    ended_at    INTEGER
) STRICT;
CREATE INDEX runs_by_room ON runs (room_id, queued_seq);
CREATE INDEX runs_by_owner ON runs (owner, created_at);
CREATE INDEX runs_by_message ON runs (message_id);

-- Unfinished runs only: a row goes with the run's terminal event, in the same transaction. The fence counts claims; an
-- append that names an older one is refused.
CREATE TABLE queue (
    run_id      BLOB PRIMARY KEY,
    room_id     BLOB NOT NULL,
    owner       TEXT NOT NULL,
    queued_seq  INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    holder      TEXT,
    lease_until INTEGER,
    stop        TEXT
) STRICT;
CREATE UNIQUE INDEX queue_by_room ON queue (room_id, queued_seq);

CREATE TABLE provider_sessions (
    room_id    BLOB NOT NULL,
    agent_id   BLOB NOT NULL,
    provider   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (room_id, agent_id, provider)
) STRICT;

CREATE TABLE idempotency (
    owner       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    result      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);
