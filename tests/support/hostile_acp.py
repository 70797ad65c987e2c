"""An ACP agent that breaks every rule: `python hostile_acp.py`. The first word of a prompt says which.

It knows nothing of ahpkit and uses no library, so that it can write any bytes at any time. What follows the first word
is an argument. A prompt it does not know is answered with its own text.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
Way = Callable[["Hostile", str], "str | None"]

WAYS: dict[str, Way] = {}
SLEEPER = "import time; time.sleep(600)"
ANSI = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b5n"


def way(function: Way) -> Way:
    WAYS[function.__name__.replace("_", "-")] = function
    return function


class Hostile:
    """One prompt: where it came from, and what may be said."""

    def __init__(self, session: str, id: Any) -> None:
        self.session = session
        self.id = id

    def say(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def update(self, variant: str, **fields: Any) -> None:
        update = {"sessionUpdate": variant, **fields}
        params = {"sessionId": self.session, "update": update, "_meta": fields.get("_meta", {})}
        send({"method": "session/update", "params": params})

    def ask(self, id: Any, method: str, **params: Any) -> None:
        send({"id": id, "method": method, "params": {"sessionId": self.session, **params}})

    def asked(self, method: str, **params: Any) -> Json:
        """Ask and wait for the answer: its result, or its error."""
        self.ask("q", method, **params)
        answer = answer_to("q")
        return answer["result"] if "result" in answer else answer["error"]

    def end(self, stop: str = "end_turn") -> None:
        send({"id": self.id, "result": {"stopReason": stop}})


def send(message: Json, *, flush: bool = True) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode(), flush=flush)


def write(line: bytes, *, flush: bool = True) -> None:
    sys.stdout.buffer.write(line + b"\n")
    if flush:
        sys.stdout.buffer.flush()


def messages() -> Iterator[Json]:
    for line in sys.stdin.buffer:
        yield json.loads(line)


INCOMING = messages()


def answer_to(id: Any) -> Json:
    return next(message for message in INCOMING if message.get("id") == id and "method" not in message)


def wait_cancel() -> None:
    next(message for message in INCOMING if message.get("method") == "session/cancel")


def forever() -> None:
    while True:
        time.sleep(600)


# -- bytes ------------------------------------------------------------------------------------------------------------


@way
def noise(turn: Hostile, arg: str) -> None:
    """Lines that are no message at all."""
    deep = b'{"jsonrpc":"2.0","method":"session/update","params":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001
    lines = [b"Loading", b"[1,2]", b"null", b"{not json", b'{"a":NaN}', b'{"jsonrpc":"2.0","method":1}', deep]
    lines += [b"\xff\xfe{", b'{"\xff":1}', b'{"jsonrpc":"2.0","id":1e400,"method":"x"}', b"{" * 100_000, b"[" * 100_000]
    lines += [b'{"jsonrpc":"2.0","jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b',"result":{}}']
    for line in lines:
        write(line)
    turn.say("a\ud800b")
    turn.update("agent_message_chunk", content={"type": "text", "text": "c", "n": 10**400})
    turn.update("hologram", n=10**30, deep=json.loads("[" * 150 + "]" * 150))


@way
def noise_flood(turn: Hostile, arg: str) -> None:
    """More broken messages than anybody wants in a log."""
    for _ in range(3_000):
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0"}\n{"jsonrpc":"2.0","id":99,"result":1}\n')
    sys.stdout.buffer.flush()


@way
def stderr_flood(turn: Hostile, arg: str) -> None:
    sys.stderr.write("x" * 5_000_000)
    for _ in range(20_000):
        sys.stderr.write("y" * 100 + "\n")
    sys.stderr.flush()


@way
def much(turn: Hostile, arg: str) -> None:
    """As much in one message as is taken: of text, of thoughts, of an edit. And one with too many values."""
    text = "line\n" * 200_000
    turn.say(text * 4)
    turn.update("agent_thought_chunk", content={"type": "text", "text": "z" * 9_000_000})
    edit = [{"type": "diff", "path": "/f", "oldText": text, "newText": text.upper()}]
    call = {"toolCallId": "c", "title": text[:900_000], "kind": "edit", "status": "completed", "rawInput": {"a": text}}
    turn.update("tool_call", content=edit, **call)
    turn.update("unheard-of", values=[[1, 2, 3]] * 100_000)
    turn.say("the end")


@way
def huge_line(turn: Hostile, arg: str) -> None:
    turn.say("before")
    for _ in range(100):
        sys.stdout.buffer.write(b"{" * 1_000_000)
    sys.stdout.buffer.flush()
    forever()


@way
def drip(turn: Hostile, arg: str) -> None:
    """One message, byte by byte."""
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "dripped"}}
    params = {"sessionId": turn.session, "update": chunk}
    for byte in json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n":
        os.write(1, bytes([byte]))


# -- ids and answers --------------------------------------------------------------------------------------------------


@way
def ids(turn: Hostile, arg: str) -> None:
    """Ids of every type, used twice; answers twice and to nothing."""
    for id in (-1, "s", "", 2**80, 0):
        turn.ask(id, "fs/nothing")
        assert answer_to(id)["error"]["code"] == -32601
    strange: list[Any] = [1.5, None, [], {}, True]
    for id in strange:
        turn.ask(id, "fs/nothing")
    for id in (1, 1, 99, "1", None, 2.0):
        send({"id": id, "result": {"stopReason": "end_turn"}})
        send({"id": id, "error": {"code": 1, "message": "no"}})
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    turn.ask("twice", "session/request_permission", toolCall={"toolCallId": "t"}, options=options)
    turn.ask("twice", "session/request_permission", toolCall={"toolCallId": "u"}, options=options)
    refused = answer_to("twice")
    granted = answer_to("twice")
    turn.say(f"{refused['error']['code']} {granted['result']['outcome']['optionId']}")
    turn.end()
    turn.end("refusal")
    send({"id": turn.id, "error": {"code": 1, "message": "third answer"}})


# -- floods -----------------------------------------------------------------------------------------------------------


@way
def permissions(turn: Hostile, arg: str) -> str:
    return many(turn, int(arg), "session/request_permission", toolCall={"title": "again"}, options=[])


@way
def elicitations(turn: Hostile, arg: str) -> str:
    schema = {"properties": {"a": {"type": "string"}}}
    return many(turn, int(arg), "elicitation/create", mode="form", message="again", requestedSchema=schema)


@way
def terminals(turn: Hostile, arg: str) -> str:
    return many(turn, int(arg), "terminal/create", command="sleep", args=["600"])


def many(turn: Hostile, count: int, method: str, **params: Any) -> str:
    """Ask that often without listening, tell that all was asked, then say what the answers were."""
    if os.fork() == 0:
        for number in range(count):
            turn.ask(number + 1000, method, **params)
        turn.update("agent_thought_chunk", content={"type": "text", "text": "all asked"})
        os._exit(0)
    answers = (message for message in INCOMING if "method" not in message)
    refused = sum("error" in next(answers) for _ in range(count))
    return f"{count - refused} served, {refused} refused"


@way
def options(turn: Hostile, arg: str) -> str:
    """A permission with none, with many, and with the same ones."""
    none = turn.asked("session/request_permission", toolCall={"toolCallId": "none"}, options=[])
    many = [{"optionId": str(n), "name": f"Option {n}" * 10, "kind": "allow_once"} for n in range(10_000)]
    turn.asked("session/request_permission", toolCall={"toolCallId": "many"}, options=many)
    same = [{"optionId": "x", "name": kind, "kind": kind} for kind in ("allow_once", "reject_once", "odd")]
    one = turn.asked("session/request_permission", toolCall={"toolCallId": "same"}, options=same)
    return f"{none['outcome']['outcome']} {one['outcome'].get('optionId')}"


@way
def settings(turn: Hostile, arg: str) -> str:
    """Options of the session: so many, each with so many choices."""
    options, choices = map(int, arg.split())
    offered = [{"value": f"v{number}", "name": f"Choice {number}"} for number in range(choices)]
    one = {"name": "Option", "type": "select", "currentValue": "v0", "options": offered}
    turn.update("config_option_update", configOptions=[{**one, "id": f"o{number}"} for number in range(options)])
    return "the end"


@way
def text_flood(turn: Hostile, arg: str) -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "z" * 100}}
    line = json.dumps(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": turn.session, "update": chunk}}
    )
    data = (line + "\n").encode() * 100
    for _ in range(int(arg) // 100):
        sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@way
def large(turn: Hostile, arg: str) -> None:
    """Large things in every place that has one."""
    size = int(arg)
    text = "w" * size
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    turn.update("tool_call", toolCallId="big", title="t" * size, status="in_progress", content=content)
    turn.update("tool_call_update", toolCallId="big", status="completed", rawOutput={"o": text}, rawInput={"i": text})
    turn.update("tool_call", toolCallId="d", content=[{"type": "diff", "path": "a", "oldText": text, "newText": "n"}])
    turn.update("session_info_update", title=text)
    turn.update("hologram" + text[:1000], payload=text)
    turn.update("plan", entries=[{"content": f"step {n}", "status": "pending"} for n in range(size // 100)])
    commands = [{"name": f"c{n}", "description": "d" * 100} for n in range(size // 200)]
    turn.update("available_commands_update", availableCommands=commands)
    turn.update("notice", message=text)
    turn.update("agent_message_chunk", content={"type": text})
    turn.update("usage_update", used=1, size=2, cost={"amount": 1, "currency": text})
    turn.say("done")


@way
def chunk(turn: Hostile, arg: str) -> None:
    turn.say("v" * int(arg))


@way
def tool_output(turn: Hostile, arg: str) -> None:
    text = {"type": "text", "text": "u" * int(arg)}
    turn.update(
        "tool_call", toolCallId="b", title="Big", status="completed", content=[{"type": "content", "content": text}]
    )


@way
def churn(turn: Hostile, arg: str) -> None:
    """One tool call whose whole output is sent again and again, each time a little different."""
    turn.update("tool_call", toolCallId="c", title="Churn", status="in_progress")
    for number in range(int(arg)):
        text = {"type": "text", "text": f"{number} " * 80_000}
        turn.update("tool_call_update", toolCallId="c", content=[{"type": "content", "content": text}])


@way
def variants(turn: Hostile, arg: str) -> None:
    for number in range(int(arg)):
        turn.update(f"variant-{number}", payload="p" * 1000)
        turn.update("plan_update", plan={"planId": f"plan-{number}", "entries": [{"content": "c" * 100}]})


@way
def terminal_output(turn: Hostile, arg: str) -> str:
    line = f"head -c {arg} /dev/zero | tr '\\0' x; echo; echo end"
    terminal = turn.asked("terminal/create", command=line, outputByteLimit=100)["terminalId"]
    turn.asked("terminal/wait_for_exit", terminalId=terminal)
    shown = turn.asked("terminal/output", terminalId=terminal)
    return f"{len(shown['output'])} {shown['truncated']} {shown['output'].strip()[-3:]}"


# -- order and sessions -----------------------------------------------------------------------------------------------


@way
def strangers(turn: Hostile, arg: str) -> str:
    """Updates and requests in the name of another session, and `_meta` named like arguments."""
    mine, turn.session = turn.session, "another"
    turn.say("EVIL")
    turn.ask("q", "session/request_permission", toolCall={"toolCallId": "evil"}, options=[])
    code = answer_to("q")["error"]["code"]
    turn.session = mine
    meta: Json = {"sessionId": "EVIL", "session_id": "EVIL", "update": {"sessionUpdate": "plan"}, "turn": 1, "self": 2}
    chunk = {"type": "text", "text": "mine", "_meta": meta}
    turn.update("agent_message_chunk", content=chunk, _meta=meta)
    return f" {code}"


@way
def disorder(turn: Hostile, arg: str) -> None:
    """News of a call before it begins, after its end, and backwards."""
    turn.update("tool_call_update", toolCallId="t", status="completed")
    turn.update("tool_call", toolCallId="t", status="pending", title="Late")
    turn.update("tool_call_update", toolCallId="t", status="in_progress")
    turn.say("first")
    send({"id": turn.id, "result": {"stopReason": "end_turn"}}, flush=False)  # With what comes late, in one piece.
    turn.say("late")
    turn.update("tool_call_update", toolCallId="t", status="failed")
    turn.update("tool_call", toolCallId="after", status="in_progress")


# -- life and death ---------------------------------------------------------------------------------------------------


@way
def die(turn: Hostile, arg: str) -> None:
    turn.say("half")
    sys.stderr.write("last words\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.Signals[arg or "SIGKILL"])


@way
def die_asking(turn: Hostile, arg: str) -> None:
    """Ask, then die when told by a signal from outside."""
    turn.ask(1, "session/request_permission", toolCall={"toolCallId": "t", "title": str(os.getpid())}, options=[])
    forever()


@way
def whisper(turn: Hostile, arg: str) -> None:
    """Die with secrets on the lips."""
    secret = os.environ["HOSTILE_API_KEY"]
    sys.stderr.write(f"{'n' * 200_000} key {secret}\nAuthorization: Bearer abcdef0123456789abcdef\n")
    sys.stderr.write("refused: ghp_abcdefghijklmnop\n")
    sys.stderr.write("api_key=qwertyuiop1234 --token zxcvbnm0987654 https://u:hunter2secret@example.com/\n")
    sys.stderr.flush()
    if arg != "die":
        send({"id": turn.id, "error": {"code": -32603, "message": f"bad key {secret}", "data": {"details": secret}}})
    os._exit(1)


@way
def deaf(turn: Hostile, arg: str) -> None:
    """Ignore the cancel, and everything else."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    turn.say(f"deaf {os.getpid()}")
    forever()


