"""Checks whether a client's message is well formed in its own version.

0.4 has its own types. 0.5 to 0.9 are checked with the types of 1.0, except for the older forms in this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Final, Literal, NotRequired, TypedDict

from ahpkit.dialects.generations import FORK, SELECTION, Generation, without_notes
from ahpkit.protocol import registry as newest
from ahpkit.protocol.annotations import AnnotationEntry
from ahpkit.protocol.chat.messages import Message
from ahpkit.protocol.common.state import ROOT_URI, AgentSelection, BaseParams, JsonObject, ModelSelection, TextRange
from ahpkit.protocol.session.customizations import ClientPluginCustomization, CustomizationEnablement
from ahpkit.protocol.session.enablement import SWITCH
from ahpkit.protocol.session.state import SessionActiveClient, ToolDefinition
from ahpkit.protocol.terminal import TerminalClientClaim
from ahpkit.protocol.validation import check

V = Generation

# -- before 0.6 ----------------------------------------------------------------------------------------------------


class _TurnStarted(TypedDict):
    """`chat/turnStarted` without `startedAt`."""

    type: Literal["chat/turnStarted"]
    turnId: str
    message: Message
    queuedMessageId: NotRequired[str]


class _TurnCancelled(TypedDict):
    """`chat/turnCancelled` without `duration`."""

    type: Literal["chat/turnCancelled"]
    turnId: str


class _FetchTurnsById(BaseParams):
    """0.5.0: the turns before a given turn."""

    before: NotRequired[str]
    limit: NotRequired[int]


# -- before 0.7 ----------------------------------------------------------------------------------------------------


class _ForkSource(TypedDict):
    chat: str
    turnId: str


class _CreateChat(BaseParams):
    """The source has no kind, because there are only forks."""

    chat: str
    initialMessage: NotRequired[Message]
    source: NotRequired[_ForkSource]


class _SessionFork(TypedDict):
    session: str
    turnId: str


class _Switched(ClientPluginCustomization):
    """A plugin with a plain switch instead of decisions."""

    enabled: bool


class _ActiveClient(TypedDict):
    clientId: str
    displayName: NotRequired[str]
    tools: list[ToolDefinition]
    customizations: NotRequired[list[_Switched]]


class _CreateSession07(BaseParams):
    """0.7: several directories, but plugins with a plain switch."""

    provider: NotRequired[str]
    workingDirectories: NotRequired[list[str]]
    fork: NotRequired[_SessionFork]
    config: NotRequired[JsonObject]
    activeClient: NotRequired[_ActiveClient]
    progressToken: NotRequired[str]


class _CreateSession05(_CreateSession07):
    """0.5 and 0.6: one working directory."""

    workingDirectory: NotRequired[str]


# -- before 0.8 and 0.9 --------------------------------------------------------------------------------------------


class _CreateSession08(BaseParams):
    """0.8: with `fork`."""

    provider: NotRequired[str]
    workingDirectories: NotRequired[list[str]]
    fork: NotRequired[_SessionFork]
    config: NotRequired[JsonObject]
    activeClient: NotRequired[SessionActiveClient]
    progressToken: NotRequired[str]


class _ActiveClientSet(TypedDict):
    type: Literal["session/activeClientSet"]
    activeClient: _ActiveClient


class _Toggled(TypedDict):
    """`session/customizationToggled` with a plain switch."""

    type: Literal["session/customizationToggled"]
    id: str
    enabled: bool


class _ToggledEither(TypedDict):
    """0.8: drafts of this version sent a plain switch, the release sends decisions."""

    type: Literal["session/customizationToggled"]
    id: str
    enabled: NotRequired[bool]
    enablement: NotRequired[list[CustomizationEnablement]]


class _Annotation(TypedDict):
    """An annotation with the id of a turn instead of an origin."""

    id: str
    turnId: str
    resource: str
    range: NotRequired[TextRange]
    resolved: bool
    entries: list[AnnotationEntry]


class _AnnotationSet(TypedDict):
    type: Literal["annotations/set"]
    annotation: _Annotation


class _AnnotationUpdated(TypedDict):
    type: Literal["annotations/updated"]
    annotationId: str
    turnId: NotRequired[str]
    resource: NotRequired[str]
    range: NotRequired[TextRange]
    resolved: NotRequired[bool]


class _SessionClaim(TypedDict):
    """A session's claim of a terminal that names no chat."""

    kind: Literal["session"]
    session: str
    turnId: NotRequired[str]
    toolCallId: NotRequired[str]


class _Claimed(TypedDict):
    type: Literal["terminal/claimed"]
    claim: TerminalClientClaim | _SessionClaim


class _CreateTerminal(BaseParams):
    claim: TerminalClientClaim | _SessionClaim
    name: NotRequired[str]
    cwd: NotRequired[str]
    cols: NotRequired[int]
    rows: NotRequired[int]


_Shapes = Mapping[str, Sequence[tuple[Generation, Any]]]


