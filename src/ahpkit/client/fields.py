"""Optional fields of what is sent. Absent is absent: a field without a value is left out, never null."""

from __future__ import annotations

from typing import Any

from ahpkit.protocol.common.state import JsonObject


def given(**fields: Any) -> JsonObject:
    """The fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}


__all__ = ["given"]
