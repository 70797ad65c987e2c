"""The canvas examples do what they say, on a real host, and the documentation shows their code."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.canvas.errors import CODES
from ahpkit.canvas.url_policy import check_url
from ahpkit.client import Client, connect
from ahpkit.testing.memory_host import memory_host
from support import requirement
from support.examples import load_example
from support.pages import as_user, shown
from support.process import host_process
from support.waiting import BOUND, until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "canvas.md").read_text(encoding="utf-8")
EXAMPLES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("canvas_*.py")}


@asynccontextmanager
async def client_of(home: Path, *options: str) -> AsyncGenerator[Client]:
    async with host_process(home, *options) as host, connect(host.url, token=host.token) as client:
        yield client


async def test_the_tutorials_canvas_works_with_the_demo_agent(tmp_path: Path) -> None:
    command = shlex.join([sys.executable, str(ROOT / "examples" / "canvas_notes.py")])
    async with client_of(tmp_path, "--extension", command) as client:
        session = await client.create_session(provider="demo")
        await until(lambda: "example.notes" in str(session.confirmed.get("canvasRegistry")))
        chat = await session.chat()
        assert "Opened `n1`" in await chat.ask("/canvas open notes n1")
        for text in ("bread", "<b>milk</b>"):
            await chat.ask(f'/canvas invoke n1 write {{"text": "{text}"}}')
        await until(lambda: "milk" in session.confirmed["openCanvases"][0].get("url", ""))  # type: ignore[typeddict-item]  # The canvas is open.
        url = session.confirmed["openCanvases"][0]["url"]  # type: ignore[typeddict-item]  # The canvas is open.
        assert check_url(url).allowed
        assert unquote(url) == "data:text/html,bread<br>&lt;b&gt;milk&lt;/b&gt;"
        refused = await chat.ask("/canvas invoke n1 write {}")
        assert "canvas_invalid_input" in refused
        assert "Closed `n1`" in await chat.ask("/canvas close n1")


async def test_the_tutorials_canvas_works_in_a_client_too(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        client.add_canvas(load_example("canvas_notes").Notes)
        session = await client.create_session(provider="demo", active_client=True)
        await until(lambda: "notes" in str(session.confirmed.get("canvasRegistry")))
        chat = await session.chat()
        assert "Opened `n1`" in await chat.ask("/canvas open notes n1")
        assert "canvas_" not in await chat.ask('/canvas invoke n1 write {"text": "bread"}')
        await chat.ask("/canvas open notes n1")
        await until(lambda: "bread" in session.confirmed["openCanvases"][0].get("url", ""))  # type: ignore[typeddict-item]  # The canvas is open.
        assert "Closed `n1`" in await chat.ask("/canvas close n1")


async def test_the_chart_of_the_examples_shows_its_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with client_of(tmp_path) as client:
        await load_example("canvas_chart").main(client, points=3, pause=0)
        url, _, rest = capsys.readouterr().out.partition("\n")
        assert "sine,2,0.247" in rest
        assert [len(series["points"]) for series in (await shown(url))["series"]] == [3, 3]


async def test_the_checklist_of_the_examples_counts_what_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with client_of(tmp_path) as client:
        running = asyncio.create_task(load_example("canvas_checklist").main(client))
        printed: list[str] = []
        await until(lambda: printed.append(capsys.readouterr().out) or "0 of 3 done" in "".join(printed))
        url = "".join(printed).partition("\n")[0]
        for id in ("1", "2", "3"):
            assert (await as_user(url, "moveItem", id=id, column="Done")).status == 200
        async with asyncio.timeout(BOUND):
            await running
        assert "Return the keys" in capsys.readouterr().out


@requirement("canvas:compat:host-without-canvas", "canvas:compat:fields-optional")
async def test_on_a_host_without_canvases_all_else_works_and_the_renderer_says_that_none_is_open(
    tmp_path: Path,
) -> None:
    async with memory_host(DemoAgent(), directory=tmp_path) as host, host.client() as client:
        client.add_canvas(load_example("canvas_notes").Notes)
        session = await client.create_session()
        before = dict(session.state)
        await session.claim(can_render=True).accepted()
        chat = await session.chat()
        assert await chat.ask("hello")
        state = session.state
    for seen in (before, state):
        assert not {"canvasRegistry", "openCanvases", "canvasRequests"} & seen.keys()
    page = load_example("canvas_renderer").render(state.get("openCanvases", []))
    assert "No canvas is open." in page.body.decode()


@requirement("canvas:roles:renderer-displays")
def test_the_renderer_example_shows_title_and_url_and_names_what_it_refuses() -> None:
    renderer = load_example("canvas_renderer")
    fine = {"instanceId": "a", "availability": "ready", "title": "<A>", "url": "https://a.example/?x=1&y='2'"}
    hostile = {"instanceId": "b", "availability": "ready", "url": "javascript:alert(1)"}
    response = renderer.render([fine, hostile, {"instanceId": "c", "availability": "stale"}])
    body = response.body.decode()
    assert "<h2>&lt;A&gt;</h2><iframe sandbox=" in body
    assert 'src="https://a.example/?x=1&amp;y=&#x27;2&#x27;"' in body
    assert body.count("<iframe") == 1
    assert "javascript: URLs are not shown here" in body
    assert "alert(1)" not in body
    assert "frame-src https://a.example;" in response.headers["Content-Security-Policy"]


def test_the_page_shows_code_of_the_examples() -> None:
    blocks: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    sources = "\n".join(EXAMPLES.values())
    assert len(blocks) >= 2
    for block in blocks:
        assert block in sources or block.partition("\n\n\n")[2] in sources, block


def test_the_tutorials_canvas_has_about_twenty_lines() -> None:
    code = EXAMPLES["canvas_notes"].partition('"""\n\n')[2]
    assert len([line for line in code.splitlines() if line.strip()]) <= 21
    assert code in PAGE


def test_every_code_is_on_the_page_with_its_meaning() -> None:
    for code, meaning in CODES.items():
        assert f"| `{code}` | {meaning} |" in PAGE


def test_the_page_names_every_limit() -> None:
    from ahpkit.canvas import limits

    for name in ("MAX_INSTANCES", "MAX_REQUESTS", "MAX_INPUT", "MAX_ANSWER", "MAX_DECLARATIONS", "MAX_ID", "MAX_DEPTH"):
        assert re.search(rf"\| `{name}` \| {getattr(limits, name):_} \|", PAGE), name


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_page_names_every_example(name: str) -> None:
    assert f"examples/{name}.py" in PAGE
