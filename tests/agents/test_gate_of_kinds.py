"""One gate, whoever asks: hooks, denials of owners, held results, settings and faults are the same for every agent."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp import AcpAgent, AcpAgentConfig
from ahpkit.agents.acp.mcp_servers import host_tool, is_search
from ahpkit.agents.tools import Toolbox
from ahpkit.host.agent import Turn
from ahpkit.protocol.meta_keys import DIRECT, SETTLED
from mcp_servers.running import PROGRAM
from support import requirement
from support.agent_kinds import KINDS, agent_of_kind
from support.bench import ScriptedAgent
from support.raw_client import Json
from support.scripted_acp import scripted_command
from support.stage import NOTE, Stage, staged
from support.waiting import until

Open = Callable[..., AbstractAsyncContextManager[Stage]]

ACP = [kind for kind in KINDS if kind.startswith("acp")]

SHARED = pytest.mark.asyncio(loop_scope="module")
"""A test in the session that the tests of this file share."""


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens a stage with an agent of each kind."""

    @asynccontextmanager
    async def open(*, settings: Json | None = None, tools: Toolbox | None = None, **more: Any) -> AsyncGenerator[Stage]:
        given = settings if settings and request.param in ACP else {}
        async with (
            agent_of_kind(request.param, tmp_path, tools=tools, **given) as agent,
            staged(agent, tmp_path, servers=server(tmp_path), **more) as stage,
        ):
            await stage.server("test", "ready")
            yield stage

    return open


def server(directory: Path, **declared: Any) -> dict[str, Json]:
    env = {"TEST_STARTED": str(directory / "started")}
    return {"test": {"command": sys.executable, "args": [PROGRAM], "env": env, **declared}}


DENIES = {"hooks": {"PreToolUse": [{"hooks": [{"command": "echo Not here. >&2; exit 2"}]}]}}


async def test_a_hook_that_denies_stops_every_tool_also_where_nobody_would_be_asked(opened: Open) -> None:
    files = {".claude/settings.json": json.dumps(DENIES)}
    async with opened(files=files, allow_hooks=True, settings={"permissions": "allow"}) as stage:
        for call in (
            'CALL test_add {"a": 1, "b": 2}',
            'CALL show_note {"text": "hi"}',
            'CALL canvas_open {"canvasId": "board", "instanceId": "one"}',
            'CALL ask_user {"question": "Why?"}',
        ):
            turn = await stage.turn(call)
            [shown] = turn.calls
            assert (shown["status"], shown["reason"], shown["reasonMessage"]) == ("cancelled", "denied", "Not here.")
            assert not turn.questions
            assert shown["_meta"][SETTLED] == "guard"
        assert not stage.ran
        assert not stage.board.calls


DOUBT = json.dumps({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "Look twice."}})
HOOKS = [
    {"matcher": "mcp__test__add|show_note", "hooks": [{"command": f"echo '{DOUBT}'"}]},
    {"matcher": "mcp__test__f.*", "hooks": [{"command": "cat >&2; exit 2"}]},
]


async def test_a_hook_that_asks_leaves_a_call_to_a_person_whatever_would_allow_it(opened: Open) -> None:
    """A rule, a setting, and that nobody is asked about a client's tool allow nothing then; a denial still holds."""
    files = {".claude/settings.json": json.dumps({"hooks": {"PreToolUse": HOOKS}})}
    add, note = 'CALL test_add {"a": 1, "b": 2}', 'CALL show_note {"text": "hi"}'
    async with opened(files=files, allow_hooks=True, settings={"permissions": "allow"}) as stage:
        first = await stage.turn(add, decisions=["allow:server:everywhere"])
        again = await stage.turn(add, decisions=["allow-once"])
        other = await stage.turn(add, decisions=["deny-once"])
        for turn, status in ((first, "completed"), (again, "completed"), (other, "cancelled")):
            [asked] = turn.approvals
            assert "Look twice." in asked["confirmationTitle"]
            assert [call["status"] for call in turn.calls] == [status]
        shown = await stage.turn(note, decisions=["allow-once"])
        assert ([call["success"] for call in shown.calls], len(stage.ran)) == ([True], 1)
        record = (await stage.client.ask("_ahpkit/approvals/list"))["approvals"]
        assert {(entry["by"], "Look twice." in entry["shown"]["title"]) for entry in record} == {("person", True)}

        owner = record[0]["owner"]
        denial = {"decision": "deny", "kind": "tool", "owner": owner, "tool": "add", "scope": "everywhere"}
        await stage.client.ask("_ahpkit/rules/add", **denial)
        [denied] = (await stage.turn(add)).calls
        assert (denied["status"], denied["_meta"][SETTLED]) == ("cancelled", "rule")

        [guarded] = (await stage.turn('CALL test_fail {"a": 1}')).calls  # By the name that Claude Code has for it.
        assert (guarded["status"], guarded["_meta"][SETTLED]) == ("cancelled", "guard")
        told = json.loads(guarded["reasonMessage"])
        assert (told["tool_name"], told["tool_input"]) == ("mcp__test__fail", {"a": 1})


