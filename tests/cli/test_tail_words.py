"""What actions say to people: each type of the specification, and what no version has. Pure."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.cli.tail import in_words

FIXTURES = Path(__file__).parents[1] / "fixtures" / "reducers" / "1.0.0"


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"type": "chat/turnStarted", "message": {"text": "hi\nthere"}}, "> hi there"),
        ({"type": "chat/toolCallConfirmed", "approved": False}, "denied"),
        ({"type": "chat/toolCallComplete", "result": {"success": True}}, "done"),
        ({"type": "chat/toolCallStart", "displayName": "Shell"}, "Shell"),
        ({"type": "chat/turnComplete", "turnId": "t", "duration": 1234}, "after 1.2 s"),
        ({"type": "chat/usage", "turnId": "t", "usage": {"inputTokens": 5}}, "tokens: 5 in"),
        ({"type": "session/ready"}, ""),
        ({"type": "session/isReadChanged", "isRead": True}, "yes"),
        (
            {
                "type": "session/chatUpdated",
                "chat": "ahp-chat:/a",
                "changes": {"status": 8, "title": "B", "modifiedAt": "x"},
            },
            "chat: ahp-chat:/a, changes: status running, title B",
        ),
        ({"type": "session/chatAdded", "summary": {"resource": "ahp-chat:/a", "title": ""}}, "ahp-chat:/a"),
        ({"type": "session/inputNeededRemoved", "id": "i-1"}, "i-1"),
        ({"type": "session/serverToolsChanged", "tools": [{"name": name} for name in "abcde"]}, "a, b, c and 2 more"),
        ({"type": "unheard/of", "a": 1, "oddThing": {"x": [None, False]}}, "a: 1, odd thing: x nothing, no"),
        ({"type": "unheard/of", "deep": {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}}, "a a a a …"),
    ],
)
def test_an_action_is_told_in_words(action: Any, words: str) -> None:
    assert in_words(action) == words


def every_action() -> Iterator[Any]:
    """The actions of all examples of the specification."""
    for path in FIXTURES.rglob("*.json"):
        yield from json.loads(path.read_text(encoding="utf-8"))["actions"]


def test_no_action_is_told_as_json() -> None:
    told = {action["type"]: in_words({**action, "toolInput": ""}) for action in every_action()}
    assert len(told) > 60
    assert {type: words for type, words in told.items() if re.search(r"""[{}\[\]]|["']: """, words)} == {}
