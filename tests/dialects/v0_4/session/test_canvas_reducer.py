"""The session reducer's canvas arms: registry, open instances, requests in flight."""

from typing import Any

import pytest

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from ahpkit.dialects.v0_4.session.reducer import session_reducer
from support import requirement

BARE: JsonObject = {"summary": {}, "lifecycle": "ready", "chats": []}


def instance(name: str, **more: Any) -> JsonObject:
    return {"instanceId": name, "canvasId": "board", "extensionId": "ext", "availability": "ready", **more}


def request(name: str, target: str, **more: Any) -> JsonObject:
    return {"requestId": name, "kind": "open", "instanceId": target, "target": {"kind": "server"}, **more}


def act(kind: str, **more: Any) -> JsonObject:
    return {"type": f"session/canvas{kind}", **more}


def fold(state: JsonObject, *actions: JsonObject) -> JsonObject:
    for action in actions:
        state = session_reducer(state, action, now=1)
    return state


FULL: JsonObject = {
    **BARE,
    "canvasRegistry": [{"extensionId": "ext", "canvasId": "board"}],
    "openCanvases": [instance("a", title="A", status="s", url="u", renderer={"clientId": "c"}), instance("b")],
    "canvasRequests": [request("1", "a"), request("2", "b"), request("3", "a")],
}


@requirement("canvas:reducer:registry-replaced")
@pytest.mark.parametrize("state", [BARE, FULL])
@pytest.mark.parametrize("canvases", [[], [{"extensionId": "new", "canvasId": "chart"}]])
def test_the_registry_is_replaced_whatever_was_there(state: JsonObject, canvases: list[JsonObject]) -> None:
    assert fold(state, act("RegistryChanged", canvases=canvases)) == {**state, "canvasRegistry": canvases}


@requirement("canvas:reducer:opened-appends", "canvas:compat:fields-optional")
def test_a_new_instance_is_appended_creating_the_list() -> None:
    state = fold(BARE, act("InstanceOpened", instance=instance("a")), act("InstanceOpened", instance=instance("b")))
    assert state == {**BARE, "openCanvases": [instance("a"), instance("b")]}


@requirement("canvas:reducer:opened-replaces")
def test_a_known_instance_is_replaced_completely_and_in_place() -> None:
    opened = act("InstanceOpened", instance=instance("a", status="again"))
    state = fold(FULL, opened, opened)
    assert state["openCanvases"] == [instance("a", status="again"), instance("b")]


@requirement("canvas:reducer:updated-only-four-keys")
def test_a_patch_writes_its_four_keys_and_no_other() -> None:
    changes = {"title": "T", "status": "S", "url": "U", "availability": "stale"}
    other = {"instanceId": "z", "canvasId": "z", "extensionId": "z", "renderer": {"clientId": "z"}, "input": 1, "x": 1}
    state = fold(FULL, act("InstanceUpdated", instanceId="a", changes={**changes, **other}))
    assert state["openCanvases"] == [{**FULL["openCanvases"][0], **changes}, instance("b")]


@requirement("canvas:reducer:updated-null-clears")
@pytest.mark.parametrize("key", ["title", "status", "url"])
def test_null_in_a_patch_removes_the_key_and_absent_keeps_it(key: str) -> None:
    state = fold(FULL, act("InstanceUpdated", instanceId="a", changes={key: None}))
    expected = {name: value for name, value in FULL["openCanvases"][0].items() if name != key}
    assert state["openCanvases"][0] == expected


@requirement("canvas:reducer:updated-unknown-noop")
@pytest.mark.parametrize("state", [BARE, FULL])
def test_a_patch_of_an_instance_that_is_not_open_returns_the_same_state(state: JsonObject) -> None:
    assert fold(state, act("InstanceUpdated", instanceId="z", changes={"title": "x"})) is state


def test_a_patch_without_known_keys_returns_the_same_state() -> None:
    assert fold(FULL, act("InstanceUpdated", instanceId="a", changes={})) is FULL