@pytest.mark.parametrize("kind", ACP)
async def test_where_a_setting_denies_nobody_is_asked_what_a_hook_leaves_to_a_person(tmp_path: Path, kind: str) -> None:
    """Also for tools that nobody is asked about otherwise, and where a denying rule cannot be judged."""
    files = {".claude/settings.json": json.dumps({"hooks": {"PreToolUse": HOOKS}})}
    async with (
        agent_of_kind(kind, tmp_path, permissions="deny") as agent,
        staged(agent, tmp_path, servers=server(tmp_path), files=files, allow_hooks=True) as stage,
    ):
        await stage.server("test", "ready")
        unclear = {"decision": "deny", "kind": "path", "pattern": "/secret/**", "scope": "everywhere"}
        await stage.client.ask("_ahpkit/rules/add", owner="host", tool="canvas_open", **unclear)
        for call in (
            'CALL test_add {"a": 1, "b": 2}',
            'CALL show_note {"text": "hi"}',
            'CALL canvas_open {"canvasId": "board", "instanceId": "one"}',
        ):
            [shown] = (await stage.turn(call)).calls
            assert (shown["status"], shown["_meta"][SETTLED]) == ("cancelled", "setting")
        assert not stage.ran
        assert not stage.board.calls


@SHARED
@requirement("client-tools:deny:while-running")
async def test_the_owner_of_a_tool_cancels_it_while_it_runs(stage: Stage) -> None:
    async def deny(about: Json) -> None:
        instead = {"text": "write a file", "origin": {"kind": "user"}}
        no = {"approved": False, "reason": "denied", "reasonMessage": "no display", "userSuggestion": instead}
        stage.client.post(stage.chat, {"type": "chat/toolCallConfirmed", **about, **no})

    turn = await stage.turn('CALL show_note {"text": "hi"}', own=deny)
    [shown] = turn.calls
    assert (shown["status"], shown["reason"], shown["reasonMessage"]) == ("cancelled", "denied", "no display")
    assert "no display" in turn.text
    assert "write a file" in turn.text
    assert shown["userSuggestion"]["text"] == "write a file"
    last = (await stage.client.ask("_ahpkit/approvals/list"))["approvals"][-1]
    assert (last["call"], last["tool"]) == (shown["toolCallId"], "show_note")
    assert (last["decision"], last["by"], last["who"]) == ("denied", "person", stage.client.client_id)
    assert (last["reason"], last["shown"]["input"]) == ("no display", shown["toolInput"])


@SHARED
async def test_an_agent_reads_what_the_user_wants_instead_of_a_denied_call(stage: Stage) -> None:
    stage.suggests = "subtract"
    turn = await stage.turn('CALL test_add {"a": 1, "b": 2}', decisions=["deny-once"])
    [shown] = turn.calls
    assert (shown["status"], shown["userSuggestion"]["text"]) == ("cancelled", "subtract")
    if "was denied" not in turn.text:  # An agent that asks by itself gets it with the answer to its request.
        assert "not today" in turn.text
        assert "subtract" in turn.text


@SHARED
@pytest.mark.parametrize("released", [True, False])
async def test_a_result_is_held_back_until_it_is_confirmed(stage: Stage, released: bool) -> None:
    async def hold(about: Json) -> None:
        result = {"success": True, "pastTenseMessage": "Shown", "content": [{"type": "text", "text": "the secret"}]}
        held = {"type": "chat/toolCallComplete", **about, "result": result, "requiresResultConfirmation": True}
        await stage.client.accepted(stage.chat, held)
        state = await stage.bench.state(stage.client, stage.chat)
        assert "the secret" not in str([part for part in _parts(state) if part["kind"] == "markdown"])
        confirmed = {"type": "chat/toolCallResultConfirmed", **about, "approved": released}
        stage.client.post(stage.chat, confirmed)

    turn = await stage.turn('CALL show_note {"text": "hi"}', own=hold)
    assert ("the secret" in turn.text) is released
    if not released:
        assert "did not release" in turn.text


