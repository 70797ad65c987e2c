"""An MCP server over stdio without the SDK, for tests that are not about the SDK: it starts in a tenth of the time.

It speaks the era of `initialize`. `TEST_MODES` in the environment is a list of words: what is odd about it.
Each call runs in a thread of its own, so that one can hang while others are answered.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]

MODES = set(os.environ.get("TEST_MODES", "").split())
ORDINARY = ("add", "fail", "hang", "crash", "big", "env", "slow", "grow", "structured")
ASKING = ("roots", "ask", "sample", "sample_often", "open_page")
EMPTY: Json = {"type": "object", "properties": {}}
NAME_FORM: Json = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
HELLO: Json = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello?"}}], "maxTokens": 10}


class Refused(Exception):
    """The other side answered a question with an error."""


class PageNeeded(Exception):
    """A call is refused until somebody has opened a page."""


class Wire:
    """Lines out, and the answers to our own questions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = 0
        self._answers: dict[int, Json] = {}
        self._news = threading.Condition()

    def send(self, message: Json) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        with self._lock:
            sys.stdout.write(line)
            sys.stdout.flush()

    def notify(self, method: str, **params: Any) -> None:
        self.send({"method": method, "params": params})

    def ask(self, method: str, params: Json) -> Json:
        with self._news:
            self._asked += 1
            number = self._asked
        self.send({"id": number, "method": method, "params": params})
        with self._news:
            self._news.wait_for(lambda: number in self._answers)
            answer = self._answers.pop(number)
        if "error" in answer:
            raise Refused(answer["error"]["message"])
        return answer["result"]

    def answered(self, message: Json) -> None:
        with self._news:
            self._answers[message["id"]] = message
            self._news.notify_all()


class Call:
    """One call of a tool: what was given, who asked, and whether it was called off."""

    def __init__(self, message: Json) -> None:
        params: Json = message["params"]
        self.id = message["id"]
        self.name: str = params["name"]
        self.given: Json = params.get("arguments") or {}
        self.token = params.get("_meta", {}).get("progressToken")
        self.cancelled = threading.Event()


wire = Wire()
extra: list[str] = []
refused: list[Json] = []
calls: dict[Any, Call] = {}


def tool(name: str, description: str = "", **fields: Any) -> Json:
    return {"name": name, "description": description, "inputSchema": EMPTY, **fields}


def tools() -> list[Json]:
    if "mirror" in MODES:
        return [json.loads(os.environ["TEST_TOOL"])]
    if "many" in MODES:
        return [tool(f"tool_{number}") for number in range(int(os.environ.get("TEST_TOOLS", "5000")))]
    if "twice" in MODES:
        return [tool(name) for name in ("add", "add", "bad name!", "x" * 200, "додати")]
    if "schemas" in MODES:
        return schemas()
    if "apps" in MODES:
        page: Json = {"_meta": {"ui": {"resourceUri": "ui://board"}}}
        return [tool("add", **page), *(tool(name) for name in ("slow", "grow", *extra))]
    hint: Json = {"annotations": {"readOnlyHint": True}} if "readonly" in MODES else {}
    return [tool(name, f"The {name} tool", **hint) for name in (*ORDINARY, *ASKING, *extra)]


def schemas() -> list[Json]:
    """A tool whose input is nested very deep, and one whose output has a pattern that takes for ever."""
    deep: Json = {"type": "object"}
    for _ in range(80):
        deep = {"type": "object", "properties": {"x": deep}}
    slow = {"type": "object", "properties": {"n": {"type": "string", "pattern": "^(a+)+$"}}}
    return [tool("endless", inputSchema=deep), tool("slow_pattern", outputSchema=slow)]


def text(said: str, **more: Any) -> Json:
    return {"content": [{"type": "text", "text": said}], **more}


def call_tool(call: Call) -> Json:
    given = call.given
    match call.name:
        case "add":
            return text(str(given["a"] + given["b"]))
        case "fail":
            return text("no luck", isError=True)
        case "hang":
            return hang(call, Path(given["file"]))
        case "crash":
            sys.stderr.write("the disk is on fire\n")
            sys.stderr.flush()
            os._exit(3)
        case "big":
            return text("x" * given["size"])
        case "env":
            return text(os.environ.get(given["name"], "(unset)"))
        case "roots":
            return text(" ".join(root["uri"] for root in wire.ask("roots/list", {})["roots"]))
        case "ask":
            return ask_often(given)
        case "sample":
            return text(wire.ask("sampling/createMessage", HELLO)["content"]["text"])
        case "open_page":
            return open_page(given)
        case "sample_often":
            return sample_often(given)
        case "slow":
            return slow(call)
        case "grow":
            return grow(given)
        case "slow_pattern":
            return {"content": [], "structuredContent": {"n": "a" * 64 + "!"}}
        case "structured":
            return text('{"n": 1}', structuredContent={"n": 1})
        case _:
            return text(f"called {call.name}")


def hang(call: Call, file: Path) -> Json:
    file.write_text("started")
    if "says" in call.given:
        wire.notify("notifications/progress", progressToken=call.token, progress=1, message=call.given["says"])
    call.cancelled.wait()
    file.write_text("cancelled")
    return text("called off")


def ask_often(given: Json) -> Json:
    form = {"message": given.get("question", "Name?"), "requestedSchema": NAME_FORM}
    said: list[str] = []
    for _ in range(given.get("times", 1)):
        try:
            answer = wire.ask("elicitation/create", form)
            said.append(f"{answer['action']}: {answer.get('content')}")
        except Refused as error:
            said.append(f"refused: {error}")
    return text("; ".join(said))


