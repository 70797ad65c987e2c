"""Properties that the reducers of every version have: they are total and pure, and ignore unknown things.

Actions are drawn from the real types with plausible fields, any of which may be missing or junk; states grow from a
valid one by such actions, or are junk made of the names that states use.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Protocol, get_args

from hypothesis import strategies as st

from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.codec import decode_json, encode

NAMES = [
    "id",
    "type",
    "kind",
    "status",
    "turns",
    "activeTurn",
    "responseParts",
    "toolCall",
    "toolCallId",
    "content",
    "partialInput",
    "options",
    "summary",
    "chats",
    "customizations",
    "children",
    "enabled",
    "openCanvases",
    "canvasRequests",
    "instanceId",
    "requestId",
    "request",
    "response",
    "inputNeeded",
    "activeClients",
    "workingDirectories",
    "enablement",
    "answers",
    "annotations",
    "entries",
    "files",
    "operations",
    "queuedMessages",
    "steeringMessage",
    "value",
    "output",
    "isComplete",
    "commandId",
    "config",
    "values",
    "state",
    "inputRequests",
]

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
)
names = st.sampled_from(NAMES)
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=2), inner, max_size=5)
)
ids = st.sampled_from("ab")
MISSING = object()
text = st.text(max_size=4)


def thing(*kinds: str, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    """An entry of some keyed list."""
    fields = {
        "kind": st.sampled_from(kinds or ("x",)),
        "type": st.sampled_from(kinds or ("x",)),
        "id": ids,
        "content": text,
    }
    return st.fixed_dictionaries(fields, optional=more)


children = st.lists(thing("skill", "agent", "mcpServer", enabled=st.booleans()), max_size=2)
customization = thing("plugin", "mcpServer", "future", children=children, enabled=st.booleans())
options = st.just([{"id": "a", "label": "A", "kind": "approve"}])


def each(these: str, strategy: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    return dict.fromkeys(these.split(), strategy)


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **each("turnId partId toolCallId requestId questionId queuedMessageId selectedOptionId id chat instanceId", ids),
    **each("commandId annotationId entryId fileId operationId defaultChat", ids),
    **each("content data title activity toolInput editedToolInput invocationMessage toolName displayName", text),
    **each("channel cwd commandLine", text),
    **each("approved enabled isRead isArchived replace resolved editable requiresResultConfirmation", st.booleans()),
    **each("exitCode durationMs cols rows timestamp activeSessions", st.integers(0, 9)),
    **each("agents terminals tools canvases files changesets operations", st.lists(thing(), max_size=2)),
    "message": st.just({"text": "m", "origin": {"kind": "user"}}),
    "kind": st.sampled_from(["steering", "queued", "future"]),
    "order": st.lists(ids, max_size=3),
    "part": thing("markdown", "reasoning", "future", "error", resumable=st.booleans()),
    "confirmed": st.sampled_from(["not-needed", "user-action"]),
    "reason": st.sampled_from(["denied", "skipped"]),
    "options": options,
    "result": st.fixed_dictionaries({"success": st.booleans(), "pastTenseMessage": text}),
    "usage": st.just({"inputTokens": 1}),
    "error": st.just({"errorType": "e", "message": "m"}),
    "request": st.fixed_dictionaries(
        {"id": ids, "requestId": ids, "instanceId": ids}, optional={"answers": st.just({})}
    ),
    "answer": st.just({"state": "skipped"}),
    "response": st.just("accept"),
    "summary": st.fixed_dictionaries({"resource": ids, "title": text}),
    "changes": st.fixed_dictionaries(
        {}, optional={"title": text | st.none(), "url": text, "resource": ids, "items": junk}
    ),
    "activeClient": st.fixed_dictionaries({"clientId": ids, "tools": st.just([])}),
    "startedAt": st.sampled_from(["2026-11-15T12:00:00Z", "1970-01-01T00:00:00.001+01:00"]),
    "duration": st.integers(-5, 5000) | st.floats(0, 9),
    "auth": st.just({"reason": "required", "resource": {"resource": "r"}}),
    "contributor": st.sampled_from([{"kind": "mcp", "customizationId": "a"}, {"kind": "client", "clientId": "a"}]),
    "directory": ids,
    "replacement": ids,
    "enablement": st.lists(st.fixed_dictionaries({"kind": st.just("session"), "enabled": st.booleans()}), max_size=2),
    "work": thing("shell"),
    "draft": st.just({"text": "d", "origin": {"kind": "user"}}),
    "turns": st.lists(
        st.fixed_dictionaries({"id": st.sampled_from("cd"), "responseParts": st.just([]), "state": st.just("error")}),
        max_size=2,
    ),
    "chats": st.lists(ids, max_size=2),
    "session": ids,
    "resource": ids,
    "automation": st.fixed_dictionaries({"resource": ids}),
    "canvas": st.fixed_dictionaries({"instanceId": ids}),
    "customizations": st.lists(customization, max_size=2),
    "customization": customization,
    "state": st.fixed_dictionaries({"kind": st.just("ready")}),
    "config": st.dictionaries(ids, scalars, max_size=2),
    "instance": st.fixed_dictionaries({"instanceId": ids, "availability": st.just("ready")}),
    "claim": st.fixed_dictionaries({"kind": st.just("client"), "clientId": ids}),
    "annotation": thing(entries=st.lists(thing(), max_size=2)),
    "entry": thing(),
    "file": thing(),
    "status": st.sampled_from(["ready", "error", "idle"]),
    "_meta": st.dictionaries(ids, scalars, max_size=1),
}


class Channel(Protocol):
    """A kind of channel, as the properties use it."""

    @property
    def name(self) -> str: ...

    @property
    def actions(self) -> frozenset[str]: ...


class Action(Protocol):
    """An action type, as the properties use it."""

    @property
    def shape(self) -> Any: ...


class Reducers:
    """The reducers of one version. `reduce` takes a channel's name, a state and an action."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        actions: Mapping[str, Action],
        *,
        initial: Mapping[str, JsonObject],
        reduce: Callable[[str, Any, Any], Any],
        fields: Mapping[str, st.SearchStrategy[Any]] | None = None,
    ) -> None:
        self._channels = {name: channels[name] for name in initial}
        self._actions = actions
        self._initial = initial
        self._reduce = reduce
        self._fields = {**FIELDS, **(fields or {})}
        self.names = sorted(initial)
        self._actions_of = {
            name: st.one_of([self._action(kind) for kind in sorted(channel.actions)])
            for name, channel in self._channels.items()
        }

    def _action(self, kind: str) -> st.SearchStrategy[JsonObject]:
        """An action of that type: all its fields, but sometimes one is junk or missing."""
        shape = self._actions[kind].shape
        variants = get_args(shape) or (shape,)
        names = sorted({name for variant in variants for name in variant.__annotations__} - {"type"})
        whole = st.fixed_dictionaries({"type": st.just(kind), **{name: self._fields.get(name, junk) for name in names}})
        spoiled = st.tuples(whole, st.sampled_from([*names, "extra"]), junk | st.just(MISSING))
        return whole | spoiled.map(lambda drawn: _spoiled(*drawn))

    def _reduced(self, name: str, state: Any, action: Any) -> Any:
        """Reduce, and check that nothing is raised or changed in place, and that the result is the same again."""
        before = copy.deepcopy((state, action))
        after = self._reduce(name, state, action)
        assert (state, action) == before
        assert self._reduce(name, state, action) == after
        return after

    def check_log(self, name: str, data: st.DataObject) -> None:
        """Folding a log never raises, never mutates, and gives the same twice."""
        log = data.draw(st.lists(self._actions_of[name], max_size=12))
        state = again = self._initial[name]
        for action in log:
            state = self._reduced(name, state, action)
        for action in decode_json(encode(log)):
            again = self._reduced(name, again, action)
        assert decode_json(encode(state)) == decode_json(encode(again))

    def check_future_bits(self, name: str, data: st.DataObject, *, bits: int) -> None:
        """Unknown bits of `status` survive every action, and the status is never negative."""
        state = {**self._initial[name], "status": bits | 1}
        for action in data.draw(st.lists(self._actions_of[name], max_size=12)):
            state = self._reduced(name, state, action)
            assert state["status"] & bits == bits
            assert state["status"] > 0

    def check_anything(self, name: str, data: st.DataObject) -> None:
        """No state and no action makes a reducer raise."""
        types = st.fixed_dictionaries({"type": st.sampled_from(sorted(self._channels[name].actions))})
        state = data.draw(st.dictionaries(names, junk, max_size=6) | junk)
        self._reduced(name, state, data.draw(self._actions_of[name] | types | junk))

    def check_unknown(self, name: str, data: st.DataObject) -> None:
        """An unknown type returns the same state."""
        state = data.draw(st.dictionaries(names, junk, max_size=4))
        fields = data.draw(st.dictionaries(names, junk, max_size=4))
        assert self._reduced(name, state, {**fields, "type": data.draw(junk)}) is state
        assert self._reduced(name, state, {**fields, "type": f"{name}/future"}) is state

    def check_others(self, name: str, data: st.DataObject) -> None:
        """Actions of other channels do not apply."""
        other = data.draw(st.sampled_from([other for other in self.names if other != name]))
        state = self._initial[name]
        assert self._reduced(name, state, data.draw(self._actions_of[other])) is state


def _spoiled(action: JsonObject, name: str, value: Any) -> JsonObject:
    return {key: value for key, value in {**action, name: value}.items() if value is not MISSING}
