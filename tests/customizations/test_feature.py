import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.details import Parsed
from ahpkit.customizations.discovery import Library, Location
from ahpkit.customizations.session_tree import SessionTree
from ahpkit.host.agent import Turn
from customizations.builders import skill, text, write
from customizations.desk import Desk, seen, updates
from support import requirement
from support.bench import ScriptedAgent, say
from support.flow import begun
from support.raw_client import Json
from support.waiting import until


def plugin(root: Path, name: str = "tools") -> Path:
    files = {".plugin/plugin.json": {"name": name}, "skills/ship/SKILL.md": skill("ship"), "agents/a.md": text()}
    return write(root, files)


# --- loading --------------------------------------------------------------------------------------------------


@requirement("customizations:sources:resolved-on-session-create")
@requirement("customizations:load:starts-loading")
@requirement("customizations:update:list-replaced-when-set-changes")
async def test_a_new_session_shows_its_containers_loading_and_then_with_children(desk: Desk, tmp_path: Path) -> None:
    root = plugin(tmp_path / "tools")
    desk.files({".github/skills/near/SKILL.md": skill("near"), "AGENTS.md": "Be kind."})
    client = await desk.start(plugins=[root])
    watching = await desk.bench.client()
    await client.ask("createSession", "ahp-session:/x", workingDirectory=desk.workspace.as_uri())
    await begun(watching, "ahp-session:/x")
    containers = await desk.containers(client, "ahp-session:/x")
    assert [child["name"] for child in containers["tools"]["children"]] == ["tools:a", "tools:ship"]
    assert [child["name"] for child in containers[".github/skills"]["children"]] == ["near"]
    assert containers["Instructions"]["load"] == {"kind": "loaded"}
    log = await desk.bench.host.spine.log.read(0)
    kinds = [entry.payload for entry in log if b"session/customization" in entry.payload]
    assert kinds[0].count(b'"kind":"loading"') >= 3
    assert b"customizationsChanged" in kinds[0]
    assert b'"children"' not in kinds[0]
    assert all(b"customizationUpdated" in payload for payload in kinds[1:])


async def test_a_broken_container_says_so_and_the_session_starts(desk: Desk, tmp_path: Path) -> None:
    broken = write(tmp_path / "broken", {".plugin/plugin.json": "{"})
    desk.files({".cursor/rules/a.mdc": "---\nname: a\nx: *\n---\n"})
    client = await desk.start(plugins=[broken, tmp_path / "missing"])
    session, _ = await desk.session(client)
    containers = await desk.containers(client, session)
    assert containers["broken"]["load"]["kind"] == "error"
    assert "children" not in containers["broken"]
    assert containers["missing"]["load"] == {"kind": "error", "message": "there is no such folder"}
    assert containers[".cursor/rules"]["load"]["kind"] == "degraded"


@requirement("customizations:tree:host-owns-directories")
async def test_the_users_own_customizations_are_shown_too(desk: Desk) -> None:
    write(desk.home, {".claude/skills/mine/SKILL.md": skill("mine")})
    client = await desk.start()
    session, _ = await desk.session(client)
    assert (await desk.containers(client, session))["~/.claude/skills"]["children"][0]["name"] == "mine"


@requirement("customizations:sources:declared-on-agent-info", "customizations:sources:resolved-on-session-create")
@requirement("session:state:top-level-customizations")
async def test_configured_plugins_stand_on_every_agent_before_any_session(desk: Desk, tmp_path: Path) -> None:
    root = plugin(tmp_path / "tools")
    second = ScriptedAgent()
    second.provider = "second"
    desk.bench.agents = [second]
    client = await desk.start(plugins=[root])
    agents = (await desk.bench.state(client, "ahp-root://"))["agents"]
    declared = [{"type": "plugin", "uri": root.as_uri(), "name": "tools", "enabled": True}]
    assert [agent["provider"] for agent in agents] == ["scripted", "second"]
    for agent in agents:
        assert [{key: entry[key] for key in declared[0]} for entry in agent["customizations"]] == declared
    desk.bench.agent.models = [*desk.bench.agent.models[:1]]
    desk.bench.agent.changed()
    changed = await client.action(
        lambda envelope: (
            envelope["action"]["type"] == "root/agentsChanged" and "customizations" in envelope["action"]["agents"][0]
        )
    )
    assert len(changed["action"]["agents"][0]["models"]) == 1
    for agent in agents:
        session, _ = await desk.session(client, provider=agent["provider"])
        entry = await desk.read(client, session, "tools")
        assert entry["id"] == agent["customizations"][0]["id"]
        assert [child["name"] for child in entry["children"]] == ["tools:a", "tools:ship"]


