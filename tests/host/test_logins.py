"""Tokens: what is asked for, who is told, when their time is over, and that nobody sees them. Over real sockets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ahpkit.client import Token, connect
from ahpkit.host.agent import AgentError, LoginNeeded, Turn
from ahpkit.protocol.chat.actions import chat_tool_call_auth_required, chat_tool_call_auth_resolved
from ahpkit.protocol.common.commands import AuthRequiredParams
from support import requirement
from support.bench import Bench, ScriptedAgent, say
from support.raw_client import Json, RawClient
from support.waiting import until

STARTED = "2026-11-15T12:00:00.000Z"
VAULT: Json = {"resource": "https://vault.example", "resource_name": "Vault", "scopes_supported": ["read"]}
OTHER: Json = {"resource": "https://other.example", "required": False}


class Guarded(ScriptedAgent):
    """Needs a token."""

    provider = "guarded"
    protected_resources: Sequence[Any] = (VAULT, OTHER)

    def __init__(self) -> None:
        super().__init__()
        self.tokens: dict[str, str] = {}
        self.refuses = "bad"

    async def authenticate(self, resource: str, token: str) -> None:
        if token == self.refuses:
            raise AgentError(f"{token} is too old")
        self.tokens[resource] = token

    async def revoke(self, resource: str) -> None:
        self.tokens.pop(resource, None)


@pytest.fixture
async def guarded(sockets: Bench) -> Guarded:
    sockets.agent = Guarded()
    await sockets.restart()
    return sockets.agent


def start(text: str = "hi", turn_id: str = "t1") -> Json:
    return say(text, turn_id, startedAt=STARTED)


def asked_for(client: RawClient) -> list[Json]:
    return [said["params"] for said in client.received if said.get("method") == "auth/required"]


@requirement("gen:auth:advertised-only", "gen:auth:only-its-resource")
@pytest.mark.parametrize("version", ["0.4.0", "0.9.0", "1.0.0"])
async def test_only_what_was_asked_for_is_taken(sockets: Bench, guarded: Guarded, version: str) -> None:
    client = await sockets.client("ahp-root://", client_id="any", offer=[version])
    missing = await client.refused("createSession", "ahp-session:/s")
    assert missing["code"] == -32007
    assert [one["resource"] for one in missing["data"]["resources"]] == [VAULT["resource"]]
    for wrong in ("https://elsewhere.example", "", "https://vault.example/"):
        assert (await client.refused("authenticate", resource=wrong, token="t"))["code"] == -32602
    await client.ask("authenticate", resource=OTHER["resource"], token="t0")
    assert (await client.refused("createSession", "ahp-session:/s"))["code"] == -32007, "another resource's token"
    await client.ask("authenticate", resource=VAULT["resource"], token="t1")
    await client.ask("createSession", "ahp-session:/s")
    assert guarded.tokens == {OTHER["resource"]: "t0", VAULT["resource"]: "t1"}


@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "1.0.0"])
async def test_a_token_that_the_agent_refuses_is_refused_in_its_words(
    sockets: Bench, guarded: Guarded, version: str
) -> None:
    client = await sockets.client("ahp-root://", client_id="any", offer=[version])
    refused = await client.refused("authenticate", resource=VAULT["resource"], token="bad")
    assert (refused["code"], refused["message"]) == (-32602, "… is too old")
    assert (await client.refused("createSession", "ahp-session:/s"))["code"] == -32007


@requirement("gen:auth:expires-in-valid")
@pytest.mark.parametrize("seconds", [0, -1, 1.5, "60", None, True])
async def test_a_lifetime_is_a_whole_number_of_seconds(sockets: Bench, guarded: Guarded, seconds: Any) -> None:
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    refused = await client.refused("authenticate", resource=VAULT["resource"], token="t", expiresIn=seconds)
    assert refused["code"] == -32602
    assert guarded.tokens == {}


@pytest.mark.parametrize(
    "token", ["a\0b", "x" * 70_000, "ä", "a\nb: c", "a b"], ids=["zero", "long", "not ASCII", "two lines", "space"]
)
async def test_a_token_that_no_program_can_be_started_with_is_refused(
    sockets: Bench, guarded: Guarded, token: str
) -> None:
    """An agent gets it in a variable. One that the system does not take would keep everybody from this agent."""
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    refused = await client.refused("authenticate", resource=VAULT["resource"], token=token)
    assert refused["message"].startswith("token: at most 65536 characters")
    assert guarded.tokens == {}


@requirement("gen:auth:expires-in-valid")
@pytest.mark.parametrize("seconds", [10**400, 10**18, 1], ids=["huge", "large", "small"])
async def test_a_lifetime_can_be_as_long_as_anyone_likes(sockets: Bench, guarded: Guarded, seconds: int) -> None:
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    await client.ask("authenticate", resource=VAULT["resource"], token="t", expiresIn=seconds)
    await client.ask("createSession", "ahp-session:/s")


@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "1.0.0"])
async def test_an_empty_token_takes_the_login_back(sockets: Bench, guarded: Guarded, version: str) -> None:
    client = await sockets.client("ahp-root://", client_id="any", offer=[version])
    await client.ask("authenticate", resource=VAULT["resource"], token="")
    assert (await client.refused("createSession", "ahp-session:/a"))["code"] == -32007, "nothing was given"
    await client.ask("authenticate", resource=VAULT["resource"], token="t1", expiresIn=3600)
    await client.ask("createSession", "ahp-session:/a")
    await client.ask("authenticate", resource=VAULT["resource"], token="")
    assert guarded.tokens == {}
    assert (await client.refused("createSession", "ahp-session:/b"))["code"] == -32007


@pytest.mark.parametrize("version", ["0.4.0", "0.9.0", "1.0.0"])
async def test_an_agent_that_has_its_token_requires_none_until_the_token_is_gone(
    sockets: Bench, guarded: Guarded, version: str
) -> None:
    """VS Code asks for an account of its own before it uses an agent that requires a token."""

    async def listed() -> list[Any]:
        agents: list[Json] = (await sockets.state(client, "ahp-root://"))["agents"]
        return [one.get("required") for one in agents[0]["protectedResources"]]

    client = await sockets.client("ahp-root://", client_id="any", offer=[version])
    assert await listed() == [None, False]
    assert (await client.refused("authenticate", resource=VAULT["resource"], token="bad"))["code"] == -32602
    assert await listed() == [None, False]
    await client.ask("authenticate", resource=VAULT["resource"], token="t1")
    assert (await client.action("root/agentsChanged"))["action"]["agents"][0]["protectedResources"][0][
        "required"
    ] is False
    assert await listed() == [False, False]
    await client.ask("authenticate", resource=VAULT["resource"], token="")
    assert await listed() == [None, False]
    await client.ask("authenticate", resource=VAULT["resource"], token="t2", expiresIn=1)
    assert (await client.notification("auth/required"))["reason"] == "expired"
    assert await listed() == [None, False]


@requirement("gen:auth:only-its-resource", "gen:auth:expires-in")
async def test_a_token_reaches_every_agent_that_asks_for_its_resource(sockets: Bench, guarded: Guarded) -> None:
    second, picky = Guarded(), Guarded()
    second.provider, picky.provider = "second", "picky"
    picky.refuses = "shared"
    sockets.agents = [second, picky]
    await sockets.restart()
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    await client.ask("authenticate", resource=VAULT["resource"], token="shared", expiresIn=1)
    assert [one.tokens for one in (guarded, second, picky)] == [{VAULT["resource"]: "shared"}] * 2 + [{}]
    refused = await client.refused("createSession", "ahp-session:/p", provider="picky")
    assert refused["code"] == -32007, "this one refused the token"
    assert (await client.notification("auth/required"))["reason"] == "expired"
    await until(lambda: not guarded.tokens and not second.tokens)


@requirement("gen:auth:expires-in", "gen:auth:notification-object")
async def test_after_its_time_a_token_is_asked_for_again(sockets: Bench, guarded: Guarded) -> None:
    new = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    old = await sockets.client("ahp-root://", client_id="old")
    await new.ask("authenticate", resource=VAULT["resource"], token="short", expiresIn=1)
    assert guarded.tokens == {VAULT["resource"]: "short"}
    told = await new.notification("auth/required")
    assert (told["reason"], told["resource"]) == ("expired", VAULT)
    assert (await old.notification("auth/required"))["resource"] == VAULT["resource"]
    await until(lambda: not guarded.tokens)
    assert (await new.refused("createSession", "ahp-session:/s"))["code"] == -32007
    await new.ask("authenticate", resource=VAULT["resource"], token="short", expiresIn=3600)
    await new.ask("authenticate", resource=VAULT["resource"], token="long")
    await new.ask("createSession", "ahp-session:/s")


@requirement("gen:reconnect:auth-recheck", "gen:tool:auth-no-token")
async def test_what_is_open_is_announced_again_to_whoever_comes_back(sockets: Bench, guarded: Guarded) -> None:
    async def script(turn: Turn) -> None:
        if turn.prompt == "locked":
            raise LoginNeeded("log in first")

    guarded.script = script
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    await client.ask("authenticate", resource=VAULT["resource"], token="TOP-SECRET-TOKEN")
    session, chat = await sockets.session(client)
    await client.accepted(chat, start("locked"))
    error = (await client.action("chat/error"))["action"]
    assert error["part"]["resumable"] is True, "after the login it can go on"
    await client.notification("auth/required")
    seen = client.actions(chat)[-1]["serverSeq"]
    await client.aclose()
    back = await sockets.connect("new")
    await back.ask("reconnect", clientId="new", lastSeenServerSeq=seen, subscriptions=[session, chat])
    told = await back.notification("auth/required")
    assert (told["channel"], told["resource"], told["reason"]) == (session, VAULT, "required")
    await back.ask("authenticate", resource=VAULT["resource"], token="TOP-SECRET-TOKEN")
    await back.ask("authenticate", resource=OTHER["resource"], token="TOP-SECRET-TOKEN")
    await back.aclose()
    again = await sockets.connect("new")
    await again.ask("reconnect", clientId="new", lastSeenServerSeq=seen, subscriptions=[session, chat])
    await again.ask("ping")
    assert asked_for(again) == []
    logged = await sockets.host.spine.log.read(0)
    states = [await sockets.state(again, uri) for uri in (session, chat, "ahp-root://")]
    assert not any(b"TOP-SECRET-TOKEN" in entry.payload for entry in logged)
    assert "TOP-SECRET-TOKEN" not in str(states)
    assert "TOP-SECRET-TOKEN" not in str([client.received, back.received, again.received])


@requirement("gen:auth:no-blind-replay")
async def test_our_client_does_not_send_a_token_again_whose_time_is_over(sockets: Bench, guarded: Guarded) -> None:
    asked: list[str] = []
    answers = ["first", Token("second", expires_in=3600, scopes=("read",))]

    def token(params: AuthRequiredParams) -> Any:
        asked.append(str(params.get("reason")))
        return answers[0] if len(asked) == 1 else answers[1]

    async with connect(sockets.url) as client:
        client.on_auth_required(token)
        await client.authenticate(VAULT["resource"], "first", expires_in=1)
        await until(lambda: asked == ["expired"])
        await until(lambda: not guarded.tokens)
        await client.ping()
        assert guarded.tokens == {}, "the same token again would be of no use"
        await client.authenticate(VAULT["resource"], "third", expires_in=1)
        await until(lambda: guarded.tokens == {VAULT["resource"]: "second"})
        assert asked == ["expired", "expired"]
        assert "second" not in repr(answers[1])


@requirement(
    "gen:input-needed:tool-authentication-set", "gen:project-state:auth-required", "gen:tool:auth-success-invalid"
)
@pytest.mark.parametrize("end", ["resolved", "given up", "cancelled"])
async def test_a_call_that_waits_for_a_sign_in_is_listed_until_it_does_not(sockets: Bench, end: str) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("fetch", contributor={"kind": "mcp", "customizationId": "m"})
        call.running(tool_input="{}")
        services = sockets.host.services
        auth: Any = {"reason": "required", "resource": VAULT, "requiredScopes": ["read"]}
        needed = chat_tool_call_auth_required(turn_id=turn.id, tool_call_id=call.id, auth=auth)
        services.dispatch(turn.chat.uri, needed)
        await turn.wait_steering()
        if end == "resolved":
            services.dispatch(turn.chat.uri, chat_tool_call_auth_resolved(turn_id=turn.id, tool_call_id=call.id))
            call.complete()

    sockets.agent.script = script
    new = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    session, chat = await sockets.session(new)
    old = await sockets.client("ahp-root://", client_id="old")
    middle = await sockets.client("ahp-root://", client_id="middle", offer=["0.5.2"])
    for client in (old, middle):
        for uri in (session, chat):
            await client.ask("subscribe", uri)
    await new.accepted(chat, start())
    entry = (await new.action("session/inputNeededSet"))["action"]["request"]
    assert (entry["kind"], entry["chat"], entry["toolCall"]["status"]) == ("toolAuthentication", chat, "auth-required")
    for client in (old, middle):
        call = (await sockets.state(client, chat))["activeTurn"]["responseParts"][0]["toolCall"]
        assert call["status"] == "running"
        assert "auth" not in call
    about = {"turnId": "t1", "toolCallId": entry["toolCall"]["toolCallId"]}
    result = {"success": True, "pastTenseMessage": "done"}
    refused = await new.rejected(chat, {"type": "chat/toolCallComplete", **about, "result": result})
    assert "sign-in" in refused
    if end == "given up":
        result = {"success": False, "pastTenseMessage": "not now", "error": {"message": "no"}}
        await new.accepted(chat, {"type": "chat/toolCallComplete", **about, "result": result})
    elif end == "cancelled":
        await new.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})
    else:
        steer = {"type": "chat/pendingMessageSet", "kind": "steering", "id": "s", "message": start()["message"]}
        await new.accepted(chat, steer)
    assert (await new.action("session/inputNeededRemoved"))["action"]["id"] == entry["id"]
    assert not (await sockets.state(new, session)).get("inputNeeded")
