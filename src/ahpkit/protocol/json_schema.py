"""Checks values against JSON Schemas that others wrote: tools, canvases, configuration, forms. Never fetches anything.

The schema's author is not trusted. References out of the schema are refused, so that a check never opens a connection.
A few lines of schema can ask for more steps than a machine will ever do, so a schema is measured before it is used:
`check_schema` follows its references and counts. A value is measured against it in the same way.

It is long because each group of keywords costs something else, so each has its own measure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, cast

from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.wire.codec import decode_json, encode

MAX_BYTES = 128 * 1024
"""Bytes of a schema as JSON. The largest schemas of real tools have tens of kilobytes."""

MAX_DEPTH = 64
"""Levels of subschemas inside each other, with references followed."""

MAX_SUBSCHEMAS = 2_000
"""Subschemas, counted as often as they are used: what is referred to twice counts twice."""

MAX_PATTERNS = 50_000
"""Characters of all patterns together, with repetitions written out: compiling them takes about 50 ms."""

_PER_PATTERN = 100
"""The cost of compiling the shortest pattern, in characters of pattern."""

MAX_STEPS = 2_000_000
"""Subschemas applied to parts of a value in one check: about 50 ms."""

_MAX_COUNTED_STEPS = 12_000
"""The same limit for schemas that refer to themselves, because for these the steps are counted one by one."""

_CHEAP = 50
"""Comparisons that take as long as a counted step."""

_UNIQUE = 20
_MULTIPLE = 100
"""The cost of a step for `uniqueItems` and for `multipleOf`, in ordinary steps."""

_LARGEST, _SMALLEST = 1e30, 1e-12
"""The bounds of numbers that are divided. For numbers outside them the validator works with hundreds of digits."""

_MAX_WORDS = 4_000_000
"""Bytes that are copied in the worst case to report what is wrong with a value: each error of each choice has its own
copy."""

_AGAIN = 4
"""How often subschemas for the same value are applied when `unevaluated…` needs to know what they evaluated."""

_MAX_MATCHING = 20_000_000
"""The limit of the cost of matching: characters of a value times the size of the patterns."""

_MAX_MESSAGE = 500
"""Characters of a problem. A validator quotes the value, however long."""

_MAX_LOOKING = 400_000_000
"""Like `_MAX_MATCHING`, for patterns with lookaround or backreferences, which may read a text once for each of its
characters."""

_BACKTRACKING = 2_000
_PATTERN_BYTES = 4 * 1024 * 1024
_CLASS_WEIGHT = {"p": 400, "P": 400, "w": 100, "W": 100, "d": 100, "D": 100, "s": 100, "S": 100, "b": 100, "B": 100}
"""The cost of a Unicode class, in plain characters. Such classes are large."""

_LOOKS = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9gGkK]|[*+?}]\+")
"""Signs of lookaround or backreferences in a pattern."""

_COUNT = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")

_HERE = frozenset(
    {"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"},
)
"""Keywords whose subschemas apply to the same value."""

_FOR_MEMBERS = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"})
_FOR_ITEMS = frozenset({"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"})
_INTO = _FOR_MEMBERS | _FOR_ITEMS | {"properties"}
"""Keywords whose subschemas apply to parts of the value."""

_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
"""Keywords with several subschemas, each under a name. The other keywords have one subschema or a list."""

_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keywords with values, not schemas, in them."""

_NAMED = _MAPS | {"$defs", "definitions"}
"""Keywords with an object whose member names the author chooses. A name in such an object is never a keyword."""

_READ = ("format", "contentMediaType", "contentEncoding")
"""Keywords for which a text is read as a whole, as for a pattern."""

Schema = dict[str, Any]


class _Refused(Exception):
    """Why a schema is not used."""


def check_schema(schema: Any) -> str | None:
    """Why a schema cannot be declared: it is too large, too deep, or endless. None: it can be used."""
    measured = _measured(schema)
    return measured if isinstance(measured, str) else None


