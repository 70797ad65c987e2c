"""Properties of all reducers: total, pure, and blind to what nobody knows.

Actions are drawn from the real types with plausible fields, any of which may be missing or junk; states grow from a
valid one by such actions, or are junk made of the names that states use.
"""

import copy
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.dialects.v0_4.channels import CHANNELS, Channel
from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from ahpkit.wire.codec import decode_json, encode
from support import requirement
from support.properties import examples

STATEFUL = [channel for channel in CHANNELS.values() if channel.reducer is not None]
EXAMPLES = examples(0.3)

INITIAL: dict[str, JsonObject] = {
    "annotations": {"annotations": []},
    "changeset": {"status": "computing", "files": []},
    "chat": {"resource": "ahp-chat:/c", "title": "", "status": 1, "modifiedAt": "", "turns": []},
    "resourceWatch": {"root": "file:///w", "recursive": True},
    "root": {"agents": [], "config": {"schema": {}, "values": {}}},
    "session": {"summary": {"status": 1, "modifiedAt": 0}, "lifecycle": "creating", "chats": []},
    "terminal": {"title": "", "content": [], "claim": {"kind": "client", "clientId": "c"}},
}

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
    "inputRequests",
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
    "part": thing("markdown", "reasoning", "future"),
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
    "model": st.just({"id": "m"}),
    "agent": st.just({"uri": "u"}),
    "activeClient": st.fixed_dictionaries({"clientId": ids, "tools": st.just([])}) | st.none(),
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


def fields_of(kind: str) -> set[str]:
    """The fields that an action type has, from its shape."""
    shape = ACTIONS[kind].shape
    return {name for variant in get_args(shape) or (shape,) for name in variant.__annotations__} - {"type"}


def action(kind: str) -> st.SearchStrategy[JsonObject]:
    """An action of that type: all its fields, but sometimes one is junk or missing."""
    whole = st.fixed_dictionaries(
        {"type": st.just(kind), **{name: FIELDS.get(name, junk) for name in sorted(fields_of(kind))}}
    )
    spoiled = st.tuples(whole, st.sampled_from([*sorted(fields_of(kind)), "extra"]), junk | st.just(MISSING))
    return whole | spoiled.map(lambda drawn: _spoiled(*drawn))


def _spoiled(action: JsonObject, name: str, value: Any) -> JsonObject:
    return {key: value for key, value in {**action, name: value}.items() if value is not MISSING}


ACTIONS_OF = {channel.name: st.one_of([action(kind) for kind in sorted(channel.actions)]) for channel in STATEFUL}


def reduced(channel: Channel, state: Any, action: Any) -> Any:
    """Reduce, and hold the reducer to its word: nothing raised, nothing changed in place, the same again."""
    assert channel.reducer is not None
    before = copy.deepcopy((state, action))
    after = channel.reducer(state, action, now=1234)
    assert (state, action) == before
    assert channel.reducer(state, action, now=1234) == after
    return after


@requirement("core:reducer:pure")
@pytest.mark.parametrize("channel", STATEFUL, ids=lambda channel: channel.name)
@EXAMPLES
@given(data=st.data())
def test_folding_a_log_never_raises_never_mutates_and_gives_the_same_twice(
    channel: Channel, data: st.DataObject
) -> None:
    log = data.draw(st.lists(ACTIONS_OF[channel.name], max_size=12))
    state = INITIAL[channel.name]
    for action in log:
        state = reduced(channel, state, action)
    again = INITIAL[channel.name]
    for action in decode_json(encode(log)):
        again = reduced(channel, again, action)
    assert decode_json(encode(state)) == decode_json(encode(again))


@pytest.mark.parametrize("channel", STATEFUL, ids=lambda channel: channel.name)
@EXAMPLES
@given(data=st.data())
def test_no_state_and_no_action_makes_a_reducer_raise(channel: Channel, data: st.DataObject) -> None:
    state = data.draw(st.dictionaries(names, junk, max_size=6) | junk)
    action = data.draw(
        ACTIONS_OF[channel.name] | st.fixed_dictionaries({"type": st.sampled_from(sorted(channel.actions))}) | junk
    )
    reduced(channel, state, action)


@requirement("core:reducer:unknown-type-same-object")
@pytest.mark.parametrize("channel", STATEFUL, ids=lambda channel: channel.name)
@EXAMPLES
@given(state=st.dictionaries(names, junk, max_size=4), fields=st.dictionaries(names, junk, max_size=4), kind=junk)
def test_an_unknown_type_returns_the_same_state(
    channel: Channel, state: JsonObject, fields: JsonObject, kind: Any
) -> None:
    assert reduced(channel, state, {**fields, "type": kind}) is state
    assert reduced(channel, state, {**fields, "type": f"{channel.name}/future"}) is state


@pytest.mark.parametrize("channel", STATEFUL, ids=lambda channel: channel.name)
@EXAMPLES
@given(data=st.data())
def test_actions_of_other_channels_do_not_apply(channel: Channel, data: st.DataObject) -> None:
    other = data.draw(st.sampled_from([other for other in STATEFUL if other is not channel]))
    state = INITIAL[channel.name]
    assert reduced(channel, state, data.draw(ACTIONS_OF[other.name])) is state
