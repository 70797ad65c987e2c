"""The devices that may use the page: one-time codes, the devices they became, and their rights.

A code is shown once (in a link, or as letters to type), works once and for a short time. It becomes a secret that the
browser keeps as a cookie. Only hashes are stored, so the file cannot be used to get in.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ahpkit.protocol.errors import AhpError

Right = Literal["watch", "answer", "everything"]
RIGHTS: tuple[Right, ...] = get_args(Right)

LINK_SECONDS = 3600.0
"""How long a printed link works: long enough to be found in a terminal again."""

PAIR_SECONDS = 300.0
"""How long a code for another device works."""

KEPT_DAYS = 90
"""A device that was not used for this long has to be let in again."""

MAX_DEVICES = 100

_MAX_CODES = 20
_MAX_WRONG = 10
"""Wrong codes in `_WRONG_SECONDS` before typed ones are not looked at for a while: so few letters can be guessed."""
_WRONG_SECONDS = 60.0
_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""For codes that people type: nothing that looks like something else."""

_DAY_MS = 86_400_000


class DeviceError(AhpError):
    """A code or a device that does not exist, or may not do this; the text is for the person."""


@dataclass(frozen=True, slots=True)
class Device:
    """A browser that was let in."""

    id: str
    name: str
    right: Right
    secret: str
    """SHA-256 of the cookie."""
    created_at: int
    last_seen_at: int
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class _Code:
    right: Right
    name: str
    until: float
    typed: bool


class Devices:
    """All devices of one host, kept in a file of its data directory. `clock` gives seconds since the epoch."""

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._codes: dict[str, _Code] = {}
        self._wrong: list[float] = []
        self._devices: dict[str, Device] = {device.id: device for device in _load(path)}
        self.on_revoked: list[Callable[[str], None]] = []
        """Told the id of a device that may not come in any more."""

    def all(self) -> Sequence[Device]:
        """All devices, the latest visit first, without expired ones."""
        limit = self._now() - KEPT_DAYS * _DAY_MS
        kept = [device for device in self._devices.values() if device.last_seen_at >= limit]
        return sorted(kept, key=lambda device: device.last_seen_at, reverse=True)

    def get(self, device_id: str) -> Device | None:
        return self._devices.get(device_id)

    # Codes

    def new_code(self, *, right: Right, name: str, seconds: float = LINK_SECONDS, typed: bool = False) -> str:
        """A code that lets one browser in, once. `typed` ones are short, for people without a camera."""
        now = self._clock()
        self._codes = {key: code for key, code in self._codes.items() if code.until > now}
        while len(self._codes) >= _MAX_CODES:
            del self._codes[next(iter(self._codes))]
        code = "".join(secrets.choice(_LETTERS) for _ in range(10)) if typed else secrets.token_urlsafe(24)
        self._codes[_hash(code)] = _Code(right, name, now + seconds, typed)
        return code

    def redeem(self, code: str, *, name: str, existing: Device | None = None) -> str | None:
        """Spend a code. Returns the secret of a new device; None when `existing` is enough already."""
        now, key = self._clock(), self._key(code)
        grant = self._codes.get(key)
        if (grant is None or grant.typed) and self._is_guessed(now):
            raise DeviceError("Too many wrong codes. Wait a minute.")
        self._codes.pop(key, None)
        if grant is None or grant.until <= now:
            self._wrong.append(now)
            raise DeviceError("This code was used already, or it has expired.")
        if existing is not None and RIGHTS.index(existing.right) >= RIGHTS.index(grant.right):
            return None
        return self._add(grant.name or name, grant.right)

    def _key(self, code: str) -> str:
        """What a code is kept under; people type spaces and hyphens between the letters."""
        as_it_is = _hash(code)
        return as_it_is if as_it_is in self._codes else _hash(code.replace("-", "").replace(" ", "").strip())

    def _is_guessed(self, now: float) -> bool:
        """Whether so many codes were wrong that typed codes are refused for now. Links go on working, because they
        cannot be guessed."""
        self._wrong = [at for at in self._wrong if at > now - _WRONG_SECONDS]
        return len(self._wrong) >= _MAX_WRONG

    def _add(self, name: str, right: Right) -> str:
        secret, now = secrets.token_urlsafe(32), self._now()
        device = Device(secrets.token_hex(6), name[:60] or "Browser", right, _hash(secret), now, now)
        self._devices[device.id] = device
        put_out = [old.id for old in self.all()[MAX_DEVICES:]]
        for old in put_out:
            del self._devices[old]
        self._save()
        for old in put_out:
            self._tell_revoked(old)
        return secret

    # Devices

    def known(self, secret: str) -> Device | None:
        """The device with this cookie, if it may come in."""
        hashed = _hash(secret)
        return next((device for device in self.all() if secrets.compare_digest(device.secret, hashed)), None)

    def seen(self, device: Device) -> None:
        """Remember the visit; not every one, for the disk's sake."""
        if self._now() - device.last_seen_at > _DAY_MS // 24 and device.id in self._devices:
            self._devices[device.id] = replace(device, last_seen_at=self._now())
            self._save()

    def revoke(self, device_id: str) -> None:
        """Never let it in again, and end what it has open."""
        if self._devices.pop(device_id, None) is None:
            raise DeviceError("There is no such device.")
        self._save()
        self._tell_revoked(device_id)

    def _tell_revoked(self, device_id: str) -> None:
        for listener in self.on_revoked:
            listener(device_id)

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _save(self) -> None:
        draft = self._path.with_suffix(".tmp")
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump({"devices": [asdict(device) for device in self._devices.values()]}, file)
        draft.replace(self._path)


def _hash(secret: str) -> str:
    return hashlib.sha256(b"ahpkit device\0" + secret.encode(errors="surrogatepass")).hexdigest()


def _load(path: Path) -> Sequence[Device]:
    """The devices in a file; none when it is missing or makes no sense: then everyone is let in anew by a code."""
    try:
        entries: list[Any] = json.loads(path.read_text(encoding="utf-8"))["devices"]
        return [device for entry in entries if (device := Device(**entry)).right in RIGHTS]
    except (OSError, ValueError, KeyError, TypeError):
        return ()


__all__ = ["LINK_SECONDS", "PAIR_SECONDS", "RIGHTS", "Device", "DeviceError", "Devices", "Right"]
