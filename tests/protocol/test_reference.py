"""The reference page shows the tables as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpkit.protocol.channels import CHANNELS
from ahpkit.protocol.errors import ERRORS
from ahpkit.protocol.registry import ACTIONS, COMMANDS, NOTIFICATIONS
from ahpkit.wire.codec import MAX_ANSWER_DEPTH, MAX_BYTES, MAX_DEPTH

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "protocol.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table in a section, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_lists_every_action() -> None:
    expected = [[spec.type, spec.since, "client" if spec.client_dispatchable else "host"] for spec in ACTIONS.values()]
    assert rows("Actions") == expected


def test_the_page_lists_every_command() -> None:
    expected = [[spec.method, spec.kind, spec.direction, spec.channel or "any"] for spec in COMMANDS.values()]
    assert rows("Commands") == expected


def test_the_page_lists_every_notification() -> None:
    expected = [[spec.method, spec.since, spec.channel or "any"] for spec in NOTIFICATIONS.values()]
    assert rows("Notifications of a host") == expected


def test_the_page_lists_every_error() -> None:
    assert [row[:2] for row in rows("Errors")] == [[str(code), cls.__name__] for code, cls in ERRORS.items()]


@pytest.mark.parametrize("row", rows("Channels"), ids=lambda row: row[0])
def test_the_page_lists_every_channel(row: list[str]) -> None:
    channel = CHANNELS[row[0]]
    example = row[1].replace("<id>", "1").replace("<path>", "1/2").replace("<anything>", "x")
    assert channel.pattern.fullmatch(example)
    assert row[2] == (channel.state.__name__ if channel.state else "–")
    assert len(rows("Channels")) == len(CHANNELS)


def test_the_page_names_the_limits_of_the_codec() -> None:
    assert f"nested more than {MAX_DEPTH} levels deep (an answer: {MAX_ANSWER_DEPTH})" in PAGE
    assert f"({MAX_BYTES >> 20} MiB unless told otherwise)" in PAGE