class _Selection(TypedDict):
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]


_NOTES: Final[Mapping[str, Any]] = {SELECTION: _Selection, FORK: _SessionFork}
"""Notes that clients since 0.5 may put into the `_meta` of a command instead of members that were removed from it."""

_NOTED: Final[Mapping[str, frozenset[str]]] = {
    "createSession": frozenset({SELECTION, FORK}),
    "createChat": frozenset({SELECTION}),
}
"""The commands with such notes. Clients may not set other notes."""

_SWITCHES: Final = frozenset({SWITCH})
"""Notes that clients may put into an action that switches a customization."""

_ACTIONS: Final[_Shapes] = {
    "annotations/set": [(V.V0_9, _AnnotationSet)],
    "annotations/updated": [(V.V0_9, _AnnotationUpdated)],
    "chat/turnCancelled": [(V.V0_6, _TurnCancelled)],
    "chat/turnStarted": [(V.V0_6, _TurnStarted)],
    "session/activeClientSet": [(V.V0_8, _ActiveClientSet)],
    "session/customizationToggled": [(V.V0_8, _Toggled), (V.V0_9, _ToggledEither)],
    "terminal/claimed": [(V.V0_9, _Claimed)],
}
"""Older forms of actions. The first entry whose generation is above the client's applies."""


class _Channel(BaseParams):
    """Params that consist of a channel."""


_PARAMS: Final[_Shapes] = {
    "createChat": [(V.V0_7, _CreateChat)],
    "createSession": [(V.V0_7, _CreateSession05), (V.V0_8, _CreateSession07), (V.V0_9, _CreateSession08)],
    "createTerminal": [(V.V0_9, _CreateTerminal)],
    "fetchTurns": [(V.V0_5_1, _FetchTurnsById)],
    "listSessions": [(V.V0_5_1, _Channel)],
    "subscribe": [(V.V0_5_1, _Channel)],
}
"""Older forms of params, chosen in the same way."""


@cache
def _registry(by: Generation) -> ModuleType:
    """The types that a generation is checked with. Those of 0.4 are loaded only when needed."""
    if by != V.V0_4:
        return newest
    from ahpkit.dialects.v0_4 import registry as oldest

    return oldest


def load_all() -> None:
    """Load the types of every generation, so that the first client of 0.4 does not wait for it."""
    _registry(V.V0_4)


class _AnyAction(TypedDict):
    type: str


class _AnyParams(TypedDict):
    channel: NotRequired[str]


def check_params(method: str, params: JsonObject, *, by: Generation) -> None:
    """Raise `InvalidParams` when the params of a client's request are malformed in its version.

    Params of unknown methods are not checked: extensions check their own. `reconnect` may omit `channel`, as in VS
    Code.
    """
    if method == "reconnect":
        params = {"channel": ROOT_URI, **params}
    spec = _registry(by).COMMANDS.get(method)
    check(_earlier(_PARAMS, method, by) or (_AnyParams if spec is None else spec.params), params)
    notes: JsonObject = params.get("_meta") or {}
    for key in _NOTED.get(method, frozenset()) & notes.keys():
        check(_NOTES[key], notes[key], at=f"_meta.{key}")


def own_params(method: str, params: JsonObject) -> JsonObject:
    """The params without notes that clients may not set."""
    return without_notes(params, but=_NOTED.get(method, ()))


def own_action(action: JsonObject) -> JsonObject:
    """The action without notes that clients may not set."""
    return without_notes(action, but=_SWITCHES if action["type"] == "session/customizationToggled" else ())


def check_action(action: JsonObject, *, by: Generation) -> None:
    """Raise `InvalidParams` when a client's action is malformed in its version. Unknown types are not checked here."""
    kind = action.get("type")
    known = _registry(by).ACTIONS.get(kind) if isinstance(kind, str) else None
    check(_AnyAction if known is None else _shape(known.type, by), action, at="action")
    if kind == "session/customizationToggled" and by == V.V0_8 and "enabled" not in action:
        check(newest.ACTIONS[kind].shape, action, at="action")


def is_newest(action_type: str, by: Generation) -> bool:
    """Whether an action has the form of 1.0.0 in a generation that has this action."""
    known = newest.ACTIONS.get(action_type)
    return known is not None and _shape(action_type, by) is known.shape


@cache
def _shape(action_type: str, by: Generation) -> Any:
    """The form of an action in a generation that has this action."""
    return _earlier(_ACTIONS, action_type, by) or _registry(by).ACTIONS[action_type].shape


def _earlier(shapes: _Shapes, name: str, by: Generation) -> Any:
    """The form of an action or of params in a generation after 0.4, if it differs from 1.0.0; else None."""
    if by == V.V0_4:
        return None
    return next((shape for below, shape in shapes.get(name, ()) if by < below), None)


__all__ = ["check_action", "check_params", "is_newest", "load_all", "own_action", "own_params"]
