"""The scripted agent speaks ACP as its schema says, so that what works with it means something."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import acp.schema as schema
import pytest
from acp.meta import AGENT_METHODS

from ahpkit.testing.acp_agent import scripted_command
from support.waiting import BOUND

UNSTABLE = ("providers/", "mcp/", "nes/", "document/")
METHODS = [method for method in AGENT_METHODS.values() if not method.startswith(UNSTABLE)]
RESULTS: dict[str, Any] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
}
PARAMS: dict[str, Any] = {
    "initialize": {"protocolVersion": 1},
    "session/new": {"cwd": "/", "mcpServers": []},
    "session/prompt": {"prompt": [{"type": "text", "text": "hi"}]},
    "session/set_mode": {"modeId": "m"},
    "session/set_config_option": {"configId": "o", "value": "v"},
    "authenticate": {"methodId": "a"},
}


class Client:
    """Talks to the program by hand."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._id = 0
        self.notified: list[Any] = []
        self.asked: list[Any] = []
        self.session = ""

    async def call(self, method: str, params: Any = None) -> Any:
        self._id += 1
        self.send(id=self._id, method=method, params={"sessionId": self.session, **(params or PARAMS.get(method, {}))})
        while True:
            message = await self.receive()
            if message.get("id") == self._id and "method" not in message:
                return message
            (self.asked if "id" in message else self.notified).append(message)

    def send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def receive(self) -> Any:
        assert self._process.stdout is not None
        async with asyncio.timeout(BOUND):
            return json.loads(await self._process.stdout.readline())

    async def leave(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(BOUND):
            return await self._process.wait()


async def start(directory: Path, **script: Any) -> Client:
    command = scripted_command(directory / "script.json", **script)
    pipe = asyncio.subprocess.PIPE
    client = Client(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))
    await client.call("initialize")
    client.session = (await client.call("session/new"))["result"]["sessionId"]
    return client


@pytest.mark.parametrize("method", [method for method in METHODS if method != "session/cancel"])
async def test_it_plays_every_method_and_its_results_pass_the_schema(tmp_path: Path, method: str) -> None:
    client = await start(tmp_path)

    answer = await client.call(method)

    RESULTS.get(method, dict).model_validate(answer["result"]) if method in RESULTS else answer["result"]
    assert await client.leave() == 0


async def test_its_updates_pass_the_schema(tmp_path: Path) -> None:
    updates: list[Any] = [
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T"},
        {"sessionUpdate": "plan", "entries": []},
        {"sessionUpdate": "current_mode_update", "currentModeId": "m"},
    ]
    steps = [{"text": "{prompt}"}, {"think": "{i}"}, *({"update": update} for update in updates)]
    client = await start(tmp_path, turns=[[{"repeat": 2, "steps": steps}, {"stop": "max_tokens"}]])

    answer = await client.call("session/prompt")

    assert answer["result"] == {"stopReason": "max_tokens"}
    sent = [schema.SessionNotification.model_validate(message["params"]) for message in client.notified]
    assert len(sent) == 10
    assert [message["params"]["update"]["content"]["text"] for message in client.notified[:2]] == ["hi", "0"]
    await client.leave()


async def test_it_asks_the_client_and_goes_on_with_the_answer(tmp_path: Path) -> None:
    ask = {"request": "session/request_permission", "say": True, "then": {"no": [{"stop": "refusal"}]}}
    client = await start(tmp_path, turns=[[ask]])
    client.send(id=50, method="session/prompt", params={"sessionId": client.session, "prompt": []})
    asked = await client.receive()

    client.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "no"}})

    said, answer = await client.receive(), await client.receive()
    assert '"optionId": "no"' in said["params"]["update"]["content"]["text"]
    assert answer["result"]["stopReason"] == "refusal"
    await client.leave()


async def test_another_process_takes_its_sessions_up_and_repeats_them(tmp_path: Path) -> None:
    script = {"store": str(tmp_path / "store")}
    first = await start(tmp_path, **script)
    await first.call("session/prompt")
    await first.leave()
    second = await start(tmp_path, **script)
    second.session = first.session

    await second.call("session/load")

    texts = [message["params"]["update"]["content"]["text"] for message in second.notified]
    assert texts == ["hi", "You said: hi"]
    await second.leave()


@pytest.mark.parametrize(("step", "code"), [({"exit": 3}, 3), ({"kill": 9}, -9)])
async def test_it_can_die(tmp_path: Path, step: dict[str, int], code: int) -> None:
    client = await start(tmp_path, turns=[[step]])
    client.send(id=9, method="session/prompt", params={"sessionId": client.session, "prompt": []})

    assert await client.leave() == code


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ahpkit.testing.acp_agent", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_help_says_what_a_script_is() -> None:
    helped = run("--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert all(word in helped.stdout for word in ("SCRIPT.json", "turns", "wait_cancel", "ahpkit serve --agent"))


@pytest.mark.parametrize(
    ("text", "problem"), [(None, "No such file"), ("{", "is not JSON"), ("[]", "must hold an object")]
)
def test_a_script_that_cannot_be_played_is_one_line(tmp_path: Path, text: str | None, problem: str) -> None:
    script = tmp_path / "script.json"
    if text is not None:
        script.write_text(text)
    done = run(str(script))
    assert done.returncode == 2
    assert problem in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
