-- MCP servers that people have configured through the API; the operator's file is not here. `config` is an entry of
-- `.mcp.json`: it holds the values of variables and headers, which no door shows.
CREATE TABLE mcp_servers (
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    config     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (owner, name)
) STRICT;

-- The `.mcp.json` of a workplace that somebody has looked at and trusts: the folder, and the SHA-256 of what was in the
-- file. Another content is another file.
CREATE TABLE mcp_trust (
    owner      TEXT NOT NULL,
    folder     BLOB NOT NULL,
    digest     BLOB NOT NULL,
    trusted_at INTEGER NOT NULL,
    PRIMARY KEY (owner, folder)
) STRICT;
