/**
 * Every key of the query cache. `all` is the prefix that invalidates a whole group. Names and ids come after a fixed
 * word, so that none of them can equal the key of another query.
 */
export const queryKeys = {
  session: ['session'],
  providers: ['providers'],
  models: (provider: string) => ['models', provider] as const,
  search: (words: string, where: string) => ['search', words, where] as const,
  tokens: ['tokens'],
  doctor: ['doctor'],
  billing: ['billing'],
  audit: (action: string, object: string, user: string) => ['audit', action, object, user] as const,
  agents: {
    /** Also the key of the list. */
    all: ['agents'],
    one: (id: string) => ['agents', 'one', id] as const,
    effective: (id: string, updatedAt: string, room: string | null) => ['agents', 'one', id, 'effective', updatedAt, room] as const,
    memories: (id: string) => ['agents', 'one', id, 'memories'] as const,
    testRoom: (id: string) => ['test-room', id] as const,
  },
  rooms: {
    /** Also the key of the list. */
    all: ['rooms'],
    one: (id: string) => ['rooms', 'one', id] as const,
    archived: ['archived-rooms'],
    remembered: (id: string) => ['rooms', 'one', id, 'remembered'] as const,
    tape: (id: string, runs: string) => ['rooms', 'one', id, 'tape', runs] as const,
    mcpTrust: (id: string) => ['rooms', 'one', id, 'mcp-trust'] as const,
    events: (id: string, runId: string | null, after: number) => ['events', id, runId, after] as const,
  },
  projects: {
    /** Also the key of the list. */
    all: ['projects'],
    one: (id: string) => ['projects', 'one', id] as const,
    ports: (id: string) => ['projects', 'ports', id] as const,
    commands: (id: string) => ['projects', 'commands', id] as const,
    /** The prefix of all folders and contents of a project. */
    files: (id: string) => ['projects', 'files', id] as const,
    folder: (id: string, path: string) => ['projects', 'files', id, 'folder', path] as const,
    content: (id: string, path: string) => ['projects', 'files', id, 'content', path] as const,
  },
  skills: {
    all: ['skills'],
    list: ['skills', 'list'],
    one: (name: string) => ['skills', 'one', name] as const,
    versions: (name: string) => ['skills', 'versions', name] as const,
    version: (name: string, version: number, against: number | null) => ['skills', 'version', name, version, against] as const,
    training: (name: string) => ['skills', 'training', name] as const,
    proposal: (name: string, id: string) => ['skills', 'proposal', name, id] as const,
    messages: (roomId: string) => ['skills', 'messages', roomId] as const,
    check: (draft: string) => ['skills', 'check', draft] as const,
  },
  mcpServers: {
    /** Also the key of the list. */
    all: ['mcp-servers'],
    names: ['mcp-servers', 'names'],
    one: (name: string) => ['mcp-servers', 'one', name] as const,
    tools: (name: string) => ['mcp-servers', 'tools', name] as const,
    logs: (name: string) => ['mcp-servers', 'logs', name] as const,
  },
  runs: {
    all: ['runs'],
    lists: ['runs', 'list'],
    list: (...filter: readonly string[]) => ['runs', 'list', ...filter] as const,
    recent: ['runs', 'recent'],
    waiting: ['runs', 'waiting'],
    one: (id: string) => ['runs', 'one', id] as const,
    timeline: (id: string) => ['runs', 'timeline', id] as const,
    question: (messageId: string) => ['runs', 'question', messageId] as const,
  },
  usage: {
    byAgent: ['usage', 'by-agent'],
    report: (by: string, bucket: string, from: string, to: string) => ['usage', 'report', by, bucket, from, to] as const,
  },
} as const
