"""The demo agent's slash commands in one table: one for each part of the agent interface. `/canvas` makes canvas
calls."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ahpkit.agents.demo_tools import demo_tools
from ahpkit.agents.tools import text_of
from ahpkit.authoring.canvas import CanvasError
from ahpkit.host.agent import AgentError, CanvasRuntime, Command, SkillOffer, Turn
from ahpkit.protocol.chat.state import ChatInputAnswer, ChatInputQuestion, Message, ToolResultContent
from ahpkit.protocol.common.reducing import without
from ahpkit.protocol.common.state import JsonObject

_MAX_PIECES = 5_000
"""Pieces of one answer. A message of a few megabytes has millions of words."""


async def stream(turn: Turn, text: str) -> None:
    """Stream a text word by word, and a long text in larger pieces. Other tasks run between the pieces."""
    size = len(text) // _MAX_PIECES
    pattern = r"\S+\s*" if size < 10 else rf"(?s).{{1,{size}}}"
    for number, piece in enumerate(re.finditer(pattern, text), 1):
        turn.text(piece[0])
        await (asyncio.sleep(0) if number % 100 else turn.room())


def acknowledge(turn: Turn, message: Message | None) -> None:
    """Show that a steering message arrived."""
    if message is not None:
        turn.text(f"\n\nYou steered me while I was busy:\n\n{quoted(message['text'])}\n\n")


def quoted(text: str) -> str:
    """A Markdown quotation."""
    return "> " + text.strip().replace("\n", "\n> ")


def fenced(text: str, language: str = "") -> str:
    """A Markdown code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def fenced_json(value: Any) -> str:
    """A value as a Markdown code block."""
    return fenced(json.dumps(value, indent=2, ensure_ascii=False), "json")


_CANVAS_USAGE = "list | open CANVASID INSTANCEID [JSON] | invoke INSTANCEID ACTION [JSON] | close INSTANCEID"


async def run_canvas(turn: Turn, arguments: str) -> None:
    """Do one canvas call and say how it went."""
    verb, _, rest = arguments.partition(" ")
    command = _VERBS.get(verb)
    if turn.canvas is None:
        turn.text("This host offers no canvases.")
    elif command is None:
        turn.text(f"Usage: `/canvas {_CANVAS_USAGE}`")
    else:
        turn.text(await _answer(turn.canvas, command, rest))


async def _answer(canvas: CanvasRuntime, command: Verb, rest: str) -> str:
    try:
        return await command(canvas, rest.split(maxsplit=2))
    except json.JSONDecodeError as error:
        return f"The input is not valid JSON: {error}."
    except ValueError:
        return f"Usage: `/canvas {_CANVAS_USAGE}`"
    except CanvasError as error:
        return f"The canvas call failed with `{error.code}`: {error}"


async def _list(canvas: CanvasRuntime, words: Sequence[str]) -> str:
    declared = [_declared(one) for one in canvas.list()]
    opened = [f"- `{one['instanceId']}` of `{one['canvasId']}` is {one['availability']}" for one in canvas.list_open()]
    return "\n".join(["Canvases:", *(declared or ["- none"]), "", "Open:", *(opened or ["- none"])])


def _declared(canvas: JsonObject) -> str:
    actions = ", ".join(f"`{action['name']}`" for action in canvas.get("actions", ())) or "none"
    return f"- `{canvas['canvasId']}` of `{canvas['extensionId']}`: {canvas['description']} Actions: {actions}."


async def _open(canvas: CanvasRuntime, words: Sequence[str]) -> str:
    canvas_id, instance_id, input = _two_and_json(words)
    opened = without(await canvas.open(canvas_id, instance_id, input=input), "url")  # Texts of a chat are stored.
    return f"Opened `{instance_id}`:\n\n{fenced_json(opened)}"


async def _invoke(canvas: CanvasRuntime, words: Sequence[str]) -> str:
    instance_id, action, input = _two_and_json(words)
    result = await canvas.invoke(instance_id, action, input)
    return f"`{action}` returned:\n\n{fenced_json(result)}"


async def _close(canvas: CanvasRuntime, words: Sequence[str]) -> str:
    (instance_id,) = words
    await canvas.close(instance_id)
    return f"Closed `{instance_id}`."


def _two_and_json(words: Sequence[str]) -> tuple[str, str, Any]:
    first, second, *rest = words
    return first, second, json.loads(rest[0]) if rest else None


Verb = Callable[[CanvasRuntime, Sequence[str]], Awaitable[str]]

_VERBS: dict[str, Verb] = {"list": _list, "open": _open, "invoke": _invoke, "close": _close}