def open_page(given: Json) -> Json:
    """Has a page opened: by a question, by one that it says itself is done with, or by refusing the call until then."""
    page = {"mode": "url", "message": "Log in there", "url": given["url"], "elicitationId": "page-1"}
    if given["how"] == "refuses":
        refused.append(page)
        if len(refused) <= given["times"]:
            raise PageNeeded(page)
        return text("you were there")
    if given["how"] == "says so":
        threading.Thread(target=say_done, daemon=True).start()
    try:
        return text(wire.ask("elicitation/create", page)["action"])
    except Refused as error:
        return text(f"refused: {error}")


def say_done() -> None:
    while True:
        wire.notify("notifications/elicitation/complete", elicitationId="page-1")
        time.sleep(0.05)


def sample_often(given: Json) -> Json:
    count = 0
    for _ in range(given.get("times", 1)):
        try:
            wire.ask("sampling/createMessage", HELLO)
        except Refused:
            count += 1
    return text(f"{count} refused")


def slow(call: Call) -> Json:
    for step in range(1, 4):
        if call.token is not None:
            about: Json = {"progressToken": call.token, "total": 3, "message": f"step {step}"}
            wire.notify("notifications/progress", progress=step, **about)
    return text("done")


def grow(given: Json) -> Json:
    extra.append(given.get("name", f"grown_{len(extra)}"))
    wire.notify("notifications/tools/list_changed")
    wire.notify("notifications/resources/list_changed")
    return text("grown")


def started(params: Json) -> Json:
    changing = {"listChanged": True} if "apps" in MODES else {}
    capabilities: Json = {"tools": changing, "resources": changing, "prompts": {}}
    if "apps" in MODES:
        capabilities["logging"] = {}
    about = {"name": "test-server", "version": "1"}
    version = "2025-11-25" if "pages" in MODES else "2025-06-18"
    return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": about}


def poem(params: Json) -> Json:
    said = f"Write a {params['name']} about {params['arguments']['topic']}"
    parts: list[Json] = [{"type": "text", "text": said}]
    if params["name"] == "illustrated poem":
        parts += [
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource_link", "name": "notes", "uri": "test://notes"},
            {"type": "resource", "resource": {"uri": "test://rhymes", "text": "sea, tea"}},
        ]
    return {"messages": [{"role": "user", "content": part} for part in parts]}


def set_level(params: Json) -> Json:
    wire.notify("notifications/message", level="error", data={"level": params["level"]})
    return {}


PROMPT: Json = {"name": "poem", "description": "A poem", "arguments": [{"name": "topic", "required": True}]}
PROMPTS = ("poem", "poem, a long one!", "poème", "illustrated poem") if "prompts" in MODES else ("poem",)
ANSWERS: dict[str, Callable[[Json], Json]] = {
    "initialize": started,
    "ping": lambda _: {},
    "tools/list": lambda _: {"tools": tools()},
    "resources/list": lambda _: {"resources": [{"name": "notes", "uri": "test://notes"}]},
    "resources/templates/list": lambda _: {
        "resourceTemplates": [{"name": "page", "uriTemplate": "test://page/{number}"}]
    },
    "resources/read": lambda params: {"contents": [{"uri": params["uri"], "text": "remember the milk"}]},
    "prompts/list": lambda _: {"prompts": [{**PROMPT, "name": name} for name in PROMPTS]},
    "prompts/get": poem,
    "logging/setLevel": set_level,
}


def serve(call: Call) -> None:
    try:
        answer: Json = {"result": call_tool(call)}
    except PageNeeded as error:
        answer = {"error": {"code": -32042, "message": "open it first", "data": {"elicitations": [error.args[0]]}}}
    except (Refused, KeyError, TypeError) as error:
        answer = {"error": {"code": -32602, "message": str(error)}}
    if not call.cancelled.is_set():
        wire.send({"id": call.id, **answer})


def take(message: Json) -> None:
    method = message.get("method")
    if method is None:
        wire.answered(message)
    elif method == "tools/call":
        call = calls[message["id"]] = Call(message)
        threading.Thread(target=serve, args=(call,), daemon=True).start()
    elif method == "notifications/cancelled":
        calls[message["params"]["requestId"]].cancelled.set()
    elif method == "notifications/roots/list_changed" and "TEST_ROOTS" in os.environ:
        Path(os.environ["TEST_ROOTS"]).write_text("changed")
    elif method == "resources/read" and message["params"]["uri"] == "test://gone":
        error: Json = {"code": -32002, "message": "there is no test://gone", "data": {"uri": "test://gone"}}
        wire.send({"id": message["id"], "error": error})
    elif method in ANSWERS:
        wire.send({"id": message["id"], "result": ANSWERS[method](message.get("params") or {})})
    elif "id" in message:
        wire.send({"id": message["id"], "error": {"code": -32601, "message": f"there is no {method} here"}})


def main() -> None:
    if marker := os.environ.get("TEST_STARTED"):
        with Path(marker).open("a") as opened:
            opened.write(f"{os.getpid()}\n")
    if "dead" in MODES:
        sys.exit("cannot start: no configuration")
    if "silent" in MODES:
        time.sleep(3600)
    if "garbage" in MODES:
        sys.stdout.write('hello, I am not JSON\n{"also": "not"}\n[1]\n')
        sys.stdout.flush()
    for line in sys.stdin:
        take(json.loads(line))
    os._exit(0)  # Calls that still hang do not matter any more.


if __name__ == "__main__":
    main()
