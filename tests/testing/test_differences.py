"""Differences that a person can read."""

from typing import Any

import pytest

from ahpkit.testing.conformance import ABSENT, Difference, differences, without_nulls


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "x", [], {}, {"a": [1, {"b": None}]}])
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert list(differences(value, value)) == []


def test_a_difference_says_where_it_is() -> None:
    expected = {"turns": [{"id": "a"}, {"id": "b"}], "odd key": 1}
    got = {"turns": [{"id": "a"}, {"id": "c"}], "odd key": 2}
    assert list(differences(expected, got)) == [
        Difference("$.turns[1].id", "b", "c"),
        Difference('$["odd key"]', 1, 2),
    ]


def test_absent_is_not_null() -> None:
    assert list(differences({"a": None}, {"b": None})) == [
        Difference("$.a", None, ABSENT),
        Difference("$.b", ABSENT, None),
    ]
    assert list(differences([1], [1, None])) == [Difference("$[1]", ABSENT, None)]
    assert list(differences([1, 2], [1])) == [Difference("$[1]", 2, ABSENT)]


@pytest.mark.parametrize(("expected", "got"), [(True, 1), (0, False), ("1", 1), ([], {}), (None, 0)])
def test_types_of_json_count(expected: Any, got: Any) -> None:
    assert list(differences(expected, got)) == [Difference("$", expected, got)]


def test_numbers_are_compared_by_value() -> None:
    assert list(differences(1, 1.0)) == []


def test_a_difference_is_printed_on_three_lines() -> None:
    assert str(Difference("$.a", "é", ABSENT)) == '$.a\n  expected "é"\n  got      (absent)'


def test_a_long_value_is_cut_and_its_length_told() -> None:
    text = str(Difference("$.a", "x" * 10_000, 1))
    assert len(text) < 400
    assert "(10002 characters)" in text


def test_for_machines_an_absent_value_is_an_absent_key() -> None:
    assert Difference("$.a", None, ABSENT).to_json() == {"path": "$.a", "expected": None}


def test_nulls_are_removed_from_objects_and_kept_in_lists() -> None:
    assert without_nulls({"a": None, "b": [None, {"c": None, "d": 0}]}) == {"b": [None, {"d": 0}]}