_MAX_DELTAS = 100_000
_MAX_SECONDS = 3_600.0
_MAX_REPEATED = 64 * 1024
"""Characters of a tool's result that are repeated in the answer."""

_TOOLS = demo_tools()


@dataclass(frozen=True, slots=True)
class DemoCommand:
    """A slash command: what to type, what it shows, what it does with the text after its name."""

    name: str
    usage: str
    description: str
    run: Callable[[Turn, str], Awaitable[None]]


async def _help(turn: Turn, arguments: str) -> None:
    rows = [f"| `{_typed(one)}` | {one.description} |" for one in COMMANDS.values()]
    await stream(turn, "\n".join(["| Type | to see |", "|---|---|", *rows]))


def _typed(command: DemoCommand) -> str:
    return f"/{command.name} {command.usage}".rstrip().replace("|", "\\|")


async def _stream(turn: Turn, arguments: str) -> None:
    count = _number(arguments or "10", 1, _MAX_DELTAS)
    if count is None:
        turn.text(f"`/stream` takes a number from 1 to {_MAX_DELTAS}.")
        return
    for number in range(1, int(count) + 1):
        turn.text(f"delta {number} ")
        acknowledge(turn, turn.steering())
        await asyncio.sleep(0)


async def _think(turn: Turn, arguments: str) -> None:
    for step in ("The user wants to see me think. ", "First I think. ", "Then I answer."):
        turn.think(step)
        await asyncio.sleep(0)
    turn.text("I thought about it, and this is my answer.")


async def _sleep(turn: Turn, arguments: str) -> None:
    seconds = _number(arguments or "1", 0, _MAX_SECONDS)
    if seconds is None:
        turn.text(f"`/sleep` takes a number of seconds from 0 to {_MAX_SECONDS:g}.")
        return
    turn.activity(f"Sleeping for {seconds:g} s")
    turn.text(f"Sleeping for {seconds:g} seconds. ")
    try:
        async with asyncio.timeout(seconds):
            while True:
                acknowledge(turn, await turn.wait_steering())
    except TimeoutError:
        turn.text("Awake again.")
    finally:
        turn.activity(None)


def _number(text: str, low: float, high: float) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if low <= number <= high else None


async def _tool(turn: Turn, arguments: str) -> None:
    name, _, tool_input = arguments.partition(" ")
    if not name:
        offered = ", ".join(f"`{tool['name']}`" for tool in _TOOLS.definitions(turn))
        turn.text(f"Name a tool and give its input as JSON. There are: {offered}.")
        return
    try:
        json.loads(tool_input or "{}")
    except json.JSONDecodeError as error:
        turn.text(f"The input is not valid JSON: {error}.")
        return
    outcome = await _TOOLS.call(turn, name, tool_input or "{}")
    await asyncio.sleep(0)  # A result may be long, so the rest is done in another step of the event loop.
    output = text_of(outcome)
    text = output if len(output) <= _MAX_REPEATED else f"{output[:_MAX_REPEATED]} … (the call has all of it)"
    if outcome.success:
        turn.text(f"`{name}` returned:\n\n{fenced(text)}")
    else:
        turn.text(f"`{name}` gave no result: {text}.")


QUESTIONS: Sequence[ChatInputQuestion] = (
    {"id": "name", "kind": "text", "message": "What is your name?", "required": True, "min": 1, "max": 80},
    {"id": "email", "kind": "text", "message": "Your e-mail address?", "format": "email"},
    {"id": "age", "kind": "integer", "message": "How old are you?", "min": 0, "max": 150},
    {"id": "ratio", "kind": "number", "message": "A number between 0 and 1?", "min": 0, "max": 1, "defaultValue": 0.5},
    {"id": "agree", "kind": "boolean", "message": "Do you like this demo?", "defaultValue": True},
    {
        "id": "colour",
        "kind": "single-select",
        "message": "Which colour?",
        "options": [{"id": "red", "label": "Red"}, {"id": "blue", "label": "Blue", "recommended": True}],
        "allowFreeformInput": True,
    },
    {
        "id": "fruit",
        "kind": "multi-select",
        "message": "Which fruit? One or two.",
        "options": [{"id": id, "label": id.title()} for id in ("apple", "pear", "plum")],
        "min": 1,
        "max": 2,
    },
)
"""One question of every kind, with every kind of limit."""


async def _ask(turn: Turn, arguments: str) -> None:
    given = await turn.ask(QUESTIONS, message="The demo agent has a few questions.")
    if given.response != "accept":
        turn.text(f"You chose to {given.response}.")
        return
    lines = [f"- **{question['id']}**: {_shown(given.answers.get(question['id']))}" for question in QUESTIONS]
    await stream(turn, "\n".join(["Thank you. You answered:", "", *lines]))


