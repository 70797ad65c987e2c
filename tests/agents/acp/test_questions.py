from typing import Any

import pytest

from ahpkit.agents.acp.questions import (
    ANSWER_META,
    CANCELLED,
    confirmation_options,
    form_answer,
    form_questions,
    outcome,
)
from ahpkit.host.agent import Confirmation, InputAnswers
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


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "color"],
    "properties": {
        "name": {"type": "string", "title": "Name", "description": "Your name", "minLength": 1, "format": "email"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
        "share": {"type": "number", "default": 0.5},
        "ok": {"type": "boolean", "default": True},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small", "description": "tiny"}]},
        "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b"]}},
        "odd": {"type": "hologram"},
    },
}


def submitted(kind: str, value: Any, **more: Any) -> Any:
    return {"state": "submitted", "value": {"kind": kind, "value": value, **more}}


def test_each_property_becomes_a_question_of_its_kind_in_order() -> None:
    assert form_questions(SCHEMA) == [
        {
            "id": "name",
            "kind": "text",
            "title": "Name",
            "message": "Your name",
            "required": True,
            "format": "email",
            "min": 1,
        },
        {"id": "age", "kind": "integer", "message": "age", "min": 0, "max": 150, "defaultValue": 30},
        {"id": "share", "kind": "number", "message": "share", "defaultValue": 0.5},
        {"id": "ok", "kind": "boolean", "message": "ok", "defaultValue": True},
        {
            "id": "color",
            "kind": "single-select",
            "message": "color",
            "required": True,
            "options": [{"id": "red", "label": "red"}, {"id": "blue", "label": "blue"}],
        },
        {
            "id": "size",
            "kind": "single-select",
            "message": "size",
            "options": [{"id": "s", "label": "Small", "description": "tiny"}],
        },
        {
            "id": "tags",
            "kind": "multi-select",
            "message": "tags",
            "options": [{"id": "a", "label": "a"}, {"id": "b", "label": "b"}],
            "min": 1,
            "max": 2,
        },
        {"id": "odd", "kind": "text", "message": "odd"},
    ]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["Small one", "Large one"], ["Small one", "Large one"]),
        (["Small one", ""], ["Small one", "l"]),
        (["Small one"], ["Small one", "l"]),
        (["Small one", 5], ["s", "l"]),
        ("AB", ["s", "l"]),
        (None, ["s", "l"]),
    ],
)
def test_choices_have_the_titles_that_older_servers_give_beside_them(names: Any, labels: list[str]) -> None:
    choices = {"type": "string", "enum": ["s", "l"], "enumNames": names}
    [question] = form_questions({"type": "object", "properties": {"size": choices}})
    options: list[Any] = question.get("options", [])
    assert [(option["id"], option["label"]) for option in options] == list(zip(["s", "l"], labels, strict=True))


def test_answers_become_the_content_the_agent_asked_for() -> None:
    given = InputAnswers(
        "accept",
        {
            "name": submitted("text", "Ada"),
            "age": submitted("number", 36.0),
            "share": submitted("number", 0.25),
            "ok": submitted("boolean", False),
            "color": submitted("selected", "", freeformValues=["green"]),
            "tags": submitted("selected-many", ["a"], freeformValues=["c"]),
            "size": {"state": "skipped"},
        },
    )

    assert form_answer(SCHEMA, given) == {
        "action": "accept",
        "content": {"name": "Ada", "age": 36, "share": 0.25, "ok": False, "color": "green", "tags": ["a", "c"]},
    }


def test_declining_and_cancelling_carry_no_content() -> None:
    assert form_answer(SCHEMA, InputAnswers("decline")) == {"action": "decline"}
    assert form_answer(SCHEMA, InputAnswers("cancel")) == {"action": "cancel"}


def test_a_malformed_schema_asks_nothing() -> None:
    assert form_questions(None) == []
    assert form_questions({"properties": [1]}) == []
