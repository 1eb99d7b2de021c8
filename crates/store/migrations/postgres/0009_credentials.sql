-- Browsers that signed in with the local key or a sign-in link, and so belong to the operator and to no token. They end with
-- the key, whose hash they name; only the hash of the cookie is kept.
CREATE TABLE operator_sessions (
    id         UUID PRIMARY KEY,
    key_hash   BYTEA NOT NULL,
    hash       BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX operator_sessions_by_end ON operator_sessions (expires_at);

-- What a token may do besides its user's role, when it ends (null: never), and the token with which it was created, with
-- which it is revoked. Tokens of earlier versions keep everything and do not end.
ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT 'read,run,approve,admin';
ALTER TABLE tokens ADD COLUMN expires_at BIGINT;
ALTER TABLE tokens ADD COLUMN parent_id UUID;
CREATE INDEX tokens_by_parent ON tokens (parent_id);
