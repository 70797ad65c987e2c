"""A scripted ACP agent: plays every method and update of the protocol, and every kind of misbehaviour, over real pipes.

    python -m ahpkit.testing.acp_agent SCRIPT.json

Without a script it echoes. A script is an object; all keys are optional:

    initialize    fields merged into the result of `initialize`
    session       fields merged into the result of `session/new`, `load`, `resume` and `fork`
    methods       {method: [step, …]} played instead of the usual answer
    opened        [step, …] played after `session/new` was answered
    turns         [[step, …], …] one list per prompt of a session; when they run out the agent echoes
    store         a directory for the sessions, so that another process can resume them
    record        a file that gets every received message as a line
    mcp           how `CALL name {json}` in a prompt calls a tool of the session's MCP server: `silent`ly, `announced`
                  by a tool call, or `asking` for permission first, and with `unsaid ` before it without the input
                  until the call is over; several of them are calls at once
    requires_env  a variable that must be set, else sessions need a login

A step is an object with one of these keys, and what belongs to it:

    text, think   stream a chunk                      update        send a `session/update`
    request       call the client (`params`, `say`: stream the answer, `then`: {outcome: [step, …]})
    notify        notify the client (`params`)        raw, zeros    write a line that is not a message; n zeros
    stderr        write to stderr (`times`)           wait_cancel   wait for `session/cancel`
    sleep         seconds; null: for ever             spawn         leave a child ("child" or "daemon"), stream its pid
    exit, kill    leave with a code; by a signal      repeat        play `steps` this many times
    result, error answer the request with it          stop          end the turn with this reason (`usage`, `_meta`)
    after         steps to play once the turn has been answered
    file          write `content` to this file, as an agent's own tool does
    edit          replace `old` by `new` in this file, in the same way

Strings in `update`, `params` and `text` may contain {prompt}, {session} and {i}, the number of the repetition.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

Json = dict[str, Any]
Steps = list[Json]

CAPABILITIES: Json = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "fork": {}, "delete": {}},
}


class Answer(Exception):
    """Ends the playing of steps with the answer to the request they were played for."""

    def __init__(self, result: Any = None, error: Json | None = None) -> None:
        super().__init__()
        self.message: Json = {"result": result} if error is None else {"error": error}


class ScriptedAgent:
    """Reads messages from stdin and plays its script on stdout."""

    def __init__(self, script: Json) -> None:
        self._script = script
        self._sessions: dict[str, Json] = {}
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._cancelled: dict[str, asyncio.Event] = {}
        self._logged_in = False
        self._next_id = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: dict[str, McpServer] = {}

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=128 * 1024 * 1024)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            self._record(line)
            self._receive(json.loads(line))

    # Messages.

    def _receive(self, message: Json) -> None:
        if "method" not in message:
            self._answers.pop(message["id"]).set_result(message)
        elif "id" in message:
            task = asyncio.create_task(self._serve(message["id"], message["method"], message.get("params", {})))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif message["method"] == "session/cancel":
            self._cancel_event(message["params"]["sessionId"]).set()

    async def _serve(self, id: Any, method: str, params: Json) -> None:
        after: Steps = []
        try:
            steps = self._script.get("methods", {}).get(method)
            if steps is not None:
                await self._play(steps, params, after)
            handler = getattr(self, "_on_" + method.replace("/", "_"), None)
            if handler is None:
                raise Answer(error={"code": -32601, "message": "Method not found"})
            await handler(params, after)
            raise Answer({})
        except Answer as answer:
            self._send({"id": id, **answer.message})
        await self._play(after, params, [])

    def _send(self, message: Json) -> None:
        self._write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode())

    def _write(self, line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    def _record(self, line: bytes) -> None:
        if "record" in self._script:
            with Path(self._script["record"]).open("ab") as file:
                file.write(line)

    # The agent's methods.

    async def _on_initialize(self, params: Json, after: Steps) -> None:
        info = {"name": "scripted", "title": "Scripted agent", "version": "1.0"}
        result: Json = {"protocolVersion": 1, "agentCapabilities": CAPABILITIES, "agentInfo": info, "authMethods": []}
        raise Answer(result | self._script.get("initialize", {}))

    async def _on_authenticate(self, params: Json, after: Steps) -> None:
        self._logged_in = True

    async def _on_logout(self, params: Json, after: Steps) -> None:
        self._logged_in = False

    async def _on_session_new(self, params: Json, after: Steps) -> None:
        variable = self._script.get("requires_env")
        if variable and not self._logged_in and not os.environ.get(variable):
            raise Answer(error={"code": -32000, "message": "Authentication required"})
        id = f"session-{os.getpid()}-{len(self._sessions) + 1}"
        self._sessions[id] = {"cwd": params["cwd"], "history": []}
        self._save(id)
        self._take_servers(id, params)
        params["sessionId"] = id
        after.extend(self._script.get("opened", []))
        raise Answer({"sessionId": id, **self._script.get("session", {})})

    async def _on_session_resume(self, params: Json, after: Steps) -> None:
        self._known(params["sessionId"])
        self._take_servers(params["sessionId"], params)
        raise Answer(self._script.get("session", {}))

    async def _on_session_load(self, params: Json, after: Steps) -> None:
        for kind, text in self._known(params["sessionId"])["history"]:
            self._say(params["sessionId"], f"{kind}_message_chunk", text)
        raise Answer(self._script.get("session", {}))

    async def _on_session_fork(self, params: Json, after: Steps) -> None:
        id = f"{params['sessionId']}-fork"
        self._sessions[id] = json.loads(json.dumps(self._known(params["sessionId"])))
        raise Answer({"sessionId": id, **self._script.get("session", {})})

    async def _on_session_list(self, params: Json, after: Steps) -> None:
        self._load("*")
        raise Answer({"sessions": [_listed(id, session) for id, session in self._sessions.items()]})

    async def _on_session_close(self, params: Json, after: Steps) -> None:
        self._known(params["sessionId"])

    async def _on_session_delete(self, params: Json, after: Steps) -> None:
        del self._sessions[params["sessionId"]]
        if "store" in self._script:
            (Path(self._script["store"]) / f"{params['sessionId']}.json").unlink()

    async def _on_session_set_mode(self, params: Json, after: Steps) -> None:
        after.append({"update": {"sessionUpdate": "current_mode_update", "currentModeId": params["modeId"]}})

    async def _on_session_set_model(self, params: Json, after: Steps) -> None:
        """Accept any model."""

    async def _on_session_set_config_option(self, params: Json, after: Steps) -> None:
        options: Steps = self._script.get("session", {}).get("configOptions", [])
        for option in options:
            if option["id"] == params["configId"]:
                option["currentValue"] = params["value"]
        raise Answer({"configOptions": options})

    async def _on__session_steering(self, params: Json, after: Steps) -> None:
        self._chunk(params["sessionId"], "agent_message_chunk", f"[steered: {_prompt_text(params)}]")
        raise Answer({"outcome": "injected"})

    async def _on_session_prompt(self, params: Json, after: Steps) -> None:
        session = self._known(params["sessionId"])
        turns: list[Steps] = self._script.get("turns", [])
        number = sum(kind == "user" for kind, _ in session["history"])
        session["history"].append(["user", _prompt_text(params)])
        self._save(params["sessionId"])
        self._cancel_event(params["sessionId"]).clear()
        calls = re.findall(r"CALL ([\w-]+) (\{.*?\})(?= CALL|$)", _prompt_text(params)) if "mcp" in self._script else []
        try:
            if calls:
                await asyncio.gather(*(self._call_tool(params["sessionId"], name, given) for name, given in calls))
            else:
                steps = turns[number] if number < len(turns) else [{"text": "You said: {prompt}"}]
                await self._play(steps, params, after)
        finally:
            self._save(params["sessionId"])
        raise Answer({"stopReason": "end_turn"})

    # MCP.

    def _take_servers(self, id: str, params: Json) -> None:
        servers = [server for server in params.get("mcpServers", []) if "command" in server]
        if servers and "mcp" in self._script:
            self._servers[id] = McpServer(servers[0])

    async def _call_tool(self, id: str, name: str, given: str) -> None:
        """Call a tool of the session's server in the way that the script says, and report the result."""
        self._next_id += 1
        call, arguments, manner = f"call-{self._next_id}", json.loads(given), self._script["mcp"]
        unsaid, manner = manner.startswith("unsaid "), manner.removeprefix("unsaid ")
        told = {"toolCallId": call, "title": f"mcp__ahp__{name}", "kind": "other"}
        told |= {} if unsaid else {"rawInput": arguments}
        if manner != "silent":
            self._tell(id, {"sessionUpdate": "tool_call", "status": "pending", **told})
        if manner == "asking" and not await self._may(id, told):
            self._tell(id, {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "failed"})
            self._chunk(id, "agent_message_chunk", f"{name} was denied. ")
            return
        result = await self._servers[id].call(name, arguments)
        said = "".join(part.get("text", "") for part in result.get("content", []))
        if manner != "silent":
            status = "failed" if result.get("isError") else "completed"
            ended = {"toolCallId": call, "status": status, "rawInput": arguments}
            self._tell(id, {"sessionUpdate": "tool_call_update", **ended})
        self._chunk(id, "agent_message_chunk", f"The tool returned: {said} ")

    async def _may(self, id: str, call: Json) -> bool:
        kinds = ("allow_once", "allow_always", "reject_once")
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in kinds]
        answer = await self._request(
            "session/request_permission", {"sessionId": id, "toolCall": call, "options": options}
        )
        result: Json = answer.get("result") or {}
        outcome: Json = result.get("outcome") or {}
        return str(outcome.get("optionId", "")).startswith("allow")

    def _tell(self, id: str, update: Json) -> None:
        self._send({"method": "session/update", "params": {"sessionId": id, "update": update}})

    # Playing.

    async def _play(self, steps: Steps, params: Json, after: Steps, number: int = 0) -> None:
        facts = {"prompt": _prompt_text(params), "session": params.get("sessionId", ""), "i": number}
        for step in steps:
            kind = next(iter(step))
            if kind == "after":
                after.extend(step["after"])
            elif kind == "repeat":
                for i in range(step["repeat"]):
                    await self._play(step["steps"], params, after, i)
            elif kind == "request":
                await self._ask(_filled(step, facts), params, after)
            else:
                await self._step(kind, _filled(step, facts), params)

    async def _step(self, kind: str, step: Json, params: Json) -> None:
        id = params.get("sessionId", "")
        match kind:
            case "text":
                self._chunk(id, "agent_message_chunk", step["text"])
            case "think":
                self._chunk(id, "agent_thought_chunk", step["think"])
            case "update":
                update = {"sessionId": step.get("session", id), "update": step["update"]}
                self._send({"method": "session/update", "params": update | step.get("fields", {})})
            case "notify":
                self._send({"method": step["notify"], "params": step.get("params", {})})
            case "result":
                raise Answer(step["result"])
            case "error":
                raise Answer(error=step["error"])
            case "stop":
                rest = {key: value for key, value in step.items() if key != "stop"}
                raise Answer({"stopReason": step["stop"], **rest})
            case _:
                await self._misbehave(kind, step, id)

    async def _misbehave(self, kind: str, step: Json, id: str) -> None:
        match kind:
            case "file":
                await asyncio.to_thread(Path(step["file"]).write_text, step["content"])
            case "edit":
                file = Path(step["edit"])
                text = await asyncio.to_thread(file.read_text)
                await asyncio.to_thread(file.write_text, text.replace(step["old"], step["new"], 1))
            case "raw":
                self._write(step["raw"].encode())
            case "zeros":
                self._write(b"0" * step["zeros"])
            case "stderr":
                sys.stderr.write(step["stderr"] * step.get("times", 1))
                sys.stderr.flush()
            case "wait_cancel":
                await self._cancel_event(id).wait()
            case "sleep":
                await (asyncio.Event().wait() if step["sleep"] is None else asyncio.sleep(step["sleep"]))
            case "spawn":
                self._chunk(id, "agent_message_chunk", f"{_leave_child(daemon=step['spawn'] == 'daemon')} ")
            case "exit":
                os._exit(step["exit"])
            case "kill":
                os.kill(os.getpid(), signal.Signals(step["kill"]))
            case _:
                raise ValueError(f"unknown step: {kind}")

    async def _ask(self, step: Json, params: Json, after: Steps) -> None:
        answer = await self._request(step["request"], {"sessionId": params.get("sessionId"), **step.get("params", {})})
        if step.get("say"):
            said = answer.get("result", answer.get("error"))
            self._chunk(params["sessionId"], "agent_message_chunk", json.dumps(said, sort_keys=True))
        then: dict[str, Steps] = step.get("then", {})
        result: Json = answer.get("result") or {}
        outcome: Json = result.get("outcome") or {}
        await self._play(then.get(str(outcome.get("optionId") or outcome.get("outcome")), []), params, after)

    async def _request(self, method: str, params: Json) -> Json:
        self._next_id += 1
        answered: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._answers[self._next_id] = answered
        self._send({"id": self._next_id, "method": method, "params": params})
        return await answered

    def _chunk(self, id: str, kind: str, text: str) -> None:
        if kind == "agent_message_chunk" and id in self._sessions:
            self._sessions[id]["history"].append(["agent", text])
        self._say(id, kind, text)

    def _say(self, id: str, kind: str, text: str) -> None:
        update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
        self._send({"method": "session/update", "params": {"sessionId": id, "update": update}})

    # Sessions.

    def _cancel_event(self, id: str) -> asyncio.Event:
        return self._cancelled.setdefault(id, asyncio.Event())

    def _known(self, id: str) -> Json:
        self._load(id)
        if id not in self._sessions:
            raise Answer(error={"code": -32602, "message": f"unknown session {id}"})
        return self._sessions[id]

    def _load(self, name: str) -> None:
        for file in Path(self._script["store"]).glob(f"{name}.json") if "store" in self._script else ():
            self._sessions.setdefault(file.stem, json.loads(file.read_text()))

    def _save(self, id: str) -> None:
        if "store" in self._script:
            Path(self._script["store"]).mkdir(exist_ok=True)
            file = Path(self._script["store"]) / f"{id}.json"
            new = file.with_suffix(".new")  # In one step, so that the file is complete even after a kill.
            new.write_text(json.dumps(self._sessions[id]))
            new.replace(file)


