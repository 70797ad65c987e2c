"""One session with an agent of each kind: the tests of a file share it."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from mcp_servers.running import PROGRAM
from support.agent_kinds import KINDS, agent_of_kind
from support.stage import Stage, staged

FILES = {".claude/skills/greet/SKILL.md": "---\nname: greet\ndescription: Greets\n---\nSay the word xylophone."}


@pytest_asyncio.fixture(params=KINDS, scope="module", loop_scope="module")
async def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stage]:
    directory = tmp_path_factory.mktemp("shared")
    started = str(directory / "started")
    servers = {"test": {"command": sys.executable, "args": [PROGRAM], "env": {"TEST_STARTED": started}}}
    async with (
        agent_of_kind(request.param, directory) as agent,
        staged(agent, directory, servers=servers, files=FILES) as stage,
    ):
        await stage.server("test", "ready")
        yield stage


@pytest_asyncio.fixture(loop_scope="module")
async def stage(shared: Stage) -> Stage:
    """In which nothing is left of the tests before."""
    await shared.begin_again()
    return shared
