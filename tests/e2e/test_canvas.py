"""The canvas rules of the proposal on a real host: one provider, one other client, an agent that is told what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support import requirement
from support.flow import open_session, say, state_of
from support.process import host_process
from support.raw_client import Json, RawClient

CHART: Json = {
    "canvasId": "numbers",
    "displayName": "Numbers",
    "description": "Shows numbers.",
    "inputSchema": {"type": "object", "x-odd": [None, 1.5, "é"]},
    "actions": [{"name": "add", "inputSchema": True}],
}
SERVER_ONLY: tuple[tuple[str, Json], ...] = (
    ("session/canvasRegistryChanged", {"canvases": []}),
    ("session/canvasInstanceOpened", {"instance": {"instanceId": "x", "canvasId": "c", "extensionId": "e"}}),
    ("session/canvasInstanceClosed", {"instanceId": "n1"}),
    (
        "session/canvasRequestCreated",
        {
            "request": {
                "requestId": "r",
                "kind": "open",
                "instanceId": "x",
                "canvasId": "c",
                "extensionId": "e",
                "target": {"kind": "server"},
            }
        },
    ),
    ("session/canvasRequestCancelled", {"requestId": "r", "reason": "timeout"}),
)


class Play:
    """A host with a provider of the canvas `numbers` and somebody who watches."""

    def __init__(self, owner: RawClient, other: RawClient, session: str, chat: str) -> None:
        self.owner, self.other, self.session, self.chat = owner, other, session, chat
        self.turns = 0
        self._seen: set[str] = set()

    def say(self, text: str) -> str:
        self.turns += 1
        self.owner.post(self.chat, say(text, f"t{self.turns}"))
        return f"t{self.turns}"

    async def request(self, kind: str) -> Json:
        """The next request of a kind."""
        said = await self.owner.action(
            lambda one: (
                one["action"]["type"] == "session/canvasRequestCreated"
                and "rejectionReason" not in one
                and one["action"]["request"]["kind"] == kind
                and one["action"]["request"]["requestId"] not in self._seen
            )
        )
        request: Json = said["action"]["request"]
        self._seen.add(request["requestId"])
        return request

    async def over(self, turn_id: str) -> str:
        ended = ("chat/turnComplete", "chat/error")
        await self.owner.action(lambda one: one["action"]["type"] in ended and one["action"].get("turnId") == turn_id)
        return str((await state_of(self.owner, self.chat))["turns"][-1]["responseParts"])

    async def state(self) -> Json:
        return await state_of(self.other, self.session)

    def completed(self, request: Json, **answer: Any) -> Json:
        return {"type": "session/canvasRequestCompleted", "requestId": request["requestId"], **answer}


@requirement(
    "canvas:surface:rides-action-stream",
    "canvas:surface:server-only-actions",
    "canvas:surface:one-request-triple",
    "canvas:client:host-registers",
    "canvas:client:extension-id-derived",
    "canvas:client:not-tools",
    "canvas:client:render-hint-independent",
    "canvas:state:declaration-source",
    "canvas:state:schemas-opaque",
    "canvas:state:outlives-turns",
    "canvas:state:request-shape",
    "canvas:state:open-shape",
    "canvas:registry:two-steps",
    "canvas:request:completed-by-target-only",
    "canvas:validate:unknown-request",
    "canvas:validate:neither-or-both",
    "canvas:validate:kind-mismatch",
    "canvas:validate:close-unknown-instance",
    "canvas:validate:close-by-other-than-renderer",
    "canvas:roles:client-canvas-renders-itself",
    "canvas:action:opened-after-finalised",
    "canvas:action:close-requested-starts-close",
    "canvas:action:updated-on-provider-push",
    "canvas:provider:client-gone",
)
async def test_a_client_provides_a_canvas_and_only_it_answers_for_it(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        owner = await host.client("ahp-root://", client_id="owner")
        other = await host.client("ahp-root://", client_id="other")
        session, chat = await open_session(owner)
        await other.ask("subscribe", session)
        play = Play(owner, other, session, chat)
        await _declared(play)
        await _opened(play)
        await _invoked_and_closed(play)
        await _gone(play)


async def _declared(play: Play) -> None:
    owner, session = play.owner, play.session
    me = {"clientId": "owner", "tools": [{"name": "show"}], "canvasProviders": [CHART]}
    await owner.accepted(session, {"type": "session/activeClientChanged", "activeClient": me})
    changed = await play.other.action("session/canvasRegistryChanged")
    [entry] = [one for one in changed["action"]["canvases"] if one["canvasId"] == "numbers"]
    assert entry == {**CHART, "extensionId": entry["extensionId"], "source": "activeClient", "clientId": "owner"}
    assert "owner" in entry["extensionId"]
    kinds = [one["action"]["type"] for one in play.other.actions(session)]
    assert kinds.index("session/activeClientChanged") < kinds.index("session/canvasRegistryChanged")
    active = (await play.state())["activeClient"]
    assert ([tool["name"] for tool in active["tools"]], "canRenderCanvases" in active) == (["show"], False)
    assert "show" not in [one["canvasId"] for one in changed["action"]["canvases"]]
    before = await play.state()
    for kind, fields in SERVER_ONLY:
        for client in (owner, play.other):
            reason = await client.rejected(session, {"type": kind, **fields})
            assert reason == f"{kind} is dispatched by the host, not by clients"
    assert await play.state() == before


async def _opened(play: Play) -> None:
    owner, other, session = play.owner, play.other, play.session
    turn = play.say('/canvas open numbers n1 {"rows": 3}')
    request = await play.request("open")
    about = ("instanceId", "canvasId", "target", "input")
    target = {"kind": "activeClient", "clientId": "owner"}
    assert [request[key] for key in about] == ["n1", "numbers", target, {"rows": 3}]
    assert [one["requestId"] for one in (await play.state())["canvasRequests"]] == [request["requestId"]]
    assert "openCanvases" not in await play.state() or (await play.state())["openCanvases"] == []
    good = play.completed(request, result={"kind": "open", "title": "Numbers"})
    for client, wrong in (
        (other, good),
        (owner, play.completed({"requestId": "none"}, result={"kind": "open"})),
        (owner, play.completed(request)),
        (owner, play.completed(request, result={"kind": "open"}, error={"code": "x", "message": "y"})),
        (owner, play.completed(request, result={"kind": "action"})),
    ):
        assert await client.rejected(session, wrong), wrong
    assert [one["requestId"] for one in (await play.state())["canvasRequests"]] == [request["requestId"]]
    await owner.accepted(session, good)
    assert "n1" in await play.over(turn)
    [instance] = (await play.state())["openCanvases"]
    assert (instance["availability"], instance["title"], instance["input"]) == ("ready", "Numbers", {"rows": 3})
    assert instance["renderer"] == {"clientId": "owner"}
    assert (await play.state()).get("canvasRequests", []) == []
    kinds = [one["action"]["type"] for one in other.actions(session) if "rejectionReason" not in one]
    assert kinds.index("session/canvasRequestCompleted") < kinds.index("session/canvasInstanceOpened")
    update = {"type": "session/canvasInstanceUpdated", "instanceId": "n1"}
    await owner.accepted(session, {**update, "changes": {"title": "Three", "status": "drawn"}})
    assert await other.rejected(session, {**update, "changes": {"title": "No"}})
    [instance] = (await play.state())["openCanvases"]
    assert (instance["title"], instance["status"]) == ("Three", "drawn")


async def _invoked_and_closed(play: Play) -> None:
    owner, other, session = play.owner, play.other, play.session
    turn = play.say('/canvas invoke n1 add {"n": 1}')
    request = await play.request("action")
    assert (request["actionName"], request["input"]) == ("add", {"n": 1})
    await owner.accepted(session, play.completed(request, result={"kind": "action", "value": {"sum": 41}}))
    assert "41" in await play.over(turn)
    turn = play.say("/canvas invoke n1 add")
    request = await play.request("action")
    error = {"code": "canvas_action_no_handler", "message": "cannot add"}
    await owner.accepted(session, play.completed(request, error=error))
    assert "canvas_action_no_handler" in await play.over(turn)
    close = {"type": "session/canvasInstanceCloseRequested", "instanceId": "n1"}
    await owner.accepted(session, {**close, "instanceId": "never-open"})
    assert await other.rejected(session, close)
    assert [one["instanceId"] for one in (await play.state())["openCanvases"]] == ["n1"]
    await owner.accepted(session, close)
    request = await play.request("close")
    assert [one["instanceId"] for one in (await play.state())["openCanvases"]] == ["n1"]
    await owner.accepted(session, play.completed(request, result={"kind": "close"}))
    await other.action(
        lambda one: one["action"]["type"] == "session/canvasInstanceClosed" and "rejectionReason" not in one
    )
    assert (await play.state())["openCanvases"] == []


async def _gone(play: Play) -> None:
    turn = play.say("/canvas open numbers n2")
    request = await play.request("open")
    await play.owner.accepted(play.session, play.completed(request, result={"kind": "open"}))
    await play.over(turn)
    release = {"type": "session/activeClientChanged", "activeClient": None}
    await play.owner.accepted(play.session, release)
    await play.other.action(
        lambda one: (
            one["action"]["type"] == "session/canvasInstanceUpdated"
            and one["action"]["changes"] == {"availability": "stale"}
        )
    )
    state = await play.state()
    assert [(one["instanceId"], one["availability"]) for one in state["openCanvases"]] == [("n2", "stale")]
    assert [one for one in state["canvasRegistry"] if one["canvasId"] == "numbers"] == []


@requirement("gen:canvas:url-not-kept")
async def test_the_address_of_a_canvas_that_an_agent_opened_is_in_no_file(tmp_path: Path) -> None:
    opened = ['/canvas open checklist one {"title": "One"}', "/tool canvas_open " + TWO, "/tool canvas_list_open {}"]
    async with host_process(tmp_path) as host:
        client = await host.client("ahp-root://")
        session, chat = await open_session(client)
        shows: Json = {"clientId": client.client_id, "tools": [], "canRenderCanvases": True}
        await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": shows})
        for number, text in enumerate(opened):
            await client.accepted(chat, say(text, f"t{number}"))
            await client.action(
                lambda one, number=number: (
                    one["action"]["type"] == "chat/turnComplete" and one["action"]["turnId"] == f"t{number}"
                )
            )
        urls = [str(one["url"]) for one in (await state_of(client, session))["openCanvases"]]
        assert len(urls) == 2
        secrets = [url.rstrip("/").rpartition("/")[2] for url in urls]
        turns = str((await state_of(client, chat))["turns"])
        assert '"two"' in turns
        assert not any(secret in turns for secret in secrets)
        host.kill()
        await host.ended()
    kept = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert any(path.name.startswith("log.db") for path in kept)
    assert not any(secret.encode() in path.read_bytes() for path in kept for secret in secrets)


TWO = '{"canvasId": "checklist", "instanceId": "two", "input": {"title": "Two"}}'
