"""The client examples run against a real host, and the documentation shows their code and names every name."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import ahpkit.client
from ahpkit.agents.demo import DemoAgent
from ahpkit.testing.memory_host import memory_host
from support.clients import eventually
from support.examples import load_example, shows

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("client_*.py"))
DOCS = ROOT / "docs"

pytestmark = pytest.mark.usefixtures("bounded")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("client_chat", ["What a day"], "What a day"),
        ("client_approvals", [], "The agent wants to run read_file"),
        ("client_tools", [], "3"),
        ("client_plugin", [], "published: poetry"),
    ],
)
async def test_an_example_does_what_it_says(
    name: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    async with memory_host(DemoAgent(), directory=tmp_path) as host, host.client() as client:
        await load_example(name).main(client, *arguments)

    assert said in capsys.readouterr().out


async def test_the_watch_example_prints_actions_until_it_is_stopped(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    async with memory_host(DemoAgent(), directory=tmp_path) as host, host.client() as client:
        watching = asyncio.create_task(load_example("client_watch").main(client))
        printed = ""

        def shown(text: str) -> bool:
            nonlocal printed
            printed += capsys.readouterr().out
            return text in printed

        await eventually(lambda: shown(": New session"))  # It follows the session from now on.
        async with host.client() as other:
            (summary,) = await other.sessions()
            await (await other.session(summary["resource"])).rename("renamed").accepted()
        await eventually(lambda: shown("session/titleChanged"))
        watching.cancel()
        await asyncio.wait([watching])


def test_every_example_is_tried() -> None:
    source = Path(__file__).read_text()
    assert [example.stem for example in EXAMPLES if f'"{example.stem}"' not in source] == []


def test_the_tutorial_shows_code_of_the_examples() -> None:
    sources = [example.read_text() for example in EXAMPLES]
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "tutorial" / "first-client.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        assert any(shows(block, source) for source in sources), block


def test_the_reference_names_every_public_name_and_method() -> None:
    page = (DOCS / "reference" / "client.md").read_text()
    names = [*ahpkit.client.__all__]
    for handle in (ahpkit.client.Client, ahpkit.client.Session, ahpkit.client.Chat):
        names += [name for name in vars(handle) if not name.startswith("_") and name not in _SHARED]
    missing = [name for name in names if not re.search(rf"\b{name}\b", page)]
    assert missing == []


_SHARED = frozenset({"uri"})
