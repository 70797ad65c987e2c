"""Checks whether a message has the shape of its kind. Whether an action is allowed is decided elsewhere.

Additions of a newer peer pass: unknown members, unknown action types, unknown variants inside known types, unknown
methods. What is known must be right; the error says where it is wrong.

Integers that were written with a point become integers on the way, in place, because many JSON libraries have only one
kind of number and write `7.0` or `1e3`. Which members are integers is read off the wire types, so there is no list to
keep. Everything else, and all free-form JSON, stays as it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Protocol,
    Required,
    TypedDict,
    Union,
    cast,
    get_args,
    get_origin,
    is_typeddict,
)

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.registry import ACTIONS, COMMANDS, NOTIFICATIONS, CommandSpec, Shape
from ahpkit.protocol.type_schemas import discriminator, hints, json_schema, literals
from ahpkit.wire.codec import whole

MAX_URI_LENGTH = 16 * 1024
"""Characters of a URI in the params of a method: the longest path of a file, every character of it escaped."""

_URIS = frozenset({"channel", "uri", "source", "destination", "chat", "session", "workingDirectory"})
"""Params of methods that are URIs."""

_MOST_ERRORS = 5
"""The number of wrong places that one refusal names."""

_FEW_VALUES = 500
"""If a value consists of at most this many JSON values, all its errors are searched."""

_SHORT = 10_000
"""If the texts of a value have at most this many characters, all its errors are searched. Each error comes with a copy
of the text."""

_LONGEST_VALUE = 60
"""Characters of a wrong value that an error quotes."""


def check_action(action: Mapping[str, Any]) -> None:
    """Raise `InvalidParams` when an action is malformed, naming the path; an action of unknown type passes."""
    spec = ACTIONS.get(_type_of(action))
    check(_AnyAction if spec is None else spec.shape, action, at="action")


def check_params(method: str, params: JsonObject) -> None:
    """Raise `InvalidParams` when the params of a known method, in either direction, are malformed.

    Every AHP method needs a string `channel`; unknown methods, extensions among them, may leave it out. The action in a
    `dispatchAction` is only checked to be an object: what `check_action` finds is sent to the dispatcher in an
    envelope, because a notification has no other answer.
    """
    spec = COMMANDS.get(method) or NOTIFICATIONS.get(method)
    check(_AnyParams if spec is None else spec.params, params)
    for name in _URIS.intersection(params):
        value = params[name]
        if isinstance(value, str) and len(value) > MAX_URI_LENGTH:
            raise InvalidParams(f"{name}: a URI has at most {MAX_URI_LENGTH} characters, this one has {len(value)}")


def check(shape: Shape, value: Any, *, at: str = "") -> None:
    """Raise `InvalidParams` when `value` does not have that shape; `at` is where the path in the error begins."""
    validator, fix = _checks(shape)
    if fix is not None:
        fix(value)
    try:
        if validator.is_valid(value):
            return
        errors = list(islice(_errors(validator, value), _MOST_ERRORS))
    except ValueError as exc:  # not JSON: only possible for values that did not come through the codec
        raise InvalidParams(f"{at or 'params'}: {exc}") from None
    raise InvalidParams("; ".join(_describe(error, at) for error in errors))


def prepare_check(shape: Shape) -> None:
    """Build the validator of a shape, so that the first check takes no longer than the others."""
    _checks(shape)


def make_whole(method: str, params: JsonObject, *, result: Any = None) -> None:
    """Integers that a peer wrote with a point become integers, in place, without a check of anything else."""
    spec = COMMANDS.get(method) or NOTIFICATIONS.get(method)
    if spec is not None and (fix := _whole_numbers(spec.params)) is not None:
        fix(params)
    if isinstance(spec, CommandSpec) and (fix := _whole_numbers(spec.result)) is not None:
        fix(result)


def _errors(validator: _Validator, value: Any) -> Iterable[_Error]:
    """All errors of a small value; only the first of a large one, because collecting all takes long."""
    if _is_small(value):
        return validator.iter_errors(value)
    try:
        validator.validate(value)
    except ValueError as error:
        return [cast("_Error", error)]
    return []


def _is_small(value: Any) -> bool:
    todo: list[Any] = [value]
    for _ in range(_FEW_VALUES):
        if not todo:
            return True
        item = todo.pop()
        if isinstance(item, str) and len(item) > _SHORT:
            return False
        if isinstance(item, dict | list):
            if len(cast("list[Any]", item)) > _FEW_VALUES:
                return False
            todo += cast("dict[str, Any]", item).values() if isinstance(item, dict) else cast("list[Any]", item)
    return False


class _AnyAction(TypedDict):
    type: str


class _AnyParams(TypedDict):
    channel: NotRequired[str]


class _Error(Protocol):
    kind: Any
    instance: Any
    instance_path: list[str | int]


class _Validator(Protocol):
    def validate(self, instance: Any) -> None: ...
    def is_valid(self, instance: Any) -> bool: ...
    def iter_errors(self, instance: Any) -> Iterable[_Error]: ...


@cache
def _checks(shape: Shape) -> tuple[_Validator, Callable[[Any], object] | None]:
    """Two functions for a shape: one finds errors in a value, the other makes integers whole (None: there are none)."""
    import jsonschema_rs  # Imported late: importing the protocol must not load it.

    validator = jsonschema_rs.validator_for(json_schema(shape), mask="value")  # Else an error quotes the value.
    return cast("_Validator", validator), _whole_numbers(shape)


def _type_of(action: Any) -> str:
    kind = cast("dict[str, Any]", action).get("type") if isinstance(action, dict) else None
    return kind if isinstance(kind, str) else ""


def _describe(error: _Error, at: str) -> str:
    kind = error.kind
    if kind.name == "required":
        return f"{_path(at, [*error.instance_path, kind.property])}: missing"
    path = _path(at, error.instance_path) or "params"
    if kind.name == "enum":
        return f"{path}: expected {_choice(kind.options)}, got {_value(error.instance)}"
    if kind.name in ("minimum", "maximum"):
        bound = "at least" if kind.name == "minimum" else "at most"
        return f"{path}: must be {bound} {_value(kind.limit)}, got {_value(error.instance)[:_LONGEST_VALUE]}"
    expected = " or ".join(kind.types) if kind.name == "type" else "another shape"
    return f"{path}: expected {expected}, got {_type_name(error.instance)}"


def _path(at: str, steps: Sequence[str | int]) -> str:
    text = at
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _choice(options: Sequence[Any]) -> str:
    quoted = [_value(option) for option in options]
    return quoted[0] if len(quoted) == 1 else f"one of {', '.join(quoted)}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= _LONGEST_VALUE else f'"{value[:_LONGEST_VALUE]}…"'
    if isinstance(value, int | float):
        return str(value).lower()  # As JSON writes it, true and false included.
    return _type_name(value)


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return {str: "string", list: "array", dict: "object"}.get(cast("type[Any]", type(value)), "something else")


_Fix = Callable[[Any], Any]
"""Returns a value with its integers made whole; objects and lists are changed in place."""


@cache
def _whole_numbers(shape: Any) -> _Fix | None:
    """The function that makes the integers of a shape whole; None if the shape has no integers."""
    if shape is int:
        return whole
    if not _has_integers(shape):
        return None
    origin, arguments = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        return _of_object(shape)
    if origin in (Annotated, NotRequired, Required):
        return _whole_numbers(arguments[0])
    if origin is list:
        return _of_list(_whole_numbers(arguments[0]))
    if origin is dict:
        return _of_map(_whole_numbers(arguments[1]))
    if origin in (Union, UnionType):
        return _of_union(arguments)
    return None


@cache
def _has_integers(shape: Any) -> bool:
    """Whether an integer can be anywhere in that shape."""
    found: list[Any] = [shape]
    seen: set[Any] = {shape}
    for one in found:  # It grows while we walk.
        parts = _parts(one)
        if int in parts:
            return True
        new = parts - seen
        seen |= new
        found += new
    return False


@cache
def _parts(shape: Any) -> frozenset[Any]:
    """The types that a type is made of."""
    if is_typeddict(shape):
        return frozenset(hints(shape).values())
    if get_origin(shape) is Literal:
        return frozenset()
    parts = frozenset(get_args(shape))
    return frozenset() if {int, float} <= parts else parts  # `int | float` accepts a float as it is.


def _of_object(shape: Any) -> _Fix:
    members: list[tuple[str, _Fix]] | None = None

    def fix(value: Any) -> Any:
        nonlocal members
        if isinstance(value, dict):
            if members is None:  # Made when needed: types may refer back, and most are never used.
                members = [(key, inner) for key, hint in hints(shape).items() if (inner := _whole_numbers(hint))]
            found = cast("dict[str, Any]", value)
            for key, inner in members:
                if key in found:
                    found[key] = inner(found[key])
        return cast("Any", value)

    return fix


def _of_list(inner: _Fix | None) -> _Fix:
    def fix(value: Any) -> Any:
        if isinstance(value, list) and inner is not None:
            items = cast("list[Any]", value)
            items[:] = map(inner, items)
        return cast("Any", value)

    return fix


def _of_map(inner: _Fix | None) -> _Fix:
    def fix(value: Any) -> Any:
        if isinstance(value, dict) and inner is not None:
            entries = cast("dict[str, Any]", value)
            entries.update({key: inner(item) for key, item in entries.items()})
        return cast("Any", value)

    return fix


def _of_union(members: tuple[Any, ...]) -> _Fix:
    """The function for a union. It treats an object as the variant that its discriminator names."""
    others = [inner for member in members if not is_typeddict(member) and (inner := _whole_numbers(member))]
    variants: tuple[str | None, dict[Any, list[_Fix]]] | None = None

    def fix(value: Any) -> Any:
        nonlocal variants
        if isinstance(value, dict):
            if variants is None:
                variants = _variants([member for member in members if is_typeddict(member)])
            key, by_value = variants
            tag = cast("dict[str, Any]", value).get(key) if key else None
            for inner in by_value.get(tag, ()) if isinstance(tag, str | bool | None) else ():
                inner(value)
            return cast("Any", value)
        for inner in others:
            value = inner(value)
        return value

    return fix


def _variants(objects: Sequence[Any]) -> tuple[str | None, dict[Any, list[_Fix]]]:
    """The member that tells some types of objects apart, and what makes the integers of each one whole."""
    key = discriminator(objects) if len(objects) > 1 else None
    by_value: dict[Any, list[_Fix]] = {}
    for member in objects:
        for value in literals(member, key) if key else (None,):
            by_value.setdefault(value, []).extend(fix for fix in (_whole_numbers(member),) if fix)
    return key, by_value


__all__ = ["MAX_URI_LENGTH", "check", "check_action", "check_params", "make_whole", "prepare_check"]