def find_problem(schema: Any, value: Any) -> str | None:
    """What is wrong with `value`, beginning with the place inside it (`['a'][0]: …` or `: …`); None when it fits."""
    measured = _measured(schema)
    if isinstance(measured, str):
        return f": its schema cannot be used: {measured}"
    if (reason := measured.refuse(value)) is not None:
        return f": {reason}"
    try:
        validator = measured.validator
    except ValueError:
        return ": its schema is not valid, so no value can be checked against it"
    if validator.is_valid(value):
        return None
    if not measured.can_be_explained(value):
        return ": does not fit its schema, and is too large to say where"
    try:
        validator.validate(value)  # Stops at the first error. But that may be one about choices, with all of theirs.
    except ValueError as found:
        error: Any = found
        place = "".join(f"[{step!r}]" for step in getattr(error, "instance_path", ()))
        return f"{place}: {getattr(error, 'message', error)}"[:_MAX_MESSAGE]
    return None


def _measured(schema: Any) -> _Measured | str:
    try:
        data = encode(schema)
    except LocalProtocolError as error:
        return str(error)
    if len(data) > MAX_BYTES:
        return f"a schema may have {MAX_BYTES} bytes, this one has {len(data)}"
    return _measure(data)


@lru_cache(maxsize=256)
def _measure(data: bytes) -> _Measured | str:
    """A measured schema. Cached, because the same schema is used many times."""
    try:
        return _Measured(decode_json(data))
    except _Refused as refused:
        return str(refused)


