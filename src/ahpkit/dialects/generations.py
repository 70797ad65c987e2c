"""The generations of AHP in tables: their versions, what each supports, and which of them receive the same bytes.

Only tables and lookups: `actions_down` changes the bytes. The registry of `ahpkit.protocol` lists the actions and
commands of 1.0.0 and the version that introduced each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum, IntEnum
from functools import cache, lru_cache
from typing import Any, Final, TypedDict, cast

from ahpkit.protocol.common.state import AgentSelection, JsonObject, ModelSelection
from ahpkit.protocol.registry import ACTIONS, COMMANDS, NOTIFICATIONS
from ahpkit.protocol.version import Version


class Generation(IntEnum):
    """The releases that differ on the wire, in order. Patch releases belong to the generation of their minor
    release."""

    V0_4 = 0
    V0_5_0 = 1
    V0_5_1 = 2
    V0_5_2 = 3
    V0_6 = 4
    V0_7 = 5
    V0_8 = 6
    V0_9 = 7
    V1_0 = 8

    @property
    def release(self) -> str:
        """The release that began this generation."""
        return _RELEASES[self]


_RELEASES: Final = ("0.4.0", "0.5.0", "0.5.1", "0.5.2", "0.6.0", "0.7.0", "0.8.0", "0.9.0", "1.0.0")

NEWEST: Final = Generation.V1_0
"""The generation of everything inside: states, log, policy."""


def generation_of(version: Version) -> Generation | None:
    """The generation of a version; None for an unknown version."""
    if version.prerelease:
        return None
    if version.major == 1:
        return Generation.V1_0
    if version.major != 0:
        return None
    if version.minor == 5:
        return (Generation.V0_5_0, Generation.V0_5_1, Generation.V0_5_2)[min(version.patch, 2)]
    return _BY_MINOR.get(version.minor)


_BY_MINOR: Final[Mapping[int, Generation]] = {
    4: Generation.V0_4,
    6: Generation.V0_6,
    7: Generation.V0_7,
    8: Generation.V0_8,
    9: Generation.V0_9,
}

# -- what each generation has ------------------------------------------------------------------------------------

OUR_ACTIONS: Final = frozenset(
    {
        "session/canvasRegistryChanged",
        "session/canvasInstanceOpened",
        "session/canvasInstanceUpdated",
        "session/canvasInstanceClosed",
        "session/canvasRequestCreated",
        "session/canvasRequestCompleted",
        "session/canvasRequestCancelled",
        "session/canvasInstanceCloseRequested",
    }
)
"""The actions of ahpkit's canvases. 0.4 connections always get them; newer clients get them on request."""

_IN_ALL_BUT_CHANGED: Final = (
    "annotations/set",
    "annotations/updated",
    "changeset/statusChanged",
    "chat/error",
    "chat/pendingMessageSet",
    "chat/responsePart",
    "chat/toolCallConfirmed",
    "chat/toolCallDelta",
    "chat/toolCallReady",
    "chat/turnStarted",
    "root/agentsChanged",
    "root/terminalsChanged",
    "session/chatAdded",
    "session/chatUpdated",
    "session/customizationToggled",
    "session/customizationUpdated",
    "session/customizationsChanged",
    "session/metaChanged",
)
"""Actions that all generations have, but with values that older ones write differently."""

IDENTICAL: Final = frozenset(
    {
        "annotations/entryRemoved",
        "annotations/entrySet",
        "annotations/removed",
        "changeset/cleared",
        "changeset/contentChanged",
        "changeset/fileRemoved",
        "changeset/fileSet",
        "changeset/operationStatusChanged",
        "changeset/operationsChanged",
        "chat/delta",
        "chat/inputAnswerChanged",
        "chat/inputCompleted",
        "chat/inputRequested",
        "chat/pendingMessageRemoved",
        "chat/queuedMessagesReordered",
        "chat/reasoning",
        "chat/toolCallComplete",
        "chat/toolCallContentChanged",
        "chat/toolCallResultConfirmed",
        "chat/toolCallStart",
        "chat/truncated",
        "chat/turnCancelled",
        "chat/turnComplete",
        "chat/usage",
        "resourceWatch/changed",
        "root/activeSessionsChanged",
        "root/configChanged",
        "session/activityChanged",
        "session/changesetsChanged",
        "session/chatRemoved",
        "session/configChanged",
        "session/creationFailed",
        "session/customizationRemoved",
        "session/defaultChatChanged",
        "session/isArchivedChanged",
        "session/isReadChanged",
        "session/mcpServerStateChanged",
        "session/ready",
        "session/serverToolsChanged",
        "session/titleChanged",
        "terminal/claimed",
        "terminal/cleared",
        "terminal/commandDetectionAvailable",
        "terminal/commandExecuted",
        "terminal/commandFinished",
        "terminal/cwdChanged",
        "terminal/data",
        "terminal/exited",
        "terminal/input",
        "terminal/resized",
        "terminal/titleChanged",
    }
)
"""Actions with the same bytes for every generation, so they are never decoded. All streaming actions are here."""


