"""A scripted ACP agent behind a real host: what clients see in the states, and what reaches the agent from them."""

import asyncio
import itertools
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp import HostTerminals
from ahpkit.client import Rejected
from ahpkit.client.client import Client
from ahpkit.client.errors import TurnError
from ahpkit.host.agent import Chat as AgentSideChat
from ahpkit.host.resources.feature import Resources
from ahpkit.host.terminals.feature import Terminals
from ahpkit.protocol.errors import AhpError
from ahpkit.testing.acp_agent import CAPABILITIES
from ahpkit.testing.memory_host import MemoryHost, memory_host
from ahpkit.testing.recording import RecordingTurn
from support import requirement
from support.scripted_acp import Scripted
from support.waiting import until

ASK: dict[str, Any] = {
    "request": "session/request_permission",
    "params": {
        "toolCall": {
            "toolCallId": "t",
            "title": "Write a",
            "kind": "edit",
            "rawInput": {"path": "a"},
            "content": [{"type": "diff", "path": "a", "oldText": "x", "newText": "y"}],
        },
        "options": [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ],
    },
    "then": {"yes": [{"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}}]},
}


class Hosted:
    """A client in a session with the agent."""

    def __init__(self, host: MemoryHost, client: Client, session: Any, chat: Any) -> None:
        self.host = host
        self.client = client
        self.session = session
        self.chat = chat

    def state(self, uri: str | None = None) -> Any:
        return self.host.host.services.state(uri or self.chat.uri)

    def statuses(self) -> list[str]:
        """How the tool calls of the running turn stand."""
        return [call["status"] for call in self.calls()] if self.state().get("activeTurn") else []

    def calls(self) -> list[Any]:
        """The tool calls of the last turn."""
        state = self.state()
        turn = state.get("activeTurn") or state["turns"][-1]
        return [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]


@asynccontextmanager
async def hosted(scripted: Scripted, **script: Any) -> AsyncGenerator[Hosted]:
    resources = Resources(content_directory=scripted.directory / "content")
    workspace = scripted.chat().working_directory
    terminals = Terminals(resources.reading, directory=workspace)

    def given(chat: AgentSideChat) -> HostTerminals:
        return HostTerminals(terminals, chat)

    agent = scripted.agent(given={"files": resources.agent_files, "terminals": given}, **script)
    async with (
        memory_host(agent, features=[resources, terminals], directory=workspace) as host,
        host.client() as client,
    ):
        session = await client.create_session(working_directory=workspace.as_uri())
        yield Hosted(host, client, session, await session.chat())


async def test_a_turn_with_an_approved_tool_call_is_in_the_state_of_the_chat(scripted: Scripted) -> None:
    steps = [{"think": "hm"}, {"text": "Writing. "}, ASK, {"text": "Done."}]
    async with hosted(scripted, turns=[steps]) as at:
        asking = asyncio.create_task(at.chat.ask("write", on_approval="wait"))
        await until(lambda: at.statuses() == ["pending-confirmation"])
        [pending] = at.calls()
        at.chat.approve("t", option_id="yes")
        await asking

        assert pending["options"][0] == {"id": "yes", "label": "Yes", "kind": "approve", "group": 0}
        assert pending["edits"]["items"][0]["diff"] == {"added": 1, "removed": 1}
        content = pending["edits"]["items"][0]["after"]["content"]["uri"]
        read = await at.client.request("resourceRead", {"uri": content, "encoding": "utf-8"})
        assert read["data"] == "y"
        [turn] = at.state()["turns"]
        assert [part["kind"] for part in turn["responseParts"]] == ["reasoning", "markdown", "toolCall", "markdown"]
        assert at.calls()[0]["status"] == "completed"


async def test_a_denied_tool_call_is_over_and_the_agent_hears_it(scripted: Scripted) -> None:
    async with hosted(scripted, turns=[[ASK, {"text": "As you wish."}]]) as at:
        asking = asyncio.create_task(at.chat.ask("write", on_approval="wait"))
        await until(lambda: at.statuses() == ["pending-confirmation"])
        at.chat.deny("t", reason="not now")

        assert await asking == "As you wish."
        assert (at.calls()[0]["status"], at.calls()[0]["reason"]) == ("cancelled", "denied")
        assert scripted.answers()[0]["outcome"]["optionId"] == "no"
        assert scripted.answers()[0]["_meta"] == {"ahpkit/permission-answer": {"reason": "not now"}}


async def test_a_crash_is_an_error_of_the_turn_and_the_next_turn_works(scripted: Scripted) -> None:
    async with hosted(scripted, turns=[[{"text": "half"}, {"stderr": "boom\n"}, {"kill": 9}]]) as at:
        with pytest.raises(TurnError, match="boom"):
            await at.chat.ask("one")

        assert await at.chat.ask("two") == "You said: two"
        first = at.state()["turns"][0]
        error = first["responseParts"][-1]["error"]
        assert (first["state"], error["errorType"]) == ("error", "acp/agent-exited")


@pytest.mark.parametrize("way", ["session/load", "session/resume"])
async def test_a_crash_while_the_conversation_is_taken_up_again_ends_the_turn_with_an_error(
    scripted: Scripted, way: str
) -> None:
    """Somebody kills each process that the host starts, once it has been asked for the conversation."""
    only_loads: dict[str, Any] = {"agentCapabilities": {**CAPABILITIES, "sessionCapabilities": {}}}
    initialize = only_loads if way == "session/load" else {}
    stuck: list[dict[str, Any]] = [{"stderr": "boom\n"}, {"sleep": None}]
    turns = [[{"text": "x"}, {"after": [{"exit": 0}]}]]
    async with hosted(scripted, initialize=initialize, methods={way: stuck}, turns=turns) as at:

        async def ask() -> str:
            try:
                return await at.chat.ask("two")
            except AhpError as error:
                if "exited with code 0" not in str(error):
                    raise
                return await at.chat.ask("two")  # Only then did the host see that the first process had ended.

        assert await at.chat.ask("one") == "x"
        await until(lambda: not scripted.running())
        asking = asyncio.create_task(ask())
        for attempt in itertools.count(1):
            await until(lambda number=attempt: asking.done() or len(scripted.received(way)) == number)
            if asking.done():
                break
            for process in scripted.running():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        with pytest.raises(AhpError, match="boom"):
            await asking
        assert at.state().get("activeTurn") is None
        last = at.state()["turns"][-1]
        assert (last["state"], last["responseParts"][-1]["error"]["errorType"]) == ("error", "acp/agent-exited")


async def test_a_cancel_of_a_client_reaches_the_agent(scripted: Scripted) -> None:
    async with hosted(scripted, turns=[[{"text": "a"}, {"wait_cancel": True}, {"stop": "cancelled"}]]) as at:
        at.chat.send("go")
        await until(lambda: bool(at.state().get("activeTurn", {}).get("responseParts")))
        at.chat.cancel()
        await until(lambda: bool(scripted.received("session/cancel")))

        assert await at.chat.ask("next") == "You said: next"
        assert [turn["state"] for turn in at.state()["turns"]] == ["cancelled", "complete"]


async def test_options_commands_plan_and_title_are_in_the_state_of_the_session(scripted: Scripted) -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}
    opened = [
        {"update": {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "web"}]}},
        {"update": {"sessionUpdate": "session_info_update", "title": "About cats"}},
    ]
    plan = {"update": {"sessionUpdate": "plan", "entries": [{"content": "Look", "status": "pending"}]}}
    async with hosted(scripted, session={"modes": modes}, opened=opened, turns=[[plan, {"text": "ok"}]]) as at:
        await at.chat.ask("x")
        session = at.state(at.session.uri)

        assert session["title"] == "About cats"
        assert session["config"]["values"]["mode"] == "ask"
        assert session["_meta"]["ahpkit/plan"][at.chat.uri] == [{"entries": [{"content": "Look", "status": "pending"}]}]
        assert "web" in str(session["customizations"])

        at.client.dispatch(at.session.uri, {"type": "session/configChanged", "config": {"mode": "code"}})
        await until(lambda: bool(scripted.received("session/set_mode")))
        assert scripted.received("session/set_mode")[0]["modeId"] == "code"


