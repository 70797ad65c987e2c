"""The gate on a host: guards before everything, rules that people made, results that are held back, the record."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.agent import Chat, ToolOutcome, Turn
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration
from ahpkit.protocol.meta_keys import AUTOMATIC, SETTLED
from ahpkit.tools.gate import Objection
from support.bench import Bench, calling, say
from support.raw_client import Json, RawClient

TOOL = {"name": "show", "title": "Show", "inputSchema": {"type": "object"}}


class Guard(Feature):
    """Denies what it is told to, and leaves to a person what it doubts."""

    name = "guard"

    def __init__(self) -> None:
        self.denied: set[str] = set()
        self.doubted: set[str] = set()
        self.asked: list[tuple[str, str]] = []

    def register(self, host: Registration, services: Services) -> None:
        host.turns.guard_tool.add(self._guard)

    async def _guard(self, chat: Chat, name: str, tool_input: str, owner: str | None) -> Objection | None:
        self.asked.append((name, tool_input))
        if name in self.denied:
            return Objection(f"{name} is forbidden here")
        return Objection("look twice", asks=True) if name in self.doubted else None


def runs(outcomes: list[Any], ran: list[str], name: str = "write", **options: Any) -> Any:
    async def run(given: str) -> ToolOutcome:
        ran.append(given)
        return ToolOutcome(success=True, content=[{"type": "text", "text": "done"}])

    async def script(turn: Turn) -> None:
        call = turn.tool_call(name)
        outcomes.append(await call.perform(run, tool_input=turn.prompt, **options))

    return script


async def claim(client: RawClient, session: str, *tools: Json) -> None:
    active = {"clientId": client.client_id, "displayName": "Editor", "tools": list(tools)}
    await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": active})


def about(chat: str, turn_id: str, kind: str) -> Any:
    """Finds the action of a kind in a turn of a chat."""

    def found(envelope: Json) -> bool:
        action = envelope["action"]
        return envelope["channel"] == chat and action["type"] == kind and action["turnId"] == turn_id

    return found


async def pending(client: RawClient, chat: str, turn_id: str) -> Json:
    return (await client.action(about(chat, turn_id, "chat/toolCallReady")))["action"]


async def decide(client: RawClient, chat: str, call: Json, option: str, *, reason: str = "denied") -> None:
    approved = option.startswith("allow")
    action = {"type": "chat/toolCallConfirmed", "turnId": call["turnId"], "toolCallId": call["toolCallId"]}
    how = {"confirmed": "user-action"} if approved else {"reason": reason}
    await client.accepted(chat, {**action, "approved": approved, **how, "selectedOptionId": option})


async def over(client: RawClient, chat: str, turn_id: str) -> None:
    await client.action(about(chat, turn_id, "chat/turnComplete"))


@pytest.mark.parametrize("asks", [True, False])
async def test_a_guard_denies_whether_or_not_a_person_would_be_asked(bench: Bench, asks: bool) -> None:
    await bench.stop()
    guard = Guard()
    guard.denied.add("write")
    bench.features = [guard]
    await bench.start()
    outcomes: list[Any] = []
    ran: list[str] = []
    bench.agent.script = runs(outcomes, ran, asks=asks)
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("{}"))
    await over(client, chat, "t1")
    assert ran == []
    assert "forbidden here" in outcomes[0].error
    call = (await bench.state(client, chat))["turns"][-1]["responseParts"][0]["toolCall"]
    assert (call["status"], call["reason"]) == ("cancelled", "denied")
    assert call["_meta"][SETTLED] == "guard"


async def test_a_guard_denies_a_clients_tool(bench: Bench) -> None:
    await bench.stop()
    guard = Guard()
    guard.denied.add("show")
    bench.features = [guard]
    await bench.start()
    outcomes: list[Any] = []
    bench.agent.script = calling(outcomes, "show")
    client = await bench.client()
    session, chat = await bench.session(client)
    await claim(client, session, TOOL)
    await client.accepted(chat, say("go"))
    await over(client, chat, "t1")
    assert "forbidden here" in outcomes[0].error
    assert not [e for e in client.actions(chat) if e["action"].get("confirmed") == "not-needed"]


async def test_the_owner_of_a_running_tool_may_deny_it(bench: Bench) -> None:
    outcomes: list[Any] = []
    bench.agent.script = calling(outcomes, "show")
    owner, other = await bench.client(), await bench.client()
    session, chat = await bench.session(owner)
    await other.ask("subscribe", chat)
    await claim(owner, session, TOOL)
    await owner.accepted(chat, say("go"))
    call = await pending(owner, chat, "t1")
    deny = {
        "type": "chat/toolCallConfirmed",
        "turnId": "t1",
        "toolCallId": call["toolCallId"],
        "approved": False,
        "reason": "denied",
        "reasonMessage": "I do not know this tool",
    }
    assert "running" in await other.rejected(chat, deny)
    await owner.accepted(chat, deny)
    await over(owner, chat, "t1")
    shown = (await bench.state(owner, chat))["turns"][-1]["responseParts"][0]["toolCall"]
    assert (shown["status"], shown["reason"], shown["reasonMessage"]) == (
        "cancelled",
        "denied",
        "I do not know this tool",
    )
    assert outcomes[0].error == "I do not know this tool"


async def hold_back(client: RawClient, chat: str) -> Json:
    """The owner of the tool gives a result that must be confirmed; returns the turn and the call."""
    call = await pending(client, chat, "t1")
    this = {"turnId": "t1", "toolCallId": call["toolCallId"]}
    result = {"success": True, "pastTenseMessage": "Shown", "content": [{"type": "text", "text": "secret"}]}
    done = {"type": "chat/toolCallComplete", **this, "result": result, "requiresResultConfirmation": True}
    await client.accepted(chat, done)
    return this


@pytest.mark.parametrize("released", [True, False])
async def test_a_result_that_must_be_confirmed_is_held_back(bench: Bench, released: bool) -> None:
    outcomes: list[Any] = []
    bench.agent.script = calling(outcomes, "show")
    client = await bench.client()
    session, chat = await bench.session(client)
    await claim(client, session, TOOL)
    await client.accepted(chat, say("go"))
    this = await hold_back(client, chat)
    await asyncio.sleep(0)
    assert outcomes == []
    automatic = {} if released else {"_meta": {AUTOMATIC: True}}
    await client.accepted(chat, {"type": "chat/toolCallResultConfirmed", **this, "approved": released, **automatic})
    await over(client, chat, "t1")
    assert outcomes[0].success is released
    assert ("secret" in str(outcomes[0].content)) is released
    [entry] = (await client.ask("_ahpkit/approvals/list"))["approvals"]
    decided = ("allowed", "person") if released else ("denied", "client")
    assert (entry["of"], entry["decision"], entry["by"]) == ("result", *decided)
    assert entry["who"] == client.client_id


async def test_a_remembered_choice_decides_the_next_calls_of_this_session_only(bench: Bench) -> None:
    outcomes: list[Any] = []
    ran: list[str] = []
    bench.agent.script = runs(outcomes, ran)
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("{}"))
    call = await pending(client, chat, "t1")
    assert call["options"][0]["id"] == "allow-once"
    await decide(client, chat, call, "allow:tool:session")
    await over(client, chat, "t1")
    await client.accepted(chat, say("{}", "t2"))
    assert (await pending(client, chat, "t2"))["confirmed"] == "setting"
    await over(client, chat, "t2")
    _, other = await bench.session(client)
    await client.accepted(other, say("{}"))
    asked = await pending(client, other, "t1")
    assert "confirmed" not in asked
    await decide(client, other, asked, "deny:tool:everywhere", reason="skipped")
    await over(client, other, "t1")
    await client.accepted(chat, say("{}", "t3"))
    await over(client, chat, "t3")
    assert [outcome.success for outcome in outcomes] == [True, True, False, False]
    assert len(ran) == 2
    listed = (await client.ask("_ahpkit/rules/list"))["rules"]
    assert [(rule["decision"], rule["scope"]) for rule in listed] == [("allow", "session"), ("deny", "everywhere")]
    record = (await client.ask("_ahpkit/approvals/list"))["approvals"]
    assert [(entry["decision"], entry["by"]) for entry in record] == [
        ("allowed", "person"),
        ("allowed", "rule"),
        ("denied", "person"),
        ("denied", "rule"),
    ]
    assert record[0]["who"] == client.client_id
    assert record[1]["who"] == listed[0]["id"]
    assert record[0]["shown"]["input"] == "{}"


async def test_rules_are_taken_back_and_survive_a_restart(bench: Bench) -> None:
    outcomes: list[Any] = []
    bench.agent.script = runs(outcomes, [])
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("{}"))
    await decide(client, chat, await pending(client, chat, "t1"), "allow:tool:everywhere")
    await over(client, chat, "t1")
    await bench.stop()
    await bench.start()
    client = await bench.client()
    [rule] = (await client.ask("_ahpkit/rules/list"))["rules"]
    assert rule["says"] == "Always allow write everywhere"
    await client.ask("_ahpkit/rules/remove", id=rule["id"])
    assert (await client.ask("_ahpkit/rules/list"))["rules"] == []
    assert (await client.refused("_ahpkit/rules/remove", id=rule["id"]))["code"] == -32008
    _, chat = await bench.session(client)
    await client.accepted(chat, say("{}"))
    assert "confirmed" not in await pending(client, chat, "t1")


@pytest.mark.parametrize("decision", ["allow", "deny"])
@pytest.mark.parametrize("rule_by_link", [True, False])
async def test_a_rule_of_a_workspace_holds_there_by_whatever_name_it_is_reached(
    bench: Bench, tmp_path: Path, decision: str, rule_by_link: bool
) -> None:
    real, link, outcomes = tmp_path / "real", tmp_path / "link", list[Any]()
    real.mkdir()
    link.symlink_to(real)
    bench.agent.script = runs(outcomes, [])
    client = await bench.client()
    place, working = (link, real) if rule_by_link else (real, link)
    about = {"kind": "tool", "owner": f"agent:{bench.agent.provider}", "tool": "write", "scope": "workspace"}
    await client.ask("_ahpkit/rules/add", decision=decision, place=place.as_uri(), **about)
    _, chat = await bench.session(client, workingDirectory=working.as_uri())
    await client.accepted(chat, say("{}"))
    await over(client, chat, "t1")
    assert [outcome.success for outcome in outcomes] == [decision == "allow"]


async def test_rules_of_a_session_go_with_it(bench: Bench) -> None:
    bench.agent.script = runs([], [])
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("{}"))
    await decide(client, chat, await pending(client, chat, "t1"), "allow:tool:chat")
    await over(client, chat, "t1")
    assert len((await client.ask("_ahpkit/rules/list"))["rules"]) == 1
    await client.ask("disposeSession", session)
    assert (await client.ask("_ahpkit/rules/list"))["rules"] == []


async def test_a_new_chat_with_the_uri_of_one_that_is_gone_has_none_of_its_rules(bench: Bench) -> None:
    outcomes: list[Any] = []
    ran: list[str] = []
    bench.agent.script = runs(outcomes, ran)
    client = await bench.client()
    session, _ = await bench.session(client)
    chat = "ahp-chat:/again"
    for turn_id in ("t1", "t2"):
        await client.ask("createChat", session, chat=chat)
        await client.ask("subscribe", chat)
        await client.accepted(chat, say("x", turn_id))
        call = await pending(client, chat, turn_id)
        assert "confirmed" not in call
        await decide(client, chat, call, "allow:tool:chat")
        await over(client, chat, turn_id)
        await client.ask("disposeChat", chat)
    assert (await client.ask("_ahpkit/rules/list"))["rules"] == []


async def test_a_call_that_is_given_up_is_withdrawn_and_nothing_runs(bench: Bench) -> None:
    ran: list[str] = []
    waiting = asyncio.Event()

    async def script(turn: Turn) -> None:
        inner = asyncio.ensure_future(runs([], ran)(turn))
        await waiting.wait()
        inner.cancel()
        await asyncio.gather(inner, return_exceptions=True)

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("{}"))
    call = await pending(client, chat, "t1")
    waiting.set()
    await over(client, chat, "t1")
    shown = (await bench.state(client, chat))["turns"][-1]["responseParts"][0]["toolCall"]
    assert (shown["status"], shown["reason"]) == ("cancelled", "skipped")
    assert ran == []
    late = {"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": call["toolCallId"], "approved": True}
    assert await client.rejected(chat, {**late, "confirmed": "user-action"})


async def test_a_result_is_not_asked_about_any_more_when_its_caller_has_given_up(bench: Bench) -> None:
    given_up = asyncio.Event()

    async def script(turn: Turn) -> None:
        inner = asyncio.ensure_future(turn.call_tool("show", "{}"))
        await given_up.wait()
        inner.cancel()
        await asyncio.gather(inner, return_exceptions=True)
        await turn.wait_steering()

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await claim(client, session, TOOL)
    await client.accepted(chat, say("go"))
    this = await hold_back(client, chat)
    given_up.set()
    await client.action(about(chat, "t1", "chat/toolCallResultConfirmed"))
    [part] = (await bench.state(client, chat))["activeTurn"]["responseParts"]
    shown = part["toolCall"]
    assert (shown["status"], shown["reason"], shown["_meta"][SETTLED]) == ("cancelled", "result-denied", "caller")
    assert (await client.ask("_ahpkit/approvals/list"))["approvals"] == [], "nobody has decided"
    release = {"type": "chat/toolCallResultConfirmed", **this, "approved": True}
    assert await client.rejected(chat, release)


async def test_any_model_can_ask_the_user(bench: Bench) -> None:
    outcomes: list[Any] = []

    async def script(turn: Turn) -> None:
        assert "ask_user" in [tool["name"] for tool in turn.context.tools]
        outcomes.append(await turn.call_tool("ask_user", '{"question": "Tea?", "options": ["yes", "no"]}'))

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    request = (await client.action("chat/inputRequested"))["action"]["request"]
    assert request["questions"][0]["message"] == "Tea?"
    value = {"state": "submitted", "value": {"kind": "selected", "value": "yes"}}
    answer = {
        "type": "chat/inputCompleted",
        "requestId": request["id"],
        "response": "accept",
        "answers": {"answer": value},
    }
    await client.accepted(chat, answer)
    await over(client, chat, "t1")
    assert outcomes[0].content[0]["text"] == "yes"


async def edit(client: RawClient, chat: str, call: Json, tool_input: str) -> None:
    """Approve a call with another input than was shown."""
    action = {"type": "chat/toolCallConfirmed", "turnId": call["turnId"], "toolCallId": call["toolCallId"]}
    how = {"approved": True, "confirmed": "user-action", "editedToolInput": tool_input}
    await client.accepted(chat, {**action, **how})


async def approvals(client: RawClient) -> list[Json]:
    return (await client.ask("_ahpkit/approvals/list"))["approvals"]


@pytest.mark.parametrize("who", ["guard", "rule"])
async def test_an_input_that_a_person_wrote_is_guarded_too(bench: Bench, who: str) -> None:
    await bench.stop()

    class ByInput(Guard):
        async def _guard(self, chat: Chat, name: str, tool_input: str, owner: str | None) -> Objection | None:
            return Objection("not this file") if "secret" in tool_input and who == "guard" else None

    bench.features = [ByInput()]
    await bench.start()
    outcomes: list[Any] = []
    ran: list[str] = []
    bench.agent.script = runs(outcomes, ran, editable=True)
    client = await bench.client()
    _, chat = await bench.session(client)
    if who == "rule":
        rule = {"decision": "deny", "kind": "path", "pattern": "/secret/**", "scope": "everywhere"}
        about = {"owner": "agent:scripted", "tool": "write"}
        await client.ask("_ahpkit/rules/add", **rule, **about)
    await client.accepted(chat, say('{"path": "/open/a"}'))
    await edit(client, chat, await pending(client, chat, "t1"), '{"path": "/secret/a"}')
    await over(client, chat, "t1")
    assert ran == []
    assert not outcomes[0].success
    assert [(entry["by"], entry["decision"]) for entry in await approvals(client)] == [
        ("person", "allowed"),
        (who, "denied"),
    ]
    assert (await approvals(client))[0]["edited"] == '{"path": "/secret/a"}'
    call = (await bench.state(client, chat))["turns"][-1]["responseParts"][0]["toolCall"]
    assert (call["status"], call["reason"]) == ("cancelled", "denied")


@pytest.mark.parametrize("choice", ["allow:tool:session", "deny:tool:session"])
async def test_a_rule_that_is_made_while_a_call_waits_decides_it(bench: Bench, choice: str) -> None:
    outcomes: list[Any] = []
    ran: list[str] = []
    bench.agent.script = runs(outcomes, ran)
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("{}"))
    waiting = await pending(client, chat, "t1")
    decision = choice.partition(":")[0]
    about = {"owner": "agent:scripted", "tool": "write"}
    rule = {"decision": decision, "kind": "tool", "scope": "session", "place": session}
    made = await client.ask("_ahpkit/rules/add", **rule, **about)
    await over(client, chat, "t1")
    assert waiting["options"]
    assert bool(ran) is (decision == "allow")
    [entry] = await approvals(client)
    assert (entry["by"], entry["who"], entry["decision"][:4]) == (
        "rule",
        made["id"],
        choice[:4].replace("deny", "deni"),
    )


async def test_what_a_guard_doubts_is_allowed_by_a_person_only(bench: Bench) -> None:
    """Neither by a rule that was there, nor by one that is made meanwhile, nor by what the tool says of itself."""
    await bench.stop()
    guard = Guard()
    guard.doubted.add("write")
    bench.features = [guard]
    await bench.start()
    outcomes: list[Any] = []
    ran: list[str] = []
    bench.agent.script = runs(outcomes, ran, asks=False)
    client = await bench.client()
    _, chat = await bench.session(client)
    about = {"owner": "agent:scripted", "tool": "write", "kind": "tool"}
    await client.ask("_ahpkit/rules/add", **about, decision="allow", scope="everywhere")
    await client.accepted(chat, say("{}"))
    waiting = await pending(client, chat, "t1")
    assert "look twice" in waiting["confirmationTitle"]
    await client.ask("_ahpkit/rules/add", **about, decision="allow", scope="chat", place=chat)
    part = (await bench.state(client, chat))["activeTurn"]["responseParts"][0]
    assert (part["toolCall"]["status"], ran) == ("pending-confirmation", [])
    await decide(client, chat, waiting, "allow:tool:chat")
    await over(client, chat, "t1")
    assert ran == ["{}"]
    [entry] = await approvals(client)
    assert (entry["by"], entry["who"]) == ("person", client.client_id)
    assert "look twice" in entry["shown"]["title"]

    await client.accepted(chat, say("{}", "t2"))  # The choice "always" of a person is such a rule.
    await pending(client, chat, "t2")
    await client.ask("_ahpkit/rules/add", **about, decision="deny", scope="chat", place=chat)
    await over(client, chat, "t2")
    await client.accepted(chat, say("{}", "t3"))
    await over(client, chat, "t3")
    assert ran == ["{}"]
    assert [(entry["by"], entry["decision"]) for entry in await approvals(client)][1:] == [("rule", "denied")] * 2


async def test_a_rule_elsewhere_leaves_a_call_waiting_and_so_does_one_that_is_taken_back(bench: Bench) -> None:
    outcomes: list[Any] = []
    ran: list[str] = []
    bench.agent.script = runs(outcomes, ran)
    client = await bench.client()
    _, first_chat = await bench.session(client)
    _, chat = await bench.session(client)
    about = {"owner": "agent:scripted", "tool": "write", "decision": "allow", "kind": "tool"}
    rule = {**about, "scope": "chat", "place": first_chat}
    await client.accepted(chat, say("{}"))
    waiting = await pending(client, chat, "t1")
    made = await client.ask("_ahpkit/rules/add", **rule)
    await client.ask("_ahpkit/rules/remove", id=made["id"])
    part = (await bench.state(client, chat))["activeTurn"]["responseParts"][0]
    assert part["toolCall"]["status"] == "pending-confirmation"
    await decide(client, chat, waiting, "allow-once")
    await over(client, chat, "t1")
    assert ran == ["{}"]


async def test_a_path_that_no_file_can_have_is_asked_about(bench: Bench) -> None:
    outcomes: list[Any] = []
    ran: list[str] = []
    bench.agent.script = runs(outcomes, ran)
    client = await bench.client()
    _, chat = await bench.session(client)
    odd = r'{"path": "/a\u0000b\ud800", "paths": ["' + "x" * 5000 + '"]}'
    await client.accepted(chat, say(odd))
    await decide(client, chat, await pending(client, chat, "t1"), "allow-once")
    await over(client, chat, "t1")
    assert ran == [odd]


async def test_a_folder_in_which_denied_files_may_be_is_asked_about(bench: Bench, tmp_path: Path) -> None:
    """Also where the pattern does not name the folder, and by a link; a file beside them is not."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "src")
    ran: list[str] = []
    bench.agent.script = runs([], ran)
    client = await bench.client()
    about = {"owner": f"agent:{bench.agent.provider}", "tool": "write", "scope": "everywhere"}
    await client.ask("_ahpkit/rules/add", decision="deny", kind="path", pattern="/**/.env", **about)
    await client.ask("_ahpkit/rules/add", decision="allow", kind="tool", **about)
    _, chat = await bench.session(client, workingDirectory=tmp_path.as_uri())
    for number, given in enumerate(('{"path": "src"}', '{"path": "link"}', '{"path": "src/*"}')):
        await client.accepted(chat, say(given, turn_id=f"t{number}"))
        await decide(client, chat, await pending(client, chat, f"t{number}"), "deny-once")
        await over(client, chat, f"t{number}")
    await client.accepted(chat, say('{"path": "src/a.py"}', turn_id="file"))
    await over(client, chat, "file")
    assert ran == ['{"path": "src/a.py"}']


