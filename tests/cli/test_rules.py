"""`ahpkit rules` and `ahpkit approvals`: as a person would type them, with a real host."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.client import Approve, connect
from ahpkit.protocol.errors import InvalidParams
from support.process import HostProcess, finish_cli, host_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = """
[[rules]]
decision = "deny"
owner = "agent:demo"
tool = "read_file"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[HostProcess]:
    home = tmp_path_factory.mktemp("home")
    config = home / "host.toml"
    config.write_text(CONFIG)
    options = ("--durability", "memory", "--root", str(home.parent), "--config", str(config))
    async with host_process(home, *options) as running:
        yield running


async def typed(host: HostProcess, *words: str) -> str:
    code, output, errors = await finish_cli(words, host.home)
    assert code == 0, errors
    return output


async def rules(host: HostProcess) -> list[Any]:
    return json.loads(await typed(host, "rules", "list", "--json"))


async def test_a_rule_is_added_listed_and_taken_back(host: HostProcess, tmp_path: Path) -> None:
    words = ("--owner", "agent:demo", "--tool", "shell", "--command", "git status", "--workspace", str(tmp_path))
    made = await typed(host, "rules", "add", "allow", *words)
    assert "Always allow `git status …` in this workspace" in made
    [configured, rule] = await rules(host)
    assert configured["configured"] is True
    assert (rule["kind"], rule["scope"], rule["place"]) == ("command", "workspace", tmp_path.as_uri())
    assert f"{configured['id']}  " in (listed := await typed(host, "rules", "list"))
    assert "configuration" in listed
    assert "removed: Always allow" in await typed(host, "rules", "remove", rule["id"][:8])
    assert [one["id"] for one in await rules(host)] == [configured["id"]]


async def test_what_makes_no_rule_is_refused_in_words(host: HostProcess) -> None:
    for words, reason in (
        (("add", "allow", "--owner", "nobody"), "the owner is agent:NAME"),
        (("add", "allow", "--owner", "agent:x"), "name a tool"),
        (("add", "allow", "--owner", "mcp:x", "--tool", ""), "an argument is empty"),
        (("add", "allow", "--owner", "mcp:x", "--tool", "a", "--command", ""), "an argument is empty"),
        (("add", "allow", "--owner", "mcp:x", "--tool", "a", "--command", "b", "--path", "/c"), "command or a path"),
        (("add", "deny", "--owner", "mcp:x", "--tool", "a", "--path", "src/**"), "a path pattern is absolute"),
        (("add", "allow", "--owner", "agent:x", "--tool", "t", "--command", "a; b"), "without shell operators"),
        (("remove", "nothing"), "there is no rule"),
        (("remove", "configured-1"), "take it out there"),
    ):
        code, _, errors = await finish_cli(["rules", *words], host.home)
        assert (code in (1, 2), reason in errors) == (True, True), errors


async def test_decisions_are_looked_up_with_who_and_what_was_shown(host: HostProcess) -> None:
    def always(asked: object) -> Approve:
        return Approve(option_id="allow:tool:chat")

    async with connect(host.url, token=host.token, client_id="ann", on_confirmation=always) as client:
        session = await client.create_session(provider="demo")
        chat = await session.chat()
        await chat.ask('/tool calculate {"expression": "1 + 1"}')
        await chat.ask('/tool read_file {"path": "x"}')
        decisions = await client.approvals(session=session.uri)
        assert [one["decision"] for one in decisions] == ["allowed", "denied"]
        person, rule = decisions
        assert (person["by"], person["who"], person["tool"]) == ("person", "ann", "calculate")
        assert "1 + 1" in person["shown"]["input"]
        assert (rule["by"], rule["who"]) == ("rule", "configured-1")
        with pytest.raises(InvalidParams):
            await client.add_rule("allow", owner="agent:x")
    listed = json.loads(await typed(host, "approvals", "log", "--json", "--session", session.uri))
    assert listed == decisions
    text = await typed(host, "approvals", "log", "--limit", "2")
    assert "by person ann, always allow this tool in this chat" in text
    assert "1 + 1" in text
    assert "by rule configured-1" in text


async def test_what_a_command_decides_by_itself_is_not_called_a_persons_decision(host: HostProcess) -> None:
    asked = '/tool calculate {"expression": "2 + 3"}'
    await finish_cli(["prompt", asked], host.home)
    await typed(host, "prompt", asked, "--approve", "all")
    async with connect(host.url, token=host.token) as client:
        session = await client.create_session(provider="demo")
        await (await session.chat()).ask(asked, on_approval="deny")
    text = await typed(host, "approvals", "log", "--limit", "3")
    assert text.count("by a program, without asking") == 3
    listed = json.loads(await typed(host, "approvals", "log", "--json", "--limit", "3"))
    assert [(one["decision"], one["by"]) for one in listed] == [
        ("denied", "client"),
        ("allowed", "client"),
        ("denied", "client"),
    ]
