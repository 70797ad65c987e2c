"""Chooses the dialect of a client in the handshake, from the versions that the client offers.

`ClientNotes` stores which version each client speaks, and in which run of the host it was last connected. A run lasts
from a start of the host to its end. The log may have lost the last actions of a run: a write-ahead log was cut off, or
an older copy of the file was put back. Their numbers are then given to other actions. A client that has seen the lost
actions must not continue with the new ones. Such a client is recognised by its sequence number: no client of a run can
have seen a higher number than the one at which the next run began.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, Self, cast

from ahpkit.dialects import Dialect, Generation, SessionLists, dialect_for, negotiate
from ahpkit.dialects import Surroundings as DialectSurroundings
from ahpkit.dialects.validation import load_all
from ahpkit.host.feature import Values
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.protocol.common.commands import ClientCapabilities
from ahpkit.protocol.common.state import Implementation, JsonObject
from ahpkit.protocol.errors import NotFound, UnsupportedProtocolVersion
from ahpkit.protocol.meta_keys import CANVASES
from ahpkit.protocol.session.state import SessionSummary

_NOTE: Final = "client-version/"
_RUN: Final = "run/"
"""Prefixes of the durable values: one value for each client, and one for each run with the number at which the run
began."""

_MAX_CLIENTS: Final = 10_000
_MAX_RUNS: Final = 1_000
"""How many clients and runs are remembered. The oldest note is forgotten first."""

EARLIER: Final = 0
"""An earlier run that is not known; in the first run also that run itself."""
NEVER: Final = -1
"""Instead of a run: the client reconnects, but this host does not know the client."""


class ClientRecord(NamedTuple):
    """One client."""

    version: str
    words: Sequence[str] = ()
    """Suffixes of the version, which also decide the dialect."""
    run: int = EARLIER
    """The run in which it was last connected; `EARLIER` or `NEVER` when that is not known."""
    doubted: int = -1
    """The number that the client named when it had seen lost actions. When it reconnects with another number, it has
    taken over the states that it got instead."""

    @classmethod
    def read(cls, text: str) -> Self:
        version, *rest = text.split(" ")
        run, doubted = EARLIER, -1
        words: list[str] = []
        for word in rest:
            if word.startswith("@"):
                run = int(word[1:])
            elif word.startswith("?"):
                doubted = int(word[1:])
            else:
                words.append(word)
        return cls(version, words, run, doubted)

    def written(self) -> str:
        doubted = [f"?{self.doubted}"] if self.doubted >= 0 else []
        return " ".join([self.version, *self.words, f"@{self.run}", *doubted])


class ClientNotes:
    """The notes of all clients, durable."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.run = 0
        """The present run."""

    def begin(self, head: int) -> None:
        """Begin a run: the host starts, and its log ends at this number."""
        runs = self._values.keys(_RUN)
        self.run = 1 + max((int(key.removeprefix(_RUN)) for key in runs), default=0)
        self._values.set(f"{_RUN}{self.run}", head)
        if len(runs) > _MAX_RUNS:
            self._values.set(next(iter(runs)), None)

    def get(self, client_id: str) -> ClientRecord | None:
        text: str | None = self._values.get(_NOTE + client_id)
        return None if text is None else ClientRecord.read(text)

    def set(self, client_id: str, note: ClientRecord) -> None:
        if self.get(client_id) == note:
            return
        self._values.set(_NOTE + client_id, note.written())
        noted = self._values.keys(_NOTE)
        if len(noted) > _MAX_CLIENTS:
            self._values.set(next(iter(noted)), None)

    def shares_history(self, client_id: str, last_seen: int) -> bool:
        """Whether the log has everything that a client saw, up to a number. From now on the client counts as a client
        of this run."""
        note = self.get(client_id)
        if note is None:
            return False
        if note.run == self.run:
            return note.doubted != last_seen
        is_shared = last_seen <= self._end_of(note.run)
        self.set(client_id, note._replace(run=self.run, doubted=-1 if is_shared else last_seen))
        return is_shared

    def _end_of(self, run: int) -> int:
        """The highest number of a run that is still in the log; -1 if that is no longer known."""
        if run == EARLIER and self.run == 1:
            return sys.maxsize
        head: int | None = self._values.get(f"{_RUN}{self.run if run == EARLIER else run + 1}")
        return -1 if head is None else head