def _parts(chat: Json) -> list[Json]:
    turn: Json = chat.get("activeTurn") or {}
    return turn.get("responseParts", [])


async def test_a_setting_answers_in_place_of_a_person_for_every_acp_agent(tmp_path: Path) -> None:
    for kind in ACP:
        for policy, status in (("allow", "completed"), ("deny", "cancelled")):
            directory = tmp_path / f"{kind}-{policy}"
            directory.mkdir()
            async with (
                agent_of_kind(kind, directory, permissions=policy) as agent,
                staged(agent, directory, servers=server(directory)) as stage,
            ):
                await stage.server("test", "ready")
                turn = await stage.turn('CALL test_add {"a": 1, "b": 2}')
                assert [call["status"] for call in turn.calls] == [status]
                assert [call["success"] for call in (await stage.turn("CALL canvas_list {}")).calls] == [True]


async def test_two_calls_at_once_are_two_cards_and_two_questions(tmp_path: Path) -> None:
    for kind in ACP:
        directory = tmp_path / kind
        directory.mkdir()
        async with (
            agent_of_kind(kind, directory) as agent,
            staged(agent, directory, servers=server(directory)) as stage,
        ):
            await stage.server("test", "ready")
            twice = 'CALL test_add {"a": 1, "b": 2} CALL test_add {"a": 1, "b": 2}'
            turn = await stage.turn(twice, decisions=["allow-once", "allow-once"])
            assert [call["content"][0]["text"] for call in turn.calls] == ["3", "3"]


async def test_a_permission_covers_one_call_with_the_same_input_only(tmp_path: Path) -> None:
    agent = ScriptedAgent()

    async def script(turn: Turn) -> None:
        asked = '{"a": 1, "b": 1}'
        for made in ('{"b": 1, "a": 1}', '{"a": 9, "b": 1}'):
            card = turn.announce("test_add", asked)
            assert card is not None
            card.covered(await card.confirm(tool_input=asked))
            turn.text(str((await turn.call_tool("test_add", made)).content))
        await turn.call_tool("test_add", asked)  # The second permission: it was not used yet.
        await turn.call_tool("test_add", asked)

    agent.script = script
    async with staged(agent, tmp_path, servers=server(tmp_path)) as stage:
        await stage.server("test", "ready")
        turn = await stage.turn("go", decisions=["allow-once"] * 4)
        asked = [json.loads(one["toolInput"]) for one in turn.approvals]
        assert asked == [{"a": 1, "b": 1}, {"a": 1, "b": 1}, {"a": 9, "b": 1}, {"a": 1, "b": 1}]


async def test_a_call_that_was_allowed_before_its_server_was_switched_off_fails_on_its_one_card(tmp_path: Path) -> None:
    agent, allowed, off = ScriptedAgent(), asyncio.Event(), asyncio.Event()

    async def script(turn: Turn) -> None:
        given = '{"a": 1, "b": 1}'
        card = turn.announce("test_add", given)
        assert card is not None
        card.covered(await card.confirm(tool_input=given))
        allowed.set()
        await off.wait()
        turn.text(str((await turn.call_tool("test_add", given)).error))

    async def switch_off() -> None:
        await allowed.wait()
        await stage.switch("test", on=False)
        off.set()

    agent.script = script
    async with staged(agent, tmp_path, servers=server(tmp_path)) as stage, asyncio.TaskGroup() as tasks:
        await stage.server("test", "ready")
        tasks.create_task(switch_off())
        turn = await stage.turn("go", decisions=["allow-once"])
        assert "there is no tool 'test_add' now" in turn.text
        assert [(call["status"], call["success"]) for call in turn.calls] == [("completed", False)]


