// The TypeScript library of the second generation, in either era.
import { drive, load } from "./scenario.mjs";

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");

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
  const isModern = setting.era === "modern";
  const mode = isModern ? { pin: "2026-07-28" } : "legacy";
  const client = new Client({ name: "ts2", version: "1" }, { versionNegotiation: { mode } });
  client.fallbackNotificationHandler = async (notification) => hear(notification);
  client.onerror = fail;
  const way = transport(setting);
  await client.connect(way);
  let subscription;
  return {
    protocol: () => client.getNegotiatedProtocolVersion() ?? null,
    server: () => client.getServerVersion().name,
    listTools: async () => (await client.listTools()).tools,
    listResources: async () => (await client.listResources()).resources,
    listPrompts: async () => (await client.listPrompts()).prompts,
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
    read: async (uri) => (await client.readResource({ uri })).contents,
    prompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages,
    follow: async (uri) => {
      if (!isModern) return client.subscribeResource({ uri });
      const filter = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: [uri] };
      subscription = await client.listen(filter);
    },
    unfollow: async (uri) => (isModern ? subscription.close() : client.unsubscribeResource({ uri })),
    close: async () => {
      if (!isModern) await way.terminateSession?.();
      await client.close();
    },
  };
});
