"""Finds running hosts: each has a small file in the user's runtime directory.

A host publishes its endpoint while it runs; a client without a URL takes the newest one whose process is alive. The
file holds the host's token, so only its owner can read it, and files of other owners are ignored.

Shells of one user may have different runtime directories (`XDG_RUNTIME_DIR` is not set by cron, for example). So each
file also has a link in the user's state directory, and hosts are looked for in both.
"""

from __future__ import annotations

import json
import os
import secrets
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ahpkit import __version__
from ahpkit.platform.files import is_ours, make_private_directory, write_private
from ahpkit.platform.processes import is_alive

if TYPE_CHECKING:
    import ssl

URL_VARIABLE = "AHPKIT_URL"
TOKEN_VARIABLE = "AHPKIT_TOKEN"
NAME_VARIABLE = "AHPKIT_HOST_NAME"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How to reach one host."""

    url: str
    token: str | None = None
    pid: int | None = None
    data_dir: str | None = None
    started_at: int = 0
    """Milliseconds since the epoch."""
    name: str = ""
    """The host's display name, set with `--host-name`."""
    version: str = ""
    """The version of ahpkit that the host runs."""
    background: bool = False
    """Whether `ahpkit up` or a service manager started it."""
    certificate: str | None = None
    """The host's TLS certificate as PEM. A client that can read this file trusts exactly this certificate."""
    owner: str | None = None
    """A secret that is only in this file. A client proves with it that it acts for the host's owner."""


def endpoints_directory() -> Path:
    """The directory of the endpoint files of this user's hosts."""
    import platformdirs  # Imported late: slower than the rest of this module, and not needed with a URL.

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It warns without XDG_RUNTIME_DIR; its fallback directory is fine.
        return platformdirs.user_runtime_path("ahpkit") / "hosts"


def links_directory() -> Path:
    """The directory with links to the endpoint files of all hosts of this user."""
    import platformdirs  # Late: see `endpoints_directory`.

    return platformdirs.user_state_path("ahpkit-endpoints")  # Not `ahpkit`: on macOS that is the data directory.


@contextmanager
def publish_endpoint(
    *,
    url: str,
    token: str | None,
    data_dir: Path,
    started_at: int,
    name: str = "",
    background: bool = False,
    certificate: str | None = None,
    owner: str | None = None,
    directory: Path | None = None,
) -> Generator[Path]:
    """Let clients find this process while the `with` lasts. Files that dead hosts left behind are removed."""
    links = None if directory else links_directory()
    directory = directory or endpoints_directory()
    make_private_directory(directory)
    for path, endpoint in _read_all(directory):
        if not _alive(endpoint):
            path.unlink(missing_ok=True)
    path = directory / f"{os.getpid()}-{secrets.token_hex(4)}.json"
    fields: dict[str, Any] = {"url": url, "pid": os.getpid(), "dataDir": str(data_dir), "startedAt": started_at}
    fields |= {"name": name, "version": __version__, "background": background}
    secret = {"token": token, "certificate": certificate, "owner": owner}
    fields |= {name: value for name, value in secret.items() if value is not None}
    write_private(path, json.dumps(fields).encode())
    try:
        with _linked(path, links) if links else nullcontext():
            yield path
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _linked(path: Path, links: Path) -> Generator[None]:
    """Link to an endpoint file while the `with` lasts. If the home directory is not writable, there is no link."""
    link = links / path.name
    with suppress(OSError):
        make_private_directory(links)
        for old in links.glob("*.json"):
            if not old.exists():
                old.unlink(missing_ok=True)
        link.symlink_to(path.absolute())
    try:
        yield
    finally:
        with suppress(OSError):
            link.unlink(missing_ok=True)


def find_endpoint(
    *, data_dir: str | None = None, name: str | None = None, directory: Path | None = None
) -> Endpoint | None:
    """The host to use: the one that the environment names, else the newest running host, else None.

    With a `data_dir`, only the host of that data directory is taken: the same one, maybe restarted. With a `name`, from
    the caller or from `AHPKIT_HOST_NAME`, the newest host of that name is taken.
    """
    if name is None and (url := os.environ.get(URL_VARIABLE)):
        return Endpoint(url, os.environ.get(TOKEN_VARIABLE))
    name = name or os.environ.get(NAME_VARIABLE)
    running = [one for one in find_endpoints(directory=directory) if name in (None, "", one.name)]
    return next((endpoint for endpoint in running if data_dir in (None, endpoint.data_dir)), None)


def find_endpoints(*, directory: Path | None = None) -> list[Endpoint]:
    """All running hosts of this user, newest first."""
    places = [directory] if directory else [links_directory(), endpoints_directory()]
    files = {path.name: endpoint for place in places for path, endpoint in _read_all(place)}
    found = [endpoint for endpoint in files.values() if _alive(endpoint)]
    return sorted(found, key=lambda endpoint: endpoint.started_at, reverse=True)


def trusted_certificate(url: str, *, directory: Path | None = None) -> ssl.SSLContext | None:
    """An SSL context that trusts the certificate which a running host of this user published for a `wss://` address.

    The system's certificates would not trust it: the host's own authority issued it, or it is for another name than the
    loopback address. None when no such host is known; then the system's certificates are used.
    """
    if not url.startswith("wss://"):
        return None
    same = (one for one in find_endpoints(directory=directory) if one.url.rstrip("/") == url.rstrip("/"))
    certificate = next((one.certificate for one in same), None)
    if certificate is None:
        return None
    import ssl  # Imported late: slow, and most local hosts do not use TLS.

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # Only this one certificate is trusted, so its name need not match.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=certificate)
    return context


def _read_all(directory: Path) -> Iterator[tuple[Path, Endpoint]]:
    for path in directory.glob("*.json"):
        if (endpoint := _read(path)) is not None:
            yield path, endpoint


def _read(path: Path) -> Endpoint | None:
    """The endpoint in a file; None when another user owns the file, or it is not a complete endpoint."""
    try:
        if not is_ours(path):
            return None
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Endpoint(
            str(fields["url"]),
            fields.get("token"),
            int(fields["pid"]),
            fields.get("dataDir"),
            int(fields["startedAt"]),
            name=str(fields.get("name", "")),
            version=str(fields.get("version", "")),
            background=fields.get("background") is True,
            certificate=fields.get("certificate"),
            owner=fields.get("owner"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _alive(endpoint: Endpoint) -> bool:
    return endpoint.pid is None or is_alive(endpoint.pid)


__all__ = [
    "NAME_VARIABLE",
    "URL_VARIABLE",
    "Endpoint",
    "endpoints_directory",
    "find_endpoint",
    "find_endpoints",
    "links_directory",
    "publish_endpoint",
    "trusted_certificate",
]
