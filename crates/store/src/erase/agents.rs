//! The rows of an agent. Its messages belong to their rooms and stay there, and so do its runs.

use super::ErasedRows;

pub(super) const AGENT_ROWS: ErasedRows = ErasedRows {
    unfinished_run: "SELECT q.run_id FROM queue q JOIN runs u ON u.id = q.run_id WHERE u.agent_id = $1 LIMIT 1",
    // The agent's own row is the last.
    statements: &[
        // At most a few hundred, see `MAX_MEMORIES`.
        "DELETE FROM memories WHERE agent_id = $1",
        "DELETE FROM participants WHERE agent_id = $1",
        "DELETE FROM provider_sessions WHERE agent_id = $1",
        "DELETE FROM room_tools WHERE agent_id = $1",
        "DELETE FROM remembered_rules WHERE agent_id = $1",
        // What its runs were given, with its system prompt.
        "DELETE FROM run_contexts WHERE run_id IN (SELECT id FROM runs WHERE agent_id = $1)",
        "DELETE FROM budgets WHERE scope = 'agent' AND subject = $1",
        "DELETE FROM agents WHERE id = $1",
    ],
};
