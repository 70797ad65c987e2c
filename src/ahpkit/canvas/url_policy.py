"""Decides which canvas URLs a renderer loads, and how it isolates them. Pure: for renderers of every kind.

    verdict = check_url(instance["url"], UrlPolicy(extension_schemes={"vscode-webview"}))
    if verdict.allowed: frame.src = verdict.url      # and nothing but verdict.url

The check does not repair. Browsers do: they drop tabs, turn backslashes into slashes, read `https:host` as a host, take
`0x7f.1` for an address. A URL that they would have to repair is refused here, so that exactly the checked URL is
loaded. The canvas proposal asks for an allow-list; what was decided beyond it is in
docs/decisions/2026-11-15-canvas.md.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

KNOWN_SCHEMES = frozenset({"https", "data", "file", "http"})
"""The schemes that every policy knows: https and data always, file and http under conditions."""

MAX_LENGTH = 64 * 1024
"""Characters. A small page fits into a `data:` URL; longer ones belong on a server."""

SANDBOX = "allow-scripts allow-forms"
"""Tokens of an iframe's `sandbox`. Not among them, on purpose: `allow-same-origin` (the content would share our
storage), `allow-top-navigation`, `allow-popups`, `allow-modals`, `allow-downloads`."""

FRAME_ATTRIBUTES: Mapping[str, str] = MappingProxyType(
    {"sandbox": SANDBOX, "credentialless": "", "referrerpolicy": "no-referrer", "allow": ""}
)
"""Attributes of the iframe that shows a canvas. `credentialless`, because all ports of a machine share their cookies: a
page on this machine would get those of every other."""

NAVIGATION: Mapping[str, Any] = MappingProxyType(
    {
        "credentials": "omit",
        "referrerPolicy": "no-referrer",
        "strippedHeaders": ("authorization", "cookie", "proxy-authorization", "referer"),
    }
)
"""For renderers that make the request themselves (a webview's loader): the things that the request must not carry."""

_RESERVED_SCHEMES = KNOWN_SCHEMES | {
    *("javascript", "vbscript", "about", "blob", "filesystem", "view-source", "ws", "wss", "ftp"),
    *("chrome", "chrome-extension", "devtools", "edge", "moz-extension", "resource", "jar", "mailto", "tel"),
}
"""Schemes that an application's own surface can never have: they run code in the page that loads them, or belong to the
browser."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1"})
"""The proposal, 6: "`http` MAY be allowed only for `localhost` and `127.0.0.1`". Neither `[::1]` nor `*.localhost`."""

_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*")
"""RFC 3986, 2: the characters of a URL. No spaces, control characters, backslashes or quotes, and only ASCII."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SCHEME_NAME = re.compile(r"[a-z][a-z0-9+.-]*")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_AUTHORITY = re.compile(r"//([^/?#]*)")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_SHOWN = 200


class _Refused(Exception):
    """Why a URL is not loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlPolicy:
    """The URLs that one renderer allows. The defaults are safe for a renderer that sets nothing."""

    extension_schemes: Collection[str] = frozenset()
    """Schemes of the application's own in-process surfaces: `vscode-webview`, `tauri-app`."""
    local_files: bool = False
    """The renderer runs on the host's machine and wants `file:` URLs."""
    loopback_http: bool = True
    """Plain http for localhost and 127.0.0.1."""
    max_length: int = MAX_LENGTH

    def __post_init__(self) -> None:
        for scheme in self.extension_schemes:
            if not _SCHEME_NAME.fullmatch(scheme) or scheme in _RESERVED_SCHEMES:
                raise ValueError(f"{scheme!r} cannot be an extension scheme: it is reserved or not in lower case")

    @property
    def schemes(self) -> frozenset[str]:
        """The allow-list as it is in force."""
        conditional = {"file": self.local_files, "http": self.loopback_http}
        known = {scheme for scheme in KNOWN_SCHEMES if conditional.get(scheme, True)}
        return frozenset(known) | frozenset(self.extension_schemes)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about one URL."""

    allowed: bool
    reason: str
    """Why not, for a person to read; empty when it is allowed."""
    url: str
    """Allowed: what to load, scheme and host in lower case. Refused: a short harmless form to show."""


DEFAULT = UrlPolicy()


def check_url(url: Any, policy: UrlPolicy = DEFAULT) -> Verdict:
    """Decide whether to load a URL. Takes whatever came over the wire and never raises."""
    try:
        return Verdict(True, "", _checked(url, policy))
    except _Refused as refused:
        return Verdict(False, str(refused), _harmless(url))


def csp_for(*urls: str, **directives: str) -> str:
    """A Content-Security-Policy for the page that shows these URLs: their frames and nothing else.

    The URLs are those of allowed verdicts. Add sources that the page itself needs by name: `script_src="'nonce-…'"`.
    """
    sources = sorted({_source(url) for url in urls})
    policy = {
        "default-src": "'none'",
        "frame-src": " ".join(sources) or "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        **{name.replace("_", "-"): value for name, value in directives.items()},
    }
    return "; ".join(f"{name} {value}" for name, value in policy.items())


def _source(url: str) -> str:
    """A URL as a source of `frame-src`: its origin, or its scheme where it has none."""
    scheme, _, rest = url.partition(":")
    authority = _AUTHORITY.match(rest)
    is_web = scheme in ("https", "http") and authority is not None
    return f"{scheme}://{authority[1]}" if is_web and authority else f"{scheme}:"


def _checked(url: Any, policy: UrlPolicy) -> str:
    if not isinstance(url, str) or not url:
        raise _Refused("there is no URL")
    if len(url) > policy.max_length:
        raise _Refused(f"the URL is longer than {policy.max_length} characters")
    if not _CHARACTERS.fullmatch(url):
        raise _Refused("the URL holds characters that must be percent-encoded")
    if _BAD_PERCENT.search(url):
        raise _Refused("the URL holds a broken percent-encoding")
    found = _SCHEME.match(url)
    if found is None:
        raise _Refused("the URL has no scheme")
    scheme, rest = found[1].lower(), url[found.end() :]
    if scheme not in policy.schemes:
        raise _Refused(_why_not(scheme))
    return f"{scheme}:{_CHECKS.get(scheme, _extension)(rest)}"


def _why_not(scheme: str) -> str:
    if scheme == "file":
        return "file: URLs are shown only by a renderer on the host's machine that allows them"
    return f"{scheme[:20]}: URLs are not shown here"


def _https(rest: str) -> str:
    authority, path = _split(rest)
    host, port = _host_and_port(authority)
    _check_host(host)
    return f"//{host}{port}{path}"


def _http(rest: str) -> str:
    checked = _https(rest)
    host = _host_and_port(_split(checked)[0])[0]
    if host not in _LOOPBACK:
        raise _Refused("http: URLs are shown only for localhost and 127.0.0.1; use https")
    return checked


def _data(rest: str) -> str:
    if "," not in rest:
        raise _Refused("the data: URL has no comma, and so no data")
    return rest


def _file(rest: str) -> str:
    """Only `file:///path`: a host would be a server to log on to."""
    authority, path = _split(rest)
    if authority or not path.startswith("/") or path.startswith("//") or re.search(r"%(2f|5c)", path, re.IGNORECASE):
        raise _Refused("a file: URL begins with file:/// and names no server")
    return f"//{path}"


def _extension(rest: str) -> str:
    """Check a URL of the application itself. Only credentials are refused."""
    found = _AUTHORITY.match(rest)
    if found is not None and "@" in found[1]:
        raise _Refused("the URL carries credentials")
    return rest


_CHECKS = {"https": _https, "http": _http, "data": _data, "file": _file}


def _split(rest: str) -> tuple[str, str]:
    """Split a URL into its authority and everything after it. Exactly two slashes are required, although
    browsers accept any number."""
    found = _AUTHORITY.match(rest)
    if found is None:
        raise _Refused("the URL needs two slashes after its scheme")
    return found[1], rest[found.end() :]


def _host_and_port(authority: str) -> tuple[str, str]:
    if "@" in authority:
        raise _Refused("the URL carries credentials")
    found = re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]{1,5})?", authority)
    if found is None or (found[2] and not 0 < int(found[2][1:]) < 65536):
        raise _Refused("the URL's host or port is malformed")
    return found[1].lower(), found[2] or ""


def _check_host(host: str) -> None:
    if not host:
        raise _Refused("the URL has no host")
    if host.startswith("[") and "%" not in host:
        _check_address(ipaddress.IPv6Address, host[1:-1])
        return
    labels = host.split(".")
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise _Refused("the URL's host is malformed")
    if _NUMBER.fullmatch(labels[-1]):  # Browsers read such a host as an address, in many notations.
        _check_address(ipaddress.IPv4Address, host)


def _check_address(kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address], text: str) -> None:
    try:
        kind(text)
    except ValueError:
        raise _Refused("the URL's host is not a valid address") from None


def _harmless(url: Any) -> str:
    text = url if isinstance(url, str) else ""
    shown = "".join(letter if " " <= letter <= "~" else "\ufffd" for letter in text[:_SHOWN])
    return shown + ("…" if len(text) > _SHOWN else "")


__all__ = [
    "DEFAULT",
    "FRAME_ATTRIBUTES",
    "KNOWN_SCHEMES",
    "MAX_LENGTH",
    "NAVIGATION",
    "SANDBOX",
    "UrlPolicy",
    "Verdict",
    "check_url",
    "csp_for",
]
