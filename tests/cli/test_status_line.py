"""What goes on, in one line."""

from typing import Any

from ahpkit.cli.status_line import StatusLine
from ahpkit.client import events


def call(**fields: Any) -> Any:
    return {"toolCallId": "c", "toolName": "shell", "displayName": "Shell", **fields}


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
