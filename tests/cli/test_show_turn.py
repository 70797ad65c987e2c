"""A turn for a reader."""

import json
from typing import Any

import pytest

from ahpkit.cli.output import Output
from ahpkit.cli.show_turn import TurnPrinter, event_line
from ahpkit.client import events
from ahpkit.protocol.rope import Rope

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