# --- watching -------------------------------------------------------------------------------------------------


@requirement("customizations:save:child-surfaces")
@requirement("customizations:save:host-watches-directory")
@requirement("customizations:update:child-change-sends-container")
@requirement("session:customization:directory-discovery")
async def test_a_new_file_appears_with_its_whole_container(desk: Desk) -> None:
    desk.files({".claude/commands/one.md": "1"})
    client = await desk.start()
    session, _ = await desk.session(client)
    before = await desk.read(client, session, ".claude/commands")
    desk.files({".claude/commands/two.md": text(description="Two.")})
    container = await seen(client, lambda entry: len(entry.get("children", ())) == 2)
    assert [child["name"] for child in container["children"]] == ["one", "two"]
    assert (container["id"], container["children"][0]) == (before["id"], before["children"][0])


@requirement("customizations:save:write-into-writable-directory")
@requirement("customizations:save:no-save-action")
@requirement("session:customization:directory-write")
async def test_saving_is_writing_into_a_writable_directory_that_need_not_exist(desk: Desk) -> None:
    client = await desk.start()
    session, _ = await desk.session(client)
    directory = (await desk.containers(client, session))[".github/prompts"]
    assert (directory["writable"], directory["children"]) == (True, [])
    hooks = (await desk.containers(client, session))[".github/hooks"]
    assert hooks["writable"] is False
    refused = await client.refused("resourceWrite", uri=f"{hooks['uri']}/a.json", data="{}", encoding="utf-8")
    assert "its commands run during turns" in refused["message"]
    uri = f"{directory['uri']}/plan.prompt.md"
    await client.ask("resourceMkdir", uri=directory["uri"])
    await client.ask("resourceWrite", uri=uri, data=text("Plan it.", description="Plans."), encoding="utf-8")
    container = await seen(client, lambda entry: entry["id"] == directory["id"] and bool(entry.get("children")))
    assert container["children"][0] == {
        "type": "prompt",
        "id": container["children"][0]["id"],
        "uri": uri,
        "name": "plan",
        "description": "Plans.",
    }


async def test_what_would_run_cannot_be_written_by_clients_and_the_rest_of_the_workspace_can(desk: Desk) -> None:
    desk.files({"AGENTS.md": "x", ".claude/settings.json": HOOKS, ".mcp.json": {"s": {"command": "x"}}})
    client = await desk.start()
    await desk.session(client)

    async def write_file(path: str) -> bool:
        uri = f"{desk.workspace.as_uri()}/{path}"
        answer = await client.call("resourceWrite", uri=uri, data="{}", encoding="utf-8")
        return "error" not in answer

    assert await write_file("AGENTS.md")
    assert await write_file(".claude/new.md")
    assert await write_file("app.py")
    assert not await write_file(".claude/settings.json")
    desk.files({".github/hooks/.keep": ""})
    assert not await write_file(".github/hooks/evil.json")


async def test_a_second_session_of_a_workspace_reads_nothing_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.files({".claude/commands/a.md": "1"})
    client = await desk.start()
    await desk.session(client)
    reads: list[str] = []
    monkeypatch.setattr(Library, "read", lambda library, location: reads.append(location.name))  # type: ignore[misc]  # The test replaces a method.
    session, _ = await desk.session(client)
    assert reads == []
    assert (await desk.containers(client, session))[".claude/commands"]["children"][0]["name"] == "a"