def _after_0_4(versions: Iterable[tuple[str, str]]) -> Mapping[str, Generation]:
    """From (name, version that introduced it): the names introduced after 0.4, with their generation."""
    since = ((name, generation_of(Version.parse(version))) for name, version in versions)
    return {name: generation for name, generation in since if generation not in (None, Generation.V0_4)}


_SINCE: Final = _after_0_4((spec.type, spec.since) for spec in ACTIONS.values())
"""Actions introduced after 0.4, according to `since` in the registry."""

_GONE: Final[Mapping[str, tuple[Generation, Generation]]] = {
    "session/activeClientChanged": (Generation.V0_4, Generation.V0_4),
    "session/activeClientToolsChanged": (Generation.V0_4, Generation.V0_4),
    "session/agentChanged": (Generation.V0_4, Generation.V0_4),
    "session/modelChanged": (Generation.V0_4, Generation.V0_4),
    "changeset/filesReviewedChanged": (Generation.V0_5_2, Generation.V0_5_2),
}
"""Actions that were removed, with the first and the last generation that had them."""

_BY_CLIENTS: Final = frozenset(
    {
        *(spec.type for spec in ACTIONS.values() if spec.client_dispatchable),
        "session/activeClientChanged",
        "session/activeClientToolsChanged",
        "session/agentChanged",
        "session/canvasInstanceUpdated",
        "session/modelChanged",
    }
)
"""Actions that clients may dispatch in the generations that have them: those of the registry, those that only 0.4 has,
and canvas actions that only ahpkit lets clients dispatch."""

_METHODS_SINCE: Final = _after_0_4((spec.method, spec.since) for spec in (*COMMANDS.values(), *NOTIFICATIONS.values()))
"""Methods introduced after 0.4, in either direction, according to `since` in the registry."""


def knows_action(generation: Generation, action_type: str) -> bool:
    """Whether a generation has an action of the protocol. Canvas actions of ahpkit do not count."""
    if (span := _GONE.get(action_type)) is not None:
        return span[0] <= generation <= span[1]
    if (since := _SINCE.get(action_type)) is not None:
        return generation >= since
    return action_type in IDENTICAL or action_type in _IN_ALL_BUT_CHANGED


def may_dispatch(generation: Generation, action_type: str, *, ours: bool = False) -> bool:
    """Whether a client of a generation may dispatch an action. With `ours`, canvas actions of ahpkit count."""
    return action_type in dispatched_by(generation, ours)


@cache
def dispatched_by(generation: Generation, ours: bool) -> frozenset[str]:
    """The actions that clients of a generation may dispatch."""
    return frozenset(kind for kind in _BY_CLIENTS if (ours if kind in OUR_ACTIONS else knows_action(generation, kind)))


def knows_method(generation: Generation, method: str) -> bool:
    """Whether a generation has a method. True for unknown names, which are checked elsewhere."""
    return generation >= _METHODS_SINCE.get(method, Generation.V0_4)


# -- the bytes that each generation gets ---------------------------------------------------------------------------


class Stream(Enum):
    """The ways in which an action is written. There are no others."""

    __hash__ = object.__hash__  # Used for every action; the hash of `Enum` is slow.

    N = "1.0"
    """The logged bytes."""
    L = "0.5-0.8"
    """1.0 with the older names added, so that the same bytes serve 0.5 to 0.8."""
    Z = "0.4"
    """Exactly the form of 0.4."""
    OMIT = "nothing"
    """Not sent: the reader's version has no such action, and nothing in its states would change."""
    RESYNC = "resync"
    """The reader's version cannot express the change with an action, so it needs a new snapshot."""


Routes = tuple[Stream, ...]
"""For one action: the stream of each generation, in the order of `Generation`."""

_Needed = Callable[[bytes], bool]


def _always(payload: bytes) -> bool:
    return True


def _has(*needles: bytes) -> _Needed:
    return lambda payload: any(needle in payload for needle in needles)


