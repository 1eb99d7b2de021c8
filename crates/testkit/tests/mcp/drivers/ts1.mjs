// The TypeScript library of the first generation.
import { drive, load } from "./scenario.mjs";

const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { SSEClientTransport } = load("@modelcontextprotocol/sdk/client/sse.js");
const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");

function transport({ transport, base, token, command }) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  switch (transport) {
    case "http":
      return new StreamableHTTPClientTransport(new URL(`${base}/mcp`), { requestInit: { headers } });
    case "sse":
      return new SSEClientTransport(new URL(`${base}/sse`), { requestInit: { headers } });
    case "stdio":
      return new StdioClientTransport({ command: command[0], args: command.slice(1), env: { GREENROOM_TOKEN: token } });
  }
}

await drive(async (setting, hear, fail) => {
  const client = new Client({ name: "ts1", version: "1" });
  client.fallbackNotificationHandler = async (notification) => hear(notification);
  client.onerror = fail;
  const way = transport(setting);
  await client.connect(way);
  return {
    protocol: () => way.protocolVersion ?? null,
    server: () => client.getServerVersion().name,
    listTools: async () => (await client.listTools()).tools,
    listResources: async () => (await client.listResources()).resources,
    listPrompts: async () => (await client.listPrompts()).prompts,
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    read: async (uri) => (await client.readResource({ uri })).contents,
    prompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages,
    follow: (uri) => client.subscribeResource({ uri }),
    unfollow: (uri) => client.unsubscribeResource({ uri }),
    close: async () => {
      await way.terminateSession?.();
      await client.close();
    },
  };
});
