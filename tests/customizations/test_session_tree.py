from typing import Any

from ahpkit.customizations.session_tree import changes, decided, is_ours, keeping_runtime
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.customizations import stable_id
from ahpkit.protocol.session.enablement import DECIDED
from support import requirement

ID = stable_id("plugin", "a")


def plugin(kind: str = "loaded", *children: JsonObject) -> JsonObject:
    return {"type": "plugin", "id": ID, "enabled": True, "load": {"kind": kind}, "children": list(children)}


SERVER: JsonObject = {"type": "mcpServer", "id": "s", "name": "s", "enabled": True, "state": {"kind": "stopped"}}


def test_what_is_as_wanted_needs_no_action() -> None:
    assert list(changes([plugin()], [plugin()])) == []


def test_a_difference_sends_the_whole_container() -> None:
    assert list(changes([plugin("degraded")], [plugin()])) == [
        {"type": "session/customizationUpdated", "customization": plugin("degraded")}
    ]


def test_what_is_not_wanted_any_more_goes_but_entries_of_others_stay() -> None:
    foreign = {"type": "plugin", "id": "agent-commands"}
    client = {"type": "plugin", "id": "x", "clientId": "c"}
    assert list(changes([], [plugin(), foreign, client])) == [
        {"type": "session/customizationRemoved", "id": ID},
        {"type": "session/customizationRemoved", "id": "x"},
    ]
    assert not is_ours(foreign)


@requirement("customizations:load:runtime-failure")
def test_the_way_out_of_an_error_is_a_new_load() -> None:
    actions: list[Any] = list(changes([plugin()], [plugin("error")]))
    kinds = [action["customization"]["load"]["kind"] for action in actions]
    assert kinds == ["loading", "loaded"]


@requirement("enablement:compat:additive")
def test_decisions_reach_containers_and_children_and_nothing_else() -> None:
    child: JsonObject = {"type": "skill", "id": "c", "name": "c"}
    other: JsonObject = {"type": "skill", "id": "d", "name": "d"}
    made: JsonObject = {ID: {"kind": "session", "enabled": False}, "c": {"kind": "session", "enabled": True}}
    shown = decided(plugin("loaded", child, other), lambda entry, _: [made[entry["id"]]] if entry["id"] in made else [])
    assert shown["enablement"] == [{"kind": "session", "enabled": False}]
    assert shown["children"] == [{**child, "enabled": True}, other]


def test_what_is_declared_as_off_says_that_nobody_in_this_session_did_it() -> None:
    shown = decided({**SERVER, "enabled": False, "_meta": {"other": 1}})
    note = {"kind": "session", "effective": False, "reason": "off by configuration"}
    assert shown["enablement"] == [{"kind": "session", "enabled": False}]
    assert shown["_meta"] == {"other": 1, DECIDED: note}


@requirement("customizations:load:crash-degrades")
def test_a_server_that_ended_and_is_started_again_degrades_its_container() -> None:
    before = plugin("loaded", {**SERVER, "state": {"kind": "starting"}})
    crashed = keeping_runtime(plugin("loaded", SERVER), before, lambda id: True, {SERVER["id"]})
    assert crashed["load"]["kind"] == "degraded"
    assert crashed["load"]["message"].endswith("it ended, and is started again")
    assert keeping_runtime(plugin("loaded", SERVER), before, lambda id: True)["load"] == {"kind": "loaded"}


def test_a_running_server_keeps_running_when_its_declaration_is_the_same() -> None:
    running = {**SERVER, "state": {"kind": "ready"}, "channel": "mcp://s", "name": "old"}
    before = plugin("loaded", running)
    kept = keeping_runtime(plugin("loaded", SERVER), before, lambda id: True)["children"][0]
    assert kept == {**SERVER, "state": {"kind": "ready"}, "channel": "mcp://s"}
    assert keeping_runtime(plugin("loaded", SERVER), before, lambda id: False)["children"][0] == SERVER
