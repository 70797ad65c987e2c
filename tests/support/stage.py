"""A session with everything in it that an agent can reach: MCP servers, a client with a tool, a canvas, people.

    async with staged(agent, tmp_path, servers={…}) as stage:
        turn = await stage.turn("CALL test_add {…}", decisions=["allow-once"])

The client of the stage answers for a person, from a script, and runs its own tool `show_note`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ahpkit.canvas import Canvases
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Agent
from ahpkit.host.feature import Feature
from ahpkit.mcp.feature import McpServers
from ahpkit.testing.fake_model import CallTool, ModelRequest, Reply, Say
from mcp_servers.running import QUICK
from support.bench import Bench, say
from support.canvases import Board, board_provider
from support.raw_client import Json, RawClient
from support.waiting import a_moment

NOTE: Json = {
    "name": "show_note",
    "title": "Show a note",
    "description": "Show a note to the user.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}

Own = Callable[[Json], Awaitable[None]]
_ENDS = ("chat/turnComplete", "chat/error", "chat/turnCancelled")


def calling(asked: ModelRequest) -> Reply:
    """A model that calls what the user names: `CALL name {json}`, under whatever name its agent offers it."""
    if asked.result is not None:
        return Say(f"The tool returned: {asked.result[:2000]}")
    wanted = re.search(r"CALL ([\w-]+) (?=\{)", asked.text)
    if wanted is None:
        return Say(f"You said: {asked.text}")
    name, (arguments, _) = wanted[1], json.JSONDecoder().raw_decode(asked.text[wanted.end() :])
    if (offered := _offered(asked, name)) is not None:
        return CallTool(offered, arguments)
    if (way := _offered(asked, "call_tool")) is not None:  # For agents that read the list only once.
        return CallTool(way, {"name": name, "arguments": arguments})
    return Say(f"There is no tool {name}.")


def _offered(asked: ModelRequest, name: str) -> str | None:
    """What the agent of this model calls a tool of the host."""
    found = [tool for tool in asked.tools if re.fullmatch(rf"(?:(?:mcp__)?ahp[_.]+)?{re.escape(name)}", tool)]
    return min(found, key=len, default=None)


@dataclass
class TurnSeen:
    """A turn as the client saw it."""

    record: Json
    approvals: list[Json]
    """Calls that waited for a person."""
    questions: list[Json]

    @property
    def calls(self) -> list[Json]:
        return [part["toolCall"] for part in self.record["responseParts"] if part["kind"] == "toolCall"]

    @property
    def text(self) -> str:
        return "".join(part.get("content", "") for part in self.record["responseParts"] if part["kind"] == "markdown")

    @property
    def notices(self) -> list[str]:
        parts = self.record["responseParts"]
        return [str(part["content"]) for part in parts if part["kind"] == "systemNotification"]


def _shown(name: str) -> Callable[[Json], str]:
    """A tool that says it was shown."""
    return lambda given: f"{name} was shown"


@dataclass
class Stage:
    """One session and the client in it."""

    bench: Bench
    client: RawClient
    session: str
    chat: str
    board: Board
    tools: Mapping[str, Callable[[Json], str]]
    ran: list[tuple[str, Json]] = field(default_factory=list[Any])
    """Calls that this client ran."""
    seconds: float = 30.0
    suggests: str = ""
    """What the person suggests instead of a denied call."""
    claim: Json = field(default_factory=dict[str, Any])
    """What the client offers."""
    _own: Own | None = None
    """What the client does with a call of its own tool, in place of running it."""
    _meanwhile: Callable[[], None] | None = None
    _turns: int = 0
    _seen: int = 0

    async def turn(
        self,
        prompt: str,
        *,
        decisions: Sequence[str] = (),
        answer: str = "blue",
        own: Own | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> TurnSeen:
        """Say something and play the person until the turn is over. A call that nobody decides fails the test.
        `meanwhile` is what the person does before each decision."""
        self._meanwhile = meanwhile
        turn_id, left = self.next_turn, list(decisions)
        self._turns += 1
        self._own = own
        seen = TurnSeen({}, [], [])
        self._seen = len(self.client.received)
        self.client.post(self.chat, say(self.worded(prompt), turn_id))
        async with asyncio.timeout(self.seconds):
            while (action := await self._next())["type"] not in _ENDS:
                await self._react(action, seen, left, answer)
        assert not left, f"nobody was asked: {left}"
        seen.record = (await self.bench.state(self.client, self.chat))["turns"][-1]
        return seen

    async def begin_again(self) -> None:
        """For the next test in this session: no rule is left, the client offers what it did, nothing is remembered."""
        for rule in (await self.client.ask("_ahpkit/rules/list"))["rules"]:
            await self.client.ask("_ahpkit/rules/remove", id=rule["id"])
        await self.client.accepted(self.session, {"type": "session/activeClientChanged", "activeClient": self.claim})
        self.client.received.clear()
        self.ran.clear()
        self.tools = {tool["name"]: _shown(tool["name"]) for tool in self.claim["tools"]}
        self.board.calls.clear()
        self.suggests = ""

    @property
    def next_turn(self) -> str:
        """The id that the next turn will have."""
        return f"turn-{self._turns + 1}"

    def worded(self, prompt: str) -> str:
        """The demo agent has its own words for a call."""
        return re.sub(r"^CALL ", "/tool ", prompt) if self.bench.agent.provider == "demo" else prompt

    async def _react(self, action: Json, seen: TurnSeen, left: list[str], answer: str) -> None:
        match action["type"]:
            case "chat/toolCallReady" if "confirmed" not in action and action["toolCallId"] in await self._waiting():
                seen.approvals.append(action)
                assert left, f"nobody decides about {action}"
                if self._meanwhile is not None:
                    await a_moment()
                    self._meanwhile()
                    await a_moment()
                self._decide(action, left.pop(0))
            case "chat/toolCallReady" if "confirmed" in action:
                await self._run_own(action)
            case "chat/toolCallConfirmed" if action["approved"]:
                await self._run_own(action)
            case "chat/inputRequested":
                seen.questions.append(action["request"])
                self._answer(action["request"], answer)
            case _:
                pass

    async def _next(self) -> Json:
        """The next action of this chat."""
        while True:
            message = await self.client.wait(lambda message: message in self.client.received[self._seen :])
            self._seen = self.client.received.index(message, self._seen) + 1
            if message.get("method") == "action" and message["params"]["channel"] == self.chat:
                return message["params"]["action"]

    async def _waiting(self) -> set[str]:
        turn: Json = (await self.bench.state(self.client, self.chat)).get("activeTurn") or {}
        calls: list[Json] = [part["toolCall"] for part in turn.get("responseParts", ()) if part["kind"] == "toolCall"]
        return {call["toolCallId"] for call in calls if call["status"] == "pending-confirmation"}

    def _decide(self, ready: Json, option: str) -> None:
        approved = option.startswith("allow")
        no: Json = {"reason": "denied", "reasonMessage": "not today"}
        if self.suggests:
            no["userSuggestion"] = {"text": self.suggests, "origin": {"kind": "user"}}
        how = {"confirmed": "user-action"} if approved else no
        about = {"turnId": ready["turnId"], "toolCallId": ready["toolCallId"]}
        found = [one for one in ready["options"] if one["id"] == option]
        picked = found[0] if found else ready["options"][0 if approved else 1]
        decision = {"approved": approved, **how, "selectedOptionId": picked["id"]}
        self.client.post(self.chat, {"type": "chat/toolCallConfirmed", **about, **decision})

    async def _run_own(self, ready: Json) -> None:
        turn: Json = (await self.bench.state(self.client, self.chat)).get("activeTurn") or {}
        calls: list[Json] = [part["toolCall"] for part in turn.get("responseParts", ()) if part["kind"] == "toolCall"]
        empty: Json = {}
        call = next((one for one in calls if one["toolCallId"] == ready["toolCallId"]), empty)
        owner: Json = call.get("contributor") or {}
        if owner.get("clientId") != self.client.client_id or call["status"] != "running":
            return
        given = json.loads(call.get("toolInput") or "{}")
        self.ran.append((call["toolName"], given))
        if self._own is not None:
            await self._own({"turnId": ready["turnId"], "toolCallId": ready["toolCallId"]})
            return
        content = [{"type": "text", "text": self.tools[call["toolName"]](given)}]
        about = {"turnId": ready["turnId"], "toolCallId": ready["toolCallId"]}
        result = {"success": True, "pastTenseMessage": "Shown", "content": content}
        self.client.post(self.chat, {"type": "chat/toolCallComplete", **about, "result": result})

    def _answer(self, request: Json, words: str) -> None:
        answers = {
            question["id"]: {"state": "submitted", "value": {"kind": "text", "value": words}}
            for question in request["questions"]
            if question["kind"] == "text" and (question.get("required") or len(request["questions"]) == 1)
        }
        done = {"type": "chat/inputCompleted", "requestId": request["id"], "response": "accept", "answers": answers}
        self.client.post(self.chat, done)

    async def state(self) -> Json:
        return await self.bench.state(self.client, self.session)

    async def server(self, name: str, kind: str) -> Json:
        """The customization of an MCP server, once it is in a state."""
        async with asyncio.timeout(self.seconds):
            while True:
                entry = _server(await self.state(), name)
                if entry is not None and entry["state"]["kind"] == kind:
                    return entry
                await asyncio.sleep(0.05)

    async def switch(self, name: str, *, on: bool) -> None:
        """Switch an MCP server, and wait until it is so."""
        await self.toggle(name, "mcpServer", on=on)
        await self.server(name, "ready" if on else "stopped")

    async def customization(self, name: str, type: str) -> Json:
        [entry] = [one for one in every(await self.state()) if (one["name"], one["type"]) == (name, type)]
        return entry

    async def toggle(self, name: str, type: str, *, on: bool) -> None:
        entry = await self.customization(name, type)
        toggled = {"type": "session/customizationToggled", "id": entry["id"], "enabled": on}
        await self.client.accepted(self.session, toggled)


def _server(state: Json, name: str) -> Json | None:
    servers = [one for one in every(state) if one["type"] == "mcpServer"]
    return next((one for one in servers if one["name"] == name), None)


def every(state: Json) -> list[Json]:
    """The customizations of a session, with those inside of others."""
    containers: list[Json] = state.get("customizations", [])
    return [*containers, *(child for one in containers for child in one.get("children", []))]


@asynccontextmanager
async def staged(
    agent: Agent,
    directory: Path,
    *,
    servers: Mapping[str, Json] | None = None,
    features: Sequence[Feature] = (),
    trusted: bool = True,
    tools_of_client: Sequence[Json] = (NOTE,),
    seconds: float = 30.0,
    allow_hooks: bool = False,
    files: Mapping[str, str] | None = None,
    grace: float | None = None,
    patience: float = 10.0,
    **session_params: Any,
) -> AsyncGenerator[Stage]:
    """A session of `agent` in a trusted workspace with these servers and files, and a client in it.

    `patience`: seconds that a turn waits for servers that are just starting.
    """
    work = directory / "work"
    for name, content in (files or {}).items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(content)
    work.mkdir(exist_ok=True)
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": servers or {}}))
    bench, board = Bench(work), Board()
    bench.config = bench.config if grace is None else replace(bench.config, client_grace=grace)
    bench.agent = agent  # pyright: ignore[reportAttributeAccessIssue]  # A bench is typed for its usual agent.
    settings = CustomizationSettings(default_directory=work, trusted=[work] if trusted else [], allow_hooks=allow_hooks)
    customizations = Customizations(settings)
    mcp = McpServers(customizations.servers, limits=QUICK, patience=patience)
    own = [customizations, mcp, Canvases([board_provider(board)])]
    bench.features = [*own, *features]
    await bench.start()
    try:
        client = await bench.client(client_id="editor")
        session, chat = await bench.session(client, workingDirectory=work.as_uri(), **session_params)
        active = {"clientId": "editor", "displayName": "Editor", "tools": list(tools_of_client)}
        await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": active})
        answers = {tool["name"]: _shown(tool["name"]) for tool in tools_of_client}
        yield Stage(bench, client, session, chat, board, answers, seconds=seconds, claim=active)
    finally:
        await bench.stop()


__all__ = ["NOTE", "Stage", "TurnSeen", "calling", "every", "staged"]
