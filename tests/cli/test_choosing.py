"""What keys and lines mean where a person is to choose: no terminal, no clock."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.cli.choosing import (
    Choice,
    Choosing,
    Chosen,
    Message,
    Question,
    QuestionLeft,
    UnclearChoice,
    hint,
    meant,
    possible,
    read_answer,
)
from ahpkit.cli.line_editor import Paste

CHOICES = {
    "allow": Choice("allow once", "1", ("1", "yes", "allow once")),
    "deny": Choice("deny", "2", ("2", "no")),
    "later": Choice("later", "l", ("later",)),
    "rule": Choice("always", "", ("always",)),
}


def typed(text: str) -> tuple[Choosing, Any]:
    """Everything typed without a pause, up to the first thing that means something."""
    choosing = Choosing(CHOICES)
    outcome: Any = None
    for key in text:
        if (outcome := choosing.press(key)) is not None:
            break
    return choosing, outcome


@pytest.mark.parametrize(("key", "name"), [("1", "allow"), ("2", "deny"), ("l", "later"), ("L", "later")])
def test_a_key_with_nothing_after_it_is_a_choice(key: str, name: str) -> None:
    choosing, outcome = typed(key)
    assert outcome is None
    assert choosing.undecided
    assert choosing.quiet() == Chosen(name)


@pytest.mark.parametrize(
    ("line", "name"), [("1\r", "allow"), ("YES\r", "allow"), ("allow once\r", "allow"), ("no\n", "deny")]
)
def test_a_word_and_enter_is_a_choice(line: str, name: str) -> None:
    assert typed(line)[1] == Chosen(name)


@pytest.mark.parametrize(
    "sentence",
    ["1 more thing: the tests", "/tool calculate", "no, wait", "later maybe", "yes please", ":pending", "11"],
)
def test_a_sentence_is_a_message_whatever_it_begins_with(sentence: str) -> None:
    _, outcome = typed(sentence)
    assert isinstance(outcome, Message)
    assert sentence.startswith("".join(str(key) for key in outcome.keys))


def test_a_paste_is_a_message_even_when_it_is_a_choice() -> None:
    assert Choosing(CHOICES).press(Paste("1")) == Message((Paste("1"),))


@pytest.mark.parametrize("key", ["x", "3", "?", " "])
def test_a_key_that_means_nothing_says_what_is_possible(key: str) -> None:
    choosing, _ = typed(key)
    assert choosing.quiet() == UnclearChoice(key)
    assert (choosing.text, choosing.undecided) == ("", False)


def test_the_beginning_of_a_word_waits_for_the_rest_and_helps_once() -> None:
    choosing, _ = typed("al")
    assert choosing.quiet() == UnclearChoice("al")
    assert (choosing.text, choosing.undecided) == ("al", False)
    assert [choosing.press(key) for key in "ways\r"][-1] == Chosen("rule")


def test_enter_alone_decides_nothing() -> None:
    assert typed("\r")[1] == UnclearChoice("")
    assert typed("ye\r")[1] == UnclearChoice("ye")


def test_a_key_can_be_taken_back_in_time() -> None:
    for erase in ("\x7f", "\x15"):
        choosing, _ = typed(f"1{erase}")
        assert (choosing.text, choosing.undecided) == ("", False)


def test_keys_that_write_nothing_are_ignored_and_the_end_leaves() -> None:
    choosing, outcome = typed("")
    assert choosing.press("up") is None
    assert (choosing.text, outcome) == ("", None)
    assert isinstance(choosing.press("\x04"), QuestionLeft)


@pytest.mark.parametrize(
    ("line", "name"),
    [("1", "allow"), (" Yes ", "allow"), ("1 more thing", None), ("", None), ("y", None), ("12", None)],
)
def test_a_line_must_be_exactly_a_choice(line: str, name: str | None) -> None:
    assert meant(CHOICES, line) == name


def test_what_is_possible_is_one_line_of_words() -> None:
    assert possible(CHOICES, "x") == (
        "'x' is not a choice; possible: 1 = allow once, 2 = deny, l = later, always = always"
    )
    assert possible(CHOICES).startswith("possible: ")
    assert possible(CHOICES, "always") == "Enter takes it: always"


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