async def test_a_folder_with_a_space_in_its_name_and_a_link_to_it_are_understood(bench: Bench, tmp_path: Path) -> None:
    """Relative paths are those of the folder itself, and the folder that is offered is the real one."""
    real = tmp_path / "my project"
    (real / "src").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(real)
    outcomes: list[Any] = []
    ran: list[str] = []
    bench.agent.script = runs(outcomes, ran)
    client = await bench.client()
    _, chat = await bench.session(client, workingDirectories=[link.as_uri()])
    await client.accepted(chat, say('{"path": "src/a"}'))
    waiting = await pending(client, chat, "t1")
    [offered] = [option for option in waiting["options"] if option["id"] == "allow:path:chat"]
    assert f"{real}/src/**" in offered["label"]
    await decide(client, chat, waiting, "allow:path:chat")
    await over(client, chat, "t1")
    (real / "src" / "door").symlink_to(tmp_path)
    await client.accepted(chat, say('{"path": "src/b"}', turn_id="t2"))
    await over(client, chat, "t2")
    assert len(ran) == 2
    await client.accepted(chat, say('{"path": "src/door/c"}', turn_id="t3"))
    await decide(client, chat, await pending(client, chat, "t3"), "deny-once")
    await over(client, chat, "t3")
    assert len(ran) == 2
