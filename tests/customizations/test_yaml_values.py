from typing import Any

import pytest

from ahpkit.customizations.yaml_values import YamlError, flag, globs, parse, text, words


def test_scalars_stay_the_words_they_are() -> None:
    text = "date: 2025-01-01\nversion: 1.10\ncountry: NO\non: yes\ntime: 12:30:45\nmerge: <<"
    assert parse(text).value == {
        "date": "2025-01-01",
        "version": "1.10",
        "country": "NO",
        "on": "yes",
        "time": "12:30:45",
        "merge": "<<",
    }


def test_only_plain_nothing_is_null() -> None:
    assert parse("a:\nb: ~\nc: null\nd: ''\ne: 'null'").value == {"a": None, "b": None, "c": None, "d": "", "e": "null"}


def test_lists_and_mappings_nest() -> None:
    assert parse("a:\n  - b\n  - c: d\ne: [f, {g: h}]").value == {"a": ["b", {"c": "d"}], "e": ["f", {"g": "h"}]}


def test_keys_that_are_no_strings_become_text() -> None:
    assert parse("1: a\n? [b, c]\n: d\n? {e: f}\n: g\n~: h").value == {"1": "a", "[b, c]": "d", "{e}": "g", "": "h"}


def test_keys_given_twice_are_said_and_the_last_counts() -> None:
    parsed = parse("a: 1\nb: 2\na: 3")
    assert parsed.value == {"a": "3", "b": "2"}
    assert parsed.duplicates == ["a"]


def test_an_alias_is_what_its_anchor_was() -> None:
    assert parse("a: &x [1]\nb: *x").value == {"a": ["1"], "b": ["1"]}


def test_an_alias_bomb_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    with pytest.raises(YamlError, match="more than"):
        parse("\n".join(lines))


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: *nothing"])
def test_an_alias_without_a_finished_anchor_is_refused(text: str) -> None:
    with pytest.raises(YamlError, match="has no anchor"):
        parse(text)


@pytest.mark.parametrize("text", ["[" * 60_000, "{a: " * 15_000, "- " * 30_000, "? " * 30_000])
def test_deep_nesting_is_refused_and_does_not_crash(text: str) -> None:
    with pytest.raises(YamlError, match="nested deeper"):
        parse(text)


def test_errors_say_the_line() -> None:
    with pytest.raises(YamlError) as caught:
        parse("a: b\nc: **/*.ts")
    assert caught.value.line == 1


def test_only_the_first_document_counts() -> None:
    assert parse("a: b\n---\nc: d").value == {"a": "b"}


@pytest.mark.parametrize(
    ("value", "read"),
    [
        *((value, True) for value in ("true", "Yes", "ON", "1", 1, True)),
        *((value, False) for value in ("false", "No", "off", "0", 0, False)),
        *((value, None) for value in ("maybe", "", ["true"], None, "2")),
    ],
)
def test_flags_are_read_in_every_spelling(value: Any, read: bool | None) -> None:
    assert flag(value) is read


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("**/*.ts", ["**/*.ts"]),
        ("*.ts, *.tsx", ["*.ts", "*.tsx"]),
        ("**/*.{ts,tsx}", ["**/*.{ts,tsx}"]),
        ("**/*.{ts,tsx},src/**", ["**/*.{ts,tsx}", "src/**"]),
        (["a", "b,c"], ["a", "b", "c"]),
        ('"a", "b"', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ("[id].ts", ["[id].ts"]),
        ("a,{b,{c,d}},", ["a", "{b,{c,d}}"]),
        ("", []),
        (None, []),
        ([], []),
        ({"a": "b"}, []),
        ("it's.ts, b", ["it's.ts", "b"]),
    ],
)
def test_globs_are_split_at_commas_outside_of_braces(value: Any, read: list[str]) -> None:
    assert globs(value) == read


def test_words_come_as_list_or_text() -> None:
    assert words("Read, Grep,  Bash(git add:*, git commit)") == ["Read", "Grep", "Bash(git add:*, git commit)"]
    assert words(["Read", "", "Grep"]) == ["Read", "Grep"]


def test_prose_may_come_in_lines() -> None:
    assert text(["a", "b"]) == "a\nb"
    assert text({"a": "b"}) is None
    assert text([]) is None
