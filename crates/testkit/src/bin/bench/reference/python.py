"""The official Python SDK: sessions with answers as SSE for older clients, JSON for modern ones."""

import asyncio
import socket

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("reference", log_level="WARNING")


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    return text


async def main() -> None:
    # With its protocol named: only then does asyncio send small answers at once.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    app = server.streamable_http_app()
    print(f"listening on 127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).serve([listener])


asyncio.run(main())