async def test_an_agent_that_cannot_start_fails_the_creation_with_the_reason(scripted: Scripted) -> None:
    with pytest.raises(AhpError, match="no config"):
        async with hosted(scripted, methods={"initialize": [{"stderr": "no config\n"}, {"exit": 1}]}):
            pass


async def test_an_agent_that_knows_logins_but_needs_none_opens_one_session_after_another(scripted: Scripted) -> None:
    async with hosted(scripted, initialize={"authMethods": [{"id": "web", "name": "Browser"}]}) as at:
        other = await (await at.client.create_session()).chat()

        assert await other.ask("x") == "You said: x"
        [agent] = at.state("ahp-root://")["agents"]
        assert agent["protectedResources"][0]["resource"] == "acp://scripted/web"


async def test_a_login_that_a_client_sends_makes_the_next_session_work(scripted: Scripted) -> None:
    methods = [{"id": "key", "name": "Key", "type": "env_var", "vars": [{"name": "SOME_KEY"}]}]
    agent = scripted.agent(initialize={"authMethods": methods}, requires_env="SOME_KEY")
    async with memory_host(agent, directory=scripted.directory) as host, host.client() as client:
        told: list[Any] = []
        client.on_notification(lambda method, params: told.append(params) if method == "auth/required" else None)
        with pytest.raises(AhpError, match="Log in first: Key"):
            await client.create_session()
        await until(lambda: told)
        [needed] = told
        assert (needed["resource"]["resource"], needed["reason"]) == ("acp://scripted/key", "required")
        await client.authenticate(needed["resource"]["resource"], "sk-1")
        chat = await (await client.create_session()).chat()

        assert await chat.ask("x") == "You said: x"


