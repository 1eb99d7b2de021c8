-- A skill and the number of its newest version. Versions are never altered; what a run was given can always be read again
-- while it is kept.
CREATE TABLE skills (
    id         BLOB PRIMARY KEY,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    experience INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX skills_by_name ON skills (owner, name);

CREATE TABLE skill_versions (
    skill_id   BLOB NOT NULL,
    version    INTEGER NOT NULL,
    spec       TEXT NOT NULL,
    note       TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (skill_id, version)
) STRICT;

-- Which files a version has; versions share what did not change.
CREATE TABLE skill_files (
    skill_id   BLOB NOT NULL,
    version    INTEGER NOT NULL,
    path       TEXT NOT NULL,
    hash       BLOB NOT NULL,
    bytes      INTEGER NOT NULL,
    executable INTEGER NOT NULL,
    PRIMARY KEY (skill_id, version, path)
) STRICT;

CREATE TABLE skill_contents (
    skill_id BLOB NOT NULL,
    hash     BLOB NOT NULL,
    content  BLOB NOT NULL,
    PRIMARY KEY (skill_id, hash)
) STRICT;

-- Rooms that were opened on a skill to train it.
CREATE TABLE skill_rooms (
    room_id    BLOB PRIMARY KEY,
    skill_id   BLOB NOT NULL,
    agent_id   BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX skill_rooms_by_skill ON skill_rooms (skill_id);

-- The training history, appended only. `experience` is the skill's after the round.
CREATE TABLE skill_rounds (
    id          BLOB PRIMARY KEY,
    skill_id    BLOB NOT NULL,
    kind        TEXT NOT NULL,
    score       INTEGER,
    remarks     TEXT NOT NULL,
    version     INTEGER NOT NULL,
    room_id     BLOB,
    message_id  BLOB,
    proposal_id BLOB,
    experience  INTEGER,
    created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX skill_rounds_by_skill ON skill_rounds (skill_id, id);

CREATE TABLE skill_proposals (
    id               BLOB PRIMARY KEY,
    skill_id         BLOB NOT NULL,
    status           TEXT NOT NULL,
    base_version     INTEGER NOT NULL,
    body             TEXT NOT NULL,
    note             TEXT,
    message_id       BLOB,
    accepted_version INTEGER,
    created_at       INTEGER NOT NULL,
    decided_at       INTEGER
) STRICT;
CREATE INDEX skill_proposals_by_skill ON skill_proposals (skill_id, id);

-- Which runs had a skill, and in which of them a person invoked it.
CREATE TABLE skill_uses (
    skill_id   BLOB NOT NULL,
    run_id     BLOB NOT NULL,
    version    INTEGER NOT NULL,
    invoked    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (skill_id, run_id)
) STRICT;