def test_an_input_that_is_shown_as_text_counts_and_a_search_needs_nobody() -> None:
    shown = [
        {"type": "content", "content": {"type": "text", "text": '{"name": "show_note", "arguments": {"text": "x"}}'}}
    ]
    said: Json = {"title": "mcp__ahp__call_tool", "kind": "other", "content": shown}
    assert host_tool(said, {}, [NOTE]) == ("show_note", {"text": "x"})  # type: ignore[list-item]  # Less than a whole definition.
    assert is_search({"title": "mcp__ahp__find_tool", "rawInput": {"query": "x"}}, {})
    assert not is_search({"title": "mcp__ahp__find_tool", "rawInput": {"command": "x"}}, {})


@pytest.mark.parametrize(
    "said",
    [
        {"title": "canvas_list || rm -rf ~ # (ahp MCP Server)"},
        {"title": "mcp__ahp__canvas_list", "kind": "execute"},
        {"title": "mcp__ahp__canvas_list", "rawInput": {"command": "rm -rf ~"}},
        {"title": "mcp__ahp__show_note", "rawInput": {"text": "hi", "command": "rm -rf ~"}},
        {"title": "run mcp__ahp__canvas_list"},
        {"title": "mcp__ahp__nothing"},
    ],
)
def test_a_call_that_only_looks_like_one_of_the_hosts_is_the_agents_own(said: Json) -> None:
    empty: Json = {"type": "object", "properties": {}, "additionalProperties": False}
    assert host_tool(said, {}, [{"name": "canvas_list", "inputSchema": empty}, NOTE]) is None  # type: ignore[list-item]  # Less than a whole definition.


async def test_a_clients_tool_never_replaces_the_agents_own_and_all_are_listed(opened: Open) -> None:
    tools = Toolbox()

    @tools.tool(approval=False)
    def calculate(text: str = "") -> str:
        "The agent's own."
        return f"own {text}"

    theirs = {**NOTE, "name": "calculate"}
    async with opened(tools=tools, tools_of_client=[theirs]) as stage:
        provider = stage.bench.agent.provider
        listed = [tool["name"] for tool in (await stage.state())["serverTools"]]
        assert {"test_add", "ask_user", "canvas_open"} <= set(listed)
        if provider == "acp":  # What such an agent has of its own, nobody knows.
            shown = await stage.turn('CALL calculate {"text": "x"}')
            assert "was shown" in shown.text
            return
        assert "calculate" in listed
        if provider == "demo":
            own = await stage.turn('CALL calculate {"expression": "6 * 7"}', decisions=["allow"])
            assert "42" in own.text
        else:
            assert "own x" in (await stage.turn('CALL calculate {"text": "x"}')).text
        assert stage.ran == []
        assert "was shown" in (await stage.turn('CALL client_calculate {"text": "x"}')).text
        await stage.switch("test", on=False)
        assert "test_add" not in [tool["name"] for tool in (await stage.state())["serverTools"]]


async def test_a_client_that_leaves_while_its_tool_runs_ends_the_call(opened: Open) -> None:
    async with opened(grace=0.05) as stage:
        watcher = await stage.bench.client(stage.session, stage.chat, client_id="watcher")

        async def leave(about: Json) -> None:
            await stage.client.aclose()

        stage_turn = stage.turn('CALL show_note {"text": "hi"}', own=leave)
        with pytest.raises(AssertionError, match="the connection closed"):
            await stage_turn
        await watcher.action("chat/turnComplete")
        turn = (await stage.bench.state(watcher, stage.chat))["turns"][-1]
        [call] = [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]
        assert call["status"] in ("cancelled", "completed")
        assert call.get("success") is not True