@way
def stopped(turn: Hostile, arg: str) -> None:
    turn.say(f"stopped {os.getpid()}")
    os.kill(os.getpid(), signal.SIGSTOP)


@way
def mute(turn: Hostile, arg: str) -> None:
    """Close the output and live on."""
    turn.say("last")
    sys.stdout.buffer.flush()
    os.close(1)
    forever()


@way
def unread(turn: Hostile, arg: str) -> None:
    """Make the host answer and answer, and read none of it."""
    request = json.dumps({"jsonrpc": "2.0", "id": "x" * 10_000, "method": "fs/nothing"}).encode() + b"\n"
    while True:
        sys.stdout.buffer.write(request)


@way
def leave(turn: Hostile, arg: str) -> None:
    """Leave processes behind: in the group, in sessions of their own, with an empty environment, daemons. Then die."""
    kinds: list[Json] = [{}, {"start_new_session": True}, {"env": {}}, {"env": {}, "start_new_session": True}]
    daemon = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEPER!r}], start_new_session=True)"
    pids = [subprocess.Popen([sys.executable, "-c", SLEEPER], **kind).pid for kind in kinds]
    subprocess.run([sys.executable, "-c", daemon], check=True)
    if arg == "terminal":
        turn.asked("terminal/create", command="setsid sleep 600 & sleep 600")
    turn.say(" ".join(map(str, pids)))
    if arg == "die":
        os.kill(os.getpid(), signal.SIGKILL)


