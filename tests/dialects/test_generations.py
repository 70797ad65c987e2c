"""What each generation knows, and in which bytes it gets an action."""

from __future__ import annotations

import pytest

from ahpkit.dialects import IDENTICAL, Generation, Stream, payload, routes
from ahpkit.dialects.generations import NEWEST, OUR_ACTIONS, generation_of, knows_action, may_dispatch
from ahpkit.dialects.v0_4.registry import ACTIONS
from ahpkit.protocol.registry import ACTIONS as CANONICAL
from ahpkit.protocol.version import Version
from ahpkit.wire.codec import encode
from support import requirement

V = Generation

KNOWN = {
    V.V0_4: (73, 32),
    V.V0_5_0: (73, 31),
    V.V0_5_1: (76, 31),
    V.V0_5_2: (79, 33),
    V.V0_6: (81, 34),
    V.V0_7: (85, 38),
    V.V0_8: (86, 39),
    V.V0_9: (96, 44),
    V.V1_0: (106, 47),
}
"""How many actions each release has, and how many of them clients may dispatch."""

NEWER = (
    *("session/activeClientSet", "session/activeClientRemoved", "chat/activityChanged", "chat/draftChanged"),
    *("chat/turnsLoaded", "session/inputNeededSet", "session/inputNeededRemoved", "session/mcpServerStartRequested"),
    *("session/mcpServerStopRequested", "changeset/filesReviewChanged", "changeset/filesReviewedChanged"),
    *("chat/toolCallAuthRequired", "chat/toolCallAuthResolved", "chat/workingDirectorySet"),
    *("chat/workingDirectoryRemoved", "session/workingDirectorySet", "session/workingDirectoryRemoved"),
    *("session/workingDirectoryReplaced", "automation/createRequested", "automation/removed", "automation/set"),
    *("automation/updateRequested", "automationRun/cancelRequested", "automationRun/lifecycleChanged"),
    *("automationRun/primarySessionChanged", "automationRun/sessionRemoved", "automationRun/sessionSet"),
    *("chat/turnResume", "canvas/stateChanged", "chat/backgroundWorkRemoved", "chat/backgroundWorkSet"),
    *("chat/canvasesChanged", "chat/changesetsChanged", "chat/isArchivedChanged", "chat/isReadChanged"),
    *("chat/movableChanged", "session/chatsReordered", "session/mcpServerBackgroundRequested"),
)

ALL = sorted({*(kind for kind in ACTIONS if kind not in OUR_ACTIONS), *NEWER})


def logged(action_type: str, **members: object) -> bytes:
    return encode({"channel": "ahp-chat:/c", "action": {"type": action_type, **members}, "serverSeq": 1})


@pytest.mark.parametrize("generation", list(KNOWN))
def test_each_generation_knows_its_actions(generation: Generation) -> None:
    known = [kind for kind in ALL if knows_action(generation, kind)]
    dispatchable = [kind for kind in ALL if may_dispatch(generation, kind)]
    assert (len(known), len(dispatchable)) == KNOWN[generation]


def test_an_action_of_the_registry_needs_no_row_here() -> None:
    """So that a new action is in four files: its shape, its row in the registry, its reducer, its policy."""
    newest = {spec.type: spec.client_dispatchable for spec in CANONICAL.values() if spec.type not in OUR_ACTIONS}
    assert {kind: may_dispatch(NEWEST, kind) for kind in newest if knows_action(NEWEST, kind)} == newest


def test_our_canvas_actions_are_for_who_asks_for_them() -> None:
    assert not may_dispatch(V.V1_0, "session/canvasRequestCompleted")
    assert may_dispatch(V.V1_0, "session/canvasRequestCompleted", ours=True)
    assert not may_dispatch(V.V1_0, "session/canvasRegistryChanged", ours=True)
    assert set(routes("session/canvasRegistryChanged", b"")[1:]) == {Stream.OMIT}
    assert set(routes("session/canvasRegistryChanged", b"", ours=True)) == {Stream.N}