async def test_commands_of_the_agent_run_in_terminals_that_clients_can_watch(scripted: Scripted) -> None:
    shown = {"sessionUpdate": "tool_call", "toolCallId": "t", "status": "in_progress"}
    steps = [
        {"request": "terminal/create", "params": {"command": "echo", "args": ["hello from a pty"]}, "say": True},
        {"update": shown},
    ]
    async with hosted(scripted, turns=[steps]) as at:
        answer = await at.chat.ask("x")

        assert "ahp-terminal:/" in answer
        [terminal] = at.state("ahp-root://")["terminals"]
        await until(lambda: "hello from a pty" in str(at.state(terminal["resource"])))


@requirement("extensibility:methods:custom-request-name")
@requirement("extensibility:capabilities:checked-before-call")
async def test_an_extension_request_nobody_offers_is_answered_as_unknown(scripted: Scripted) -> None:
    async with hosted(scripted, turns=[[{"request": "_example.com/analytics/summary", "say": True}]]) as at:
        assert "-32601" in await at.chat.ask("x")


async def test_sessions_of_one_agent_do_not_disturb_each_other(scripted: Scripted) -> None:
    async with hosted(scripted, turns=[[{"text": "a"}, {"sleep": None}]], config={"cancel_timeout": 0.2}) as at:
        other = await (await at.client.create_session()).chat()
        at.chat.send("hang")
        other.send("hang too")
        await until(lambda: len(scripted.received("session/prompt")) == 2)
        at.chat.cancel()

        assert await at.chat.ask("again") == "You said: again"
        assert at.state(other.uri).get("activeTurn")


async def test_a_fork_goes_on_from_the_agents_own_copy_of_the_conversation(scripted: Scripted) -> None:
    async with hosted(scripted, turns=[[{"text": "one"}]]) as at:
        await at.chat.ask("first")
        [turn] = at.state()["turns"]
        forked = await at.client.create_session(fork=(at.session.uri, turn["id"]))
        chat = await forked.chat()
        await chat.ask("second")

        source = scripted.received("session/prompt")[0]["sessionId"]
        assert [params["sessionId"] for params in scripted.received("session/fork")] == [source]
        assert scripted.received("session/prompt")[1]["sessionId"] == f"{source}-fork"
        told = [part["kind"] for part in at.state(chat.uri)["turns"][-1]["responseParts"]]
        assert "systemNotification" not in told


