"""A typed function is a tool: what the model is told, and what the function gets."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from ahpkit.authoring.tool_functions import ToolFunction, ToolInputError


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


def add(a: int, b: Annotated[int, "what to add"] = 1) -> int:
    """Add two numbers."""
    return a + b


def test_name_description_and_schema_come_from_the_function() -> None:
    assert ToolFunction(add).definition == {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "integer", "description": "what to add", "default": 1},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    }


def test_given_texts_win_over_the_function() -> None:
    tool = ToolFunction(add, name="plus-one", title="Plus", description="Adds.")
    assert (tool.definition["name"], tool.definition.get("title"), tool.definition.get("description")) == (
        "plus-one",
        "Plus",
        "Adds.",
    )


def test_a_function_without_docstring_has_no_description() -> None:
    def bare() -> None: ...

    assert "description" not in ToolFunction(bare).definition


def test_arguments_arrive_in_the_hinted_types() -> None:
    def draw(
        points: list[Point], colour: Colour = Colour.RED, style: Literal["a", "b"] = "a", extra: Any = None
    ) -> None: ...

    arguments = ToolFunction(draw).arguments('{"points": [{"x": 1}], "style": "b"}')
    assert arguments == {"points": [Point(1)], "colour": Colour.RED, "style": "b", "extra": None}


def test_types_that_are_referred_to_are_defined_in_the_schema() -> None:
    def move(to: Point) -> None: ...

    schema: Any = ToolFunction(move).definition.get("inputSchema")
    assert schema["properties"]["to"] == {"$ref": "#/$defs/Point"}
    assert schema["$defs"]["Point"]["required"] == ["x"]


def test_no_input_is_an_empty_object() -> None:
    def look(where: str = "here") -> None: ...

    assert ToolFunction(look).arguments("") == {"where": "here"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": "x"}', "Expected `int`, got `str` - at `$.a`"),
        ('{"a": 1, "z": 1}', "unknown field `z`"),
        ("{}", "missing required field `a`"),
        ("[1]", "Expected `object`, got `array`"),
        ("{", "input of add: "),
    ],
)
def test_input_that_does_not_fit_is_refused_with_the_place(text: str, problem: str) -> None:
    with pytest.raises(ToolInputError, match="input of add") as caught:
        ToolFunction(add).arguments(text)
    assert problem in str(caught.value)


def test_injected_parameters_are_not_shown() -> None:
    def act(call: object, path: str) -> None: ...

    tool = ToolFunction(act, injected=["call"])
    assert list(tool.definition.get("inputSchema", {})["properties"]) == ["path"]
    assert tool.arguments('{"path": "x"}') == {"path": "x"}


def test_parameters_without_a_name_are_no_tool() -> None:
    def spread(*values: int) -> None: ...

    with pytest.raises(TypeError, match="spread"):
        ToolFunction(spread)