class McpServer:
    """An MCP server that the client gave to a session, started with the first call. Speaks the older era, by hand."""

    def __init__(self, declared: Json) -> None:
        self._declared = declared
        self._process: asyncio.subprocess.Process | None = None
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._next_id = 0

    async def call(self, name: str, arguments: Json) -> Json:
        """Call a tool. Returns a `CallToolResult`, also for an error of the server."""
        async with self._starting:
            if self._process is None:
                await self._start()
        answer = await self._request("tools/call", {"name": name, "arguments": arguments})
        failed = {"isError": True, "content": [{"type": "text", "text": str(answer.get("error"))}]}
        return answer.get("result") or failed

    async def _start(self) -> None:
        env = os.environ | {one["name"]: one["value"] for one in self._declared.get("env", [])}
        pipe = subprocess.PIPE
        command = (self._declared["command"], *self._declared.get("args", []))
        self._process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=env, limit=2**24)
        self._reading = asyncio.create_task(self._read())
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "scripted", "version": "1"},
        }
        await self._request("initialize", about)
        self._write({"method": "notifications/initialized"})
        await self._request("tools/list", {})

    async def _request(self, method: str, params: Json) -> Json:
        self._next_id += 1
        answered: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._answers[self._next_id] = answered
        self._write({"id": self._next_id, "method": method, "params": params})
        return await answered

    def _write(self, message: Json) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message: Json = json.loads(line)
            if "method" not in message and message.get("id") in self._answers:
                self._answers.pop(message["id"]).set_result(message)


