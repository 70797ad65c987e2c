"""Typed lines as answers to questions of every kind."""

from typing import Any

import pytest

from ahpkit.cli.read_answer import Question, hint, read_answer

COLOURS: dict[str, Any] = {
    "id": "colour",
    "message": "?",
    "options": [{"id": "r", "label": "Red"}, {"id": "b", "label": "Blue"}, {"id": "2", "label": "Two"}],
}


def question(kind: str, **fields: Any) -> Question:
    return {"id": "q", "message": "?", "kind": kind, **fields}


def select(kind: str, **fields: Any) -> Question:
    return {**COLOURS, "kind": kind, **fields}


@pytest.mark.parametrize(
    ("asked", "line", "answer"),
    [
        (question("text"), " as it is ", " as it is "),
        (question("integer"), " -12 ", -12),
        (question("integer"), "+3", 3),
        (question("number"), "1e3", 1000.0),
        (question("number"), ".5", 0.5),
        (question("boolean"), "Yes", True),
        (question("boolean"), "n", False),
        (question("boolean"), "TRUE", True),
        (select("single-select"), "1", "r"),
        (select("single-select"), "b", "b"),
        (select("single-select"), "bLUE", "b"),
        (select("single-select"), "2", "b"),
        (select("multi-select"), "1 2", ["r", "b"]),
        (select("multi-select"), "1, blue,1", ["r", "b"]),
        (question("unheard-of"), "anything", "anything"),
    ],
)
def test_a_line_becomes_the_value_the_question_wants(asked: Question, line: str, answer: Any) -> None:
    assert read_answer(asked, line) == answer


@pytest.mark.parametrize(
    ("asked", "line", "problem"),
    [
        (question("integer"), "1.5", "please give a whole number"),
        (question("integer"), "1_000", "please give a whole number"),
        (question("integer"), "9" * 5000, "please give a whole number"),
        (question("integer"), "٣", "please give a whole number"),
        (question("number"), "many", "please give a number"),
        (question("number"), "nan", "please give a number"),
        (question("number"), "1e999", "please give a number"),
        (question("boolean"), "maybe", "please answer y or n"),
        (select("single-select"), "4", "'4' is not in the list: please give a number from the list, 1 to 3"),
        (select("single-select"), "0", "'0' is not in the list"),
        (select("single-select"), "-1", "'-1' is not in the list"),
        (select("multi-select"), "1 green", "'green' is not in the list: please give numbers from the list"),
    ],
)
def test_a_line_that_does_not_fit_is_refused_with_what_is_expected(asked: Question, line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_answer(asked, line)


@pytest.mark.parametrize("kind", ["single-select", "multi-select"])
def test_a_number_out_of_range_is_no_own_word(kind: str) -> None:
    with pytest.raises(ValueError, match=r"'7' is not in the list: please give .*number.* from the list.*, 1 to 3"):
        read_answer(select(kind, allowFreeformInput=True), "7")


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (question("integer", min=0, max=150), "a whole number from 0 to 150"),
        (question("number", max=1.5), "a number at most 1.5"),
        (question("text", min=3), "text, at least 3 characters"),
        (question("text", min=3, max=20, format="email"), "email, 3 to 20 characters"),
        (select("multi-select", max=2), "numbers from the list, separated by spaces, at most 2"),
        (question("integer", min=1, max=9, defaultValue=5), "a whole number from 1 to 9 [5]"),
    ],
)
def test_limits_are_said_before_the_answer(asked: Question, text: str) -> None:
    assert hint(asked) == text


def test_own_words_are_taken_where_they_are_allowed() -> None:
    single = read_answer(select("single-select", allowFreeformInput=True), "dark green")
    assert single["value"] == {"kind": "selected", "value": "", "freeformValues": ["dark green"]}
    many = read_answer(select("multi-select", allowFreeformInput=True), "1, dark green")
    assert many["value"] == {"kind": "selected-many", "value": ["r"], "freeformValues": ["dark green"]}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (question("text"), "text"),
        (question("text", format="email"), "email"),
        (question("text", defaultValue="x"), "text [x]"),
        (question("integer", defaultValue=0), "a whole number [0]"),
        (question("boolean", defaultValue=False), "y or n [n]"),
        (select("single-select", allowFreeformInput=True), "a number from the list, or your own words"),
    ],
)
def test_the_hint_says_what_to_type(asked: Question, expected: str) -> None:
    assert hint(asked) == expected
