from typing import Any

from ahpkit.agents.acp.permissions import ANSWER_META, CANCELLED, confirmation_options, outcome
from ahpkit.host.agent import Confirmation
from ahpkit.testing.recording import user_message

OFFERED = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
]
OPTIONS = confirmation_options(OFFERED)


def answer(approved: bool, **more: Any) -> Confirmation:
    return Confirmation(approved=approved, tool_input="", **more)


def selected(id: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": id}}


def test_options_keep_their_id_and_name_and_are_grouped_by_how_long_they_hold() -> None:
    assert OPTIONS == [
        {"id": "always", "label": "Always", "kind": "approve", "group": 1},
        {"id": "once", "label": "Yes", "kind": "approve", "group": 0},
        {"id": "no", "label": "No", "kind": "deny", "group": 0},
        {"id": "never", "label": "Never", "kind": "deny", "group": 1},
    ]


def test_an_option_of_an_unknown_kind_is_shown_and_counts_as_a_denial() -> None:
    assert confirmation_options([{"optionId": "x", "kind": "_later"}, {"name": "no id"}, 7]) == [
        {"id": "x", "label": "x", "kind": "deny", "group": 0}
    ]


def test_the_option_the_person_picked_is_the_answer_even_when_kinds_repeat() -> None:
    options = confirmation_options([{"optionId": str(n), "name": "", "kind": "allow_once"} for n in range(3)])

    assert outcome(options, answer(True, option_id="2")) == selected("2")


def test_a_plain_yes_or_no_holds_for_this_time_only() -> None:
    assert outcome(OPTIONS, answer(True)) == selected("once")
    assert outcome(OPTIONS, answer(False)) == selected("no")


def test_a_denial_never_turns_into_an_option_that_allows() -> None:
    assert outcome(OPTIONS, answer(False, option_id="always")) == selected("no")
    assert outcome(OPTIONS[:2], answer(False)) == CANCELLED
    assert outcome([], answer(True)) == CANCELLED


def test_an_option_nobody_offered_is_not_sent() -> None:
    assert outcome(OPTIONS, answer(True, option_id="made-up")) == selected("once")


def test_a_reason_and_a_suggestion_travel_in_meta() -> None:
    suggestion = user_message("use a copy")

    sent = outcome(OPTIONS, answer(False, reason="too risky", suggestion=suggestion))

    assert sent == selected("no") | {"_meta": {ANSWER_META: {"reason": "too risky", "suggestion": suggestion}}}


def test_meta_goes_both_ways() -> None:
    [option] = confirmation_options([{"optionId": "y", "kind": "allow_once", "_meta": {"hint": 1}}])
    assert option.get("_meta") == {"ahpkit/acp": {"meta": {"hint": 1}}}
    given = outcome(OPTIONS, answer(False, reason="no", meta={"client.dev/x": 1}))
    assert given["_meta"] == {"client.dev/x": 1, ANSWER_META: {"reason": "no"}}


def test_an_option_that_has_only_an_id_is_shown_in_words() -> None:
    offered = [
        {"optionId": "allow_always", "name": "allow_always", "kind": "allow_always"},
        {"optionId": "x-1", "kind": "reject_once"},
        {"optionId": "mine", "name": "Do it my way", "kind": "allow_once"},
        {"optionId": "odd", "name": "odd", "kind": "of another kind"},
    ]
    assert [option["label"] for option in confirmation_options(offered)] == [
        "Always allow",
        "Deny",
        "Do it my way",
        "odd",
    ]
