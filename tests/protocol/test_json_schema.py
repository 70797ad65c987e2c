"""Values against schemas that others wrote."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from ahpkit.protocol.json_schema import find_problem

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


@pytest.mark.parametrize("schema", [{"type": "strnig"}, {"$ref": "#/nope"}, {"pattern": "("}, 7, None])
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