def _lacks(needle: bytes) -> _Needed:
    return lambda payload: needle not in payload


_L, _Z = Stream.L, Stream.Z
_SELECTION = _has(b"ahpkit.dev/selection")
_CONTENT_REF = _has(b'"toolInput":{')
_AUTOMATION = (Generation.V0_9, _L, _has(b'"automation"'))
_CHAT_ATTACHMENT = (Generation.V0_7, _L, _has(b'"chat"'))
_ENABLED = ((Generation.V0_5_0, _Z, _always), (Generation.V0_8, _L, _always))
_SUMMARY = (
    (Generation.V0_5_0, _Z, _always),
    (Generation.V0_7, _L, _has(b'"workingDirectories"', b'"sideChat"')),
)

_Rule = tuple[Generation, Stream, _Needed]

_REWRITTEN: Final[Mapping[str, Sequence[_Rule]]] = {
    "annotations/set": ((Generation.V0_5_0, _Z, _always), (Generation.V0_9, _L, _always)),
    "annotations/updated": ((Generation.V0_5_0, _Z, _has(b'"session"')), (Generation.V0_9, _L, _has(b'"session"'))),
    "changeset/statusChanged": ((Generation.V1_0, _L, _has(b'"recomputing"')),),
    "chat/draftChanged": (_CHAT_ATTACHMENT, _AUTOMATION),
    "chat/error": ((Generation.V0_5_0, _Z, _always), (Generation.V0_9, _L, _always)),
    "chat/pendingMessageSet": (_CHAT_ATTACHMENT, _AUTOMATION),
    "chat/responsePart": ((Generation.V0_7, _L, _CONTENT_REF),),
    "chat/toolCallConfirmed": (_CHAT_ATTACHMENT, _AUTOMATION),
    "chat/toolCallDelta": ((Generation.V0_7, _L, _lacks(b'"content"')),),
    "chat/toolCallReady": ((Generation.V0_7, _L, _has(b'"toolInput":{', b'"contributor"')),),
    "chat/turnStarted": (_CHAT_ATTACHMENT, _AUTOMATION),
    "chat/turnsLoaded": ((Generation.V0_9, _L, _always),),
    "root/agentsChanged": _ENABLED,
    "root/terminalsChanged": ((Generation.V0_5_0, _Z, _always), (Generation.V0_9, _L, _has(b'"exited"'))),
    "session/activeClientRemoved": ((Generation.V0_5_0, _Z, _has(b"ahpkit.dev/primary")),),
    "session/activeClientSet": (
        (Generation.V0_5_0, _Z, _has(b"ahpkit.dev/primary")),
        (Generation.V0_8, _L, _has(b'"customizations"')),
    ),
    "session/chatAdded": _SUMMARY,
    "session/chatUpdated": _SUMMARY,
    "session/customizationToggled": _ENABLED,
    "session/customizationUpdated": _ENABLED,
    "session/customizationsChanged": _ENABLED,
    "session/inputNeededSet": (
        (Generation.V0_6, Stream.OMIT, _has(b'"toolAuthentication"')),
        (Generation.V0_7, _L, _CONTENT_REF),
    ),
    "session/metaChanged": ((Generation.V0_5_0, _Z, _SELECTION),),
}
"""Rules per action type: generations below the first member get the stream, if the bytes need it. The first rule that
matches counts."""

_ALL_N: Final[Routes] = (Stream.N,) * len(Generation)


def routes(action_type: str, payload: bytes, *, ours: bool = False) -> Routes:
    """The stream in which each generation gets a logged action. Searches the bytes and never decodes them.

    `ours`: for readers that asked for the canvas actions of ahpkit.
    """
    if action_type in IDENTICAL:
        return _ALL_N
    if action_type in OUR_ACTIONS:
        return _ALL_N if ours else (Stream.N, *[Stream.OMIT] * (len(Generation) - 1))
    return _routes(action_type, *[needs(payload) for _, _, needs in _REWRITTEN.get(action_type, ())])


@lru_cache(maxsize=1024)
def _routes(action_type: str, *needed: bool) -> Routes:
    """The routes for a type of action; `needed` says for each rule of the type whether the bytes need it.

    Cached, because it is called for every action and has few different answers.
    """
    rules = zip(_REWRITTEN.get(action_type, ()), needed, strict=True)
    applied = [(below, stream) for (below, stream, _), is_needed in rules if is_needed]
    return tuple(_route(generation, action_type, applied) for generation in Generation)


