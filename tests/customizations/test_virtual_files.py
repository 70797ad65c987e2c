"""Files of plugins that are on no disk: read through their client, by every agent, and only while they are offered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp import Client as McpClient
from mcp import StdioServerParameters

from ahpkit.client import InMemoryPlugin
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Turn
from ahpkit.mcp.feature import McpServers
from ahpkit.testing.memory_host import memory_host
from support.bench import ScriptedAgent

SKILL = "---\nname: review\ndescription: Reviews code\n---\nRead beside.md first.\n"


async def test_a_skill_of_a_client_is_read_by_tool_and_as_a_resource_until_it_is_switched_off(tmp_path: Path) -> None:
    customizations = Customizations(CustomizationSettings(default_directory=tmp_path))
    servers = McpServers(customizations.servers, directory=tmp_path, files=lambda: customizations.virtual_files)
    agent, seen = ScriptedAgent(), dict[str, Any]()

    async def script(turn: Turn) -> None:
        async def read(uri: str) -> Any:
            return await turn.call_tool("read_plugin_file", json.dumps({"uri": uri}))

        [skill] = turn.context.skills
        folder = skill.uri.rpartition("/")[0]
        seen["tools"] = [tool["name"] for tool in turn.context.tools]
        seen["skill"] = (await read(skill.uri)).content[0]["text"]
        seen["beside"] = (await read(f"{folder}/beside.md")).content[0]["text"]
        seen["outside"] = [await read(uri) for uri in ("file:///etc/passwd", f"{folder}/../../../x", "virtual://x/y")]
        offers = await turn.chat.mcp_servers()
        config = dict(offers[0].config)
        way = StdioServerParameters(command=config["command"], args=config["args"], env=config["env"])
        async with McpClient(way, cache=None) as client:
            listed = (await client.list_resources()).resources
            seen["listed"] = [resource.name for resource in listed]
            seen["read"] = (await client.read_resource(str(listed[0].uri))).contents[0].text  # type: ignore[union-attr]  # It is text.

    agent.script = script
    async with (
        memory_host(agent, directory=tmp_path, features=[customizations, servers]) as host,
        host.client() as client,
    ):
        session = await client.create_session()
        files = {"skills/review/SKILL.md": SKILL, "skills/review/beside.md": "the second file"}
        await session.publish_plugin(InMemoryPlugin("mine", files)).accepted()
        await session.wait(lambda _: bool(session.customizations("skill")))
        chat = await session.chat()
        await chat.ask("go")
        assert "read_plugin_file" in seen["tools"]
        assert "Read beside.md first." in seen["skill"]
        assert seen["beside"] == "the second file"
        assert not any(outcome.success for outcome in seen["outside"])
        assert seen["listed"] == ["mine:review"]
        assert seen["read"] == seen["skill"]

        [skill] = session.customizations("skill")
        await session.toggle_customization(skill.entry["id"], False).accepted()
        uri = skill.entry["uri"]

        async def again(turn: Turn) -> None:
            seen["off"] = await turn.call_tool("read_plugin_file", json.dumps({"uri": uri}))

        agent.script = again
        await chat.ask("again")
        assert "switched off" in seen["off"].error
