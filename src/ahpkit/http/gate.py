"""Decides by the head of a request whether it may come in: token, Origin, Host.

Any web page can make a browser send requests to this machine. Three checks keep foreign pages out:

    Host      must name this server: a foreign name that resolves to our address (DNS rebinding) is refused
    Origin    must be our own page or an allowed one; programs send none
    token     or whatever else the authenticator accepts: see `ahpkit.transports.auth`
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from ahpkit.transports.auth import Admission, Authenticator, is_loopback

_DEFAULT_PORTS = {"http": 80, "https": 443}

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""RFC 9110, 9.2.1: a request by one of these changes nothing."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal of a request: status, text and headers."""

    status: int
    reason: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Head:
    """The parts of a request that the gate checks."""

    method: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    upgrade: bool = False
    """Whether the request asks for a WebSocket."""


class Gate:
    """The checks of one server. `host` is what it is bound to, None for a Unix socket."""

    def __init__(
        self,
        *,
        auth: Authenticator,
        host: str | None,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
    ) -> None:
        self._auth = auth
        self._host = None if host is None else host.lower()
        self._hosts = {name.lower() for name in hosts}
        self._origins = {origin.lower() for origin in origins}

    def refuse_host(self, headers: Mapping[str, str]) -> Refusal | None:
        """Checked for every request, also on public routes."""
        if self._host is None:
            return None  # A Unix socket cannot be reached by a host name.
        host = _split(f"//{headers.get('host', '')}")
        if host is None or not host.hostname:
            return Refusal(403, "the Host header is missing or malformed")
        if self._is_ours(host.hostname):
            return None
        return Refusal(
            403, f"{host.hostname} is not a name of this server: add it to the allowed hosts, or use the address"
        )

    def identify(self, head: Head) -> Admission:
        """The decision about the request's token. Nothing else is checked."""
        return self._auth.admit(head.headers, head.query)

    def admit(self, head: Head) -> Admission | Refusal:
        """Admit a request that needs the token, as every WebSocket does. The Host header was checked before."""
        admission = self.identify(head)
        refusal = self._refuse_origin(head, admission)
        if refusal is not None:
            return refusal
        if not admission.allowed:
            return Refusal(401, admission.reason, {"WWW-Authenticate": "Bearer"})
        return admission

    def _refuse_origin(self, head: Head, admission: Admission) -> Refusal | None:
        origin = head.headers.get("origin")
        if origin is None:
            if admission.ambient and (head.upgrade or head.method not in _SAFE_METHODS):
                return Refusal(403, "a request with a cookie must say which page it comes from (Origin)")
            return None
        own = _same_name if admission.ambient else _same_server
        if self._is_own_page(origin, head.headers.get("host", ""), own):
            return None
        if self._is_allowed(origin.lower()) and not admission.ambient:
            return None
        return Refusal(403, f"pages of {origin} may not connect: add it to the allowed origins")

    def _is_ours(self, name: str) -> bool:
        if is_loopback(name) or name == self._host or name in self._hosts:
            return True
        # Bound to every interface, any address may be ours. Rebinding needs a name, so addresses are safe.
        return self._host in ("", "0.0.0.0", "::") and _is_address(name)

    def _is_own_page(
        self, origin_header: str, host_header: str, same: Callable[[SplitResult, SplitResult], bool]
    ) -> bool:
        origin, host = _split(origin_header), _split(f"//{host_header}")
        return origin is not None and host is not None and same(origin, host)

    def _is_allowed(self, origin: str) -> bool:
        scheme = origin.partition("://")[0]
        return origin in self._origins or f"{scheme}://*" in self._origins


def _same_server(origin: SplitResult, host: SplitResult) -> bool:
    """Whether a page was loaded from the server to which it connects, perhaps through a tunnel. All loopback names
    count as the same."""
    default = _DEFAULT_PORTS.get(origin.scheme)
    if default is None or (origin.port or default) != (host.port or default):
        return False
    ours, theirs = host.hostname or "", origin.hostname or ""
    return ours == theirs or (is_loopback(ours) and is_loopback(theirs))


def _same_name(origin: SplitResult, host: SplitResult) -> bool:
    """Whether this is the same server under exactly the same name. A cookie belongs to a name, and is sent to all ports
    of that name."""
    return _same_server(origin, host) and origin.hostname == host.hostname


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # Raises if it is not a number.
    except ValueError:
        return None
    return None if parts.username is not None or parts.path or parts.query or parts.fragment else parts


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


__all__ = ["Gate", "Head", "Refusal"]
