-- What a workspace sets for a provider: address, key, default model, limits. `config` is encrypted.
CREATE TABLE provider_settings (
    owner      TEXT NOT NULL REFERENCES workspaces (name),
    name       TEXT NOT NULL,
    config     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (owner, name)
);
