//! How much of everything. The small numbers only show that the benchmark works.

#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub rounds: usize,
    /// Rooms that write at once, and events each writes, where only the journal is measured.
    pub journal_streams: usize,
    pub journal_events: u32,
    /// Rows stored one by one.
    pub inserts: u32,
    /// Tokens in each of 50 rooms, by how fast the stack is.
    pub path_tokens: u32,
    /// Where none can be joined.
    pub path_tokens_apart: u32,
    pub path_tokens_inserted: u32,
    /// Tokens of each paced stream, and how often the stacks take turns at it in a round.
    pub paced_tokens: u32,
    pub paced_turns: usize,
    /// Readers of one room.
    pub crowds: [usize; 2],
    pub idle_readers: usize,
    pub long_room: u32,
    pub short_room: u32,
    /// How often each page is read.
    pub page_reads: usize,
    pub starts: usize,
    /// Calls of a tool over MCP.
    pub tool_calls: usize,
    /// Conversations with a real program in a round, and the turns of each.
    pub conversations: usize,
    pub conversation_turns: usize,
    /// Milliseconds that a server of MCP is called in one turn, and how often they take turns in a round.
    pub mcp_milliseconds: u64,
    pub mcp_turns: usize,
    /// Calls of a client that is alone, in one turn.
    pub mcp_calls_alone: usize,
    /// Sessions that wait, and sessions that are left.
    pub mcp_idle: usize,
    pub mcp_left: usize,
}

impl Scale {
    pub const FULL: Self = Self {
        rounds: 3,
        journal_streams: 100,
        journal_events: 4_000,
        inserts: 4_000,
        path_tokens: 20_000,
        path_tokens_apart: 4_000,
        path_tokens_inserted: 100,
        paced_tokens: 100,
        paced_turns: 4,
        crowds: [100, 1_000],
        idle_readers: 10_000,
        long_room: 1_000_000,
        short_room: 10_000,
        page_reads: 31,
        starts: 5,
        tool_calls: 2_400,
        conversations: 3,
        conversation_turns: 20,
        mcp_milliseconds: 1_000,
        mcp_turns: 4,
        mcp_calls_alone: 200,
        mcp_idle: 1_000,
        mcp_left: 2_000,
    };

    pub const QUICK: Self = Self {
        rounds: 1,
        journal_streams: 20,
        journal_events: 500,
        inserts: 300,
        path_tokens: 1_000,
        path_tokens_apart: 200,
        path_tokens_inserted: 10,
        paced_tokens: 50,
        paced_turns: 1,
        crowds: [20, 100],
        idle_readers: 500,
        long_room: 40_000,
        short_room: 10_000,
        page_reads: 5,
        starts: 2,
        tool_calls: 200,
        conversations: 1,
        conversation_turns: 5,
        mcp_milliseconds: 300,
        mcp_turns: 1,
        mcp_calls_alone: 20,
        mcp_idle: 100,
        mcp_left: 100,
    };
}