async def test_the_agent_reads_what_an_editor_has_not_saved_and_writes_to_disk(scripted: Scripted) -> None:
    path = scripted.chat().working_directory / "notes.txt"
    path.write_text("saved")
    steps = [
        {"request": "fs/read_text_file", "params": {"path": str(path)}},
        {"request": "fs/write_text_file", "params": {"path": str(path), "content": "by the agent"}},
        {"request": "fs/read_text_file", "params": {"path": str(path.with_name("missing.txt"))}},
    ]
    open_files = {path.as_uri(): "typed, not saved"}
    async with hosted(scripted, turns=[steps]) as at, at.host.client(unsaved_text=open_files.get) as editor:
        await editor.session(at.session.uri)
        await at.chat.ask("read and write")

    read, written, missing = scripted.answers()
    assert (read, written, missing["code"]) == ({"content": "typed, not saved"}, {}, -32002)
    assert path.read_text() == "by the agent"


HOOKS = f'{{"hooks": {{"x": "{"a" * 20_000}"}}}}'
"""Longer than most texts may be that are shown."""


def write_hook(scripted: Scripted) -> tuple[Path, list[Any]]:
    path = scripted.chat().working_directory / ".github" / "hooks" / "evil.json"
    return path, [{"request": "fs/write_text_file", "params": {"path": str(path), "content": HOOKS}}]


@pytest.mark.parametrize("policy", ["ask", "allow"])
async def test_what_can_cause_execution_is_written_only_when_a_person_agreed_and_saw_what_it_is(
    scripted: Scripted, policy: str
) -> None:
    path, steps = write_hook(scripted)
    async with hosted(scripted, turns=[steps], config={"permissions": policy}) as at:
        asking = asyncio.create_task(at.chat.ask("write", on_approval="wait"))
        await until(lambda: at.statuses() == ["pending-confirmation"])
        [pending] = at.calls()
        assert not path.exists()
        at.chat.approve(pending["toolCallId"])
        await asking
        assert "hook file" in pending["confirmationTitle"]
        assert json.loads(pending["toolInput"]) == {"path": str(path), "content": HOOKS}
        assert at.calls()[0]["status"] == "completed"
    assert path.read_text() == HOOKS


async def test_what_can_cause_execution_and_was_denied_is_not_written(scripted: Scripted) -> None:
    path, steps = write_hook(scripted)
    async with hosted(scripted, turns=[steps]) as at:
        asking = asyncio.create_task(at.chat.ask("write", on_approval="wait"))
        await until(lambda: at.statuses() == ["pending-confirmation"])
        at.chat.deny(at.calls()[0]["toolCallId"])
        await asking
    assert "was not approved" in scripted.answers()[0]["message"]
    assert not path.exists()


async def held_elsewhere(scripted: Scripted) -> None:
    """A conversation with the agent that no host took part in."""
    agent, chat = scripted.agent(), scripted.chat()
    turn = RecordingTurn("What is 6 times 7?", chat=chat)
    await (await agent.open(chat)).run(turn)
    await agent.aclose()


async def test_a_conversation_held_elsewhere_is_listed_opened_and_goes_on(scripted: Scripted) -> None:
    await held_elsewhere(scripted)
    async with hosted(scripted) as at:
        [kept] = [one for one in await at.client.sessions() if one["resource"] != at.session.uri]
        session = await at.client.session(kept["resource"])
        chat = await session.chat()

        assert kept["title"] == "What is 6 times 7?"
        assert [(turn["message"]["text"]) for turn in chat.state["turns"]] == ["What is 6 times 7?"]
        assert await chat.ask("And 7 times 6?") == "You said: And 7 times 6?"
        assert len(chat.state["turns"]) == 2
        assert len(await at.client.sessions()) == 2
        [taken_up] = scripted.received("session/resume")
        assert taken_up["sessionId"] == scripted.received("session/prompt")[0]["sessionId"]