async def test_an_untrusted_server_has_no_process(opened: Open, tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        async with opened(trusted=False, seconds=1.0):
            pass
    assert not (tmp_path / "started").exists()


async def test_a_server_that_may_not_run_has_no_process(opened: Open, tmp_path: Path) -> None:
    """Because it was switched off, or because it is not what was trusted any more."""

    async def does_not_run() -> None:
        before = (tmp_path / "started").read_text().split()
        await stage.turn("hello")
        assert (tmp_path / "started").read_text().split() == before
        await until(lambda: not any(_alive(int(pid)) for pid in before))

    async with opened() as stage:
        await stage.switch("test", on=False)
        other, _ = await stage.bench.session(stage.client, workingDirectory=f"file://{tmp_path}/work")
        entry = [one for one in _servers(await stage.bench.state(stage.client, other)) if one["name"] == "test"]
        assert entry[0]["state"]["kind"] == "stopped"
        await stage.client.ask("disposeSession", other)
        await does_not_run()

        await stage.switch("test", on=True)
        config = json.loads((tmp_path / "work/.mcp.json").read_text())
        config["mcpServers"]["test"]["env"]["CHANGED"] = "1"  # Trusted as it was, not as it is.
        (tmp_path / "work/.mcp.json").write_text(json.dumps(config))
        await stage.server("test", "stopped")
        await does_not_run()


def _servers(state: Json) -> list[Json]:
    every = [child for one in state["customizations"] for child in one.get("children", [])]
    return [one for one in every if one["type"] == "mcpServer"]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_server_that_the_agent_loads_by_itself_is_not_started_a_second_time(tmp_path: Path) -> None:
    for kind in ACP:
        directory = tmp_path / kind
        directory.mkdir()
        async with (
            agent_of_kind(kind, directory, loads_servers=(".mcp.json",)) as agent,
            staged(agent, directory, servers=server(directory)) as stage,
        ):
            assert "test_add" not in (await stage.turn("LIST")).text
            shown = await stage.server("test", "ready")  # The agent runs now, and so does what it loads.
            assert shown["_meta"][DIRECT] is True
            assert "channel" not in shown
            assert not (directory / "started").exists()


async def test_what_an_agent_runs_by_itself_is_said_once(tmp_path: Path) -> None:
    def modes(current: str) -> Json:
        known = [{"id": "default", "name": "Ask"}, {"id": "bypassPermissions", "name": "Bypass"}]
        return {"modes": {"currentModeId": current, "availableModes": known}}

    for current, said in (("bypassPermissions", 1), ("default", 0)):
        directory = tmp_path / current
        directory.mkdir()
        command = scripted_command(directory / "script.json", session=modes(current))
        agent = AcpAgent(AcpAgentConfig(name="acp", command=command[0], args=tuple(command[1:])))
        async with staged(agent, directory) as stage:
            first, second = await stage.turn("one"), await stage.turn("two")
            assert len([notice for notice in first.notices if "without asking" in notice]) == said
            assert not second.notices


@pytest.mark.parametrize("manner", ["announced", "asking", "unsaid announced", "unsaid asking"])
async def test_one_call_through_call_tool_is_one_card_and_one_question(tmp_path: Path, manner: str) -> None:
    """Whether or not the agent says what it will call, and with which input, before it does."""
    command = scripted_command(tmp_path / "script.json", mcp=manner)
    agent = AcpAgent(AcpAgentConfig(name="acp", command=command[0], args=tuple(command[1:])))
    async with staged(agent, tmp_path, servers=server(tmp_path)) as stage:
        await stage.server("test", "ready")
        call = 'CALL call_tool {"name": "test_add", "arguments": {"a": 1, "b": 2}}'
        turn = await stage.turn(call, decisions=["allow-once"])
        [shown] = turn.calls
        assert (shown["status"], shown["toolName"], shown["content"][0]["text"]) == ("completed", "add", "3")
        assert len(turn.approvals) == 1
        assert "The tool returned: 3" in turn.text
        denied = await stage.turn(call, decisions=["deny-once"])
        assert [one["status"] for one in denied.calls] == ["cancelled"]


@pytest.mark.parametrize("kind", KINDS)
async def test_of_very_many_tools_a_model_is_told_how_to_find_them(tmp_path: Path, kind: str) -> None:
    many = server(tmp_path, env={"TEST_MODES": "many", "TEST_TOOLS": "500"})
    async with agent_of_kind(kind, tmp_path) as agent, staged(agent, tmp_path, servers=many) as stage:
        await stage.server("test", "ready")
        found = await stage.turn('CALL find_tool {"query": "tool 471"}')
        assert '"test_tool_471"' in found.text
        assert not found.approvals
        turn = await stage.turn(
            'CALL call_tool {"name": "test_tool_471", "arguments": {"x": 1}}', decisions=["allow-once"]
        )
        assert [(call["toolName"], call["status"]) for call in turn.calls] == [("tool_471", "completed")]
        assert len(turn.approvals) == 1
        bad = 'CALL call_tool {"name": "test_tool_471", "arguments": "none"}'
        asked = ["allow-once"] if kind == "acp-asking" else []  # It asks by itself.
        wrong = await stage.turn(bad, decisions=asked)
        assert "nothing was called" in wrong.text


async def test_after_a_restart_the_mode_of_an_agent_is_not_said_again(tmp_path: Path) -> None:
    known = [{"id": "default", "name": "Ask"}, {"id": "bypassPermissions", "name": "Bypass"}]
    modes = {"modes": {"currentModeId": "bypassPermissions", "availableModes": known}}

    def made() -> AcpAgent:
        command = scripted_command(tmp_path / "script.json", session=modes, store=str(tmp_path / "store"))
        return AcpAgent(AcpAgentConfig(name="acp", command=command[0], args=tuple(command[1:])))

    async with staged(made(), tmp_path) as stage:
        assert any("without asking" in notice for notice in (await stage.turn("one")).notices)
        await stage.bench.stop()
        stage.bench.features = []
        stage.bench.agent = made()  # pyright: ignore[reportAttributeAccessIssue]  # A bench is typed for its usual agent.
        await stage.bench.start()
        stage.client = await stage.bench.client("ahp-root://", client_id="again")
        await stage.client.ask("subscribe", stage.session)
        await stage.client.ask("subscribe", stage.chat)
        assert not [notice for notice in (await stage.turn("two")).notices if "without asking" in notice]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "model"])
