"""The Python library of the first generation."""

from contextlib import asynccontextmanager

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

import scenario


class Client:
    def __init__(self, session, greeted):
        self.session = session
        self.greeted = greeted

    def protocol(self):
        return self.greeted.protocolVersion

    def server(self):
        return self.greeted.serverInfo.name

    async def list_tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def list_resources(self):
        return [str(resource.uri) for resource in (await self.session.list_resources()).resources]

    async def list_prompts(self):
        return [prompt.name for prompt in (await self.session.list_prompts()).prompts]

    async def call(self, name, arguments, on_progress=None):
        answer = await self.session.call_tool(name, arguments, progress_callback=on_progress)
        return {"structured": answer.structuredContent, "text": answer.content[0].text, "is_error": answer.isError}

    async def read(self, uri):
        [content] = (await self.session.read_resource(uri)).contents
        return content.mimeType, content.text

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    async def follow(self, uri):
        await self.session.subscribe_resource(uri)

    async def unfollow(self, uri):
        await self.session.unsubscribe_resource(uri)

    async def cancel(self, name, arguments):
        # This generation leaves it to its user to tell the server.
        request = self.session._request_id
        begun = anyio.Event()

        async def on_progress(done, total, message):
            begun.set()

        async with anyio.create_task_group() as group:
            group.start_soon(self.call, name, arguments, on_progress)
            await scenario.wait(begun)
            params = types.CancelledNotificationParams(requestId=request, reason="enough")
            await self.session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
            group.cancel_scope.cancel()
        return "rejected"


def streams(setting):
    headers = {"authorization": "Bearer " + setting["token"]} if setting.get("token") else {}
    match setting["transport"]:
        case "http":
            return streamablehttp_client(setting["base"] + "/mcp", headers=headers)
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
        elif isinstance(message, types.ServerNotification):
            uri = getattr(message.root.params, "uri", None)
            heard.take(message.root.method, str(uri) if uri else None)

    async with streams(setting) as (read, write, *_):
        async with ClientSession(read, write, message_handler=handle) as session:
            yield Client(session, await session.initialize())


scenario.drive(connect)