async def test_what_is_disposed_of_here_is_deleted_by_the_agent(scripted: Scripted) -> None:
    await held_elsewhere(scripted)
    async with hosted(scripted) as at:
        [kept] = [one for one in await at.client.sessions() if one["resource"] != at.session.uri]
        session = await at.client.session(kept["resource"])
        await (await session.chat()).ask("go on")

        await session.dispose()

        [deleted] = scripted.received("session/delete")
        assert deleted["sessionId"] == scripted.received("session/prompt")[0]["sessionId"]
        assert [one["resource"] for one in await at.client.sessions()] == [at.session.uri]


async def test_a_host_that_stops_deletes_nothing(scripted: Scripted) -> None:
    async with hosted(scripted) as at:
        await at.chat.ask("hello")

    assert scripted.received("session/delete") == []


MODES: dict[str, Any] = {
    "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "code"}, {"id": "plan"}]}
}


async def test_a_mode_chosen_when_the_session_is_created_holds_from_the_first_turn_on(scripted: Scripted) -> None:
    async with hosted(scripted, session=MODES) as at:
        session = await at.client.create_session(
            working_directory=at.session.state["workingDirectories"][0], config={"mode": "code"}
        )
        await (await session.chat()).ask("x")

        assert [change["modeId"] for change in scripted.received("session/set_mode")] == ["code"]
        assert session.confirmed.get("config", {}).get("values") == {"mode": "code"}


async def test_options_that_depend_on_another_are_as_the_agent_has_them_now(scripted: Scripted) -> None:
    def reported(model: str, *levels: str) -> dict[str, Any]:
        choices = {"model": ("small", "large"), "level": levels}
        current = {"model": model, "level": levels[0]}
        made = [
            {"id": id, "type": "select", "currentValue": current[id], "options": [{"value": value} for value in values]}
            for id, values in choices.items()
        ]
        return {"configOptions": made}

    answers: list[Any] = [{"result": reported("large", "off", "high")}]
    later = [{"update": {"sessionUpdate": "config_option_update", **reported("small", "off", "low")}}, {"text": "ok"}]
    methods = {"session/set_config_option": answers}
    async with hosted(scripted, session=reported("small", "off", "low"), methods=methods, turns=[later]) as first:
        directory = first.session.state["workingDirectories"][0]
        session = await first.client.create_session(working_directory=directory)
        assert isinstance(await session.set_config({"level": "high"}), Rejected)
        await session.set_config({"model": "large"}).accepted()
        await until(lambda: "ahpkit/config" in session.confirmed.get("_meta", {}))
        assert isinstance(await session.set_config({"level": "low"}), Rejected)
        await (await session.chat()).ask("back to small")

        assert "ahpkit/config" not in session.confirmed.get("_meta", {})
        assert isinstance(await session.set_config({"level": "high"}), Rejected)


async def test_what_an_agent_says_while_its_session_is_disposed_is_for_nobody(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    title = {"update": {"sessionUpdate": "session_info_update", "title": "Goodbye"}}
    last: dict[str, Any] = {"session/close": [title, {"result": {}}], "session/delete": [title, {"result": {}}]}
    async with hosted(scripted, methods=last) as at:
        await at.session.dispose()
        await until(lambda: not scripted.running())

    assert scripted.received("session/delete")
    assert "session/update" not in caplog.text


async def test_what_a_client_says_about_a_session_it_creates_is_kept_and_reaches_the_agent(scripted: Scripted) -> None:
    meta = {"client.dev/purpose": {"ticket": 7}, "ahpkit/plan": "not theirs to set"}
    async with hosted(scripted) as at:
        uri = "ahp-session:/mine"
        await at.client.request("createSession", {"_meta": meta}, channel=uri)
        session = await at.client.session(uri)
        await session.wait_ready()

        assert session.confirmed.get("_meta", {})["client.dev/purpose"] == {"ticket": 7}
        assert "ahpkit/plan" not in session.confirmed.get("_meta", {})
        assert scripted.received("session/new")[-1]["_meta"] == {"client.dev/purpose": {"ticket": 7}}
