"""The page with the tables of 0.4.0 shows them as they are."""

from __future__ import annotations

from pathlib import Path

from ahpkit.dialects.v0_4.registry import ACTIONS, COMMANDS, NOTIFICATIONS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "protocol-0.4.md").read_text(encoding="utf-8")


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