@requirement("canvas:reducer:closed-removes", "canvas:reducer:closed-cascades")
def test_closing_removes_the_instance_and_its_requests_and_no_others() -> None:
    state = fold(FULL, act("InstanceClosed", instanceId="a"))
    assert state == {**FULL, "openCanvases": [instance("b")], "canvasRequests": [request("2", "b")]}


@pytest.mark.parametrize("state", [BARE, FULL])
def test_closing_an_unknown_instance_returns_the_same_state(state: JsonObject) -> None:
    assert fold(state, act("InstanceClosed", instanceId="z")) is state


@requirement("canvas:reducer:request-created-upserts")
def test_a_request_is_appended_once_and_a_repeated_one_replaced_in_place() -> None:
    state = fold(BARE, *(act("RequestCreated", request=request(name, "a")) for name in ("1", "2", "1")))
    assert state["canvasRequests"] == [request("1", "a"), request("2", "a")]
    again = fold(state, act("RequestCreated", request=request("1", "a", deadlineMs=5)))
    assert again["canvasRequests"] == [request("1", "a", deadlineMs=5), request("2", "a")]


@requirement("canvas:reducer:request-completed-removes")
@pytest.mark.parametrize(
    "outcome",
    [{"result": {"kind": "open", "title": "New"}}, {"error": {"code": "x", "message": "y"}}],
    ids=["result", "error"],
)
def test_a_completed_request_is_gone_and_nothing_else_changes(outcome: JsonObject) -> None:
    state = fold(FULL, act("RequestCompleted", requestId="1", **outcome))
    assert state == {**FULL, "canvasRequests": [request("2", "b"), request("3", "a")]}


@requirement("canvas:reducer:request-cancelled-removes")
@pytest.mark.parametrize("reason", ["timeout", "providerDisconnected", "instanceClosed", "hostShutdown", "future"])
def test_a_cancelled_request_is_gone_for_any_reason(reason: str) -> None:
    state = fold(FULL, act("RequestCancelled", requestId="2", reason=reason))
    assert state == {**FULL, "canvasRequests": [request("1", "a"), request("3", "a")]}


@pytest.mark.parametrize("state", [BARE, FULL])
@pytest.mark.parametrize("kind", ["RequestCompleted", "RequestCancelled"])
def test_ending_an_unknown_request_returns_the_same_state(state: JsonObject, kind: str) -> None:
    assert fold(state, act(kind, requestId="9")) is state


@requirement("canvas:reducer:close-requested-noop")
@pytest.mark.parametrize("state", [BARE, FULL])
def test_asking_for_a_close_returns_the_same_state(state: JsonObject) -> None:
    assert fold(state, act("InstanceCloseRequested", instanceId="a")) is state


@requirement("canvas:state:open-changed-by-three-actions")
def test_only_three_actions_touch_the_open_canvases() -> None:
    actions: dict[str, JsonObject] = {
        "session/canvasInstanceOpened": {"instance": instance("new")},
        "session/canvasInstanceUpdated": {"changes": {"title": "x"}},
    }
    touching: set[str] = set()
    for kind in (kind for kind in ACTIONS if kind.startswith("session/")):
        fields: JsonObject = {
            "instanceId": "a",
            "requestId": "1",
            "canvases": [],
            "request": request("9", "a"),
            "id": "a",
        }
        after = session_reducer(FULL, {"type": kind, **fields, **actions.get(kind, {})}, now=1)
        if after.get("openCanvases") is not FULL["openCanvases"]:
            touching.add(kind.removeprefix("session/canvasInstance"))
    assert touching == {"Opened", "Updated", "Closed"}


@requirement("canvas:compat:unknown-actions-ignored")
def test_an_action_nobody_knows_is_passed_over_and_the_next_one_applies() -> None:
    unknown = act("FutureThing", instanceId="a")
    assert fold(FULL, unknown) is FULL
    assert fold(FULL, unknown, {"type": "session/ready"})["lifecycle"] == "ready"