@pytest.mark.parametrize("action_type", sorted(IDENTICAL))
@requirement("gen:project-action:input-identical")
def test_what_is_the_same_in_all_versions_is_the_logged_bytes(action_type: str) -> None:
    data = logged(action_type, part={"kind": "error"}, status="recomputing", toolInput={"uri": "x"})
    assert set(routes(action_type, data)) == {Stream.N}
    assert payload(data, Stream.N) is data


def test_all_that_streams_is_the_same_in_all_versions() -> None:
    streaming = {"chat/delta", "chat/reasoning", "chat/usage", "chat/toolCallContentChanged", "terminal/data"}
    assert streaming <= IDENTICAL


@pytest.mark.parametrize(
    ("action_type", "members", "expected"),
    [
        ("chat/turnStarted", {"message": {"text": "hi", "origin": {"kind": "user"}}}, "NNNNNNNNN"),
        ("chat/turnStarted", {"message": {"attachments": [{"type": "chat"}]}}, "LLLLLNNNN"),
        ("chat/turnStarted", {"message": {"origin": {"kind": "automation"}}}, "LLLLLLLNN"),
        ("chat/responsePart", {"part": {"kind": "markdown", "content": "x"}}, "NNNNNNNNN"),
        ("chat/toolCallDelta", {"content": "x"}, "NNNNNNNNN"),
        ("chat/toolCallDelta", {}, "LLLLLNNNN"),
        ("chat/toolCallReady", {"toolInput": "x"}, "NNNNNNNNN"),
        ("chat/toolCallReady", {"toolInput": {"uri": "x"}}, "LLLLLNNNN"),
        ("chat/error", {}, "ZLLLLLLNN"),
        ("chat/turnResume", {}, "!!!!!!!NN"),
        ("chat/draftChanged", {}, "-NNNNNNNN"),
        ("chat/toolCallAuthRequired", {}, "----NNNNN"),
        ("session/activeClientSet", {"activeClient": {}}, "-NNNNNNNN"),
        ("session/activeClientSet", {"_meta": {"ahpkit.dev/primary": True}, "customizations": []}, "ZLLLLLNNN"),
        ("session/customizationToggled", {}, "ZLLLLLNNN"),
        ("session/chatAdded", {"summary": {"title": "x"}}, "ZNNNNNNNN"),
        ("session/chatAdded", {"summary": {"workingDirectories": []}}, "ZLLLLNNNN"),
        ("session/metaChanged", {"_meta": {}}, "NNNNNNNNN"),
        ("session/metaChanged", {"_meta": {"ahpkit.dev/selection": {}}}, "ZNNNNNNNN"),
        ("session/chatsReordered", {}, "--------N"),
        ("changeset/statusChanged", {"status": "ready"}, "NNNNNNNNN"),
        ("changeset/statusChanged", {"status": "recomputing"}, "LLLLLLLLN"),
        ("changeset/filesReviewChanged", {}, "---LNNNNN"),
        ("annotations/updated", {"resolved": True}, "NNNNNNNNN"),
        ("root/agentsChanged", {}, "ZLLLLLNNN"),
        ("x-somebody/else", {}, "---------"),
    ],
)
@requirement("gen:project-action:new-ten")
@requirement("gen:negotiation:known-actions-only")
@requirement("gen:project:one-envelope")
def test_each_generation_has_its_stream(action_type: str, members: dict[str, object], expected: str) -> None:
    letters = {Stream.OMIT: "-", Stream.RESYNC: "!"}
    routed = routes(action_type, logged(action_type, **members))
    found = "".join(letters.get(stream, stream.name) for stream in routed)
    assert found[: len(expected)] == expected  # A later generation has rows of its own.


@pytest.mark.parametrize(
    ("version", "generation"),
    [
        ("0.4.7", V.V0_4),
        ("0.5.0", V.V0_5_0),
        ("0.5.1", V.V0_5_1),
        ("0.5.9", V.V0_5_2),
        ("1.0.7", V.V1_0),
        ("1.99.0", NEWEST),
        ("2.0.0", None),
    ],
)
def test_a_version_belongs_to_a_generation(version: str, generation: Generation | None) -> None:
    assert generation_of(Version.parse(version)) == generation
