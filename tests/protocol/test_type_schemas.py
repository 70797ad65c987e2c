"""JSON Schema from wire types."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

import pytest

from ahpkit.dialects.v0_4.registry import TYPES
from ahpkit.protocol.type_schemas import MAX_INTEGER, json_schema
from support import for_each


class Leaf(TypedDict):
    kind: Literal["leaf"]
    size: int


class Node(TypedDict):
    kind: Literal["node"]
    children: NotRequired[list[Leaf | Node]]


class Yes(TypedDict):
    kind: Literal["answer"]
    ok: Literal[True]


class No(TypedDict):
    kind: Literal["answer"]
    ok: Literal[False]


def test_an_object_says_what_it_needs_and_stays_open() -> None:
    schema = json_schema(Leaf)
    assert schema["$ref"] == "#/$defs/Leaf"
    assert schema["$defs"]["Leaf"] == {
        "type": "object",
        "required": ["kind", "size"],
        "properties": {
            "kind": {"enum": ["leaf"]},
            "size": {"type": "integer", "minimum": -MAX_INTEGER, "maximum": MAX_INTEGER},
            "_meta": {"type": "object"},
        },
    }


def test_a_type_may_contain_itself() -> None:
    node = json_schema(Node)["$defs"]["Node"]
    assert node["required"] == ["kind"]
    assert node["properties"]["children"]["items"]["allOf"][1]["then"] == {"$ref": "#/$defs/Node"}


def test_variants_are_told_apart_by_a_literal_and_unknown_ones_pass() -> None:
    union = json_schema(Leaf | Node)
    assert union["required"] == ["kind"]
    assert union["properties"] == {"kind": {"type": "string"}}
    assert [case["if"]["properties"]["kind"]["const"] for case in union["allOf"]] == ["leaf", "node"]


def test_variants_with_the_same_kind_are_told_apart_by_another_literal() -> None:
    cases = json_schema(Yes | No | Leaf)["allOf"]
    answer = next(case["then"] for case in cases if case["if"]["properties"]["kind"]["const"] == "answer")
    assert answer["properties"] == {"ok": {"type": "boolean"}}


@pytest.mark.parametrize(
    ("shape", "schema"),
    [
        (Any, {}),
        (str, {"type": "string"}),
        (None, {"type": "null"}),
        (int | float, {"type": "number"}),
        (int | str | None, {"type": ["integer", "null", "string"]}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (list[bool], {"type": "array", "items": {"type": "boolean"}}),
        (dict[str, Any], {"type": "object", "additionalProperties": {}}),
        (
            dict[str, int],
            {
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": -MAX_INTEGER, "maximum": MAX_INTEGER},
            },
        ),
    ],
)
def test_small_types_have_plain_schemas(shape: Any, schema: dict[str, Any]) -> None:
    assert json_schema(shape) == {**schema, "$defs": {}}


def test_a_scalar_or_an_object() -> None:
    assert json_schema(str | Leaf) | {"$defs": {}} == {
        "type": ["object", "string"],
        "if": {"type": "object"},
        "then": {"$ref": "#/$defs/Leaf"},
        "$defs": {},
    }


def test_what_cannot_be_on_the_wire_has_no_schema() -> None:
    with pytest.raises(TypeError, match="not a wire type"):
        json_schema(bytes)


@for_each(TYPES)
def test_every_wire_type_has_a_schema_without_loose_ends(name: str) -> None:
    schema = json_schema(TYPES[name])
    assert set(references(schema)) <= {f"#/$defs/{defined}" for defined in schema["$defs"]}


def references(value: Any) -> list[str]:
    own: list[str] = [value["$ref"]] if isinstance(value, dict) and "$ref" in value else []
    inner: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # Any JSON.
    return own + [found for item in inner for found in references(item)]
