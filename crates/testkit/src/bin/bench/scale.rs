//! The size of each scenario. The quick scale only checks that the benchmark works.

#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub rounds: usize,
    /// Concurrent rooms, and events per room, in the journal scenario.
    pub journal_streams: usize,
    pub journal_events: u32,
    /// Rows inserted one by one.
    pub inserts: u32,
    /// Tokens in each of 50 rooms, depending on the speed of the stack.
    pub path_tokens: u32,
    /// The same, where no tokens can be joined.
    pub path_tokens_unjoined: u32,
    pub path_tokens_inserted: u32,
    /// Tokens of each paced stream, and how often the stacks alternate in a round.
    pub paced_tokens: u32,
    pub paced_turns: usize,
    /// Readers of one room, in two sizes.
    pub crowds: [usize; 2],
    pub idle_readers: usize,
    pub long_room: u32,
    pub short_room: u32,
    /// How often each page is read.
    pub page_reads: usize,
    pub starts: usize,
    /// MCP tool calls.
    pub tool_calls: usize,
    /// Turns of one conversation with a model API, and of many at once.
    pub direct_turns: usize,
    pub direct_bursts: usize,
    /// Conversations with a real program per round, and turns per conversation.
    pub conversations: usize,
    pub conversation_turns: usize,
    /// Starts of a sandbox, commands in one, and starts of each real program in one.
    pub sandbox_starts: usize,
    pub sandbox_commands: usize,
    pub cold_starts: usize,
    /// Messages that are followed on two servers.
    pub node_messages: usize,
    /// Milliseconds of calls to each MCP server, and how often the servers alternate in a round.
    pub mcp_milliseconds: u64,
    pub mcp_turns: usize,
    /// Calls of a single client each time.
    pub mcp_single_calls: usize,
    /// Idle sessions, and abandoned sessions.
    pub mcp_idle: usize,
    pub mcp_abandoned: usize,
}

impl Scale {
    pub const FULL: Self = Self {
        rounds: 3,
        journal_streams: 100,
        journal_events: 4_000,
        inserts: 4_000,
        path_tokens: 20_000,
        path_tokens_unjoined: 4_000,
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
        direct_turns: 60,
        direct_bursts: 6,
        conversations: 3,
        conversation_turns: 20,
        sandbox_starts: 40,
        sandbox_commands: 200,
        cold_starts: 6,
        node_messages: 200,
        mcp_milliseconds: 1_000,
        mcp_turns: 4,
        mcp_single_calls: 200,
        mcp_idle: 1_000,
        mcp_abandoned: 2_000,
    };

    pub const QUICK: Self = Self {
        rounds: 1,
        journal_streams: 20,
        journal_events: 500,
        inserts: 300,
        path_tokens: 1_000,
        path_tokens_unjoined: 200,
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
        direct_turns: 10,
        direct_bursts: 2,
        conversations: 1,
        conversation_turns: 5,
        sandbox_starts: 5,
        sandbox_commands: 20,
        cold_starts: 1,
        node_messages: 20,
        mcp_milliseconds: 300,
        mcp_turns: 1,
        mcp_single_calls: 20,
        mcp_idle: 100,
        mcp_abandoned: 100,
    };
}