async def test_places_that_hold_nothing_are_no_reason_to_make_the_list_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.files({".claude/commands/a.md": "1"})
    client = await desk.start()
    places: list[Parsed | None] = []
    lists: list[int] = []
    read, entries = Library.read, SessionTree.entries

    def counted_read(library: Library, location: Location) -> Parsed | None:
        places.append(read(library, location))
        return places[-1]

    def counted_entries(tree: SessionTree, state: Sequence[Json]) -> list[Json]:
        lists.append(len(places))
        return entries(tree, state)

    monkeypatch.setattr(Library, "read", counted_read)
    monkeypatch.setattr(SessionTree, "entries", counted_entries)
    await desk.session(client)
    held = [place for place in places if place is not None]
    assert held
    assert len(lists) < len(held) + 10 < len(places)


async def test_places_that_hold_nothing_are_read_in_few_steps(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session looks at more than a hundred places. A step of a worker for each took longer than its turn."""
    desk.files({".claude/commands/a.md": "1", ".claude/skills/b/SKILL.md": skill("b")})
    steps: list[object] = []
    places: list[str] = []
    read = Library.read

    class Counting(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            steps.append(fn)
            return super().submit(fn, *args, **kwargs)

    def counted_read(library: Library, location: Location) -> Parsed | None:
        places.append(location.name)
        return read(library, location)

    monkeypatch.setattr(Library, "read", counted_read)
    client = await desk.start()
    asyncio.get_running_loop().set_default_executor(Counting())
    session, _ = await desk.session(client)
    assert {".claude/commands", ".claude/skills"} <= (await desk.containers(client, session)).keys()
    assert len(steps) < len(places) / 3


async def test_a_directory_appears_when_it_is_created_and_goes_when_it_is_deleted(desk: Desk) -> None:
    client = await desk.start()
    await desk.session(client)
    desk.files({".claude/commands/go.md": "Go."})
    container = await seen(client, lambda entry: entry["name"] == ".claude/commands")
    shutil.rmtree(desk.workspace / ".claude")
    removed = await client.action("session/customizationRemoved")
    assert removed["action"]["id"] == container["id"]


async def test_only_the_changed_container_is_sent(desk: Desk) -> None:
    desk.files({".claude/commands/a.md": "1", ".claude/skills/b/SKILL.md": skill("b")})
    client = await desk.start()
    session, _ = await desk.session(client)
    before = len(updates(client, session))
    desk.files({".claude/commands/a.md": text(description="New.")})
    await seen(client, lambda entry: "New." in str(entry))
    assert [action["customization"]["name"] for action in updates(client, session)[before:]] == [".claude/commands"]


@requirement("customizations:load:degraded-recovers")
@requirement("customizations:load:runtime-warning")
@requirement("customizations:load:runtime-failure")
async def test_the_load_state_follows_the_files(desk: Desk, tmp_path: Path) -> None:
    root = plugin(tmp_path / "tools")
    client = await desk.start(plugins=[root])
    session, _ = await desk.session(client)
    id = (await desk.containers(client, session))["tools"]["id"]

    async def becomes(kind: str) -> None:
        await seen(client, lambda entry: entry["id"] == id and entry["load"]["kind"] == kind)

    write(root, {"agents/a.md": "---\ntools: *\n---\n"})
    await becomes("degraded")
    write(root, {".plugin/plugin.json": "{"})
    await becomes("error")
    write(root, {".plugin/plugin.json": '{"name": "tools"}', "agents/a.md": text(description="Fine.")})
    await seen(client, lambda entry: "Fine." in str(entry) and entry["load"]["kind"] == "loaded")
    kinds = [action["customization"]["load"]["kind"] for action in updates(client, session, id)]
    after = kinds[kinds.index("error") + 1]
    assert after in ("error", "loading"), "there is no way out of `error` but a new load"


# --- toggling -------------------------------------------------------------------------------------------------


def toggle(id: str, enabled: bool) -> Json:
    return {"type": "session/customizationToggled", "id": id, "enabled": enabled}


@requirement("customizations:toggle:any-client")
@requirement("customizations:toggle:echoed")
@requirement("customizations:actions:toggle-is-for-clients")
@requirement("enablement:toggle:host-accepts-child-id")
async def test_any_client_toggles_a_container_or_a_child_and_all_see_it(desk: Desk) -> None:
    desk.files({".claude/commands/a.md": "1", ".claude/commands/b.md": "2"})
    client = await desk.start()
    session, _ = await desk.session(client)
    other = await desk.bench.client(session)
    container = (await desk.containers(client, session))[".claude/commands"]
    await other.accepted(session, toggle(container["children"][0]["id"], False))
    await client.action("session/customizationToggled")
    await other.accepted(session, toggle(container["id"], False))
    after = (await desk.containers(client, session))[".claude/commands"]
    assert after["enabled"] is False
    assert [child.get("enabled") for child in after["children"]] == [False, None]


@requirement("enablement:toggle:child-by-id", "enablement:toggle:siblings-untouched")
@requirement("enablement:toggle:container-ids-as-before", "enablement:precedence:child-flag-kept")
async def test_a_switch_changes_the_entry_it_names_and_nothing_else(desk: Desk) -> None:
    desk.files({".claude/commands/a.md": "1", ".claude/commands/b.md": "2", ".claude/skills/s/SKILL.md": skill("s")})
    client = await desk.start()
    session, _ = await desk.session(client)
    other = await desk.bench.client(session)
    before = await desk.containers(client, session)
    container = before[".claude/commands"]
    first, second = container["children"]
    await other.accepted(session, toggle(first["id"], False))
    off = {**container, "children": [{**first, "enabled": False}, second]}
    assert await desk.containers(client, session) == {**before, ".claude/commands": off}
    await other.accepted(session, toggle(container["id"], False))
    assert await desk.containers(client, session) == {**before, ".claude/commands": {**off, "enabled": False}}
    await client.accepted(session, toggle(container["id"], True))
    assert await desk.containers(client, session) == {**before, ".claude/commands": off}


@requirement("customizations:actions:host-only")
@pytest.mark.parametrize(
    "action",
    [
        {"type": "session/customizationsChanged", "customizations": []},
        {"type": "session/customizationRemoved", "id": "x"},
        {
            "type": "session/customizationUpdated",
            "customization": {"type": "plugin", "id": "x", "uri": "x:y", "name": "x", "enabled": True},
        },
    ],
)
async def test_the_list_itself_is_the_hosts_alone(desk: Desk, action: Json) -> None:
    client = await desk.start()
    session, _ = await desk.session(client)
    before = await desk.containers(client, session)
    assert await client.rejected(session, action)
    assert await desk.containers(client, session) == before


@requirement("customizations:toggle:unknown-id-is-noop")
async def test_a_toggle_of_an_unknown_id_is_echoed_and_changes_nothing(desk: Desk) -> None:
    client = await desk.start()
    session, _ = await desk.session(client)
    before = await desk.containers(client, session)
    await client.accepted(session, toggle("nobody", False))
    assert await desk.containers(client, session) == before


@requirement("enablement:toggle:container-again")
async def test_a_child_that_is_switched_off_comes_with_its_container_for_reducers_that_know_only_containers(
    desk: Desk,
) -> None:
    desk.files({".claude/commands/a.md": "1", ".claude/commands/b.md": "2"})
    client = await desk.start()  # It speaks 0.4.
    session, _ = await desk.session(client)
    container = (await desk.containers(client, session))[".claude/commands"]
    await client.accepted(session, toggle(container["children"][0]["id"], False))
    again = await seen(client, lambda entry: any(child.get("enabled") is False for child in entry.get("children", ())))
    assert again["id"] == container["id"]
    assert [child.get("enabled", True) for child in again["children"]] == [False, True]
    assert again["enabled"] is True


@requirement("enablement:precedence:child-flag-kept")
async def test_a_toggle_survives_an_edit_of_the_file(desk: Desk) -> None:
    desk.files({".claude/commands/a.md": "1", ".claude/commands/b.md": "2"})
    client = await desk.start()
    session, _ = await desk.session(client)
    container = (await desk.containers(client, session))[".claude/commands"]
    await client.accepted(session, toggle(container["children"][0]["id"], False))
    await client.accepted(session, toggle(container["id"], False))
    desk.files({".claude/commands/a.md": text(description="Edited.")})
    edited = await seen(client, lambda entry: "Edited." in str(entry))
    assert edited["enabled"] is False
    assert [child.get("enabled") for child in edited["children"]] == [False, None]


async def test_a_toggle_survives_a_restart_and_greets_the_next_session(desk: Desk) -> None:
    desk.files({".claude/commands/a.md": "1"})
    client = await desk.start()
    session, _ = await desk.session(client)
    child = (await desk.containers(client, session))[".claude/commands"]["children"][0]
    await client.accepted(session, toggle(child["id"], False))
    await desk.stop()
    client = await desk.start()
    again = await desk.read(client, session, ".claude/commands")
    assert again["children"][0]["enabled"] is False
    fresh, _ = await desk.session(client)
    assert (await desk.containers(client, fresh))[".claude/commands"]["children"][0]["enabled"] is False


async def test_without_remembering_the_next_session_starts_clean(desk: Desk) -> None:
    desk.files({".claude/commands/a.md": "1"})
    client = await desk.start(remember_toggles=False)
    session, _ = await desk.session(client)
    container = (await desk.containers(client, session))[".claude/commands"]
    await client.accepted(session, toggle(container["id"], False))
    fresh, _ = await desk.session(client)
    assert (await desk.containers(client, fresh))[".claude/commands"]["enabled"] is True


# --- turns ----------------------------------------------------------------------------------------------------


async def test_an_agent_gets_what_is_in_force_and_nothing_else(desk: Desk, tmp_path: Path) -> None:
    root = plugin(tmp_path / "tools")
    desk.files(
        {
            "AGENTS.md": "Be kind.",
            ".github/instructions/py.instructions.md": text("Use types.", applyTo="**/*.py"),
            ".github/skills/slash/SKILL.md": skill("slash", disable_model_invocation="true"),
            ".mcp.json": {"db": {"command": "db"}},
        }
    )
    write(desk.home, {".copilot/mcp-config.json": {"mcpServers": {"own": {"command": "own"}}}})
    client = await desk.start(plugins=[root])
    session, chat = await desk.session(client)
    turn = await desk.turn(client, chat, "Fix app.py")
    assert [rule.strip() for rule in turn.context.rules] == ["Use types.", "Be kind."]
    assert [offer.name for offer in turn.context.skills] == ["tools:ship"]
    assert [offer.name for offer in turn.context.agents] == ["tools:a"]
    assert [offer.name for offer in turn.context.mcp_servers] == ["own"]
    containers = await desk.containers(client, session)
    await client.accepted(session, toggle(containers["tools"]["id"], False))
    await client.accepted(session, toggle(containers["Instructions"]["children"][0]["id"], False))
    turn = await desk.turn(client, chat, "hi")
    assert (turn.context.rules, turn.context.skills, turn.context.agents) == ([], [], [])


async def test_servers_of_a_trusted_workspace_are_offered(desk: Desk) -> None:
    desk.files({".mcp.json": {"db": {"command": "${HOME_TOOL}/db"}}})
    client = await desk.start(trusted=[desk.workspace.parent], environment={"HOME_TOOL": "/opt"})
    session, chat = await desk.session(client)
    turn = await desk.turn(client, chat, "hi")
    assert [(offer.name, offer.config["command"]) for offer in turn.context.mcp_servers] == [("db", "/opt/db")]
    assert "/opt" not in str(await desk.containers(client, session))


async def test_an_invoked_skill_is_expanded_for_the_agent_and_not_in_the_chat(desk: Desk) -> None:
    desk.files(
        {".claude/commands/ship.md": "Ship to $1.", ".github/prompts/plan.prompt.md": text("Plan ${input:what}.")}
    )
    client = await desk.start()
    _, chat = await desk.session(client)
    turn = await desk.turn(client, chat, "/ship prod now")
    assert turn.prompt.endswith("Ship to prod.")
    assert turn.message["text"] == "/ship prod now"
    assert (await desk.turn(client, chat, "/plan a trip")).prompt.endswith("Plan a trip.\n")
    assert (await desk.turn(client, chat, "/unknown x")).prompt == "/unknown x"


@requirement("enablement:invocation:skill-user-gate")
@requirement("enablement:precedence:disabled-container-wins")
async def test_calling_what_only_the_model_may_use_or_what_is_off_says_so(desk: Desk) -> None:
    desk.files({".github/skills/inner/SKILL.md": text("Secret.", user_invocable="false")})
    forbidden = text("Secret.", user_invocable="false", disable_model_invocation="true")
    desk.files({".github/prompts/plan.prompt.md": text("Plan."), ".github/skills/forbidden/SKILL.md": forbidden})
    client = await desk.start()
    session, chat = await desk.session(client)

    async def refused(name: str) -> str:
        await client.accepted(chat, say(f"/{name}", f"t-{name}"))
        error = await client.action(
            lambda envelope: envelope["action"]["type"] == "chat/error" and envelope["action"]["turnId"] == f"t-{name}"
        )
        return error["action"]["error"]["message"]

    assert "`forbidden` cannot be called" in await refused("forbidden")
    assert "`inner` is for the model alone" in await refused("inner")
    turn = await desk.turn(client, chat, "do it")
    assert "inner" in [offer.name for offer in turn.context.skills]  # The model may.
    directory = (await desk.containers(client, session))[".github/prompts"]
    await client.accepted(session, toggle(directory["id"], False))
    why = "`plan` is in `.github/prompts`, which is switched off; switch that on to use it"
    assert await refused("plan") == why


@requirement("customizations:update:list-replaced-when-set-changes", "customizations:identity:id-unique-in-session")
async def test_a_session_that_moves_to_another_directory_gets_its_whole_list_at_once(
    desk: Desk, tmp_path: Path
) -> None:
    desk.files({".claude/commands/old.md": "1", "AGENTS.md": "Old."})
    elsewhere = write(tmp_path / "elsewhere", {".claude/commands/new.md": "2", ".claude/rules/r.md": "New."})
    (elsewhere / ".git").mkdir()
    desk.bench.agent.directories = {"primaryReplacement": True}
    await desk.start(plugins=[plugin(tmp_path / "tools")])
    client = await desk.bench.client(offer=["1.0.0"])
    old = desk.workspace.as_uri()
    session, _ = await desk.bench.session(client, workingDirectories=[old])
    await desk.read(client, session, ".claude/commands")
    before = len(updates(client, session))
    moved = {"type": "session/workingDirectoryReplaced", "directory": old, "replacement": elsewhere.as_uri()}
    await client.accepted(session, moved)
    await seen(client, lambda entry: entry["name"] == ".claude/rules" and bool(entry.get("children")))
    told = updates(client, session)[before:]
    containers = await desk.containers(client, session)
    assert [child["name"] for child in containers[".claude/commands"]["children"]] == ["new"]
    assert told[0]["type"] == "session/customizationsChanged"
    assert {action["type"] for action in told[1:]} == {"session/customizationUpdated"}
    assert elsewhere.as_uri() in str(told[0])
    assert not any(old in str(action) for action in told)
    everything = [found for entry in containers.values() for found in (entry, *entry.get("children", ()))]
    assert len({found["id"] for found in everything}) == len(everything)


@requirement("customizations:identity:persistent-reference-is-uri")
@requirement("enablement:invocation:agent-user-gate", "enablement:invocation:agent-model-gate")
@requirement("session:summary:agent-uri", "session:summary:agent-absent", "session:action:agent-changed")
@requirement("session:customization:agent")
@requirement("commands:create-session:agent", "session:fork:takes-over", "gen:project-command:model-up")
async def test_a_selected_agent_speaks_and_is_found_by_uri_in_another_session(desk: Desk) -> None:
    mine = text("You are A.", disable_model_invocation="true")
    desk.files({".github/agents/a.md": mine, ".github/agents/b.md": text("B", user_invocable="false")})
    client = await desk.start()
    session, _ = await desk.session(client)
    first, second = (await desk.containers(client, session))[".github/agents"]["children"]
    reason = await client.rejected(session, {"type": "session/agentChanged", "agent": {"uri": second["uri"]}})
    assert "can only be used by the model" in reason
    own_chat = (await desk.bench.state(client, session))["defaultChat"]
    assert (await desk.turn(client, own_chat, "hi")).context.system_prompt is None
    for agent, prompt in (({"agent": {"uri": first["uri"]}}, "You are A.\n"), ({}, None)):
        await client.accepted(session, {"type": "session/agentChanged", **agent})
        assert (await desk.turn(client, own_chat, "hi")).context.system_prompt == prompt
        summary = (await desk.bench.state(client, session))["summary"]
        assert {key: summary[key] for key in ("agent",) if key in summary} == agent
    other, chat = await desk.session(client, agent={"uri": first["uri"]})
    assert other != session
    context = (await desk.turn(client, chat, "hi")).context
    assert context.system_prompt == "You are A.\n"
    fork, _ = await desk.session(client, fork={"session": other, "turnId": "turn-3"})
    assert (await desk.bench.state(client, fork))["summary"]["agent"] == {"uri": first["uri"]}
    assert [offer.name for offer in context.agents] == ["b"], "the model delegates only to what is for it"


async def test_completions_offer_what_the_user_may_invoke(desk: Desk) -> None:
    desk.files({".claude/commands/ship.md": text(description="Ships."), ".github/agents/rev.md": text()})
    desk.files({".github/skills/hidden/SKILL.md": skill("hidden", user_invocable="false")})
    client = await desk.start()
    _, chat = await desk.session(client)

    async def offered(typed: str) -> list[str]:
        result = await client.ask("completions", chat, kind="userMessage", text=typed, offset=len(typed))
        return [item["insertText"] for item in result["items"]]

    assert await offered("/") == ["/ship "]
    assert "@rev " in await offered("ask @r")  # Beside files whose names begin so.
    assert await offered("/hid") == []


# --- hooks ----------------------------------------------------------------------------------------------------


HOOKS = {
    "hooks": {
        "SessionStart": [{"hooks": [{"command": "echo started >> log; echo The sky is green."}]}],
        "UserPromptSubmit": [{"hooks": [{"command": "grep -q forbidden && exit 2; echo asked >> log"}]}],
        "PreToolUse": [{"matcher": "danger", "hooks": [{"command": "echo Not that. >&2; exit 2"}]}],
        "PostToolUse": [{"hooks": [{"command": "cat > tool"}]}],
        "Stop": [{"hooks": [{"command": "echo stopped >> log"}]}],
    }
}


async def use_tools(turn: Turn) -> None:
    harmless = turn.tool_call("harmless")
    harmless.running(tool_input='{"a": 1}')
    harmless.complete()
    danger = await turn.tool_call("danger").confirm(tool_input="{}")
    turn.text(f"approved: {danger.approved}")


async def test_hooks_run_when_allowed_and_trusted(desk: Desk) -> None:
    desk.files({".claude/settings.json": HOOKS})
    client = await desk.start(allow_hooks=True, trusted=[desk.workspace])
    _, chat = await desk.session(client)
    turn = await desk.turn(client, chat, "hi")
    assert turn.prompt == "hi\n\nContext from hooks:\n\nThe sky is green."
    assert (await desk.turn(client, chat, "again")).prompt == "again"
    await until(
        lambda: (desk.workspace / "log").read_text().split() == ["started", "asked", "stopped", "asked", "stopped"]
    )


async def test_a_hook_may_deny_a_tool_and_hears_of_those_that_ran(desk: Desk) -> None:
    desk.files({".claude/settings.json": HOOKS})
    desk.bench.agent.script = use_tools
    client = await desk.start(allow_hooks=True, trusted=[desk.workspace])
    _, chat = await desk.session(client)
    await desk.turn(client, chat, "hi")
    state = await desk.bench.state(client, chat)
    calls = [part["toolCall"] for part in state["turns"][0]["responseParts"] if part["kind"] == "toolCall"]
    assert [(call["toolName"], call["status"]) for call in calls] == [
        ("harmless", "completed"),
        ("danger", "cancelled"),
    ]
    assert "Not that." in str(calls[1])
    await until(
        lambda: (desk.workspace / "tool").exists() and '"tool_input": {"a": 1}' in (desk.workspace / "tool").read_text()
    )


@pytest.mark.parametrize("settings", [{"allow_hooks": True}, {"trusted": True}])
async def test_hooks_do_not_run_otherwise(desk: Desk, settings: dict[str, bool]) -> None:
    desk.files({".claude/settings.json": HOOKS})
    trusted = [desk.workspace] if settings.get("trusted") else []
    client = await desk.start(allow_hooks=settings.get("allow_hooks", False), trusted=trusted)
    session, chat = await desk.session(client)
    assert (await desk.turn(client, chat, "forbidden")).prompt == "forbidden"
    assert not (desk.workspace / "log").exists()
    assert len((await desk.containers(client, session))[".claude/settings.json"]["children"]) == 5


async def test_a_hook_may_refuse_a_message(desk: Desk) -> None:
    desk.files({".claude/settings.json": HOOKS})
    client = await desk.start(allow_hooks=True, trusted=[desk.workspace])
    _, chat = await desk.session(client)
    await client.accepted(
        chat,
        {
            "type": "chat/turnStarted",
            "turnId": "t",
            "message": {"text": "forbidden", "origin": {"kind": "user"}},
        },
    )
    error = await client.action("chat/error")
    assert "A hook refused this message" in error["action"]["error"]["message"]
    assert desk.bench.agent.turns == []


ANSWERS = {
    "hooks": {
        "UserPromptSubmit": [{"command": """echo '{"systemMessage": "It rains."}'"""}],
        "PreToolUse": [{"command": """echo '{"additionalContext": "c", "permissionDecision": "allow"}'"""}],
    }
}


async def test_what_hooks_say_to_people_is_in_the_chat_and_what_has_no_effect_is_said_once(desk: Desk) -> None:
    desk.files({".claude/settings.json": ANSWERS})

    async def careful(turn: Turn) -> None:
        for _ in range(2):
            await turn.tool_call("careful").confirm(tool_input="{}", setting=True)

    desk.bench.agent.script = careful
    client = await desk.start(allow_hooks=True, trusted=[desk.workspace])
    _, chat = await desk.session(client)
    await desk.turn(client, chat, "hi")
    await desk.turn(client, chat, "again")
    turns = (await desk.bench.state(client, chat))["turns"]
    said = [[part["content"] for part in turn["responseParts"] if "content" in part] for turn in turns]
    ignored = "a PreToolUse hook answered `additionalContext`, which has no effect here"
    assert said == [["It rains.", ignored], ["It rains."]]


async def test_a_folder_whose_name_is_not_utf_8_keeps_no_session_from_starting(desk: Desk) -> None:
    """Neither the one that is there, nor those in other folders: all of them share a watcher."""
    os.mkdir(os.fsencode(desk.workspace) + b"/lat\xe9")
    desk.files({"lat/AGENTS.md": "x"})
    client = await desk.start()
    for _ in range(2):
        session, _ = await desk.session(client)
        assert (await desk.bench.state(client, session))["lifecycle"] == "ready"
