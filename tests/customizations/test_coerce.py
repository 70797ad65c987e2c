from typing import Any

import pytest

from ahpkit.customizations.coerce import flag, globs, text, words


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
