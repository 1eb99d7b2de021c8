// The official TypeScript SDK, version 1, as its examples serve it: Express, a session for each client, answers as SSE.
import { randomUUID } from 'node:crypto';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as z from 'zod/v4';

const sessions = new Map();

async function newSession() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  const server = new McpServer({ name: 'reference', version: '1' });
  server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => ({ content: [{ type: 'text', text }] }));
  await server.connect(transport);
  return transport;
}

const app = createMcpExpressApp();
app.all('/mcp', async (request, response) => {
  const id = request.headers['mcp-session-id'];
  const transport = id === undefined ? await newSession() : sessions.get(id);
  if (transport === undefined) {
    response.status(404).end();
    return;
  }
  await transport.handleRequest(request, response, request.body);
});

const listener = app.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${listener.address().port}`));
