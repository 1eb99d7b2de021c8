-- Folders in which agents work. `folder` is an existing folder of the machine; NULL for one that the server manages.
-- `settings` is JSON: sandbox, network and limits.
CREATE TABLE projects (
    id         UUID PRIMARY KEY,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    folder     TEXT,
    settings   TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE INDEX projects_by_owner ON projects (owner);

-- A project is deleted together with its rooms.
CREATE INDEX rooms_by_project ON rooms (project_id) WHERE project_id IS NOT NULL;