# -- what it asks for -------------------------------------------------------------------------------------------------


@way
def read(turn: Hostile, arg: str) -> str:
    return json.dumps(turn.asked("fs/read_text_file", path=arg))


@way
def save(turn: Hostile, arg: str) -> str:
    return json.dumps(turn.asked("fs/write_text_file", path=arg, content="EVIL"))


@way
def escapes(turn: Hostile, arg: str) -> str:
    """Drive the reader's terminal from every place that is shown."""
    turn.update("session_info_update", title=f"title{ANSI}")
    turn.update("available_commands_update", availableCommands=[{"name": f"c{ANSI}", "description": ANSI}])
    turn.update("agent_thought_chunk", content={"type": "text", "text": f"thought{ANSI}"})
    turn.update("tool_call", toolCallId="t", title=f"tool{ANSI}", name=ANSI, kind=ANSI, status="failed",
                rawOutput={"error": f"error{ANSI}"})  # fmt: skip
    turn.update("plan", entries=[{"content": f"plan{ANSI}"}])
    turn.update("notice", message=f"notice{ANSI}")
    turn.update(f"hologram{ANSI}")
    options = [{"optionId": "y", "name": f"yes{ANSI}", "kind": "allow_once"}]
    tool: Json = {"toolCallId": "p", "title": f"may I{ANSI}", "rawInput": {"command": f"rm{ANSI}"}}
    turn.asked("session/request_permission", toolCall=tool, options=options)
    schema: Json = {"properties": {f"q{ANSI}": {"type": "string", "title": ANSI, "enum": [f"o{ANSI}"]}}}
    turn.asked("elicitation/create", mode="form", message=f"question{ANSI}", requestedSchema=schema)
    turn.say(f"text{ANSI}")
    send({"id": turn.id, "error": {"code": -32603, "message": f"failure{ANSI}"}})
    return ""


