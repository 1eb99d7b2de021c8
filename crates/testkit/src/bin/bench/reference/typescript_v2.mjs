// The official TypeScript SDK, version 2, for modern clients: no sessions, answers as JSON.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';

const handler = createMcpHandler(
  () => {
    const server = new McpServer({ name: 'reference', version: '1' });
    const inputSchema = z.object({ text: z.string() });
    server.registerTool('echo', { inputSchema }, ({ text }) => ({ content: [{ type: 'text', text }] }));
    return server;
  },
  { maxSubscriptions: 10_000 },
);

const listener = createServer(toNodeHandler(handler)).listen(0, '127.0.0.1', () =>
  console.log(`listening on 127.0.0.1:${listener.address().port}`),
);
