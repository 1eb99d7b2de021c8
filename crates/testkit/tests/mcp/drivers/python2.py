"""The Python library of the second generation, in either era."""

from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import httpx2
from mcp.client.client import Client as Library
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

import scenario

EVENTS = {
    "ResourceUpdated": "notifications/resources/updated",
    "ToolsListChanged": "notifications/tools/list_changed",
    "PromptsListChanged": "notifications/prompts/list_changed",
    "ResourcesListChanged": "notifications/resources/list_changed",
}


class Client:
    def __init__(self, library, group, heard):
        self.library = library
        self.group = group
        self.heard = heard
        self.following = None

    def protocol(self):
        return self.library.protocol_version

    def server(self):
        return self.library.server_info.name

    async def list_tools(self):
        return [tool.name for tool in (await self.library.list_tools()).tools]

    async def list_resources(self):
        return [str(resource.uri) for resource in (await self.library.list_resources()).resources]

    async def list_prompts(self):
        return [prompt.name for prompt in (await self.library.list_prompts()).prompts]

    async def call(self, name, arguments, on_progress=None):
        answer = await self.library.call_tool(name, arguments, progress_callback=on_progress)
        return {"structured": answer.structured_content, "text": answer.content[0].text, "is_error": answer.is_error}

    async def read(self, uri):
        [content] = (await self.library.read_resource(uri)).contents
        return content.mime_type, content.text

    async def prompt(self, name, arguments):
        return (await self.library.get_prompt(name, arguments)).messages[0].content.text

    async def follow(self, uri):
        if self.protocol() < "2026":
            await self.library.subscribe_resource(uri)
            return
        acknowledged = anyio.Event()
        self.following = anyio.CancelScope()
        self.group.start_soon(self.listen, uri, acknowledged)
        await scenario.wait(acknowledged)

    async def listen(self, uri, acknowledged):
        with self.following:
            wanted = {"tools_list_changed": True, "prompts_list_changed": True, "resource_subscriptions": [uri]}
            async with self.library.listen(**wanted) as subscription:
                acknowledged.set()
                async for event in subscription:
                    self.heard.take(EVENTS[type(event).__name__], getattr(event, "uri", None))

    async def unfollow(self, uri):
        if self.following is None:
            await self.library.unsubscribe_resource(uri)
        else:
            self.following.cancel()

    async def cancel(self, name, arguments):
        begun = anyio.Event()

        async def on_progress(done, total, message):
            begun.set()

        async with anyio.create_task_group() as group:
            group.start_soon(self.call, name, arguments, on_progress)
            await scenario.wait(begun)
            group.cancel_scope.cancel()
        return "rejected"


async def transport(setting, stack):
    headers = {"authorization": "Bearer " + setting["token"]} if setting.get("token") else {}
    match setting["transport"]:
        case "http":
            patient = httpx2.Timeout(30, read=300)
            client = httpx2.AsyncClient(headers=headers, timeout=patient, trust_env=False)
            return streamable_http_client(setting["base"] + "/mcp", http_client=await stack.enter_async_context(client))
        case "sse":
            return sse_client(setting["base"] + "/sse", headers=headers)
        case "stdio":
            command, *arguments = setting["command"]
            environment = {"GREENROOM_TOKEN": setting["token"]} if setting.get("token") else {}
            return stdio_client(StdioServerParameters(command=command, args=arguments, env=environment))


@asynccontextmanager
async def connect(setting, heard, errors):
    async def handle(message):
        if isinstance(message, Exception):
            errors.append(repr(message))
            return
        notification = getattr(message, "root", message)
        uri = getattr(getattr(notification, "params", None), "uri", None)
        heard.take(getattr(notification, "method", ""), str(uri) if uri else None)

    # It asks the server which revisions there are and takes the newest.
    mode = "auto" if setting["era"] == "modern" else "legacy"
    async with AsyncExitStack() as stack:
        way = await transport(setting, stack)
        async with Library(way, mode=mode, message_handler=handle) as library:
            async with anyio.create_task_group() as group:
                yield Client(library, group, heard)
                group.cancel_scope.cancel()


scenario.drive(connect)
