"""Protocol extensions: what their methods are called and which ones a host announced. Pure; sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahpkit.client.errors import ExtensionNotSupported
from ahpkit.protocol.errors import LocalProtocolError


def check_method(method: str) -> None:
    """An extension's method is an underscore, a namespace, a slash and a feature: `_example.com/analytics`."""
    namespace, slash, feature = method.removeprefix("_").partition("/")
    if not (method.startswith("_") and namespace and slash and feature):
        raise LocalProtocolError(f"{method!r} is not an extension method; use a name such as '_example.com/feature'")


def check_announced(method: str, announced: Mapping[str, Any]) -> None:
    """Raise unless the extension that `method` belongs to is among the announced ones.

    An announcement stands under the namespace alone (`example.com`) or with the feature (`example.com/analytics`).
    """
    parts = method.removeprefix("_").split("/")
    names = {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
    if names.isdisjoint(announced):
        raise ExtensionNotSupported(method, announced)


__all__ = ["check_announced", "check_method"]
