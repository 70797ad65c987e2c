from typing import Any

from ahpkit.agents.acp.elicitation import answer, questions
from ahpkit.host.agent import InputAnswers

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
    assert questions(SCHEMA) == [
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

    assert answer(SCHEMA, given) == {
        "action": "accept",
        "content": {"name": "Ada", "age": 36, "share": 0.25, "ok": False, "color": "green", "tags": ["a", "c"]},
    }


def test_declining_and_cancelling_carry_no_content() -> None:
    assert answer(SCHEMA, InputAnswers("decline")) == {"action": "decline"}
    assert answer(SCHEMA, InputAnswers("cancel")) == {"action": "cancel"}


def test_a_malformed_schema_asks_nothing() -> None:
    assert questions(None) == []
    assert questions({"properties": [1]}) == []
