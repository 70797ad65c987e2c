"""An agent's plan, as a reader sees it."""

import asyncio
from pathlib import Path
from typing import Any

from ahpkit.agents.python import agent
from ahpkit.cli.output import Output
from ahpkit.cli.plans import news, plan_lines, plan_of, show_plans
from ahpkit.host.agent import Turn
from ahpkit.testing.memory_host import memory_host
from support.process import host_process
from support.terminal import terminal

CHAT = "ahp-chat:/1"


def plans(*entries: tuple[str, str]) -> Any:
    listed = [{"content": content, "status": status, "priority": "high"} for content, status in entries]
    return [{"entries": listed}]


def test_a_plan_belongs_to_one_chat() -> None:
    state = {"_meta": {"ahpkit/plan": {CHAT: plans(("look", "pending"))}}}
    assert plan_of(state, CHAT) == [("look", "pending")]
    assert plan_of(state, "ahp-chat:/2") == []
    assert plan_of({}, CHAT) == []


def test_a_plan_that_is_a_document_has_no_entries() -> None:
    state = {"_meta": {"ahpkit/plan": {CHAT: [{"id": "p", "type": "markdown", "content": "…"}]}}}
    assert plan_of(state, CHAT) == []


def test_a_new_plan_is_shown_whole_then_what_changed() -> None:
    first = [("look", "in_progress"), ("leap", "pending")]
    then = [("look", "completed"), ("leap", "pending")]
    assert news((), first) == ["Plan", "  ◐ look", "  ○ leap"]
    assert news(first, then) == ["  ● look"]
    assert news(then, [("rest", "pending")]) == ["Plan", "  ○ rest"]
    assert news(then, ()) == []


def test_an_entry_is_one_line() -> None:
    assert plan_lines([("a\nb " * 100, "later")]) == [f"  ? {('a b ' * 100)[:99]}…"]


class Notes(Output):
    """Keeps what is said, and tells when something is."""

    def __init__(self) -> None:
        super().__init__()
        self.said: asyncio.Queue[str] = asyncio.Queue()

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        self.said.put_nowait(text)


@agent(name="planner")
async def planner(turn: Turn) -> None:
    turn.chat.meta("ahpkit/plan", plans((turn.prompt, "pending")))


async def test_plans_are_shown_as_they_come() -> None:
    async with memory_host(planner) as host, host.client() as client, asyncio.timeout(5):
        session = await client.create_session()
        chat, notes = await session.chat(), Notes()
        async with client.subscribe(session.uri) as events:
            showing = asyncio.create_task(show_plans(notes, events, chat.uri))
            await chat.ask("look")
            assert [await notes.said.get(), await notes.said.get()] == ["Plan", "  ○ look"]
            showing.cancel()
            await asyncio.wait([showing])


PLANNER = """
import asyncio
from pathlib import Path
from ahpkit.agents import Turn, agent


def plan(first, second):
    return [{"entries": [{"content": "look", "status": first}, {"content": "leap", "status": second}]}]


@agent(name="planner")
async def planner(turn: Turn) -> None:
    turn.text("On it.")
    turn.chat.meta("ahpkit/plan", plan("in_progress", "pending"))
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    turn.chat.meta("ahpkit/plan", plan("completed", "in_progress"))
    while not Path("end").exists():
        await asyncio.sleep(0.01)
    turn.chat.meta("ahpkit/plan", plan("completed", "completed"))
    while not Path("over").exists():
        await asyncio.sleep(0.01)
"""


async def test_a_plan_is_a_list_that_fills_and_stays(tmp_path: Path) -> None:
    (tmp_path / "planner.py").write_text(PLANNER)
    (tmp_path / "host.toml").write_text('[agents.planner]\npython = "planner.py:planner"')
    async with host_process(tmp_path, "--config", "host.toml"), terminal(["chat"], tmp_path) as person:
        await person.ready()
        person.enter("go")
        await person.until(lambda screen: "Plan\n  ◐ look\n  ○ leap\n" in screen.text and "planner · " in screen.text)
        (tmp_path / "go").touch()
        await person.until(lambda screen: "Plan\n  ● look\n  ◐ leap\n" in screen.text)
        assert person.screen.text.count("look") == 1
        (tmp_path / "end").touch()
        await person.until(lambda screen: "Plan\n  ● look\n  ● leap\n" in screen.text)
        (tmp_path / "over").touch()
        await person.ready()
        assert "On it.\nPlan\n  ● look\n  ● leap\n>" in person.screen.text
