"""What every Python client does with a running Greenroom. One JSON report on standard output says what it saw; the test that
started it decides whether that is right."""

import json
import sys
import traceback
import urllib.request

import anyio

SETTING = json.loads(sys.argv[1])
PATIENCE = 60


def rest_now(method, path, body):
    request = urllib.request.Request(SETTING["base"] + path, method=method)
    request.add_header("content-type", "application/json")
    if SETTING.get("token"):
        request.add_header("authorization", "Bearer " + SETTING["token"])
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, data, PATIENCE) as answer:
        text = answer.read()
    return json.loads(text) if text else None


async def rest(method, path, body=None):
    """The other door: what happens there is what the client is to hear of."""
    return await anyio.to_thread.run_sync(rest_now, method, path, body)


class Heard:
    """What the server says unasked."""

    def __init__(self):
        self.waiting = []

    def take(self, method, uri=None):
        for wanted, wanted_uri, event in self.waiting:
            if method == wanted and wanted_uri in (None, uri):
                event.set()

    def next(self, method, uri=None):
        """Only what comes after this call."""
        event = anyio.Event()
        self.waiting.append((method, uri, event))
        return event


async def wait(event):
    with anyio.fail_after(PATIENCE):
        await event.wait()


def drive(connect):
    report = {"errors": []}

    async def run():
        heard = Heard()
        with anyio.fail_after(5 * PATIENCE):
            async with connect(SETTING, heard, report["errors"]) as client:
                await play(client, heard, report)

    try:
        anyio.run(run)
    except BaseException:
        report["failure"] = traceback.format_exc()
    print(json.dumps(report), flush=True)


async def play(client, heard, report):
    report["protocol"] = client.protocol()
    report["server"] = client.server()
    report["tools"] = await client.list_tools()
    report["agents"] = names(await client.call("list_agents", {}))

    progress = []
    running = []
    is_over = False

    async def on_progress(done, total, message):
        progress.append({"progress": done, "message": message, "late": is_over})
        if len(progress) == 1:
            running.append(len((await rest("GET", "/api/runs?status=running"))["runs"]))

    ran = await client.call("run_agent", {"agent": "scripted", "message": "!count 40 50"}, on_progress)
    is_over = True
    told = ran["structured"]
    plain = json.loads(ran["text"])["text"]
    report["run"] = {"status": told["status"], "text": told["text"], "progress": progress, "plain": plain}
    report["run"]["running"] = running[0] if running else None

    room = told["room_id"]
    uri = f"greenroom://rooms/{room}"
    kind, text = await client.read(uri)
    report["room"] = {"type": kind, "messages": len(json.loads(text)["messages"])}
    report["listed"] = uri in await client.list_resources()

    await client.follow(uri)
    updated = heard.next("notifications/resources/updated", uri)
    await rest("POST", f"/api/rooms/{room}/messages", {"text": "!count 2"})
    await wait(updated)
    report["updated"] = uri

    tools = heard.next("notifications/tools/list_changed")
    await rest("POST", "/api/agents", {"name": "second", "provider": "scripted"})
    await wait(tools)
    report["agents_then"] = names(await client.call("list_agents", {}))

    prompts = heard.next("notifications/prompts/list_changed")
    parameters = [{"name": "word", "type": "text", "required": True}]
    skill = {"name": "greet", "description": "Greets. Use it to greet.", "body": "Say {{word}}.", "parameters": parameters}
    await rest("POST", "/api/skills", skill)
    await wait(prompts)
    report["prompts"] = await client.list_prompts()
    report["prompt"] = await client.prompt("greet", {"word": "moin"})

    await client.unfollow(uri)
    report["cancel"] = await client.cancel("run_agent", {"agent": "scripted", "message": "!hang", "on_disconnect": "cancel"})
    with anyio.fail_after(PATIENCE):
        while not (runs := (await rest("GET", "/api/runs?status=cancelled"))["runs"]):
            await anyio.sleep(0.05)
    report["cancelled_runs"] = len(runs)
    refused = await client.call("run_agent", {"agent": "nobody", "message": "hi"})
    report["refusal"] = refused["text"] if refused["is_error"] else False


def names(answer):
    return [agent["name"] for agent in answer["structured"]["agents"]]