def fixed_route(generation: Generation, action_type: str) -> Stream | None:
    """The stream in which a generation gets every action of a type; None when that depends on the bytes."""
    if action_type in IDENTICAL:
        return Stream.N
    rules = _REWRITTEN.get(action_type, ())
    if action_type in OUR_ACTIONS or any(needs is not _always for _, _, needs in rules):
        return None
    return _routes(action_type, *[True] * len(rules))[generation]


def _route(generation: Generation, action_type: str, needed: Sequence[tuple[Generation, Stream]]) -> Stream:
    if (generation, action_type) == (Generation.V0_5_2, "changeset/filesReviewChanged"):
        return Stream.L  # Only that release has another name for the action.
    for below, stream in needed:
        if generation < below and (stream is not Stream.L or knows_action(generation, action_type)):
            return stream
    if knows_action(generation, action_type):
        return Stream.N
    return Stream.RESYNC if action_type in _INEXPRESSIBLE else Stream.OMIT


_INEXPRESSIBLE: Final = frozenset({"chat/turnResume"})
"""Actions that readers without them cannot do without: they need a new snapshot."""


# -- hints in `_meta` ----------------------------------------------------------------------------------------------

PRIMARY: Final = "ahpkit.dev/primary"
"""Says which active client 0.4 readers see. In `session/activeClientSet`: true when it is this client. In
`session/activeClientRemoved`: the entry that they see from now on, or null. In entries of `activeClients`: a number;
they see the entry with the highest."""

SELECTION: Final = "ahpkit.dev/selection"
"""In the `_meta` of a session, summary or chat: the model and agent that 0.4 has as members, `{model?, agent?}`."""

CHANGED: Final = "changed"
"""In the selection of a `session/metaChanged` that changes only one of them: "model" or "agent"."""

FORK: Final = "ahpkit.dev/fork"
"""In the `_meta` of `createSession`: the `fork` that was a parameter before 0.9."""


class Selection(TypedDict, total=False):
    """The model and the custom agent that were chosen for a session or a chat."""

    model: ModelSelection
    agent: AgentSelection
    changed: str


_NOTES: Final = "ahpkit.dev/"
"""The prefix of all notes."""

_NOTED: Final = frozenset({"_meta", "activeClient"})
"""Members of an action or of params that may contain notes."""


def without_notes(sent: JsonObject, *, but: Collection[str] = ()) -> JsonObject:
    """A client's action or params without the notes that only the host may set."""
    if _NOTED.isdisjoint(sent):
        return sent
    after = sent
    for key, holder in (("_meta", sent), ("activeClient", sent.get("activeClient"))):
        meta: Any = cast("JsonObject", holder).get("_meta") if isinstance(holder, dict) else None
        if not isinstance(meta, dict):
            continue
        notes = cast("JsonObject", meta)
        kept = {name: note for name, note in notes.items() if name in but or not name.startswith(_NOTES)}
        if len(kept) < len(notes):
            after = {**after, key: kept if holder is sent else {**cast("JsonObject", holder), "_meta": kept}}
    return after


def selection_of(item: Mapping[str, Any] | None) -> Selection:
    """The model and agent in the `_meta` of a session, a summary or a chat."""
    meta: JsonObject = (item or {}).get("_meta") or {}
    selection: Selection | None = meta.get(SELECTION)
    return selection or {}


def unmarked(meta: JsonObject) -> JsonObject:
    """A `_meta` without the note about what changed in the selection, for a change of something else."""
    selection: JsonObject | None = meta.get(SELECTION)
    if not selection or CHANGED not in selection:
        return meta
    return {**meta, SELECTION: {key: value for key, value in selection.items() if key != CHANGED}}


def selected(state: Mapping[str, Any], key: str, value: JsonObject | None) -> JsonObject:
    """The `_meta` of a session's state after another model or agent was chosen."""
    chosen = {**selection_of(state), key: value, CHANGED: key}
    meta: JsonObject = state.get("_meta") or {}
    return {**meta, SELECTION: {name: one for name, one in chosen.items() if one is not None}}


__all__ = [
    "CHANGED",
    "FORK",
    "IDENTICAL",
    "NEWEST",
    "OUR_ACTIONS",
    "PRIMARY",
    "SELECTION",
    "Generation",
    "Routes",
    "Selection",
    "Stream",
    "dispatched_by",
    "fixed_route",
    "generation_of",
    "knows_action",
    "knows_method",
    "may_dispatch",
    "routes",
    "selected",
    "selection_of",
    "unmarked",
    "without_notes",
]
