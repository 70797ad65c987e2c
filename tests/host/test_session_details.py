"""Details of sessions that clients rely on: configuration, status, hints, metadata, completions, logins."""

from __future__ import annotations

import asyncio
from typing import Any

from ahpkit.dialects.v0_4.registry import NOTIFICATIONS
from ahpkit.host.agent import Turn
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration
from ahpkit.protocol.session.actions import session_customization_updated, session_server_tools_changed
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient

ROOT = "ahp-root://"

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "title": "Mode", "default": "ask", "enum": ["ask", "do"], "sessionMutable": True},
        "region": {"type": "string", "title": "Region"},
    },
}


async def configured(bench: Bench) -> None:
    async def session_config(directory: Any, values: Any) -> Any:
        return SCHEMA

    bench.agent.session_config = session_config  # type: ignore[method-assign]  # The test replaces a method.


async def listed(client: RawClient, session: str) -> Json:
    return next(one for one in (await client.ask("listSessions"))["items"] if one["resource"] == session)


@requirement("session:config:enum-seeds")
async def test_a_new_session_may_have_a_value_that_a_dynamic_property_does_not_list(bench: Bench) -> None:
    branch: Json = {"type": "string", "title": "Branch", "enum": ["main"], "enumDynamic": True}

    async def session_config(directory: Any, values: Any) -> Any:
        return {"type": "object", "properties": {"branch": branch}}

    bench.agent.session_config = session_config  # type: ignore[method-assign]  # The test replaces a method.
    client = await bench.client()
    session, _ = await bench.session(client, config={"branch": "feature"})
    assert (await bench.state(client, session))["config"]["values"] == {"branch": "feature"}
    wrong = await client.refused("createSession", "ahp-session:/w", config={"branch": 7})
    assert "branch" in wrong["message"]


@requirement("commands:create-session:config")
@requirement("session:config:session-mutable")
@requirement("session:action:config-validated")
async def test_config_values_of_a_new_session_are_checked_and_filled_in(bench: Bench) -> None:
    await configured(bench)
    client = await bench.client()
    resolved = await client.ask("resolveSessionConfig", config={"region": "eu"})
    session, _ = await bench.session(client, config=resolved["values"])
    config = (await bench.state(client, session))["config"]
    assert config == resolved
    assert config == {"schema": SCHEMA, "values": {"mode": "ask", "region": "eu"}}
    wrong = await client.refused("createSession", "ahp-session:/w", config={"mode": "fly"})
    assert wrong["code"] == -32602
    assert "mode" in wrong["message"]
    assert await client.rejected(session, {"type": "session/configChanged", "config": {"region": "us"}})
    assert await client.rejected(session, {"type": "session/configChanged", "config": {"mode": 7}})
    await client.accepted(session, {"type": "session/configChanged", "config": {"mode": "do"}})
    assert (await bench.state(client, session))["config"]["values"] == {"mode": "do", "region": "eu"}
    assert bench.agent.chats[0].configured[-1]["config"] == {"mode": "do", "region": "eu"}