class _Measured:
    """A schema of bounded cost."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        nodes = list(_objects(schema))
        self._nodes = {id(node) for node in nodes}
        self._names = _anchors(nodes)
        self._sizes: dict[int, int] = {}
        self._recursive = False
        patterns = [pattern for node in nodes for pattern in _patterns(node)]
        self._patterns = sum(map(_pattern_size, (*patterns, *(text for node in nodes for text in _read_texts(node)))))
        self._looking = sum(map(_pattern_size, filter(_LOOKS.search, patterns)))
        self._comparisons = {id(node): count for node in nodes if (count := _comparisons(node))}
        self._divides = any("multipleOf" in node for node in nodes)
        self._validator: Any = None
        if (size := self._patterns + len(patterns) * _PER_PATTERN) > MAX_PATTERNS:
            raise _Refused(f"its patterns are too large: {size}, at most {MAX_PATTERNS}")
        self._size = self._count(schema, [], frozenset())

    @property
    def validator(self) -> Any:
        if self._validator is None:
            import jsonschema_rs  # Imported late: importing the protocol must not load it.

            options = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKING, size_limit=_PATTERN_BYTES)
            self._validator = jsonschema_rs.validator_for(
                self._schema, validate_formats=True, retriever=_refuse, pattern_options=options
            )
        return self._validator

    def refuse(self, value: Any) -> str | None:
        """Why a value would take too long to check."""
        size = len(encode(value))
        if size * self._patterns > _MAX_MATCHING:
            return f"is too large for the patterns it has to match: {size} bytes"
        if self._looking and _looked_through(value) * self._looking > _MAX_LOOKING:
            return f"is too large for patterns that look around or back: {size} bytes"
        if self._divides and any(map(_is_extreme, _numbers(value))):
            return "has a number that is too large or too small to be divided"
        if self._recursive or size // 2 * (self._size + sum(self._comparisons.values())) > MAX_STEPS:
            return None if self._can_be_counted(value) else "takes too many steps to check: the value is too large"
        return None

    def can_be_explained(self, value: Any) -> bool:
        """Whether the errors of a value can be described at a bounded cost."""
        return self._is_within(value, _MAX_WORDS // max(len(encode(value)), 1), _required)

    # The cost of a schema.

    def _count(self, node: Any, path: list[tuple[int, bool]], above: frozenset[int]) -> int:
        """The number of subschemas below one, with references followed. `path` has the schemas above it, and for each
        one whether the next schema applies to a part of the value."""
        if not isinstance(node, dict):
            return 1
        node = cast("Schema", node)
        if id(node) in above:
            self._came_back(id(node), path)
            return 1
        if (known := self._sizes.get(id(node))) is not None:
            return known
        if len(path) >= MAX_DEPTH:
            raise _Refused(f"it is more than {MAX_DEPTH} levels deep")
        total = 1
        again = _AGAIN if _asks_what_was_looked_at(node) else 1
        for child, into in self._children(node):
            total += self._count(child, [*path, (id(node), into)], above | {id(node)}) * (1 if into else again)
            if total > MAX_SUBSCHEMAS:
                raise _Refused(f"it has more than {MAX_SUBSCHEMAS} subschemas, references counted")
        self._sizes[id(node)] = total
        return total

    def _came_back(self, again: int, path: list[tuple[int, bool]]) -> None:
        """A schema may refer to itself for a part of the value, as trees do, but not for the same value."""
        start = next(at for at, (node, _) in enumerate(path) if node == again)
        if not any(into for _, into in path[start:]):
            raise _Refused("it refers to itself without end")
        self._recursive = True

    def _children(self, node: Schema) -> Iterator[tuple[Any, bool]]:
        """Subschemas, and whether they are for a part of the value."""
        if isinstance(reference := node.get("$ref"), str):
            yield self._resolve(reference), False
        for key, value in node.items():
            if key in _HERE or key in _INTO:
                for child in _subschemas(key, value):
                    yield child, key in _INTO

    def _resolve(self, reference: str) -> Any:
        name = reference.removeprefix("#")
        if name == reference:
            raise _Refused(f"it refers to {reference[:100]}, which is outside of it")
        if name and not name.startswith("/"):
            if name not in self._names:
                raise _Refused(f"it refers to {reference[:100]}, which it does not have")
            return self._names[name]
        from urllib.parse import unquote  # Imported late: importing the protocol must not load it.

        found: Any = self._schema
        for step in unquote(name).split("/")[1:]:
            found = _step(found, step.replace("~1", "/").replace("~0", "~"), reference)
        node: Any = found
        if isinstance(found, dict) and id(node) not in self._nodes:
            raise _Refused(f"it refers to {reference[:100]}, which is no schema")
        return node

    # The cost of a value.

    def _can_be_counted(self, value: Any) -> bool:
        return self._is_within(value, _MAX_COUNTED_STEPS, self._weigh)

    def _weigh(self, node: Schema, at: Any) -> int:
        """The cost of one subschema for one part of a value, in addition to its step."""
        return (self._comparisons.get(id(node), 0) + _looked_up(node, at)) // _CHEAP

    def _is_within(self, value: Any, left: int, weigh: Callable[[Schema, Any], int]) -> bool:
        """Whether applying every subschema to every part that it is for costs at most `left`. Counting stops at the
        limit."""
        todo: list[Iterator[tuple[Any, Any]]] = [iter([(self._schema, value)])]
        steps = _MAX_COUNTED_STEPS
        while todo:
            if (applied := next(todo[-1], None)) is None:
                todo.pop()
                continue
            if left <= 0 or steps <= 0:
                return False
            node, at = applied
            left, steps = left - 1, steps - 1
            if isinstance(node, dict):
                found = cast("Schema", node)
                left -= weigh(found, at)
                todo.append(self._applied(found, at))  # A list could have millions of entries.
        return left >= 0

    def _applied(self, node: Schema, at: Any) -> Iterator[tuple[Any, Any]]:
        for child, into in self._children(node):
            if not into:
                yield child, at
        if isinstance(at, dict):
            yield from _applied_to_members(node, cast("dict[str, Any]", at))
        elif isinstance(at, list):
            yield from _applied_to_items(node, cast("list[Any]", at))


def _applied_to_members(node: Schema, members: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    properties: Any = node.get("properties")
    if isinstance(properties, dict):
        named = cast("Schema", properties)
        yield from ((named[name], members[name]) for name in named.keys() & members.keys())
    for key in _FOR_MEMBERS & node.keys():
        for child in _subschemas(key, node[key]):
            yield from ((child, member) for member in members.values())


def _applied_to_items(node: Schema, items: list[Any]) -> Iterator[tuple[Any, Any]]:
    for key in _FOR_ITEMS & node.keys():
        if isinstance(node[key], list):  # One for each place: `prefixItems`, and `items` of older drafts.
            yield from zip(cast("list[Any]", node[key]), items, strict=False)
        else:
            yield from ((node[key], item) for item in items)


def _subschemas(key: str, value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from cast("list[Any]", value)
    elif isinstance(value, dict) and key in _MAPS:
        yield from cast("Schema", value).values()
    else:
        yield value


def _objects(schema: Any) -> Iterator[Schema]:
    """Every object of a schema that may be a subschema: also those that only a reference leads to."""
    todo: list[tuple[Any, bool]] = [(schema, False)]
    while todo:
        node, names = todo.pop()
        if isinstance(node, dict):
            found = cast("Schema", node)
            if not names:
                yield found
            todo += ((value, not names and key in _NAMED) for key, value in found.items() if names or key not in _DATA)
        elif isinstance(node, list):
            todo += ((one, False) for one in cast("list[Any]", node))


def _asks_what_was_looked_at(node: Schema) -> bool:
    return "unevaluatedProperties" in node or "unevaluatedItems" in node


def _comparisons(node: Schema) -> int:
    """How many values a value is compared with one by one. Lists of only texts are looked up at once and do not
    count."""
    choices: Any = node.get("enum")
    listed = cast("list[Any]", choices) if isinstance(choices, list) else []
    plain = all(isinstance(choice, str) for choice in listed)
    compared = (0 if plain else _values_in(listed)) + (_values_in(node["const"]) if "const" in node else 0)
    unique = _UNIQUE if node.get("uniqueItems") is True else 0
    multiple = _MULTIPLE if "multipleOf" in node else 0
    return compared + unique + multiple + _values_in(node.get("dependentRequired", ()))


def _looked_up(node: Schema, at: Any) -> int:
    """The cost of the keywords that look through the parts of a value."""
    if isinstance(at, dict):
        return min(_required(node, at), len(cast("Schema", at)))
    if not isinstance(at, list) or node.get("uniqueItems") is not True:
        return 0
    return _values_in(cast("list[Any]", at)) * 3 + len(encode(at)) // 16


def _required(node: Schema, at: Any) -> int:
    """The number of names that a schema requires in an object."""
    names: Any = node.get("required")
    return len(cast("list[Any]", names)) if isinstance(names, list) and isinstance(at, dict) else 0


def _values_in(value: Any) -> int:
    """The number of values in a value. Counting stops above the number that any check may look at."""
    count, todo = 0, [value]
    while todo and count < _MAX_COUNTED_STEPS * _CHEAP:
        one = todo.pop()
        count += 1
        if isinstance(one, dict):
            todo += cast("Schema", one).values()
        elif isinstance(one, list):
            todo += cast("list[Any]", one)
    return count


def _looked_through(value: Any) -> int:
    """Characters that are read in the worst case, when each text is read again for each of its characters."""
    count, todo = 0, [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            count += len(one) ** 2 + _BACKTRACKING
        elif isinstance(one, dict):
            todo += (*cast("Schema", one), *cast("Schema", one).values())
        elif isinstance(one, list):
            todo += cast("list[Any]", one)
    return count


def _numbers(value: Any) -> Iterator[float]:
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, int | float):
            yield one
        elif isinstance(one, dict):
            todo += cast("Schema", one).values()
        elif isinstance(one, list):
            todo += cast("list[Any]", one)


def _is_extreme(number: float) -> bool:
    return abs(number) > _LARGEST or 0 < abs(number) < _SMALLEST


def _anchors(nodes: Sequence[Schema]) -> dict[str, Schema]:
    """The names that references may use. Raises for keywords that change the meaning of references."""
    found: dict[str, Schema] = {}
    old = any("draft-04" in str(node.get("$schema")) for node in nodes)  # Draft 4 calls it `id`.
    for node in nodes:
        _check_keywords(node)
        bases = [base for key in ("$id", "id")[: 1 + old] if isinstance(base := node.get(key), str)]
        if node is not nodes[0] and any(not base.startswith("#") for base in bases):
            raise _Refused("it has an $id inside; only the schema as a whole may have one")
        anchors = [node.get("$anchor"), node.get("$dynamicAnchor")]
        for name in (*anchors, *(base[1:] for base in bases if base.startswith("#"))):
            if isinstance(name, str) and found.setdefault(name, node) is not node:
                raise _Refused(f"it has the name {name[:100]} twice")
    return found


def _check_keywords(node: Schema) -> None:
    """Refuse keywords whose cost cannot be measured."""
    if isinstance(node.get("$dynamicRef"), str) or isinstance(node.get("$recursiveRef"), str):
        raise _Refused("it has a dynamic reference; use $ref")
    multiple: Any = node.get("multipleOf")
    if isinstance(multiple, int | float) and _is_extreme(multiple):
        raise _Refused("the number of its multipleOf is too large or too small")


def _step(found: Any, step: str, reference: str) -> Any:
    if isinstance(found, dict) and step in found:
        return cast("Schema", found)[step]
    if isinstance(found, list) and step.isdecimal() and int(step) < len(cast("list[Any]", found)):
        return cast("list[Any]", found)[int(step)]
    raise _Refused(f"it refers to {reference[:100]}, which it does not have")


def _refuse(uri: str) -> Any:
    raise ValueError(f"a schema must not refer to {uri}")


# Patterns.


def _patterns(node: Schema) -> Iterator[str]:
    """All patterns with which texts are matched."""
    if isinstance(text := node.get("pattern"), str):
        yield text
    if isinstance(named := node.get("patternProperties"), dict):
        yield from cast("Schema", named)


def _read_texts(node: Schema) -> Iterator[str]:
    """The short texts that are compiled like patterns."""
    return (text for key in _READ if isinstance(text := node.get(key), str))


def _pattern_size(pattern: str) -> int:
    """Characters of a regular expression with its counted repetitions written out. Invalid expressions get a number
    too."""
    groups = [0]
    last, at = 0, 0
    while at < len(pattern):
        if (count := _COUNT.match(pattern, at)) is not None:
            times = max(int(count[1]), int(count[2] or 0))
            groups[-1] += last * max(times - 1, 0)
            last *= max(times, 1)
            at = count.end()
            continue
        last, at = _atom(pattern, at, groups)
        groups[-1] += last
    return sum(groups)


def _atom(pattern: str, at: int, groups: list[int]) -> tuple[int, int]:
    """The size of the element at this place, and where it ends."""
    match pattern[at]:
        case "\\":
            return _escape(pattern, at)
        case "[":
            return _set(pattern, at)
        case "(":
            groups.append(0)
            return 0, at + 1
        case ")" if len(groups) > 1:
            return groups.pop() + 1, at + 1
        case _:
            return 1, at + 1


def _escape(pattern: str, at: int) -> tuple[int, int]:
    letter = pattern[at + 1 : at + 2]
    named = letter in ("p", "P") and pattern[at + 2 : at + 3] == "{"
    end = pattern.find("}", at) + 1 if named else 0
    return _CLASS_WEIGHT.get(letter, 1), end or at + 2


def _set(pattern: str, at: int) -> tuple[int, int]:
    """A set of characters in brackets. The first may be a bracket itself."""
    size, at = 1, at + 1
    first = at + pattern.startswith("^", at)
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        weight, at = _escape(pattern, at) if pattern[at] == "\\" else (0, at + 1)
        size += weight
    return size, at + 1


__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_PATTERNS", "MAX_STEPS", "MAX_SUBSCHEMAS", "check_schema", "find_problem"]
