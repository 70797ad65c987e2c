"""What keys and lines mean where a person is to choose: no terminal, no clock."""

from typing import Any

import pytest

from ahpkit.cli.choosing import Choice, Choosing, Chosen, Left, Message, Unclear, meant, possible
from ahpkit.cli.keys import Paste

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
    assert choosing.quiet() == Unclear(key)
    assert (choosing.text, choosing.undecided) == ("", False)


def test_the_beginning_of_a_word_waits_for_the_rest_and_helps_once() -> None:
    choosing, _ = typed("al")
    assert choosing.quiet() == Unclear("al")
    assert (choosing.text, choosing.undecided) == ("al", False)
    assert [choosing.press(key) for key in "ways\r"][-1] == Chosen("rule")


def test_enter_alone_decides_nothing() -> None:
    assert typed("\r")[1] == Unclear("")
    assert typed("ye\r")[1] == Unclear("ye")


def test_a_key_can_be_taken_back_in_time() -> None:
    for erase in ("\x7f", "\x15"):
        choosing, _ = typed(f"1{erase}")
        assert (choosing.text, choosing.undecided) == ("", False)


def test_keys_that_write_nothing_are_ignored_and_the_end_leaves() -> None:
    choosing, outcome = typed("")
    assert choosing.press("up") is None
    assert (choosing.text, outcome) == ("", None)
    assert isinstance(choosing.press("\x04"), Left)


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