async def test_a_server_that_asks_for_a_model_that_nobody_reaches_gets_a_clear_no(tmp_path: Path, kind: str) -> None:
    """Only model endpoints answer sampling: with other agents the call says so, and nobody is asked."""
    async with (
        agent_of_kind(kind, tmp_path) as agent,
        staged(agent, tmp_path, servers=server(tmp_path)) as stage,
    ):
        await stage.server("test", "ready")
        turn = await stage.turn("CALL test_sample {}", decisions=["allow-once"])
        [call] = turn.calls
        assert call["success"] is False
        assert "sampling not supported" in str(call["error"]["message"]).lower()
        assert not turn.questions


def _rule(decision: str, what: str, scope: str, **more: str) -> Json:
    return {"decision": decision, "kind": what, "scope": scope, **more}


ORDER: dict[str, tuple[list[Json], int | None]] = {
    "a denial wins over a narrower allow": (
        [_rule("allow", "tool", "chat"), _rule("deny", "server", "everywhere")],
        1,
    ),
    "a narrow denial wins over a wide allow": (
        [_rule("allow", "server", "everywhere"), _rule("deny", "tool", "chat")],
        1,
    ),
    "the chat before the session": ([_rule("allow", "tool", "session"), _rule("allow", "tool", "chat")], 1),
    "the session before the workspace": ([_rule("allow", "tool", "workspace"), _rule("allow", "tool", "session")], 1),
    "the workspace before everywhere": ([_rule("allow", "tool", "everywhere"), _rule("allow", "tool", "workspace")], 1),
    "the scope before the kind": ([_rule("allow", "tool", "everywhere"), _rule("allow", "server", "chat")], 1),
    "the tool before the server": ([_rule("allow", "server", "session"), _rule("allow", "tool", "session")], 1),
    "a denial that may be hidden is for a person": (
        [_rule("allow", "tool", "chat"), _rule("deny", "command", "everywhere", pattern="rm")],
        None,
    ),
    "another session": ([_rule("allow", "tool", "session", place="ahp-session:/other")], None),
    "another workspace": ([_rule("allow", "tool", "workspace", place="file:///other")], None),
    "another server of that name": ([_rule("allow", "tool", "everywhere", owner="mcp:test@file:///other")], None),
}
"""The list in `docs/topics/approvals.md`: rules, and which of them decides; None: a person does."""


@SHARED
async def test_the_same_rule_wins_for_every_agent(stage: Stage) -> None:
    await stage.turn('CALL test_add {"a": 1, "b": 1}', decisions=["deny-once"])
    owner = (await stage.client.ask("_ahpkit/approvals/list"))["approvals"][-1]["owner"]
    workspace = stage.bench.config.default_directory.as_uri()
    places = {"chat": stage.chat, "session": stage.session, "workspace": workspace}
    for case, (rules, winner) in ORDER.items():
        made: list[Json] = []
        for rule in rules:
            place = {"place": places[rule["scope"]]} if rule["scope"] in places else {}
            tool = {} if rule["kind"] == "server" else {"tool": "add"}
            made.append(await stage.client.ask("_ahpkit/rules/add", **{"owner": owner, **tool, **place, **rule}))
        turn = await stage.turn(
            'CALL test_add {"a": 1, "b": 2}', decisions=[] if winner is not None else ["allow-once"]
        )
        decided = (await stage.client.ask("_ahpkit/approvals/list"))["approvals"][-1]
        who = stage.client.client_id if winner is None else made[winner]["id"]
        assert (decided["by"], decided["who"]) == ("person" if winner is None else "rule", who), case
        assert winner is None or made[winner]["says"] in decided["reason"], case
        allowed = winner is None or rules[winner]["decision"] == "allow"
        assert [call["status"] for call in turn.calls] == ["completed" if allowed else "cancelled"], case
        for rule in made:
            await stage.client.ask("_ahpkit/rules/remove", id=rule["id"])