def _shown(answer: ChatInputAnswer | None) -> str:
    if answer is None or answer["state"] == "skipped":
        return "no answer"
    value = answer["value"]
    picked = value["value"] if isinstance(value["value"], list) else [value["value"]]
    texts = [str(one) for one in picked if one != ""] + list(value.get("freeformValues", ()))
    return ", ".join(texts) or "no answer"


async def _subagent(turn: Turn, arguments: str) -> None:
    task = arguments or "Say hello."
    call = turn.tool_call("delegate", display_name="Delegate")
    call.running(tool_input=json.dumps({"task": task}), message="Asking a helper")
    helper = await turn.subchat("Helper", task, tool_call=call)
    shown: ToolResultContent = {"type": "subagent", "resource": helper.uri, "title": "Helper", "agentName": "helper"}
    call.content([shown])
    async with helper as helping:
        await stream(helping, f"I was asked:\n\n{quoted(task)}\n\nHere is what I found: all is well.")
    call.complete(message="Asked a helper", content=[shown, {"type": "text", "text": "All is well."}])
    turn.text("My helper says: all is well.")


async def _fail(turn: Turn, arguments: str) -> None:
    turn.text("This goes wrong now.")
    raise AgentError(arguments or "This is the failure you asked for.", error_type="demo/requested")


async def _stumble(turn: Turn, arguments: str) -> None:
    if turn.resumed:
        turn.text("And here is the second half.")
        return
    turn.text("This is the first half. ")
    raise AgentError("I stumbled. Resume this turn.", error_type="demo/stumbled", resumable=True)


async def _usage(turn: Turn, arguments: str) -> None:
    answer = "This turn used a few tokens that nobody has to pay for."
    turn.usage(
        {
            "inputTokens": len(turn.prompt.split()),
            "outputTokens": len(answer.split()),
            "cacheReadTokens": len(turn.chat.history),
            "model": turn.model["id"] if turn.model else "demo-small",
        }
    )
    turn.text(answer)


async def _skills(turn: Turn, arguments: str) -> None:
    context = turn.context
    sections = {
        "System prompt": [context.system_prompt] if context.system_prompt else [],
        "Rules": context.rules,
        "Skills": [_offer(skill) for skill in context.skills],
        "Agents": [_offer(agent) for agent in context.agents],
        "MCP servers": [f"`{server.name}`" for server in context.mcp_servers],
        "Tools": [f"`{tool['name']}`: {tool.get('description', '')}" for tool in context.tools],
    }
    for title, entries in sections.items():
        lines = [f"- {entry.strip()}" for entry in entries] or ["- none"]
        turn.text("\n".join([f"**{title}**", "", *lines, "", ""]))


def _offer(offer: SkillOffer) -> str:
    return f"`{offer.name}`: {offer.description} ({offer.uri})"


_ALL = (
    DemoCommand("help", "", "this list", _help),
    DemoCommand("stream", "N", "an answer in N pieces; steer me while it runs", _stream),
    DemoCommand("think", "", "reasoning before the answer", _think),
    DemoCommand("tool", "NAME JSON", "a tool: yours if you registered it, else one of mine, with approval", _tool),
    DemoCommand("ask", "", "a question of every kind", _ask),
    DemoCommand("subagent", "TASK", "a helper in a chat of its own", _subagent),
    DemoCommand("fail", "MESSAGE", "a turn that ends with an error", _fail),
    DemoCommand("stumble", "", "a turn that fails half-way and can be resumed", _stumble),
    DemoCommand("sleep", "S", "a turn that takes S seconds; cancel or steer it", _sleep),
    DemoCommand("usage", "", "how many tokens a turn used", _usage),
    DemoCommand("skills", "", "what customizations and clients gave this turn", _skills),
    DemoCommand("canvas", _CANVAS_USAGE, "surfaces that providers draw", run_canvas),
)

COMMANDS: Mapping[str, DemoCommand] = {command.name: command for command in _ALL}
"""Every command by the name after the slash."""


def announced() -> list[Command]:
    """The commands as a host offers them for completion."""
    return [Command(one.name, one.description, one.usage or None) for one in _ALL]


async def run_command(turn: Turn, name: str, arguments: str) -> None:
    """Run the command with this name, or say that there is none."""
    command = COMMANDS.get(name)
    if command is None:
        turn.text(f"I do not know `/{name}`. Type `/help` to see what I can do.")
    else:
        await command.run(turn, arguments.strip())


__all__ = ["COMMANDS", "QUESTIONS", "DemoCommand", "announced", "fenced", "quoted", "run_command", "stream"]
