"""Values against schemas that others wrote."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from ahpkit.protocol.json_schema import MAX_BYTES, check_schema, find_problem

PERSON = {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}, "required": ["id"]}


def test_a_value_that_fits_has_no_problem() -> None:
    assert find_problem(PERSON, {"id": 1, "tags": ["a"]}) is None


def test_the_problem_begins_with_its_place() -> None:
    assert find_problem(PERSON, {"id": 1, "tags": ["a", 2]}) == """['tags'][1]: 2 is not of type "string\""""
    assert find_problem(PERSON, {}) == """: "id" is a required property"""


def test_formats_are_checked() -> None:
    assert find_problem({"format": "email"}, "a@example.com") is None
    assert find_problem({"format": "email"}, "nobody") is not None


def test_a_format_nobody_knows_is_no_problem() -> None:
    assert find_problem({"format": "haiku"}, "anything") is None


@pytest.mark.parametrize("schema", [{"type": "strnig"}, {"pattern": "("}, 7, None])
def test_a_schema_that_is_not_one_lets_nothing_through(schema: Any) -> None:
    assert find_problem(schema, "x") == ": its schema is not valid, so no value can be checked against it"


def test_a_reference_to_another_place_is_not_followed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        assert find_problem({"$ref": url}, "x") is not None
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("schema", [True, {}])
def test_an_empty_schema_lets_everything_through(schema: Any) -> None:
    assert find_problem(schema, {"any": ["thing"]}) is None


# -- schemas that would cost more than anybody has ------------------------------------------------------------------


def definitions(count: int, make: Callable[[Any], Any]) -> dict[str, Any]:
    """A chain of definitions, each made of a reference to the next."""
    chain = {f"d{number}": make({"$ref": f"#/$defs/d{number + 1}"}) for number in range(count)}
    return {"$ref": "#/$defs/d0", "$defs": {**chain, f"d{count}": {}}}


