from typing import Any

import pytest

from ahpkit.customizations.lenient_header import chunks, raw_value, read_leniently


@pytest.mark.parametrize(
    ("header", "meta"),
    [
        ("globs: **/*.{js,jsx}\nalwaysApply: false", {"globs": "**/*.{js,jsx}", "alwaysApply": "false"}),
        ("name: a\ntools: *", {"name": "a", "tools": "*"}),
        ("argument-hint: [a] [b]\ndescription: x", {"argument-hint": "[a] [b]", "description": "x"}),
        ("description: Use it: always: yes\nname: a", {"description": "Use it: always: yes", "name": "a"}),
        ("name: @scope/x", {"name": "@scope/x"}),
        ("name: `x`", {"name": "`x`"}),
        ('description: "He said "hi" to me"', {"description": 'He said "hi" to me'}),
        ("description: one\ntwo three\nname: a", {"description": "one two three", "name": "a"}),
        ("globs:\n\t- **/*.ts\n\t- src", {"globs": ["**/*.ts", "src"]}),
        (
            "hooks:\n  PreToolUse:\n    - matcher: *\n      command: a: b\nname: z",
            {"hooks": {"PreToolUse": [{"matcher": "*", "command": "a: b"}]}, "name": "z"},
        ),
        ("a: &x [1]\nb: *y", {"a": ["1"], "b": "*y"}),
    ],
)
def test_a_value_that_is_no_yaml_is_read_as_written_and_the_others_as_usual(header: str, meta: dict[str, Any]) -> None:
    assert read_leniently(header).meta == meta


def test_lines_of_an_example_conversation_belong_to_the_description() -> None:
    header = "name: r\ndescription: Reviews.\nContext: a PR\nuser: \"hi\"\nassistant: 'ok'\ncontext: fork\nmodel: x"
    assert read_leniently(header).meta == {
        "name": "r",
        "description": "Reviews. Context: a PR user: \"hi\" assistant: 'ok'",
        "context": "fork",
        "model": "x",
    }


def test_it_says_which_keys_needed_help() -> None:
    found = read_leniently("name: a\nglobs: *.ts\nmodel: b")
    assert [chunk.key for chunk in found.helped] == ["globs"]


def test_the_first_of_two_equal_keys_counts_and_the_other_is_said() -> None:
    found = read_leniently("name: a\nglobs: *.ts\nname: b")
    assert found.meta["name"] == "a"
    assert found.duplicates == ["name"]


def test_block_text_of_a_broken_header_is_kept() -> None:
    assert read_leniently("description: |\n  one\n  two\nglobs: *.ts").meta["description"] == "one\ntwo"


def test_a_value_too_long_to_try_line_by_line_is_taken_as_text() -> None:
    header = "a:\n" + "  - *x\n" * 1_000
    assert isinstance(read_leniently(header).meta["a"], str)


def test_the_raw_value_is_what_stands_behind_the_key() -> None:
    assert raw_value("argument-hint: [file]\nname: x", "argument-hint") == "[file]"
    assert raw_value("name: x", "argument-hint") is None


def test_chunks_know_their_line() -> None:
    assert [(chunk.key, chunk.line) for chunk in chunks("# c\na: 1\n  - x\nb: 2")] == [("a", 1), ("b", 3)]
