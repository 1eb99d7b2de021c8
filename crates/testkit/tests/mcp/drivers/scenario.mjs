// What every TypeScript client does with a running Greenroom. One JSON report on standard output says what it saw; the test
// that started it decides whether that is right.
import { createRequire } from "node:module";

const setting = JSON.parse(process.argv[2]);
const PATIENCE = 60_000;

export const load = createRequire(`${setting.modules}/drivers.cjs`);

function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${PATIENCE} ms`)), PATIENCE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// The other door: what happens there is what the client is to hear of.
async function rest(method, path, body) {
  const headers = { "content-type": "application/json" };
  if (setting.token) headers.authorization = `Bearer ${setting.token}`;
  const answer = await within(fetch(setting.base + path, { method, headers, body: body && JSON.stringify(body) }), path);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === "" ? null : JSON.parse(text);
}

// What the server says unasked.
class Heard {
  all = [];
  waiting = [];
  take(notification) {
    this.all.push(notification);
    this.waiting = this.waiting.filter(({ fits, resolve }) => !fits(notification) || resolve(notification));
  }
  // Only what comes after this call.
  next(method, uri) {
    const fits = (it) => it.method === method && (uri === undefined || it.params?.uri === uri);
    const coming = new Promise((resolve) => this.waiting.push({ fits, resolve }));
    return within(coming, method);
  }
}

export async function drive(connect) {
  const heard = new Heard();
  const report = { errors: [] };
  try {
    const client = await within(
      connect(setting, (it) => heard.take(it), (error) => report.errors.push(String(error))),
      "to connect",
    );
    await play(client, heard, report);
    await within(client.close(), "to close");
  } catch (error) {
    report.failure = String(error?.stack ?? error);
  }
  process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0));
}

async function play(client, heard, report) {
  report.protocol = client.protocol();
  report.server = client.server();
  report.tools = (await client.listTools()).map((tool) => tool.name);
  report.agents = (await client.call("list_agents", {})).structuredContent.agents.map((agent) => agent.name);

  const progress = [];
  let isOver = false;
  let running;
  const ran = await client.call("run_agent", { agent: "scripted", message: "!count 40 50" }, {
    onprogress: (step) => {
      running ??= rest("GET", "/api/runs?status=running");
      progress.push({ progress: step.progress, message: step.message, late: isOver });
    },
  });
  isOver = true;
  const { room_id: room, status, text } = ran.structuredContent;
  report.run = { status, text, progress, running: (await running)?.runs.length, plain: JSON.parse(ran.content[0].text).text };

  const uri = `greenroom://rooms/${room}`;
  const [read] = await client.read(uri);
  report.room = { type: read.mimeType, messages: JSON.parse(read.text).messages.length };
  report.listed = (await client.listResources()).some((resource) => resource.uri === uri);

  await client.follow(uri);
  const updated = heard.next("notifications/resources/updated", uri);
  await rest("POST", `/api/rooms/${room}/messages`, { text: "!count 2" });
  report.updated = (await updated).params.uri;

  const tools = heard.next("notifications/tools/list_changed");
  await rest("POST", "/api/agents", { name: "second", provider: "scripted" });
  await tools;
  report.agents_then = (await client.call("list_agents", {})).structuredContent.agents.map((agent) => agent.name);

  const prompts = heard.next("notifications/prompts/list_changed");
  const parameters = [{ name: "word", type: "text", required: true }];
  await rest("POST", "/api/skills", { name: "greet", description: "Greets. Use it to greet.", body: "Say {{word}}.", parameters });
  await prompts;
  report.prompts = (await client.listPrompts()).map((prompt) => prompt.name);
  report.prompt = (await client.prompt("greet", { word: "moin" }))[0].content.text;

  await client.unfollow(uri);
  const cancelled = new AbortController();
  const hanging = client.call("run_agent", { agent: "scripted", message: "!hang", on_disconnect: "cancel" }, {
    onprogress: () => cancelled.abort("enough"),
    signal: cancelled.signal,
  });
  report.cancel = await within(hanging, "to be cancelled").then((it) => `answered ${JSON.stringify(it)}`, () => "rejected");
  report.cancelled_runs = await within(ended(), "the run to end");
  report.refusal = await client.call("run_agent", { agent: "nobody", message: "hi" }).then((it) => it.isError && it.content[0].text);
}

async function ended() {
  for (;;) {
    const { runs } = await rest("GET", "/api/runs?status=cancelled");
    if (runs.length > 0) return runs.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
