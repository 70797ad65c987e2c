"""Decisions by scope: whose they are, how long they hold, what a new session begins with."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.customizations.enablement_decisions import Decisions, key_of
from ahpkit.host.spine.durable_values import DurableValues
from ahpkit.protocol.session.enablement import decided_note, effective
from customizations.builders import Files, skill, write
from customizations.desk import Desk, Publisher
from support import requirement
from support.flow import begun
from support.raw_client import Json, RawClient

W = "file:///w"
ENTRY: Json = {"type": "plugin", "id": "p1", "uri": "file:///p", "name": "p"}
OFF: Json = {"kind": "session", "enabled": False}
FILES: Files = {".plugin/plugin.json": {"name": "tools"}, "skills/one/SKILL.md": skill("one")}


def made(*, remember: bool = True) -> tuple[Decisions, DurableValues]:
    values = DurableValues(lambda key, data: None)
    return Decisions(values, remember=remember, now=lambda: 0), values


def shown(decisions: Decisions, session: str, entry: Json = ENTRY, directory: str = W) -> list[Any]:
    decisions.begin(session, directory)
    return [(one["kind"], one["enabled"]) for one in decisions.here(session, directory).of(entry, None)]


# -- what is kept --------------------------------------------------------------------------------------------------


def test_a_plain_switch_is_what_the_next_session_in_the_directory_begins_with() -> None:
    decisions, _ = made()
    decisions.decide("s1", W, key_of(ENTRY, None), [OFF], switch=True)
    assert shown(decisions, "s2") == [("session", False)]
    assert shown(decisions, "s3", directory="file:///other") == []
    [taken] = decisions.here("s2", W).of(ENTRY, None)
    assert taken["since"] == "1970-01-01T00:00:00.000Z"
    assert taken["taken"]


def test_sessions_that_live_do_not_change_each_other_by_switches() -> None:
    decisions, _ = made()
    decisions.decide("s1", W, key_of(ENTRY, None), [OFF], switch=True)
    shown(decisions, "s2")
    decisions.decide("s1", W, key_of(ENTRY, None), [{**OFF, "enabled": True}], switch=True)
    assert shown(decisions, "s2") == [("session", False)]
    assert shown(decisions, "s3") == [("session", True)]


def test_what_a_session_took_over_is_forgotten_when_it_is_decided_anew() -> None:
    decisions, _ = made()
    key = key_of(ENTRY, None)
    decisions.decide("s1", W, key, [OFF], switch=True)
    shown(decisions, "s2")
    decisions.decide("s2", W, key, [], switch=False)
    assert shown(decisions, "s2") == []
    assert shown(decisions, "s3") == []


@pytest.mark.parametrize(
    "wider", [{"kind": "global", "enabled": False}, {"kind": "workspace", "uri": W, "enabled": False}]
)
def test_a_switch_is_forgotten_once_a_wider_decision_is_made(wider: Json) -> None:
    """A server that was switched on, and then off everywhere, ran in the next session."""
    decisions, _ = made()
    key = key_of(ENTRY, None)
    decisions.decide("s1", W, key, [{**OFF, "enabled": True}], switch=True)
    decisions.decide("s1", W, key, [OFF], switch=False)
    assert shown(decisions, "s2") == [("session", True)], "what is for one session alone is not remembered"
    decisions.decide("s1", W, key, [wider], switch=False)
    assert shown(decisions, "s3") == [(wider["kind"], False)]


def test_without_remembering_every_session_begins_anew() -> None:
    decisions, _ = made(remember=False)
    decisions.decide("s1", W, key_of(ENTRY, None), [OFF], switch=True)
    assert shown(decisions, "s1") == [("session", False)]
    assert shown(decisions, "s2") == []


def test_a_disposed_session_leaves_nothing_but_what_the_next_one_begins_with() -> None:
    decisions, values = made()
    decisions.decide("s1", W, key_of(ENTRY, None), [OFF], switch=True)
    decisions.forget_session("s1")
    assert [key for key, _ in values.items("customizations/")] == ["customizations/decided/defaults/file:///w"]


def test_switches_of_an_earlier_version_are_taken_over() -> None:
    decisions, values = made()
    values.set("customizations/session/s1", {"p1": False, "unknown": True})
    values.set("customizations/workspace/file:///w", {"p1": False})
    decisions.convert("s1", W, {"p1": key_of(ENTRY, None)})
    assert shown(decisions, "s1") == [("session", False)]
    assert shown(decisions, "s2") == [("session", False)]
    assert values.get("customizations/session/s1") == {"unknown": True}


# -- on a host -----------------------------------------------------------------------------------------------------


async def client_of(desk: Desk, name: str, version: str = "1.0.0") -> RawClient:
    return await desk.bench.client("ahp-root://", client_id=name, offer=[version])


async def new_session(desk: Desk, client: RawClient, uri: str | None = None) -> str:
    directories = [desk.workspace.as_uri()]
    if uri is None:
        return (await desk.bench.session(client, workingDirectories=directories))[0]
    await client.ask("createSession", uri, workingDirectories=directories)
    await begun(client, uri)
    return uri


async def tools(desk: Desk, client: RawClient, session: str) -> Json:
    return (await desk.containers(client, session))["tools"]


def toggle(id: str, *decisions: Json) -> Json:
    return {"type": "session/customizationToggled", "id": id, "enablement": list(decisions)}


def scoped(kind: str, enabled: bool, **fields: Any) -> Json:
    return {"kind": kind, "enabled": enabled, **fields}


@pytest.fixture
async def plugged(desk: Desk) -> Desk:
    """A host with a plugin for every session."""
    write(desk.home.parent / "tools", FILES)
    await desk.start(plugins=[desk.home.parent / "tools"])
    return desk


@requirement("gen:enablement:sorted", "gen:enablement:workspace-primary")
async def test_decisions_are_published_in_order_and_one_for_each_scope(plugged: Desk) -> None:
    client = await client_of(plugged, "one")
    session = await new_session(plugged, client)
    workspace = scoped("workspace", False, uri=plugged.workspace.as_uri())
    entry = await tools(plugged, client, session)
    said = [scoped("global", False), workspace, scoped("session", False), scoped("session", True)]
    await client.accepted(session, toggle(entry["id"], *said))
    entry = await tools(plugged, client, session)
    assert entry["enablement"] == [scoped("session", True), workspace, scoped("global", False)]


@requirement("gen:enablement:workspace-primary")
async def test_a_decision_for_a_directory_holds_where_that_is_the_first_one(plugged: Desk) -> None:
    client = await client_of(plugged, "one")
    there = f"{plugged.workspace.as_uri()}/there"
    (plugged.workspace / "there").mkdir()
    session = await new_session(plugged, client)
    other = (await plugged.bench.session(client, workingDirectories=[there]))[0]
    entry = await tools(plugged, client, session)
    off = scoped("workspace", False, uri=there)
    await client.accepted(session, toggle(entry["id"], off))
    assert "enablement" not in await tools(plugged, client, session), "what is decided for another is not shown"
    await client.action(
        lambda said: said["channel"] == other and said["action"].get("customization", {}).get("enablement") == [off]
    )
    later = (await plugged.bench.session(client, workingDirectories=[there]))[0]
    assert (await tools(plugged, client, later))["enablement"] == [off]


@requirement("gen:enablement:durable-key")
async def test_a_decision_for_everything_holds_in_sessions_that_live_and_in_later_ones(plugged: Desk) -> None:
    client = await client_of(plugged, "one")
    first, second = await new_session(plugged, client), await new_session(plugged, client)
    entry = await tools(plugged, client, first)
    await client.accepted(first, toggle(entry["id"], scoped("global", False)))
    await client.action(
        lambda said: (
            said["channel"] == second
            and said["action"].get("customization", {}).get("enablement") == [scoped("global", False)]
        )
    )
    third = await new_session(plugged, client)
    later = await tools(plugged, client, third)
    assert later["enablement"] == [scoped("global", False)]
    found = effective([later], later["id"])
    assert found is not None
    assert not found.enabled
    assert found.why.startswith("off everywhere since ")
    await client.accepted(third, toggle(later["id"]))
    fourth = await new_session(plugged, client)
    assert "enablement" not in await tools(plugged, client, fourth)


@requirement("gen:enablement:durable-key")
@pytest.mark.parametrize("container", [None, ENTRY])
def test_the_same_server_under_another_id_is_still_switched_off(container: Json | None) -> None:
    decisions, _ = made()
    server: Json = {"type": "mcpServer", "id": "m1", "name": "time"}
    decisions.decide("s1", W, key_of(server, container), [scoped("global", False)], switch=False)
    inside = container and {**container, "id": "p2"}
    for name, enabled in (("time", [False]), ("other", [])):
        found = decisions.here("s2", W).of({**server, "id": "m2", "name": name}, inside)
        assert [one["enabled"] for one in found] == enabled


@requirement("gen:enablement:durable-key")
async def test_the_same_plugin_under_another_id_is_still_switched_off(desk: Desk) -> None:
    await desk.start()
    client = await client_of(desk, "one")
    for id, expected in (("first-id", None), ("second-id", [scoped("global", False)])):
        session = await new_session(desk, client)
        plugin = {"type": "plugin", "id": id, "uri": "virtual://one/plugin", "name": "P"}
        active = {"clientId": "one", "tools": [], "customizations": [plugin]}
        await client.accepted(session, {"type": "session/activeClientSet", "activeClient": active})
        entry = next(one for one in (await desk.containers(client, session)).values() if one["id"] == id)
        assert entry.get("enablement") == expected
        await client.accepted(session, toggle(id, scoped("global", False)))


@requirement("gen:enablement:session-scope-ends")
async def test_a_decision_for_a_session_ends_with_it_also_when_its_uri_is_used_again(plugged: Desk) -> None:
    client = await client_of(plugged, "one")
    session = await new_session(plugged, client, "ahp-session:/again")
    entry = await tools(plugged, client, session)
    await client.accepted(session, toggle(entry["id"], scoped("session", False)))
    other = await new_session(plugged, client)
    assert "enablement" not in await tools(plugged, client, other)
    await client.ask("disposeSession", session)
    await client.aclose()
    client = await client_of(plugged, "two")
    again = await new_session(plugged, client, "ahp-session:/again")
    assert "enablement" not in await tools(plugged, client, again)


async def test_a_decision_for_a_directory_holds_there_only(plugged: Desk) -> None:
    client = await client_of(plugged, "one")
    session = await new_session(plugged, client)
    entry = await tools(plugged, client, session)
    workspace = scoped("workspace", False, uri=plugged.workspace.as_uri())
    await client.accepted(session, toggle(entry["id"], workspace))
    assert (await tools(plugged, client, await new_session(plugged, client)))["enablement"] == [workspace]
    other = plugged.workspace.parent / "other"
    other.mkdir()
    elsewhere, _ = await plugged.bench.session(client, workingDirectories=[other.as_uri()])
    assert "enablement" not in await tools(plugged, client, elsewhere)


@requirement("gen:enablement:client-global", "gen:enablement:child-enablement")
async def test_a_publisher_decides_for_its_plugin_everywhere_and_for_what_it_bundles(desk: Desk) -> None:
    await desk.start(client_timeout=30.0)
    files = {
        ".plugin/plugin.json": '{"name": "mine"}',
        ".mcp.json": '{"mcpServers": {"db": {"command": "db"}, "web": {"command": "web"}}}',
    }
    publisher = Publisher(await client_of(desk, "me"), files)
    client = publisher.client
    session = await new_session(desk, client)
    plugin = {
        "type": "plugin",
        "id": "mine",
        "uri": publisher.uri,
        "name": "mine",
        "enablement": [scoped("global", True)],
        "childEnablement": {"db": [scoped("global", False)]},
    }
    active = {"clientId": "me", "tools": [], "customizations": [plugin]}
    await client.accepted(session, {"type": "session/activeClientSet", "activeClient": active})
    read = await client.action(
        lambda said: said["action"].get("customization", {}).get("id") == "mine" and "children" in str(said)
    )
    entry = read["action"]["customization"]
    assert entry["enablement"] == [scoped("global", True)]
    decided = {child["name"].rpartition(":")[2]: child.get("enablement") for child in entry["children"]}
    assert decided == {"db": [scoped("global", False)], "web": None}
    await client.accepted(session, toggle("mine", scoped("session", False), scoped("global", False)))
    both = [scoped("session", False), scoped("global", True)]
    assert (await desk.containers(client, session))["mine"]["enablement"] == both, "everywhere is for its publisher"
    await publisher.aclose()


@requirement("enablement:switch:shown-and-undone")
async def test_how_an_earlier_session_was_left_is_shown_with_its_time_and_can_be_undone(plugged: Desk) -> None:
    old = await client_of(plugged, "old", "0.4.0")
    session, _ = await plugged.session(old)
    child = (await tools(plugged, old, session))["children"][0]
    await old.accepted(session, {"type": "session/customizationToggled", "id": child["id"], "enabled": False})
    client = await client_of(plugged, "new")
    later = await new_session(plugged, client)
    entry = await tools(plugged, client, later)
    found = effective([entry], child["id"])
    assert found is not None
    assert not found.enabled
    assert found.why.startswith("off here since 20")
    await client.accepted(later, toggle(child["id"]))
    assert (await tools(plugged, client, later))["children"][0].get("enabled") is not False
    last = await tools(plugged, client, await new_session(plugged, client))
    assert last["children"][0].get("enabled") is not False


@requirement("gen:enablement:sdk-one-answer")
def test_one_function_tells_whether_something_is_on_and_why() -> None:
    since = {"_meta": {"ahpkit/enablement": decided_note("workspace", False, "2026-11-15T12:00:00.000Z")}}
    child: Json = {"type": "skill", "id": "skill", "uri": "x:s", "name": "s"}
    server: Json = {"type": "mcpServer", "id": "server", "name": "db", "state": {"kind": "stopped"}}
    plugin: Json = {**ENTRY, "children": [{**child, "enabled": False}, server]}
    folder: Json = {"type": "directory", "id": "folder", "uri": "x:f", "name": "f", "enabled": False}
    cases: list[tuple[list[Json], str, bool, str]] = [
        ([plugin], "p1", True, "on: nobody switched it off"),
        ([plugin], "skill", False, "switched off"),
        ([plugin], "server", True, "on: nobody switched it off"),
        ([folder], "folder", False, "switched off"),
        ([{**plugin, "enablement": [scoped("session", False)]}], "server", False, "p is switched off in this session"),
        ([{**plugin, "enablement": [scoped("global", True)]}], "p1", True, "switched on everywhere"),
        (
            [{**server, "enablement": [scoped("workspace", False)], **since}],
            "server",
            False,
            "off here since 2026-11-15 12:00",
        ),
    ]
    for source, id, enabled, why in cases:
        found = effective(source, id)
        assert found is not None
        assert (found.enabled, found.why) == (enabled, why)


@requirement("enablement:config:listed-as-off", "enablement:surface:disabled-child-listed")
@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
async def test_what_the_configuration_switches_off_is_listed_as_off_and_can_be_switched_on(
    desk: Desk, version: str
) -> None:
    plugin = write(desk.home.parent / "tools", {"skills/a/SKILL.md": skill("a"), "skills/b/SKILL.md": skill("b")})
    desk.files({".claude/commands/c.md": "Do c.", ".claude/commands/d.md": "Do d."})
    desk.files({".github/agents/e.md": "You are E.", ".github/agents/f.md": "You are F."})
    user = await desk.start(plugins=[plugin], off=["tools", "c", "e"])
    client = await desk.bench.connect("me")
    await client.initialize(protocolVersions=[version])
    session, chat = await desk.session(client)
    tools = await desk.read(client, session, "tools")
    commands = await desk.read(client, session, ".claude/commands")
    assert {child["name"]: child.get("enabled", True) for child in commands["children"]} == {"c": False, "d": True}
    agents = await desk.read(client, session, ".github/agents")
    assert {child["name"]: child.get("enabled", True) for child in agents["children"]} == {"e": False, "f": True}
    off = (tools, commands["children"][0], agents["children"][0])
    noted = [one["_meta"]["ahpkit/enablement"] for one in off]
    expected = {"kind": "global", "effective": False, "reason": "off by configuration"}
    assert noted == [expected, expected, expected]
    assert (tools.get("enabled"), tools.get("enablement")) == (
        (False, None) if version == "0.4.0" else (None, [{"kind": "global", "enabled": False}])
    )
    await user.ask("subscribe", chat)
    turn = await desk.turn(user, chat, "go")
    assert [offer.name for offer in turn.context.skills] == ["d"]
    assert [offer.name for offer in turn.context.agents] == ["f"]
    on = {"enabled": True} if version == "0.4.0" else {"enablement": [{"kind": "session", "enabled": True}]}
    for one in off:
        await client.accepted(session, {"type": "session/customizationToggled", "id": one["id"], **on})
    turn = await desk.turn(user, chat, "again")
    assert sorted(offer.name for offer in turn.context.skills) == ["c", "d", "tools:a", "tools:b"]
    assert [offer.name for offer in turn.context.agents] == ["e", "f"]
