"""Chooses the dialect of a client in the handshake, from the versions that it offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

from ahpkit.dialects import Dialect, Generation, dialect_for, negotiate
from ahpkit.dialects import Surroundings as DialectSurroundings
from ahpkit.dialects.shapes import load_all
from ahpkit.host.clients.client_notes import EARLIER, NEVER, ClientNotes, Note
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.protocol.common.commands import ClientCapabilities
from ahpkit.protocol.common.state import Implementation, JsonObject
from ahpkit.protocol.errors import NotFound, UnsupportedProtocolVersion
from ahpkit.protocol.meta_keys import CANVASES
from ahpkit.protocol.session.state import SessionSummary

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
    """Whether a client lets people choose only agents that have models: VS Code does, recognised by its
    `clientInfo`."""
    return info is not None and info["name"].startswith("vscode-")


class Summaries(Protocol):
    """The list of sessions."""

    def summary(self, uri: str) -> SessionSummary | None: ...

    def title(self, session: str, chat: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a dialect needs to know of the host besides the states."""

    index: SessionIndex
    summaries: Summaries
    kind_of: Callable[[str], str | None]

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
        """Raises `InvalidParams` for a malformed offer and `UnsupportedProtocolVersion` when none fits."""
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
        self.notes.set(client_id, Note(agreed.version, words, run))
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


__all__ = ["DialectChoice", "Surroundings", "renders_apps"]
