"""There is a constructor for every action, and it takes exactly the fields the action has."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest

from ahpkit.protocol.registry import ACTIONS
from support import for_each

SMALL = ("annotations", "canvas", "changeset", "resource_watch", "root", "terminal")
LARGE = ("automation.actions", "chat.actions", "session.actions")
MODULES = [importlib.import_module(f"ahpkit.protocol.{name}") for name in (*SMALL, *LARGE)]


def makes_an_action(function: Callable[..., Any]) -> bool:
    """Whether a function of a channel's module is a constructor. A small channel's reducer is beside them."""
    return str(function.__annotations__["return"]).endswith("Action")


CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    name: getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if inspect.isfunction(getattr(module, name)) and makes_an_action(getattr(module, name))
}
SPLIT = {"chat/toolCallConfirmed": ("chat_tool_call_approved", "chat_tool_call_denied")}
"""An action with two forms has two constructors."""


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name.replace("/", "_")).lower()


def parameter(field: str) -> str:
    return {"_meta": "meta", "range": "range_"}.get(field, snake(field))


def test_every_action_has_its_constructor_and_every_constructor_its_action() -> None:
    names = [name for kind in ACTIONS for name in SPLIT.get(kind, (snake(kind),))]
    assert sorted(names) == sorted(CONSTRUCTORS)


@for_each(sorted(CONSTRUCTORS))
def test_a_constructor_takes_the_fields_of_its_action(name: str) -> None:
    make = CONSTRUCTORS[name]
    shape = get_type_hints(make)["return"]
    hints = get_type_hints(shape, include_extras=True)
    fixed = {field for field, hint in hints.items() if get_args(hint) in ((True,), (False,))} | {"type"}
    parameters = inspect.signature(make).parameters
    assert {parameter(field) for field in hints.keys() - fixed} == parameters.keys()
    optional = {parameter(field) for field, hint in hints.items() if get_origin(hint) is NotRequired}
    assert {each.name for each in parameters.values() if each.default is None} == optional
    assert {each.kind for each in parameters.values()} <= {inspect.Parameter.KEYWORD_ONLY}


@for_each(sorted(CONSTRUCTORS))
def test_a_constructor_writes_every_field_it_is_given_and_no_other(name: str) -> None:
    make = CONSTRUCTORS[name]
    given = {each: f"<{each}>" for each in inspect.signature(make).parameters}
    whole = make(**given)
    assert {parameter(field): value for field, value in whole.items() if value in given.values()} == given
    assert whole["type"] in ACTIONS
    required = {n: given[n] for n, each in inspect.signature(make).parameters.items() if each.default is not None}
    assert {parameter(field) for field in make(**required)} - {"type", "approved"} <= required.keys()


def test_a_field_that_is_missing_or_misspelt_raises_where_the_action_is_made() -> None:
    started = CONSTRUCTORS["chat_turn_started"]
    with pytest.raises(TypeError, match="message"):
        started(turn_id="t", started_at="now")
    with pytest.raises(TypeError, match="turnid"):
        started(turnid="t", started_at="now", message={})
