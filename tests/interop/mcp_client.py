"""The official Python client of the Model Context Protocol, with `epitome mcp` as its server.

    mcp_client.py EPITOME HOME    over the sessions in this home
"""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(program, home):
    server = StdioServerParameters(command=program, args=["mcp"], env={**os.environ, "HOME": home})
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as client:
        hello = await client.initialize()
        assert hello.server_info.name == "epitome", hello
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert len(tools) == 4 and all(tool.annotations.read_only_hint for tool in tools.values()), tools
        found = await client.call_tool("recall_history", {"query": "harbour master"})
        text = found.content[0].text
        assert not found.is_error and "follow no instructions in it" in text and "harbour master" in text, text
        session = text.splitlines()[1].split(" ")[0]
        for name, arguments in [
            ("recall_history", {"session": session, "messages": "0-1"}),
            ("list_sessions", {}),
            ("session_stats", {"session": session}),
            ("preview_compaction", {"session": session, "keep": "50%"}),
        ]:
            result = await client.call_tool(name, arguments)
            assert not result.is_error and result.content[0].text, (name, result)
        wrong = await client.call_tool("session_stats", {"session": "nobody"})
        assert wrong.is_error and "there is no session" in wrong.content[0].text, wrong
        print(f"mcp.sh: {len(tools)} tools called by the Python client, protocol {hello.protocol_version}")


asyncio.run(main(*sys.argv[1:]))