async def test_a_denial_by_name_holds_for_a_server_that_hides_characters_in_its_name(tmp_path: Path) -> None:
    hidden = {"te\u200bst": server(tmp_path)["test"]}
    async with agent_of_kind("python", tmp_path) as agent, staged(agent, tmp_path, servers=hidden) as stage:
        await stage.server("test", "ready")
        everywhere = {"decision": "deny", "kind": "server", "scope": "everywhere"}
        await stage.client.ask("_ahpkit/rules/add", owner="mcp:Test", **everywhere)
        [denied] = (await stage.turn('CALL test_add {"a": 1, "b": 2}')).calls
        assert (denied["status"], denied["_meta"][SETTLED]) == ("cancelled", "rule")


@SHARED
async def test_rules_come_before_what_is_never_asked(stage: Stage) -> None:
    """A client's tool and a canvas run without a question: a denial holds, and one that nobody can judge asks."""
    everywhere = {"decision": "deny", "scope": "everywhere"}
    note = {"owner": "client:Editor", "tool": "show_note", **everywhere}
    await stage.client.ask("_ahpkit/rules/add", kind="tool", owner="host", tool="canvas_open", **everywhere)
    opening = await stage.turn('CALL canvas_open {"canvasId": "board", "instanceId": "one"}')
    assert [(call["status"], call["reason"]) for call in opening.calls] == [("cancelled", "denied")]
    assert not stage.board.calls

    await stage.client.ask("_ahpkit/rules/add", kind="path", pattern="/secret/**", **note)
    asked = await stage.turn('CALL show_note {"text": "no path is named"}', decisions=["deny-once"])
    assert ([call["status"] for call in asked.calls], stage.ran) == (["cancelled"], [])
    await stage.turn('CALL show_note {"text": "fine"}', decisions=["allow-once"])
    assert stage.ran == [("show_note", {"text": "fine"})]

    await stage.client.ask("_ahpkit/rules/add", kind="tool", **note)
    denied = await stage.turn('CALL show_note {"text": "no"}')
    assert [call["status"] for call in denied.calls] == ["cancelled"]


@pytest.mark.parametrize("kind", ACP)
@pytest.mark.parametrize("setting", ["allow", "deny"])
async def test_rules_come_before_the_setting_of_an_agent(tmp_path: Path, kind: str, setting: str) -> None:
    async with (
        agent_of_kind(kind, tmp_path, permissions=setting) as agent,
        staged(agent, tmp_path, servers=server(tmp_path)) as stage,
    ):
        await stage.server("test", "ready")
        add = 'CALL test_add {"a": 1, "b": 2}'
        await stage.turn(add)
        decided = (await stage.client.ask("_ahpkit/approvals/list"))["approvals"][-1]
        assert (decided["by"], decided["decision"]) == ("setting", "allowed" if setting == "allow" else "denied")
        about = {"owner": decided["owner"], "tool": "add", "scope": "everywhere"}
        opposite = "deny" if setting == "allow" else "allow"
        rule = await stage.client.ask("_ahpkit/rules/add", kind="tool", decision=opposite, **about)
        turn = await stage.turn(add)
        assert [call["status"] for call in turn.calls] == ["cancelled" if opposite == "deny" else "completed"]
        await stage.client.ask("_ahpkit/rules/remove", id=rule["id"])
        await stage.client.ask("_ahpkit/rules/add", kind="command", pattern="rm", decision="deny", **about)
        unclear = await stage.turn(add, decisions=["allow-once"] if setting == "allow" else [])
        assert [call["status"] for call in unclear.calls] == ["completed" if setting == "allow" else "cancelled"]
