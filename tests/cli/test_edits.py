"""What a tool is about to change, whichever way its agent tells."""

import json
from typing import Any

import pytest

from ahpkit.cli.edits import describe_input

FILES = {"file:///w/a.py": "one\ntwo\n"}


async def read(uri: str) -> str | None:
    return FILES.get(uri)


TWO_TO_2 = ["change /w/a.py", "@@ -1 +1 @@", "-two", "+2"]
PATCH = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-two\n+2"


@pytest.mark.parametrize(
    "given",
    [
        {"file_path": "/w/a.py", "old_string": "two", "new_string": "2", "replace_all": False},
        {"path": "/w/a.py", "old_str": "two", "new_str": "2", "command": "str_replace"},
        {"filePath": "/w/a.py", "oldString": "two", "newString": "2"},
        {"path": "/w/a.py", "edits": [{"oldText": "two", "newText": "2"}]},
        {"changes": [{"path": "/w/a.py", "old_text": "two", "new_text": "2"}]},
    ],
)
async def test_a_replacement_is_a_diff(given: Any) -> None:
    assert await describe_input(json.dumps(given), read) == TWO_TO_2


@pytest.mark.parametrize("name", ["content", "file_text", "contents"])
async def test_a_file_that_is_written_is_compared_with_what_is_there(name: str) -> None:
    written = await describe_input(json.dumps({"path": "/w/a.py", name: "one\n2\n"}), read)
    assert written == ["change /w/a.py", "@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    new = await describe_input(json.dumps({"path": "b.py", name: "one\n"}), read)
    assert new == ["write b.py", "@@ -0,0 +1 @@", "+one"]


@pytest.mark.parametrize(
    ("given", "first"),
    [
        (PATCH, "--- a.py"),
        (json.dumps({"diff": PATCH}), "--- a.py"),
        (json.dumps({"changes": {"/w/a.py": {"unified_diff": PATCH, "type": "update"}}}), "change /w/a.py"),
        ("*** Begin Patch\n*** Update File: a.py\n-two\n+2\n*** End Patch", "*** Begin Patch"),
    ],
)
async def test_a_patch_is_shown_as_it_is(given: str, first: str) -> None:
    lines = await describe_input(given, read)
    assert lines[0] == first
    assert {"-two", "+2"} <= set(lines)


@pytest.mark.parametrize(
    "given", ["", "ls -l", "[1]", '{"path": "/w"}', '{"command": "ls", "old": 1}', '{"edits": [1]}']
)
async def test_what_changes_no_file_has_no_diff(given: str) -> None:
    assert await describe_input(given, read) == []