@requirement("session:status:idle")
@requirement("session:status:input-needed")
async def test_the_status_of_a_session_follows_its_turn(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        await turn.tool_call("x").confirm(tool_input="{}")

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    assert (await listed(client, session))["status"] & 31 == 1
    await client.accepted(chat, say("go"))
    ready = await client.action("chat/toolCallReady")
    await client.action(lambda e: e["action"].get("changes", {}).get("status", 0) & 31 == 24)
    assert (await listed(client, session))["status"] & 31 == 24
    call = {"turnId": "t1", "toolCallId": ready["action"]["toolCallId"], "approved": False, "reason": "denied"}
    await client.accepted(chat, {"type": "chat/toolCallConfirmed", **call})
    await client.action("chat/turnComplete")
    await client.action(lambda e: e["action"].get("changes", {}).get("status", 0) & 31 == 1)
    assert (await listed(client, session))["status"] & 31 == 1


@requirement("session:state:default-chat-may-change")
async def test_the_host_may_point_the_default_chat_elsewhere(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    await client.ask("createChat", session, chat="ahp-chat:/second")
    bench.host.services.dispatch(session, {"type": "session/defaultChatChanged", "defaultChat": "ahp-chat:/second"})
    await client.action(lambda e: e["action"].get("defaultChat") == "ahp-chat:/second")
    assert (await bench.state(client, session))["defaultChat"] == "ahp-chat:/second"


@requirement("session:aggregate:status-from-latest-chat")
async def test_without_a_default_chat_the_chat_that_changed_last_gives_the_status(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        if turn.prompt == "wait":
            await asyncio.Event().wait()

    bench.agent.script = script
    client = await bench.client()
    session, first = await bench.session(client)
    second = "ahp-chat:/second"
    await client.ask("createChat", session, chat=second)
    await client.ask("subscribe", second)
    bench.host.services.dispatch(session, {"type": "session/defaultChatChanged"})
    await client.accepted(second, say("wait"))
    assert (await listed(client, session))["status"] & 31 == 8
    await client.accepted(first, say("be quick"))
    await client.action(lambda e: e["channel"] == first and e["action"]["type"] == "chat/turnComplete")
    assert "defaultChat" not in await bench.state(client, session)
    assert (await listed(client, session))["status"] & 31 == 1


@requirement("session:summary:project")
@requirement("session:summary:agent-absent")
@requirement("session:summary:working-directory-fallback", "session:aggregate:working-directory-not")
async def test_project_agent_and_directory_of_a_summary(bench: Bench, tmp_path: Any) -> None:
    own = tmp_path / "own"
    own.mkdir()
    client = await bench.client()
    newest = await bench.client(offer=("1.0.0",))
    bench.agent.directories = {}
    session, chat = await bench.session(newest, workingDirectories=[tmp_path.as_uri(), own.as_uri()])
    summary = await listed(client, session)
    assert summary["project"] == {"uri": tmp_path.as_uri(), "displayName": tmp_path.name}
    assert "agent" not in summary
    assert bench.agent.chats[0].chat.working_directory == tmp_path
    await newest.ask("createChat", session, chat="ahp-chat:/own", workingDirectories=[own.as_uri()])
    for each in (chat, "ahp-chat:/own"):
        await client.ask("subscribe", each)
        await client.accepted(each, say("hi"))
        await client.action(lambda e, each=each: (e["channel"], e["action"]["type"]) == (each, "chat/turnComplete"))
    worked = [one.chat.working_directory for one in bench.agent.chats]
    assert sorted(worked) == [tmp_path, own]
    assert (await listed(client, session))["workingDirectory"] == tmp_path.as_uri()
    assert (await bench.state(client, session))["summary"]["workingDirectory"] == tmp_path.as_uri()


@requirement("session:action:agent-change-deferred", "core:chat:model-agent-deferred")
async def test_an_agent_change_waits_for_the_turn(bench: Bench) -> None:
    release, chosen = asyncio.Event(), list[Any]()

    async def script(turn: Turn) -> None:
        await release.wait()
        chosen.append(turn.chat.agent)

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    reviewer: Json = {"type": "agent", "id": "a", "uri": "file:///reviewer.md", "name": "Reviewer"}
    plugin: Any = {"type": "plugin", "id": "p", "uri": "x:p", "name": "P", "children": [reviewer]}
    bench.host.services.dispatch(session, session_customization_updated(customization=plugin))
    await client.accepted(chat, say("go"))
    client.post(session, {"type": "session/agentChanged", "agent": {"uri": reviewer["uri"]}})
    await client.ask("ping")
    assert "agent" not in (await bench.state(client, session))["summary"]
    release.set()
    done = await client.action("chat/turnComplete")
    changed = await client.action("session/agentChanged")
    assert changed["serverSeq"] > done["serverSeq"]
    assert (await listed(client, session))["agent"] == {"uri": reviewer["uri"]}
    await client.accepted(chat, say("again", "next"))
    await client.action(
        lambda envelope: (envelope["action"]["type"], envelope["action"].get("turnId")) == ("chat/turnComplete", "next")
    )
    assert chosen == [None, {"uri": reviewer["uri"]}]


@requirement("session:action:meta-producer-merges")
async def test_changing_one_meta_key_keeps_the_others(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.chat.meta("example.com/one", 1)
        turn.chat.meta("example.com/two", {"a": [1]})
        turn.chat.meta("example.com/one", None)

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    await client.action("chat/turnComplete")
    assert (await bench.state(client, session))["_meta"] == {"example.com/two": {chat: {"a": [1]}}}


async def test_chats_of_one_session_do_not_overwrite_what_is_said_about_each_other(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.chat.meta("example.com/plan", turn.prompt)

    bench.agent.script = script
    client = await bench.client()
    session, first = await bench.session(client)
    second = "ahp-chat:/second"
    await client.ask("createChat", session, chat=second)
    await client.ask("subscribe", second)
    for chat in (first, second):
        await client.accepted(chat, say(f"plan of {chat}"))
        await client.action(
            lambda envelope, chat=chat: (
                envelope["channel"] == chat and envelope["action"]["type"] == "chat/turnComplete"
            )
        )

    plans = (await bench.state(client, session))["_meta"]["example.com/plan"]
    assert plans == {chat: f"plan of {chat}" for chat in (first, second)}
    await client.ask("disposeChat", second)
    assert (await bench.state(client, session))["_meta"]["example.com/plan"] == {first: f"plan of {first}"}


class SlowAndFast(Feature):
    """One source of completions that never answers, one that fails, one that does."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def register(self, host: Registration, services: Services) -> None:
        host.completions.add(self._complete)

    async def _complete(self, chat_uri: str, text: str, offset: int) -> Any:
        if self._answer is None:
            await asyncio.Event().wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@requirement("commands:completions:prompt-best-effort")
@requirement("commands:completions:order")
async def test_completions_come_in_order_from_whoever_answers_in_time(bench: Bench) -> None:
    items = [{"insertText": name, "attachment": {"type": "simple", "label": name}} for name in ("b", "a")]
    await bench.stop()
    bench.features = [SlowAndFast(None), SlowAndFast(RuntimeError("broken")), SlowAndFast(items)]
    await bench.start()
    client = await bench.client()
    _, chat = await bench.session(client)
    result = await client.ask("completions", chat, kind="userMessage", text="x", offset=1)
    assert [item["insertText"] for item in result["items"]] == ["b", "a"]


@requirement("core:wire:auth-error-data")
async def test_an_agent_that_needs_a_login_says_which_before_a_session_is_made(bench: Bench) -> None:
    resource: Any = {"resource": "https://api.example.com", "resource_name": "Example"}
    bench.agent.protected_resources = [resource, {"resource": "https://more.example.com", "required": False}]
    client = await bench.client()
    error = await client.refused("createSession", "ahp-session:/x")
    assert error["code"] == -32007
    assert error["data"]["resources"] == [resource]
    await client.ask("authenticate", resource="https://api.example.com", token="secret")
    assert await client.ask("createSession", "ahp-session:/x") is None
    assert "secret" not in str(client.received)


@requirement("core:wire:host-notifications")
async def test_the_host_sends_only_the_notifications_of_the_protocol(bench: Bench) -> None:
    assert set(NOTIFICATIONS) == {
        "action",
        "root/sessionAdded",
        "root/sessionRemoved",
        "root/sessionSummaryChanged",
        "auth/required",
        "otlp/exportLogs",
        "otlp/exportTraces",
        "otlp/exportMetrics",
    }
    client = await bench.client(ROOT)
    session, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    await client.action("chat/turnComplete")
    await client.accepted(session, {"type": "session/titleChanged", "title": "x"})
    await client.notification("root/sessionSummaryChanged")
    await client.ask("disposeSession", session)
    await client.notification("root/sessionRemoved")
    assert {message["method"] for message in client.received if "method" in message} <= set(NOTIFICATIONS)


@requirement("session:tool:annotations-advisory")
async def test_a_tool_that_calls_itself_harmless_is_asked_about_all_the_same(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        await turn.tool_call("peek").confirm(tool_input="{}")

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    harmless: Any = {"name": "peek", "annotations": {"readOnlyHint": True, "destructiveHint": False}}
    bench.host.services.dispatch(session, session_server_tools_changed(tools=[harmless]))
    await client.accepted(chat, say("go"))
    ready = await client.action("chat/toolCallReady")
    assert "confirmed" not in ready["action"]
    part = (await bench.state(client, chat))["activeTurn"]["responseParts"][0]
    assert part["toolCall"]["status"] == "pending-confirmation"


@requirement("session:action:scoped-by-channel", "core:wire:routing")
async def test_an_action_changes_the_session_of_its_channel_only(bench: Bench) -> None:
    client = await bench.client()
    one, _ = await bench.session(client)
    two, _ = await bench.session(client)
    before = await bench.state(client, two)
    await client.accepted(one, {"type": "session/titleChanged", "title": "only one"})
    assert (await bench.state(client, one))["summary"]["title"] == "only one"
    assert await bench.state(client, two) == before


# The title.


async def test_a_session_is_called_after_its_first_message_whatever_the_agent(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    for number, text in enumerate(["  Plan a   trip\nto Rome", "And Paris?"]):
        await client.accepted(chat, say(text, f"t{number}"))
        await client.action(lambda envelope: envelope["action"]["type"] == "chat/turnComplete")
    assert (await bench.state(client, session))["summary"]["title"] == "Plan a trip"


async def test_the_agent_knows_a_better_title(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.chat.title("Rome in May")

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("word " * 30))
    await client.action(lambda envelope: envelope["action"]["type"] == "chat/turnComplete")
    titles = [one["action"]["title"] for one in client.actions(session) if "title" in one["action"]]
    assert titles == ["word " * 11 + "word…", "Rome in May"]
