-- A skill and the number of its newest version. Versions are never altered; what a run was given can always be read again
-- while it is kept.
CREATE TABLE skills (
    id         UUID PRIMARY KEY,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    BIGINT NOT NULL,
    experience BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX skills_by_name ON skills (owner, name);

CREATE TABLE skill_versions (
    skill_id   UUID NOT NULL,
    version    BIGINT NOT NULL,
    spec       TEXT NOT NULL,
    note       TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (skill_id, version)
);

-- Which files a version has; versions share what did not change.
CREATE TABLE skill_files (
    skill_id   UUID NOT NULL,
    version    BIGINT NOT NULL,
    path       TEXT NOT NULL,
    hash       BYTEA NOT NULL,
    bytes      BIGINT NOT NULL,
    executable BIGINT NOT NULL,
    PRIMARY KEY (skill_id, version, path)
);

CREATE TABLE skill_contents (
    skill_id UUID NOT NULL,
    hash     BYTEA NOT NULL,
    content  BYTEA NOT NULL,
    PRIMARY KEY (skill_id, hash)
);

-- Rooms that were opened on a skill to train it.
CREATE TABLE skill_rooms (
    room_id    UUID PRIMARY KEY,
    skill_id   UUID NOT NULL,
    agent_id   UUID NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX skill_rooms_by_skill ON skill_rooms (skill_id);

-- The training history, appended only. `experience` is the skill's after the round.
CREATE TABLE skill_rounds (
    id          UUID PRIMARY KEY,
    skill_id    UUID NOT NULL,
    kind        TEXT NOT NULL,
    score       BIGINT,
    remarks     TEXT NOT NULL,
    version     BIGINT NOT NULL,
    room_id     UUID,
    message_id  UUID,
    proposal_id UUID,
    experience  BIGINT,
    created_at  BIGINT NOT NULL
);
CREATE INDEX skill_rounds_by_skill ON skill_rounds (skill_id, id);

CREATE TABLE skill_proposals (
    id               UUID PRIMARY KEY,
    skill_id         UUID NOT NULL,
    status           TEXT NOT NULL,
    base_version     BIGINT NOT NULL,
    body             TEXT NOT NULL,
    note             TEXT,
    message_id       UUID,
    accepted_version BIGINT,
    created_at       BIGINT NOT NULL,
    decided_at       BIGINT
);
CREATE INDEX skill_proposals_by_skill ON skill_proposals (skill_id, id);

-- Which runs had a skill, and in which of them a person invoked it.
CREATE TABLE skill_uses (
    skill_id   UUID NOT NULL,
    run_id     UUID NOT NULL,
    version    BIGINT NOT NULL,
    invoked    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (skill_id, run_id)
);
