"""Creates, stores and checks the token that every connection needs.

A client presents it in one of three ways, looked for in this order:

    Authorization: Bearer TOKEN                       programs
    Sec-WebSocket-Protocol: ahp, ahp.token.TOKEN      browsers, which cannot set the header above
    ?token=TOKEN or ?tkn=TOKEN                        tools that can do nothing else; it may end up in their history
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs

from ahpkit.platform.files import write_private
from ahpkit.transports.errors import BindError

SUBPROTOCOL = "ahp"
"""The subprotocol the server selects when it is offered. Browsers need one selected when they offer any."""

TOKEN_SUBPROTOCOL = "ahp.token."

QUERY_NAMES = ("token", "tkn")
"""The names of the token in a query. VS Code says `tkn`."""

_WHERE = "`ahpkit serve` says where it is when it starts"
"""Strangers get this text too, so it does not name the file."""

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The characters that need no quoting in any of the three places (RFC 9110, 5.6.2)."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The decision about one request: whether it is admitted and as whom, or the reason for the refusal."""

    allowed: bool
    credential: str | None = None
    """A stable fingerprint of the token."""
    reason: str = ""
    ambient: bool = False
    """Whether it rests on a cookie, which a browser sends by itself: then it counts only for requests of our own
    pages."""


Check = Callable[[Mapping[str, str], str], Admission | None]
"""A further way to be admitted. Gets the headers (names in lower case) and the query; returns a decision, or None if
the request presents nothing."""


class Authenticator:
    """Checks what a request presents against the token. Without a token everyone is let in (see `check_bind`).

    `checks` are asked in their order when a request presents no token.
    """

    def __init__(self, token: str | None, *, checks: Sequence[Check] = ()) -> None:
        if token is not None and not _TOKEN.fullmatch(token):
            raise ValueError("a token consists of letters, digits and any of !#$%&'*+.^_`|~-")
        self._token = token
        self._checks = tuple(checks)

    def __repr__(self) -> str:
        return f"Authenticator(required={self.required})"

    @property
    def required(self) -> bool:
        return self._token is not None

    def admit(self, headers: Mapping[str, str], query: str) -> Admission:
        """Decide about a request by its headers (names in lower case) and its query string."""
        if self._token is None:
            return Admission(True)
        presented = next(_presented(headers, query), None)
        if presented is None:
            answers = (check(headers, query) for check in self._checks)
            missing = Admission(False, reason=f"a token is required; {_WHERE}")
            return next((answer for answer in answers if answer is not None), missing)
        if not hmac.compare_digest(presented.encode(), self._token.encode()):
            return Admission(False, reason=f"the token is wrong; {_WHERE}")
        return Admission(True, credential=fingerprint(self._token))


def fingerprint(token: str) -> str:
    """A hash that distinguishes tokens without revealing them."""
    return hashlib.sha256(b"ahpkit token\0" + token.encode()).hexdigest()


def _presented(headers: Mapping[str, str], query: str) -> Iterator[str]:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield value.strip()
    for offer in headers.get("sec-websocket-protocol", "").split(","):
        if offer.strip().startswith(TOKEN_SUBPROTOCOL):
            yield offer.strip().removeprefix(TOKEN_SUBPROTOCOL)
    for name in QUERY_NAMES:
        yield from parse_qs(query).get(name, ())


def is_loopback(host: str) -> bool:
    """Whether a host name or address, as given, means this machine only. Names are not looked up."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        # RFC 6761, 6.3: every name below localhost is this machine, too.
        return f".{host.lower()}".endswith(".localhost")


def check_bind(host: str, *, token: bool, tls: bool) -> str | None:
    """Refuse to listen where strangers could connect. Returns a warning if a token would cross a network
    unencrypted."""
    if is_loopback(host):
        return None
    if not token:
        raise BindError(f"{host or 'every interface'} is reachable from other machines: a token is required there")
    return (
        None if tls else f"{host or 'every interface'} is reachable from other machines: without TLS they can listen in"
    )


def load_or_create_token(path: Path) -> str:
    """The token in `path`; on first use a random one is written there, readable by the owner only."""
    try:
        if not path.exists():
            write_private(path, f"{secrets.token_urlsafe(32)}\n".encode(), replace=False)
        token = path.read_bytes().decode("ascii", "replace").strip()
        path.chmod(0o600)  # It may have been copied or restored with a wider mode.
    except OSError as exc:
        raise BindError(f"the token in {path} cannot be read or written: {exc.strerror}") from exc
    if not _TOKEN.fullmatch(token):
        raise BindError(f"{path} does not contain a token: delete the file to get a new one")
    return token


__all__ = [
    "SUBPROTOCOL",
    "Admission",
    "Authenticator",
    "Check",
    "check_bind",
    "fingerprint",
    "is_loopback",
    "load_or_create_token",
]
