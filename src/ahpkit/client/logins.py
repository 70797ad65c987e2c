"""Answers `auth/required` with a token from the program's callback. A token that has expired is not sent again.

Only the fingerprint of a token is remembered, never the token.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from ahpkit.protocol.common.commands import AuthRequiredParams
from ahpkit.protocol.common.state import JsonObject


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """A token with its lifetime in seconds and the scopes that it grants, where they are known."""

    token: str
    expires_in: int | None = None
    scopes: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return "Token(…)"


Given = str | Token | None

OnAuthRequired = Callable[[AuthRequiredParams], Given | Awaitable[Given]]
"""Called with the params of `auth/required`; returns a token, or None when there is none."""

_Listener = Callable[[str, JsonObject], Awaitable[None]]


class Logins:
    """Remembers which token was sent last for each resource."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}

    def sent(self, resource: str, token: str) -> None:
        """Remember a token that the host accepted."""
        self._sent[resource] = _fingerprint(token)

    def listener(self, callback: OnAuthRequired, send: Callable[..., Awaitable[None]]) -> _Listener:
        """Handles `auth/required`: asks `callback` and passes its token to `send`."""

        async def hear(method: str, params: JsonObject) -> None:
            if method != "auth/required":
                return
            answer: Any = callback(cast("AuthRequiredParams", params))
            given = cast("Given", await answer if inspect.isawaitable(answer) else answer)
            token = Token(given) if isinstance(given, str) else given
            resource: str = params["resource"]["resource"]
            if token is not None and not self._has_expired(resource, token.token, params.get("reason")):
                await send(resource, token.token, expires_in=token.expires_in, scopes=token.scopes)

        return hear

    def _has_expired(self, resource: str, token: str, reason: object) -> bool:
        """Whether the host says that exactly this token has expired."""
        return reason == "expired" and self._sent.get(resource) == _fingerprint(token)


def _fingerprint(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


__all__ = ["Logins", "OnAuthRequired", "Token"]
