from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.customizations.frontmatter import HEADER_LIMIT, Document, chunks, raw_value, read_document, read_leniently


def codes(document: Document) -> list[str]:
    return [problem.code for problem in document.problems]


def test_header_and_body_are_told_apart() -> None:
    document = read_document(b"---\nname: x\n---\n\nBody\n---\nmore\n")
    assert document == Document({"name": "x"}, "Body\n---\nmore\n", "name: x", ())


@pytest.mark.parametrize("data", [b"", b"Just text", b"# ---\nname: x\n---\n", b"text\n---\nname: x\n---\n"])
def test_a_file_without_header_is_all_body(data: bytes) -> None:
    assert read_document(data) == Document({}, data.decode())


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf---\nname: x\n---\nB",
        b"---\r\nname: x\r\n---\r\nB",
        b"---\rname: x\r---\rB",
        b"---  \nname: x\n--- \t\nB",
        b"---\nname: x\r\n---\nB",
    ],
)
def test_byte_order_marks_and_line_ends_do_not_matter(data: bytes) -> None:
    assert read_document(data) == Document({"name": "x"}, "B", "name: x")


def test_a_rule_of_dashes_inside_a_value_does_not_end_the_header() -> None:
    assert read_document(b"---\nname: a---b\ntext: --- x\n---\nB").meta == {"name": "a---b", "text": "--- x"}


def test_an_unclosed_header_ends_where_lines_stop_looking_like_one() -> None:
    document = read_document(b"---\nname: x\ntags:\n  - a\n\n# Title\ntext: no\n")
    assert document.meta == {"name": "x", "tags": ["a"]}
    assert document.body == "# Title\ntext: no\n"
    assert codes(document) == ["front-matter-unclosed"]


def test_a_list_is_no_header_but_its_body_stays() -> None:
    document = read_document(b"---\n- a\n---\nB")
    assert (document.meta, document.body, codes(document)) == ({}, "B", ["front-matter-shape"])


def test_text_between_two_rules_belongs_to_the_body() -> None:
    document = read_document(b"---\nA quote\n---\nB")
    assert (document.meta, document.body) == ({}, "---\nA quote\n---\nB")


@pytest.mark.parametrize(
    "data", [b"---\n# Title\nNote: this: that\n---\nB", b"---\nplain\nplain: a: b\n---\nB", b"---\nOnly a rule"]
)
def test_prose_that_begins_with_a_rule_keeps_its_text(data: bytes) -> None:
    document = read_document(data)
    assert (document.meta, document.body) == ({}, data.decode())
    assert [problem.level for problem in document.problems if problem.level != "note"] == []


@pytest.mark.parametrize("data", [b"\n\n---\nname: x\n---\nB", b"```chatmode\n---\nname: x\n---\nB\n```\n"])
def test_a_header_that_does_not_begin_on_line_1_is_read_and_said(data: bytes) -> None:
    document = read_document(data)
    assert (document.meta, document.body, codes(document)) == ({"name": "x"}, "B", ["front-matter-late"])


def test_a_rescue_is_said_with_its_line_in_the_file() -> None:
    document = read_document(b"---\nname: x\ntools: *\n---\nB")
    assert document.meta == {"name": "x", "tools": "*"}
    [problem] = document.problems
    assert (problem.code, problem.line) == ("front-matter-rescued", 3)
    assert "`tools`" in problem.message


@pytest.mark.parametrize(
    "line", ["globs: **/*.ts", "applyTo: **", "description: Use when: it rains", "argument-hint: [a] [b]"]
)
def test_values_that_people_write_without_quotes_are_read_without_a_word(line: str) -> None:
    document = read_document(f"---\nname: x\n{line}\n---\nB".encode())
    key, _, value = line.partition(": ")
    assert document.raw(key) == value
    assert document.problems == ()


def test_duplicate_keys_are_said_once() -> None:
    document = read_document(b"---\na: 1\na: 2\na: 3\n---\n")
    assert document.meta == {"a": "3"}
    assert codes(document) == ["duplicate-key"]


def test_control_characters_do_not_break_the_header() -> None:
    document = read_document(b"---\nname: x\x07\ndescription: y\n---\n")
    assert document.meta == {"name": "x", "description": "y"}
    assert codes(document) == ["control-characters"]


def test_other_encodings_are_read_and_said() -> None:
    document = read_document("---\nname: ü\n---\nB".encode("utf-16"))
    assert (document.meta, codes(document)) == ({"name": "ü"}, ["encoding"])


def test_a_header_without_end_is_cut() -> None:
    document = read_document(b"---\nname: x\n" + b"a: b\n" * 200_000)
    assert document.meta["name"] == "x"
    assert len(document.header) <= HEADER_LIMIT
    assert "front-matter-too-long" in codes(document)


def test_an_alias_bomb_costs_its_own_values_only() -> None:
    bomb = ["---", "name: x", "a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    bomb += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    document = read_document("\n".join([*bomb, "---", "B"]).encode())
    assert (document.meta["name"], document.body) == ("x", "B")
    assert codes(document) == ["front-matter-rescued"]


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_failing(data: bytes) -> None:
    read_document(data)
    read_document(b"---\n" + data + b"\n---\nbody")


@given(st.text(alphabet="ab:- \n\t'\"[]{}*&#|>@,", max_size=120))
def test_a_known_key_survives_whatever_stands_after_it(noise: str) -> None:
    header = f"---\nname: kept\nother: {noise}\n---\nbody"
    assert read_document(header.encode()).meta.get("name") == "kept" or "\n---" in noise or "name" in noise


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
