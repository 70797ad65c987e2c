"""Which sessions fit, and what is found in them: no host needed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ahpkit.cli.session_search import Filter, age, excerpt
from ahpkit.protocol.chat.turns import text_of
from ahpkit.protocol.session.state import SessionStatus

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def summary(**fields: Any) -> Any:
    made = {"provider": "demo", "status": int(SessionStatus.Idle), "modifiedAt": "2026-11-15T06:00:00.000Z"}
    return {**made, "workingDirectories": [Path("/").as_uri()], **fields}


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (Filter(), True),
        (Filter(agent="demo"), True),
        (Filter(agent="other"), False),
        (Filter(directory=Path("/")), True),
        (Filter(directory=Path("/tmp")), False),
        (Filter(since=timedelta(hours=7)), True),
        (Filter(since=timedelta(hours=5)), False),
        (Filter(status="idle"), True),
        (Filter(status="running"), False),
        (Filter(status="archived"), False),
    ],
)
def test_a_session_fits_when_everything_does(wanted: Filter, fits: bool) -> None:
    assert wanted.fits(summary(), NOW) is fits


def test_archived_sessions_are_shown_on_request() -> None:
    archived = summary(status=int(SessionStatus.Idle | SessionStatus.IsArchived))
    assert not Filter().fits(archived, NOW)
    assert not Filter(status="idle").fits(archived, NOW)
    assert Filter(everything=True).fits(archived, NOW)
    assert Filter(status="archived").fits(archived, NOW)


@pytest.mark.parametrize(("text", "hours"), [("90min", 1.5), ("12h", 12), ("2d", 48), ("1w", 168)])
def test_durations_are_short(text: str, hours: float) -> None:
    assert age(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "12", "h", "-1d", "1y", "1.5h"])
def test_a_wrong_duration_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="write 45min, 12h, 30d or 2w"):
        age(text)


def test_all_words_must_occur_and_what_stands_around_the_first_is_shown() -> None:
    text = "a" * 100 + " Find the Needle here\nand more " + "b" * 100
    found = excerpt(text, ["needle", "MORE"])
    assert found is not None
    assert found.startswith("…")
    assert found.endswith("…")
    assert "Find the Needle here and more" in found
    assert excerpt(text, ["needle", "haystack"]) is None
    assert excerpt("only", ["only"]) == "only"


def test_everything_that_can_be_read_in_a_turn_is_searched() -> None:
    call = {"displayName": "Shell", "toolInput": "ls -l", "content": [{"type": "text", "text": "total 0"}]}
    parts = [
        {"kind": "markdown", "content": "answer"},
        {"kind": "reasoning", "content": "thought"},
        {"kind": "toolCall", "toolCall": call},
        {"kind": "systemNotification", "content": {"markdown": "notice"}},
        {"kind": "contentRef"},
    ]
    text = text_of({"message": {"text": "question"}, "responseParts": parts})
    assert text.split("\n") == ["question", "answer", "thought", "Shell", "ls -l", "total 0", "notice"]