_CANVASES: Final = "canvases"
_APPS: Final = "apps"
_MODELS: Final = "models"
"""Suffixes of the stored version: the client gets our canvas state and actions; it renders MCP Apps; it can only use
agents that have models."""

_SHOWN: Final = 100
"""Characters of a client's id that an error repeats."""


def announces_canvases(capabilities: ClientCapabilities) -> bool:
    """Whether a client announced that it understands `session/canvas*`. Other clients of 1.0 do not get them."""
    return capabilities.get("_meta", {}).get(CANVASES) not in (None, False)


def renders_apps(capabilities: ClientCapabilities) -> bool:
    """Whether a client renders MCP Apps."""
    return isinstance(capabilities.get("mcpApps"), dict)


def needs_models(info: Implementation | None) -> bool:
    """Whether a client offers people only agents that have models. VS Code does; it is recognised by its
    `clientInfo`."""
    return info is not None and info["name"].startswith("vscode-")


class Summaries(Protocol):
    """The list of sessions."""

    def summary(self, uri: str) -> SessionSummary | None: ...

    def title(self, session: str, chat: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts about the host that a dialect needs besides the states."""

    index: SessionIndex
    summaries: Summaries
    kind_of: Callable[[str], str | None]
    lists: SessionLists = field(default_factory=SessionLists)

    def kind(self, uri: str) -> str | None:
        return self.kind_of(uri)

    def session_of(self, uri: str) -> str | None:
        session = uri.removesuffix("/annotations")
        return session if session in self.index else self.index.session_of(uri)

    def summary(self, session: str) -> JsonObject | None:
        return cast("JsonObject | None", self.summaries.summary(session))

    def title(self, chat: str) -> str | None:
        session = self.index.session_of(chat)
        return None if session is None else self.summaries.title(session, chat)


@dataclass(frozen=True, slots=True)
class DialectChoice:
    """Chooses among the supported generations by the rule of 1.0."""

    surroundings: DialectSurroundings
    notes: ClientNotes
    spoken: Sequence[Generation]
    has_logged: Callable[[str], bool]
    """Whether the log has actions of a client."""

    def __post_init__(self) -> None:
        load_all()

    def choose(
        self,
        client_id: str,
        offered: Sequence[str],
        capabilities: ClientCapabilities,
        info: Implementation | None = None,
    ) -> Dialect:
        """The dialect for the versions that a client offers. Raises `InvalidParams` if the offer is malformed and
        `UnsupportedProtocolVersion` if no version is supported."""
        return self._note(client_id, offered, capabilities, info, run=self.notes.run)

    def _note(
        self,
        client_id: str,
        offered: Sequence[str],
        capabilities: ClientCapabilities,
        info: Implementation | None = None,
        *,
        run: int,
    ) -> Dialect:
        agreed = negotiate(offered, self.spoken)
        canvases, apps, models = announces_canvases(capabilities), renders_apps(capabilities), needs_models(info)
        words = [*[_CANVASES] * canvases, *[_APPS] * apps, *[_MODELS] * models]
        self.notes.set(client_id, ClientRecord(agreed.version, words, run))
        return dialect_for(agreed, self.surroundings, canvases=canvases, apps=apps, needs_models=models)

    def again(
        self, client_id: str, *, named: str | None, capabilities: ClientCapabilities | None, may_be_oldest: bool
    ) -> Dialect:
        """The dialect of a client that comes back: `reconnect` offers no version, so the last one is used.

        For a client that the host has forgotten, it is the version that the client names (our client does), or 0.4 when
        the client may speak 0.4. Otherwise, and when that version is no longer supported, it raises `NotFound`; VS Code
        then initializes.
        """
        note = self.notes.get(client_id)
        if note is None and named is not None:
            return self._note(client_id, [named], capabilities or {}, run=NEVER)
        if note is None and (may_be_oldest or self.has_logged(client_id)):
            return self._note(client_id, [Generation.V0_4.release], {}, run=EARLIER)
        try:
            agreed = negotiate([note.version] if note else [], self.spoken)
        except UnsupportedProtocolVersion:
            raise NotFound(f"clientId: this host does not know {client_id[:_SHOWN]!r}; send initialize") from None
        words = note.words if note else ()
        marks = {"canvases": _CANVASES in words, "apps": _APPS in words, "needs_models": _MODELS in words}
        return dialect_for(agreed, self.surroundings, **marks)


__all__ = ["ClientNotes", "ClientRecord", "DialectChoice", "Surroundings", "renders_apps"]
