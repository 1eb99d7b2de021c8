-- Variables of the server's environment that the operator allowed through the API in the settings of MCP servers. Those in the
-- configuration are not here, and no value is.
CREATE TABLE mcp_variables (
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    allowed_at BIGINT NOT NULL,
    PRIMARY KEY (owner, name)
);