# -- the agent --------------------------------------------------------------------------------------------------------


def serve() -> None:
    starting = os.environ.get("HOSTILE_START", "")
    for message in INCOMING:
        id, params = message.get("id"), message.get("params", {})
        match message.get("method"):
            case "initialize":
                start(starting)
                send({"id": id, "result": {"protocolVersion": 1, "agentCapabilities": {}}})
            case "session/new":
                send({"id": id, "result": {"sessionId": f"hostile-{os.getpid()}"} | OPTIONS.get(starting, {})})
            case "session/prompt":
                prompt(Hostile(params["sessionId"], id), params["prompt"][-1]["text"])
            case _:
                pass


def start(how: str) -> None:
    match how:
        case "silent":
            forever()
        case "dying":
            sys.stderr.write("cannot start\n")
            sys.exit(3)
        case _:
            pass


def prompt(turn: Hostile, text: str) -> None:
    name, _, arg = text.partition(" ")
    known = WAYS.get(name)
    turn.say((known(turn, arg) or "") if known else f"You said: {text}")
    turn.end()


ODD: list[Any] = [None, 5, [], {}, [1], {"id": 5}, {"id": ["x"]}, {"id": "ok", "name": 5}, "x"]
OPTIONS: dict[str, Json] = {
    "odd": {
        "modes": {"currentModeId": ["x"], "availableModes": ODD},
        "models": {"currentModelId": {}, "availableModels": [*ODD, {"modelId": ["x"]}, {"modelId": f"m{ANSI}"}]},
        "configOptions": [*ODD, {"id": "o", "options": ODD, "currentValue": []}],
    }
}

if __name__ == "__main__":
    serve()
