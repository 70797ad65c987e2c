"""A turn for a reader."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.python import agent
from ahpkit.cli.output import Output
from ahpkit.cli.show_turn import StatusLine, TurnPrinter, event_line, news, plan_lines, plan_of, show_plans
from ahpkit.client import events
from ahpkit.host.agent import Turn
from ahpkit.protocol.rope import Rope
from ahpkit.testing.memory_host import memory_host
from support.process import host_process
from support.terminal import terminal

ERROR: Any = {"errorType": "x", "message": "it broke"}
TURN: Any = {"id": "t", "message": {"text": "hi", "origin": {"kind": "user"}}, "responseParts": [], "state": "complete"}


def call(**fields: Any) -> Any:
    return {"toolCallId": "c", "toolName": "shell", "displayName": "Shell", **fields}


def shown(capsys: pytest.CaptureFixture[str], *happened: events.TurnEvent, quiet: bool = False) -> tuple[str, str]:
    printer = TurnPrinter(Output(), quiet=quiet)
    for event in happened:
        printer.show(event)
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_parts_are_streamed_one_below_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    deltas = [events.ReasoningDelta("r", "Hm"), events.ReasoningDelta("r", "m."), events.TextDelta("a", "One ")]
    deltas += [events.TextDelta("a", "two"), events.TextDelta("b", "three\n"), events.TurnCompleted(TURN)]
    assert shown(capsys, *deltas)[0] == "Hmm.\nOne two\nthree\n"


@pytest.mark.parametrize(
    ("end", "line"),
    [
        (events.TurnCancelled(None), "✗ cancelled"),
        (events.TurnCompleted(TURN), "✗ stopped here; the answer was complete already (ahpkit sessions show)"),
    ],
)
def test_text_that_comes_after_a_stop_is_not_shown(
    capsys: pytest.CaptureFixture[str], end: events.TurnEvent, line: str
) -> None:
    printer = TurnPrinter(Output())
    printer.show(events.TextDelta("a", "One "))
    printer.stop()
    for text in (events.TextDelta("a", "two"), events.ReasoningDelta("r", "three"), events.TextDelta("b", "four")):
        printer.show(text)
    printer.show(end)
    assert capsys.readouterr().out == f"One \n{line}\n"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (events.ToolCallRunning(call(invocationMessage={"markdown": "Running"})), "… Running"),
        (events.ToolCallRunning(call(invocationMessage="")), "… Shell"),
        (events.ToolCallCompleted(call(success=True, pastTenseMessage="Ran it")), "✓ Ran it"),
        (events.ToolCallCompleted(call(success=True, pastTenseMessage="")), "✓ Shell"),
        (
            events.ToolCallCompleted(call(success=False, pastTenseMessage="Ran it", error={"message": "exit\n1"})),
            "✗ Ran it: exit 1",
        ),
        (events.ToolCallCompleted(call(success=False, pastTenseMessage="Ran it")), "✗ Ran it"),
        (events.ToolCallCancelled(call()), "✗ Shell: not run"),
        (events.ToolCallCancelled(call(reasonMessage="no")), "✗ Shell: not run (no)"),
        (events.Notice("Compacted"), "! Compacted"),
        (events.Usage({"inputTokens": 1, "outputTokens": 2}), "· tokens: 1 in, 2 out"),
        (events.Usage({"outputTokens": 2, "_meta": {"ahpkit/cost": 0.5}}), "· tokens: 2 out, $0.5000"),
        (events.TurnFailed(ERROR, TURN), "✗ it broke"),
        (events.TurnCancelled(None), "✗ cancelled"),
    ],
)
def test_each_event_has_its_line(capsys: pytest.CaptureFixture[str], event: events.TurnEvent, line: str) -> None:
    assert shown(capsys, event) == (f"{line}\n", "")


def test_quiet_is_the_answer_only_and_errors_where_they_belong(capsys: pytest.CaptureFixture[str]) -> None:
    happened = [
        events.ReasoningDelta("r", "Hm"),
        events.ToolCallRunning(call(invocationMessage="Running")),
        events.Notice("Compacted"),
        events.TextDelta("a", "Answer"),
        events.TurnFailed(ERROR, TURN),
    ]
    assert shown(capsys, *happened, quiet=True) == ("Answer\n", "✗ it broke\n")


def test_an_event_is_one_line_of_json() -> None:
    line = event_line(events.ToolCallStarted(call(partialInput=Rope.of("a\nb"))))
    assert "\n" not in line
    assert json.loads(line) == {"event": "ToolCallStarted", "call": call(partialInput="a\nb")}


def test_it_says_who_does_what_since_when_and_what_it_took() -> None:
    line = StatusLine("demo", "small", 100.0)
    assert line.text(100.0) == "⠋ demo (small) · starts · 0 s"
    line.take(events.ReasoningDelta("p", "hm"))
    assert " · thinks · " in line.text(101)
    line.take(events.TextDelta("p", "x"))
    assert " · answers · " in line.text(101)
    line.take(events.ToolCallRunning(call(invocationMessage="Running ls")))
    assert " · Running ls · " in line.text(101)
    line.take(events.ConfirmationNeeded(call()))
    assert " · waits for somebody · " in line.text(101)
    line.take(events.Usage({"inputTokens": 1234, "outputTokens": 5, "_meta": {"ahpkit/cost": 0.01}}))
    assert line.text(200).endswith(" · 1:40 min · 1.2k in, 5 out · $0.0100")


def test_without_a_model_or_numbers_there_are_none() -> None:
    assert StatusLine("demo", None, 0.0).text(0.0) == "⠋ demo · starts · 0 s"


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