def nested(levels: int, *names: str) -> Any:
    """Objects inside each other, under these names in turn."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        for name in reversed(names):
            value = {name: value}
    return value


DRAFTS = "http://json-schema.org/"
HOSTILE: dict[str, tuple[Any, str]] = {
    "doubling": (definitions(40, lambda ref: {"allOf": [ref, ref]}), "levels deep"),
    "doubling in twenty steps": (definitions(20, lambda ref: {"anyOf": [ref, ref]}), "subschemas, references counted"),
    "doubling for members": (definitions(20, lambda ref: {"properties": {"a": ref, "b": ref}}), "references counted"),
    "200,000 constants": ({"oneOf": [{"const": number} for number in range(200_000)]}, f"{MAX_BYTES} bytes"),
    "4,000 constants": ({"oneOf": [{"const": number} for number in range(4_000)]}, "subschemas"),
    "itself": ({"$ref": "#"}, "without end"),
    "a circle": ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}}, "without end"),
    "deep": (nested(100, "properties", "a"), "levels deep"),
    "a long chain": (definitions(1_000, lambda ref: ref), "levels deep"),
    "a large pattern": ({"pattern": "(a{1000}){1000}"}, "patterns are too large"),
    "many patterns": ({"patternProperties": {f"\\p{{L}}{{9}}{n}": {} for n in range(100)}}, "patterns are too large"),
    "a large set": ({"pattern": r"^[]\p{L}\p{M}]{1,300}$"}, "patterns are too large"),
    "out of it": ({"$ref": "https://example.com/schema"}, "outside of it"),
    "nowhere": ({"$ref": "#/nope"}, "which it does not have"),
    "dynamic": ({"$dynamicRef": "#x"}, "dynamic reference"),
    "another base": ({"properties": {"a": {"$id": "https://example.com/a"}}}, "$id inside"),
    "another base of draft 4": (
        {"$schema": f"{DRAFTS}draft-04/schema#", "allOf": [{"id": "https://example.com/a"}]},
        "$id inside",
    ),
    "a name twice": ({"$defs": {"a": {"$anchor": "x"}, "b": {"$dynamicAnchor": "x"}}, "$ref": "#x"}, "x twice"),
    "a name twice in draft 7": ({"$defs": {"a": {"$anchor": "x"}, "b": {"$id": "#x"}}, "$ref": "#x"}, "x twice"),
    "a property like a keyword": (
        {"properties": {"default": {"pattern": "(a{1000}){1000}"}}},
        "patterns are too large",
    ),
    "dynamic in a property like a keyword": ({"properties": {"enum": {"$dynamicRef": "#x"}}}, "dynamic reference"),
    "in an example": ({"$ref": "#/examples/0", "examples": [{"pattern": "(a{1000}){1000}"}]}, "no schema"),
    "in names": ({"properties": {"allOf": {}}, "items": {"$ref": "#/properties"}}, "no schema"),
    "many short patterns": ({"allOf": [{"pattern": f".{n}"} for n in range(600)]}, "patterns are too large"),
    "parts of nothing": ({"multipleOf": 1e-300}, "multipleOf"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_schema_that_would_cost_too_much_is_refused_with_a_reason(name: str) -> None:
    schema, reason = HOSTILE[name]
    began = time.process_time()
    assert reason in (check_schema(schema) or "")
    assert reason in (find_problem(schema, {}) or "")
    assert time.process_time() - began < 1  # Without the limits some of these never end.


TREE = {"properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}}}
ANYTHING = {
    "$ref": "#/definitions/json",
    "definitions": {
        "json": {
            "anyOf": [
                {"type": ["string", "number"]},
                {"type": "array", "items": {"$ref": "#/definitions/json"}},
                {"type": "object", "additionalProperties": {"$ref": "#/definitions/json"}},
            ]
        }
    },
}
ORDINARY: dict[str, tuple[Any, Any]] = {
    "a tree": (TREE, {"name": "a", "children": [{"name": "b", "children": []}] * 50}),
    "any JSON": (ANYTHING, {"a": [1, {"b": "c"}]}),
    "an anchor": ({"$ref": "#text", "$defs": {"t": {"$anchor": "text", "type": "string"}}}, "x"),
    "a pointer with escapes": ({"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {"type": "string"}}}, "x"),
    "a list of choices": ({"enum": [str(number) for number in range(2_000)]}, "7"),
    "a uuid": ({"pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}, "01234567-89ab-cdef-0123-456789abcdef"),
    "a set of letters": ({"pattern": r"^[\p{L}\p{M}\d' -]{1,32}$"}, "abc"),
    "letters": ({"pattern": r"^\p{L}{1,64}$"}, "abc"),
    "names like keywords": ({"properties": {"$ref": {"type": "string"}, "items": {"type": "string"}}}, {"$ref": "x"}),
    "a reference in a constant": ({"const": {"$ref": "https://example.com"}}, {"$ref": "https://example.com"}),
    "a password": ({"pattern": r"^(?=.*[A-Z])(?=.*\d)(?=.*[^\w]).{8,64}$"}, "Abcdefg1!"),
    "passwords": ({"items": {"pattern": r"^(?=.*[A-Z])(?=.*\d).{8,}$"}}, ["Abcdefg1"] * 200),
    "numbers to choose from": ({"items": {"enum": list(range(500))}}, [number % 500 for number in range(500)]),
    "nothing but what is known": (
        {"allOf": [{"properties": {"a": {"type": "string"}}}], "unevaluatedProperties": False},
        {"a": "x"},
    ),
    "an id that means nothing": ({"properties": {"a": {"id": "a", "type": "string"}}}, {"a": "x"}),
    "names that are data": ({"properties": {"default": {"type": "string"}, "enum": {}}}, {"default": "x"}),
    "amounts": ({"items": {"multipleOf": 0.01}}, [12.34] * 1_000),
    "different numbers": ({"uniqueItems": True}, list(range(20_000))),
    "points": ({"items": {"properties": {"x": {"type": "number"}}}}, [{"x": number} for number in range(10_000)]),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_what_people_write_is_taken(name: str) -> None:
    schema, value = ORDINARY[name]
    assert check_schema(schema) is None
    assert find_problem(schema, value) is None


DRAFT_7 = f"{DRAFTS}draft-07/schema#"
NAMES = [f"n{number}" for number in range(100)]
MANY = [f"n{number}" for number in range(10_000)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}},
            nested(60, "a"),
        ),
        ({"items": {"allOf": [{"type": "number"}] * 1_000}}, [1] * 100_000),
        ({"pattern": "(a?){1000}a{1000}"}, "a" * 100_000),
        ({"items": {"enum": [[number] for number in range(5_000)]}}, [[4_999]] * 5_000),
        ({"$defs": {"t": {"enum": [[0]] * 5_000, "items": {"$ref": "#/$defs/t"}}}, "$ref": "#/$defs/t"}, [[0]] * 200),
        ({"pattern": "(?:(?=.*a)(?=.*b)){20}x"}, "ab" * 3_000),
        ({"items": {"dependentRequired": dict.fromkeys(NAMES, NAMES)}}, [dict.fromkeys(NAMES, 0)] * 3_000),
        ({"allOf": [{"uniqueItems": True}] * 1_900}, list(range(1_500))),
        ({"allOf": [{"uniqueItems": True}] * 1_900}, ["x" * 100_000 + str(number) for number in range(14)]),
        ({"$defs": {"r": {"required": MANY}}, "allOf": [{"$ref": "#/$defs/r"}] * 900}, dict.fromkeys(MANY, 0)),
        ({"items": {"multipleOf": 0.01}}, [1e300] * 100),
        ({"items": {"multipleOf": 1e-9}}, [1e29] * 20_000),
        ({"$schema": DRAFT_7, "allOf": [{"contentMediaType": "application/json"}] * 1_900}, f"[{'1, ' * 99_999}1]"),
    ],
    ids=[
        *("doubling", "wide", "matching", "choosing", "choosing again and again", "looking ahead", "depending"),
        *("comparing", "comparing texts", "required again and again", "large numbers", "dividing", "text that is JSON"),
    ],
)
def test_a_value_that_takes_too_long_to_check_is_refused(schema: Any, value: Any) -> None:
    assert check_schema(schema) is None
    began = time.process_time()
    assert "too" in (find_problem(schema, value) or "")
    assert time.process_time() - began < 1  # Some of these took minutes.


def chosen(levels: int, schema: Any) -> Any:
    """Choices of one inside each other."""
    return schema if not levels else {"anyOf": [chosen(levels - 1, schema)]}


LEVELS = chosen(25, {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"anyOf": [{"type": "string"}] * 1_900}, [{"a": number} for number in range(20_000)]),
        ({"anyOf": [{"required": MANY}]}, {f"-{number}": [0] for number in range(50_000)}),
        ({"$ref": "#/$defs/a", "$defs": {"a": LEVELS}}, json.loads('{"a":' * 190 + "1" + "}" * 190)),
    ],
    ids=["many choices", "many names", "choices inside choices"],
)
def test_what_would_take_too_long_to_say_is_refused_without_the_place(schema: Any, value: Any) -> None:
    """Each error of each choice keeps a copy of the value: this took all memory."""
    began = time.process_time()
    assert find_problem(schema, value) == ": does not fit its schema, and is too large to say where"
    assert time.process_time() - began < 1


def test_a_problem_does_not_repeat_a_long_value() -> None:
    assert len(find_problem({"type": "string"}, ["x" * 100_000]) or "") <= 500
