"""Values checked against JSON Schemas that others wrote: tools, canvases, configuration. Never fetches anything.

The schema's author is not trusted. References out of the schema are refused, so that a check never opens a connection.
"""

from __future__ import annotations

from typing import Any

_BAD_SCHEMA = ": its schema is not valid, so no value can be checked against it"


def find_problem(schema: Any, value: Any) -> str | None:
    """What is wrong with `value`, beginning with the place inside it (`['a'][0]: …` or `: …`); None when it fits."""
    import jsonschema_rs  # here, not above: it loads modules that importing the protocol must not

    try:
        validator: Any = jsonschema_rs.validator_for(schema, validate_formats=True, retriever=_refuse)
        error = next(iter(validator.iter_errors(value)), None)
    except ValueError:
        return _BAD_SCHEMA
    if error is None:
        return None
    place = "".join(f"[{step!r}]" for step in error.instance_path)
    return f"{place}: {error.message}"


def _refuse(uri: str) -> Any:
    raise ValueError(f"a schema must not refer to {uri}")


__all__ = ["find_problem"]
