"""Manages the devices that may use the page: one-time codes, known devices, and what their rights allow.

A code is shown once (in a link, or as letters to type), works once and for a short time. It becomes a secret that the
browser keeps as a cookie. Only hashes are stored, so the file cannot be used to get in.

    watch        see everything, change nothing
    answer       also approve, deny, and answer questions, but not change the input of a call
    everything   whatever the token allows

Refused messages never reach the host. The client gets a rejection, and takes back its optimistic change. A device
without the right `everything` gets no address where something can be changed, and answers no agent.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AhpError, PermissionDenied, RpcError
from ahpkit.protocol.meta_keys import CAPABILITIES, OUR_PREFIXES
from ahpkit.wire.codec import Notification, Request, decode, encode_error, encode_notification, encode_request
from ahpkit.wire.transport import NORMAL_CLOSURE, PeerInfo, Transport

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
"""After this many wrong codes in `_WRONG_SECONDS`, typed codes are refused for a while, because their few letters could
be guessed."""
_WRONG_SECONDS = 60.0
_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""The letters of codes that people type. None of them looks like another one."""

_DAY_MS = 86_400_000

_LONGEST = 256 * 1024
"""Bytes of a message of a device that may not do everything. It is read here, in the event loop, before the host
measures it; what such a device sends is short."""

_TOO_LONG = 1009
"""Close code: a message is too big."""

_HELD_BACK = 64
"""Bytes that wait for the next piece of a message, because an address may begin in them."""


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
        """Called with the id of a device that is not admitted any more."""

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
        """The hash that a code is stored under. People type spaces and hyphens between the letters."""
        as_it_is = _hash(code)
        return as_it_is if as_it_is in self._codes else _hash(code.replace("-", "").replace(" ", "").strip())

    def _is_guessed(self, now: float) -> bool:
        """Whether typed codes are refused for now, because too many were wrong. Links still work, because they cannot
        be guessed."""
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
        """Remember a visit, but not every one, to spare the disk."""
        if self._now() - device.last_seen_at > _DAY_MS // 24 and device.id in self._devices:
            self._devices[device.id] = replace(device, last_seen_at=self._now())
            self._save()

    def revoke(self, device_id: str) -> None:
        """Never admit the device again, and close its connections."""
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
    """The devices in a file; none if the file is missing or cannot be read. Then every device needs a new code."""
    try:
        entries: list[Any] = json.loads(path.read_text(encoding="utf-8"))["devices"]
        return [device for entry in entries if (device := Device(**entry)).right in RIGHTS]
    except (OSError, ValueError, KeyError, TypeError):
        return ()


WATCHING = frozenset(
    {
        "initialize",
        "reconnect",
        "ping",
        "subscribe",
        "unsubscribe",
        "listSessions",
        "fetchTurns",
        "resourceRead",
        "resourceList",
        "resourceResolve",
        "_ahpkit/sessions/search",
        "_ahpkit/turns/times",
        "_ahpkit/rules/list",
        "_ahpkit/approvals/list",
    }
)
"""Methods that change nothing. The calls and inputs in their answers can be read in the chats as well."""

ANSWERS = frozenset(
    {
        "chat/toolCallConfirmed",
        "chat/toolCallResultConfirmed",
        "chat/inputAnswerChanged",
        "chat/inputCompleted",
        "chat/isReadChanged",
        "session/isReadChanged",
    }
)
"""Actions that answer what was asked."""


_TELEMETRY = "ahp-otlp:"
"""Channels that report the work of all clients."""


def _channels(params: JsonObject) -> list[str]:
    """The channels that a request names."""
    lists = [params.get(key) for key in ("initialSubscriptions", "subscriptions")]
    named = [params.get("channel"), *(uri for one in lists if isinstance(one, list) for uri in cast("list[Any]", one))]
    return [uri for uri in named if isinstance(uri, str)]


def refusal(right: Right, method: str, params: JsonObject) -> str | None:
    """Why a device with this right may not do this; None: it may."""
    if right == "everything":
        return None
    if any(uri.startswith(_TELEMETRY) for uri in _channels(params)):
        return f"this device may {right} only; telemetry of the host needs the right to everything"
    if method in WATCHING:
        return None
    if method != "dispatchAction":
        return f"this device may {right} only; {method} needs the right to everything"
    action = cast("JsonObject", params["action"]) if isinstance(params.get("action"), dict) else {}
    kind: Any = action.get("type")
    if right == "answer" and kind in ANSWERS:
        edited = "editedToolInput" in action
        return "this device may answer, but not with an input of its own" if edited else None
    return f"this device may {right} only; {kind} needs the right to everything"


