"""docs/reference/reducers.md says what the tables say."""

import re
from pathlib import Path

from ahpkit.protocol.chat.tool_calls import FIELDS, LIFE_CYCLE
from ahpkit.protocol.registry import ACTIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "reducers.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_diagram_is_the_life_cycle_table() -> None:
    name = {status: status.replace("-", "_") for status in LIFE_CYCLE}
    edges = [f"{name[a]} --> {name[b]} : {event}" for a, events in LIFE_CYCLE.items() for event, b in events.items()]
    ends = [f"{name[status]} --> [*]" for status, events in LIFE_CYCLE.items() if not events]
    drawn = section("Tool calls").partition("```mermaid\n")[2].partition("\n```")[0].splitlines()
    assert [line.strip() for line in drawn] == ["stateDiagram-v2", "[*] --> streaming : start", *edges, *ends]


def test_the_fields_of_each_status_are_the_field_table() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", section("Tool calls"), re.MULTILINE)
    assert {status: set(re.findall(r"`(\w+)`", fields)) for status, fields in rows} == FIELDS


def test_every_action_is_described_once() -> None:
    assert sorted(re.findall(r"`(\w+/\w+)`", section("Every action"))) == sorted(ACTIONS)


def test_the_example_runs() -> None:
    example = PAGE.partition("```python\n")[2].partition("\n```")[0]
    assert example.count("\nassert ") == 2
    exec(example, {})
