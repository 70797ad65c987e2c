"""Turns a typed Python function into a tool: its definition for the model, its arguments from JSON.

    def add(a: int, b: Annotated[int, "what to add"] = 1) -> int:
        "Add two numbers."

gives a tool `add` with that description, an input schema with `a` required and `b` described, and arguments that are
checked and converted to the hinted types before the function sees them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from ahpkit.protocol.session.state import ToolDefinition

_PLAIN = (str, int, float, bool, type(None))
"""Types of defaults that are shown in the schema. Other defaults are used but not shown."""


class ToolInputError(ValueError):
    """The input does not fit the function's parameters. The text says where, and may be shown to the model."""


class ToolFunction:
    """A function together with its definition and the type its input is decoded to."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        injected: Collection[str] = (),
    ) -> None:
        """`injected` names parameters that the caller fills in. The model does not see them."""
        self.function = function
        self.name = name or function.__name__
        self._model = _input_model(function, self.name, injected)
        self.definition: ToolDefinition = {"name": self.name, "inputSchema": _input_schema(self._model)}
        if title:
            self.definition["title"] = title
        if text := description or inspect.getdoc(function):
            self.definition["description"] = text

    def arguments(self, tool_input: str | bytes) -> dict[str, Any]:
        """Keyword arguments from JSON text; no text at all stands for an empty object."""
        try:
            decoded = msgspec.json.decode(tool_input or b"{}", type=self._model)
        except msgspec.MsgspecError as error:
            raise ToolInputError(f"input of {self.name}: {error}") from error
        return {name: getattr(decoded, name) for name in self._model.__struct_fields__}


def _input_model(function: Callable[..., Any], name: str, injected: Collection[str]) -> type[msgspec.Struct]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in injected:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {name}: parameter {parameter} cannot be given by name, so no schema describes it")
        hint = _described(hints.get(parameter.name, Any))
        fields.append((parameter.name, hint, *_default(parameter.default)))
    return msgspec.defstruct("ToolInput", fields, kw_only=True, forbid_unknown_fields=True)


def _default(default: Any) -> tuple[Any, ...]:
    if default is inspect.Parameter.empty:
        return ()
    return (default if isinstance(default, _PLAIN) else msgspec.field(default_factory=lambda: default),)


def _described(hint: Any) -> Any:
    """A plain string in `Annotated` describes the parameter."""
    if get_origin(hint) is not Annotated:
        return hint
    inner, *extras = get_args(hint)
    for extra in extras:
        inner = Annotated[inner, msgspec.Meta(description=extra) if isinstance(extra, str) else extra]
    return inner


def _input_schema(model: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of the input, with the types that it refers to in `$defs`."""
    schema = msgspec.json.schema(model)
    definitions: dict[str, Any] = schema["$defs"]
    top = definitions.pop(schema["$ref"].removeprefix("#/$defs/"))
    del top["title"]
    return top | ({"$defs": definitions} if definitions else {})


__all__ = ["ToolFunction", "ToolInputError"]