def _without_extensions(call: Request | Notification) -> bytes:
    """A greeting with ahpkit's own extensions only: agents ask clients that announce others, and trust the answers."""
    params, meta = call.params, _object(call.params.get("_meta"))
    if "capabilities" in params:
        params = {**params, "capabilities": _ours(params["capabilities"])}
    if CAPABILITIES in meta:
        params = {**params, "_meta": {**meta, CAPABILITIES: _ours(meta[CAPABILITIES])}}
    if isinstance(call, Request):
        return encode_request(call.id, call.method, params)
    return encode_notification(call.method, params)


def _ours(capabilities: Any) -> Any:
    meta = _object(_object(capabilities).get("_meta"))
    ours = {name: value for name, value in meta.items() if name.startswith(OUR_PREFIXES)}
    return {**_object(capabilities), "_meta": ours} if meta else capabilities


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


class RightsTransport:
    """A transport whose incoming messages pass the device's right. `right_of` is asked each time: it may change.

    `for_looking` gives the form of a message for a device that may not do everything, in as many bytes.
    """

    def __init__(
        self, inner: Transport, right_of: Callable[[], Right], *, for_looking: Callable[[bytes], bytes] = bytes
    ) -> None:
        self._inner = inner
        self._right_of = right_of
        self._looks = right_of() != "everything"
        self._for_looking = for_looking
        self._held_back = b""
        self._client_id = ""
        self._in_pieces = False
        self._refusals: list[bytes] = []

    @property
    def peer(self) -> PeerInfo:
        return self._inner.peer

    @property
    def framing(self) -> str:
        """Another name for devices that may only look, because connections with equal names share frames."""
        return f"{self._inner.framing} for looking" if self._looks else self._inner.framing

    @property
    def buffered(self) -> int:
        return self._inner.buffered

    @property
    def is_over(self) -> bool:
        return self._inner.is_over

    async def receive(self) -> bytes:
        while True:
            message = await self._inner.receive()
            right = self._right_of()
            if right == "everything":
                return message
            if len(message) > _LONGEST:
                await self._inner.aclose(code=_TOO_LONG, reason=f"this device may send {_LONGEST} bytes at once")
            elif (passed := self._judge(right, message)) is not None:
                return passed

    def _refuse(self, frame: bytes) -> None:
        """Send the refusal now, or after the message that is being sent in pieces."""
        if self._in_pieces:
            self._refusals.append(frame)
        else:
            self.write(frame)

    def frame(self, message: bytes) -> bytes:
        return self._inner.frame(self._for_looking(message) if self._looks else message)

    def part(self, piece: bytes, *, first: bool, last: bool) -> bytes:
        self._in_pieces = not last
        written = self._inner.part(self._complete(piece, last=last) if self._looks else piece, first=first, last=last)
        if last and self._refusals:
            written = b"".join([written, *self._refusals])
            self._refusals.clear()
        return written

    def _complete(self, piece: bytes, *, last: bool) -> bytes:
        """The piece in its form for looking. Its end waits for the next piece, so that no address is cut in two."""
        whole = self._for_looking(self._held_back + piece)
        cut = len(whole) if last else max(len(whole) - _HELD_BACK, 0)
        self._held_back = whole[cut:]
        return whole[:cut]

    def write(self, frames: bytes) -> None:
        self._inner.write(frames)

    async def drain(self) -> None:
        await self._inner.drain()

    async def aclose(self, *, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        await self._inner.aclose(code=code, reason=reason)

    def abort(self) -> None:
        self._inner.abort()

    def _judge(self, right: Right, message: bytes) -> bytes | None:
        """The message that is passed on to the host; None if it is not passed on, and the device got a rejection."""
        try:
            call = decode(message)
        except RpcError:
            return message  # The host answers with the error.
        if not isinstance(call, Request | Notification):
            return None  # The host sends no requests to such a device.
        reason = refusal(right, call.method, call.params)
        if reason is not None:
            refused = encode_error(call.id, PermissionDenied(reason)) if isinstance(call, Request) else None
            self._refuse(self.frame(refused or self._rejected(call, reason)))
            return None
        if call.method in ("initialize", "reconnect"):
            self._client_id = str(call.params.get("clientId", ""))
            return _without_extensions(call)
        return message

    def _rejected(self, call: Request | Notification, reason: str) -> bytes:
        params = call.params
        origin = {"clientId": self._client_id, "clientSeq": params.get("clientSeq", 0)}
        envelope: JsonObject = {
            "channel": params.get("channel", ""),
            "action": params.get("action", {}),
            "serverSeq": 0,
            "origin": origin,
            "rejectionReason": reason,
        }
        return encode_notification("action", envelope)


__all__ = [
    "ANSWERS",
    "LINK_SECONDS",
    "PAIR_SECONDS",
    "RIGHTS",
    "WATCHING",
    "Device",
    "DeviceError",
    "Devices",
    "Right",
    "RightsTransport",
    "refusal",
]