def _leave_child(*, daemon: bool) -> int:
    """Start a process that outlives this one and holds its pipes; returns its id."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=daemon).pid


def _listed(id: str, session: Json) -> Json:
    """A session as `session/list` shows it: named after the first thing the user said."""
    said = [text for kind, text in session["history"] if kind == "user"]
    return {"sessionId": id, "cwd": session["cwd"], "updatedAt": "2026-11-15T12:00:00Z"} | (
        {"title": said[0]} if said else {}
    )


def _prompt_text(params: Json) -> str:
    blocks: Steps = params.get("prompt", [])
    return "".join(block["text"] for block in blocks if block["type"] == "text")


def _filled(value: Any, facts: Json) -> Any:
    """`value` with the facts put into its strings."""
    if isinstance(value, str):
        for name, fact in facts.items():
            value = value.replace(f"{{{name}}}", str(fact))
        return value
    if isinstance(value, dict):
        return {key: _filled(item, facts) for key, item in cast("Json", value).items()}
    if isinstance(value, list):
        return [_filled(item, facts) for item in cast("list[Any]", value)]
    return value


def scripted_command(path: Path, **script: Any) -> list[str]:
    """Write a script and return the command line that plays it: as a file, which starts without the package."""
    path.write_text(json.dumps(script))
    return [sys.executable, "-P", __file__, str(path)]


def main() -> None:
    asyncio.run(ScriptedAgent(_script(sys.argv[1:])).run())


def _script(arguments: list[str]) -> Json:
    """The script that the command line names. If it cannot be played, the process ends with an error message."""
    parser = argparse.ArgumentParser(
        prog="python -m ahpkit.testing.acp_agent",
        description=__doc__,
        epilog='Try it:  ahpkit serve --agent "mine=python -m ahpkit.testing.acp_agent"',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("script", nargs="?", type=Path, metavar="SCRIPT.json", help="what to play; without: echo")
    path: Path | None = parser.parse_args(arguments).script
    if path is None:
        return {}
    try:
        script = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        parser.error(f"{path}: {error.strerror}")
    except ValueError as error:
        parser.error(f"{path} is not JSON: {error}")
    if not isinstance(script, dict):
        parser.error(f"{path} must hold an object, as described by --help")
    return cast("Json", script)


__all__ = ["CAPABILITIES", "ScriptedAgent", "main", "scripted_command"]

if __name__ == "__main__":
    main()
