"""Agents that break the rules, behind a real host: the client sees what happened, a turn of another agent runs through
undisturbed, and afterwards nothing is left: no process, no descriptor, no memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.client import Client, SessionFailed, TurnError, connect
from ahpkit.client.answers import Approve, open_requests
from ahpkit.client.chat import Chat
from ahpkit.client.turn import TurnStream
from ahpkit.testing.acp_agent import scripted_command
from support.process import HostProcess, host_process
from support.terminal import terminal
from support.waiting import BOUND

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1024 * 1024
SECRET = "hostile-secret-1"
HOSTILE = Path(__file__).parents[1] / "support" / "hostile_acp.py"
COUNT = {"repeat": 20, "steps": [{"text": "{i} "}]}
GATE: dict[str, Any] = {
    "request": "session/request_permission",
    "params": {"toolCall": {"toolCallId": "gate"}, "options": [{"optionId": "go", "kind": "allow_once"}]},
}
COUNTED = "".join(f"{number} " for number in range(20))


def configuration(home: Path) -> Path:
    calm = scripted_command(home / "calm.json", turns=[[COUNT, GATE, COUNT]])
    agents = {"hostile": ("", 10.0), "silent": ("silent", 0.5), "dying": ("dying", 10.0), "odd": ("odd", 10.0)}
    tables = [f"[agents.calm]\ncommand = {calm[0]!r}\nargs = {calm[1:]!r}\n"]
    for name, (start, patience) in agents.items():
        tables.append(
            f"[agents.{name}]\ncommand = {sys.executable!r}\nargs = [{str(HOSTILE)!r}]\n"
            f"cancel_timeout = 0.3\nstart_timeout = {patience}\n"
            f"env = {{ HOSTILE_START = '{start}', HOSTILE_API_KEY = '{SECRET}' }}\n"
        )
    file = home / "settings.toml"
    file.write_text("\n".join(["[host]\ndefault_agent = 'hostile'\n", *tables]))
    return file


@dataclass
class Stage:
    """The host, a client of it, and the hostile agent's own workspace."""

    host: HostProcess
    client: Client
    workspace: Path = field(default_factory=Path)

    async def chat(self, provider: str = "hostile", workspace: Path | None = None) -> Chat:
        directory = workspace or self.workspace
        session = await self.client.create_session(provider=provider, working_directory=directory.as_uri())
        return await session.chat()

    async def play(self, prompt: str, provider: str = "hostile") -> tuple[str, Chat]:
        """One turn in which every permission is given; what was said, or how it failed, and where."""
        chat = await self.chat(provider)
        return await outcome(chat.send(prompt, on_confirmation=lambda request: Approve())), chat

    def descriptors(self) -> Counter[str]:
        """What the host has open, and how often."""
        found = Counter[str]()
        for descriptor in Path(f"/proc/{self.host.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found[os.readlink(descriptor).partition("[")[0]] += 1
        return found

    def left(self) -> list[str]:
        """What runs in the workspace, whatever it did to its environment, its group and its session."""
        found: list[str] = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if Path(os.readlink(process / "cwd")) == self.workspace:
                    found.append(f"{process.name} {(process / 'cmdline').read_text()}")
        return found

    async def dispose_all(self, provider: str | None = None) -> None:
        for session in await self.client.sessions():
            if provider in (None, session["provider"]):
                await self.client.request("disposeSession", {}, channel=session["resource"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def staged(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stage]:
    home = tmp_path_factory.mktemp("stage")
    async with (
        host_process(
            home, "--config", str(configuration(home)), "--durability", "memory", "--root", str(home.parent)
        ) as host,
        connect(host.url, token=host.token) as client,
    ):
        made = Stage(host, client)
        async with undisturbed(made):  # What the host opens once, such as its watches, is open from now on.
            await made.chat("demo", home)
        await made.dispose_all()
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def stage(staged: Stage, tmp_path: Path) -> AsyncGenerator[Stage]:
    """Beside whatever a test does: a turn that begins before it, ends after it, and misses nothing."""
    staged.workspace = tmp_path
    await staged.dispose_all()
    descriptors, noticed = staged.descriptors(), len(staged.host.errors)
    async with undisturbed(staged):
        yield staged
    await staged.dispose_all()
    await until(lambda: staged.left() == [], staged.left)
    await until(lambda: staged.descriptors().total() <= descriptors.total(), lambda: staged.descriptors() - descriptors)
    said = staged.host.errors[noticed:]
    assert "Traceback" not in said, said
    assert SECRET not in staged.host.errors
    assert said.count("\n") < 100
    assert staged.host.memory < 400 * MIB


@asynccontextmanager
async def undisturbed(stage: Stage) -> AsyncGenerator[None]:
    chat = await stage.chat("calm", stage.host.home)
    turn = chat.send("count")
    await until(lambda: "pending-confirmation" in str(chat.confirmed.get("activeTurn")))
    yield
    assert stage.client.status == "connected"
    chat.approve("gate", option_id="go")
    assert await turn.text() == COUNTED * 2


async def until(condition: Callable[[], bool], seen: Callable[[], object] = lambda: "") -> None:
    """Wait for what nobody announces, such as the end of a process that is not ours."""
    try:
        async with asyncio.timeout(BOUND):
            while not condition():  # noqa: ASYNC110  # Nothing wakes us.
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not reached: {seen()}") from None


async def outcome(turn: TurnStream) -> str:
    try:
        async with asyncio.timeout(BOUND):
            return await turn.text()
    except TurnError as error:
        return f"{error.error_type}: {error}"


def shown(chat: Chat) -> str:
    """Everything that clients can see of the chat."""
    return str(chat.confirmed)


def notices(chat: Chat) -> list[str]:
    parts: list[Any] = [part for turn in chat.confirmed["turns"] for part in turn["responseParts"]]
    return [part["content"] for part in parts if part["kind"] == "systemNotification"]


def calls(chat: Chat) -> list[Any]:
    """The tool calls of the running turn."""
    parts: list[Any] = list((chat.confirmed.get("activeTurn") or {"responseParts": []})["responseParts"])
    return [part["toolCall"] for part in parts if part["kind"] == "toolCall"]


async def works(chat: Chat) -> None:
    assert await outcome(chat.send("still there?")) == "You said: still there?"


# -- messages ---------------------------------------------------------------------------------------------------------


NO_SENSE = {
    "noise": "a\ufffdbc",
    "noise-flood": "",
    "stderr-flood": "",
    "drip": "dripped",
    "ids": "-32600 y",
    "strangers": "mine -32602",
    "disorder": "first",
    "options": "cancelled x",
}
"""What is sent that is no message or makes no sense, and what is shown of the turn."""


async def test_what_is_no_message_or_makes_no_sense_is_passed_over(stage: Stage) -> None:
    for prompt, answer in NO_SENSE.items():
        said, chat = await stage.play(prompt)

        assert said == answer, prompt
        await works(chat)


async def test_what_comes_after_the_turn_is_told_with_the_next(stage: Stage) -> None:
    _, chat = await stage.play("disorder")
    await works(chat)

    assert notices(chat) == ["The agent said between turns: late"]
    [call] = [part["toolCall"] for part in chat.confirmed["turns"][0]["responseParts"] if part["kind"] == "toolCall"]
    assert call["status"] == "completed"


async def test_a_hundred_megabytes_in_one_line_end_the_process_and_cost_no_memory(stage: Stage) -> None:
    before = stage.host.memory
    said, chat = await stage.play("huge-line")

    assert said.startswith("acp/message-too-long: The agent hostile sent a message of more than")
    assert "before" in shown(chat)
    assert stage.host.memory < before + 100 * MIB
    await works(chat)


# -- too much of everything -------------------------------------------------------------------------------------------


async def test_large_things_are_cut_where_they_would_be_sent_to_everyone_again_and_again(stage: Stage) -> None:
    said, chat = await stage.play("large 3000000")
    [listed] = [session for session in await stage.client.sessions() if session["provider"] == "hostile"]
    session: Any = (await stage.client.session(listed["resource"])).confirmed

    assert said == "done"
    assert len(listed["title"]) <= 200
    assert len(str(session)) < MIB
    assert len(shown(chat)) < 6 * MIB
    [commands] = [placed for placed in session["customizations"] if placed["id"] == "agent-commands"]
    assert len(commands["children"]) == 1000
    [plan] = session["_meta"]["ahpkit/plan"][chat.uri]
    assert (len(plan["entries"]), plan["ahpkit/left-out"]) == (1000, 29_000)
    assert any("characters are not shown" in notice for notice in notices(chat))


async def test_more_text_than_a_turn_may_have_ends_with_a_notice(stage: Stage) -> None:
    said, chat = await stage.play("chunk 17000000")

    assert len(said) == 16 * MIB
    assert notices(chat) == ["The agent says more in this turn than this host shows: the rest is left out."]


async def test_unknown_variants_are_kept_and_shown_up_to_a_number(stage: Stage) -> None:
    _, chat = await stage.play("variants 2000")
    [listed] = [session for session in await stage.client.sessions() if session["provider"] == "hostile"]
    session: Any = (await stage.client.session(listed["resource"])).confirmed
    meta = session["_meta"]

    assert len(meta["ahpkit/acp"][chat.uri]["unknownUpdates"]) == 20
    assert len(meta["ahpkit/plan"][chat.uri]) == 20
    assert notices(chat)[0] == "The agent sent an update of a kind this host does not know: variant-0"
    assert len(notices(chat)) == 20


async def test_hundreds_of_questions_at_once_are_refused_but_for_as_many_as_a_person_could_see(stage: Stage) -> None:
    chat = await stage.chat()
    turn = chat.send("permissions 600")
    await until(lambda: "all asked" in shown(chat))
    for call in calls(chat):
        chat.approve(call["toolCallId"])

    assert await outcome(turn) == "64 served, 536 refused"


async def test_open_questions_end_with_the_turn_that_asked_them(stage: Stage) -> None:
    chat = await stage.chat()
    turn = chat.send("elicitations 300")
    await until(lambda: len(open_requests(chat.confirmed)) == 64)
    chat.cancel()

    assert (await outcome(turn)).startswith("cancelled")
    assert not open_requests(chat.confirmed)


async def test_terminals_are_refused_beyond_the_hosts_number_and_end_with_the_session(stage: Stage) -> None:
    said, _ = await stage.play("terminals 80")
    served, refused = (int(number) for number in said.replace(",", "").split()[::2])

    assert served <= 64
    assert served + refused == 80


async def test_a_flood_of_output_in_a_terminal_is_kept_up_to_what_the_agent_asked_for(stage: Stage) -> None:
    said, _ = await stage.play("terminal-output 5000000")

    assert said == "100 True end"


# -- life and death ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["SIGKILL", "SIGSEGV", "SIGTERM"])
async def test_dying_in_mid_turn_shows_the_last_words(stage: Stage, way: str) -> None:
    said, chat = await stage.play(f"die {way}")

    number = signal.Signals[way].value
    assert said == f"acp/agent-exited: The agent hostile was ended by signal {number}.\nIts last output:\nlast words"
    assert "half" in shown(chat)
    await works(chat)


async def test_dying_while_a_person_decides_ends_the_question(stage: Stage) -> None:
    chat = await stage.chat()
    turn = chat.send("die-asking")
    await until(lambda: len(calls(chat)) == 1)
    os.kill(int(calls(chat)[0]["displayName"]), signal.SIGKILL)

    assert (await outcome(turn)).startswith("acp/agent-exited")
    assert "pending-confirmation" not in shown(chat)
    await works(chat)


async def test_dying_again_and_again_says_that_starts_wait(stage: Stage) -> None:
    chat = await stage.chat()
    for _ in range(3):
        assert (await outcome(chat.send("die"))).startswith("acp/agent-exited")

    assert [notice for notice in notices(chat) if notice.startswith("It ended")] == [
        "It ended 2 times in a row: its next start may wait up to 0.5 s.",
        "It ended 3 times in a row: its next start may wait up to 1 s.",
    ]
    await works(chat)


@pytest.mark.parametrize("way", ["deaf", "stopped"])
async def test_one_that_ignores_the_cancel_or_is_stopped_is_ended(stage: Stage, way: str) -> None:
    chat = await stage.chat()
    turn = chat.send(way)
    await until(lambda: f"{way} " in shown(chat))
    chat.cancel()

    assert (await outcome(turn)).startswith("cancelled")
    await works(chat)


async def test_one_that_closes_its_output_and_lives_on_is_ended(stage: Stage) -> None:
    said, chat = await stage.play("mute")

    assert said == "acp/agent-exited: The agent hostile closed its output."
    await works(chat)


async def test_one_that_does_not_read_is_dropped_with_the_reason(stage: Stage) -> None:
    before = stage.host.memory
    said, chat = await stage.play("unread")

    assert said == "acp/unread: The agent hostile does not read its input."
    assert stage.host.memory < before + 150 * MIB
    await works(chat)


@pytest.mark.parametrize("end", ["", "die", "terminal"])
async def test_whatever_it_leaves_running_ends_with_it(stage: Stage, end: str) -> None:
    """Children in its group, in sessions of their own, without its environment, daemons, jobs of its terminals."""
    said, _ = await stage.play(f"leave {end}")

    if end == "die":
        assert said.startswith("acp/agent-exited")
        await until(lambda: stage.left() == [], stage.left)
    else:
        assert len(stage.left()) > len(said.split())
        await stage.dispose_all("hostile")
        await until(lambda: stage.left() == [], stage.left)


@pytest.mark.parametrize(
    ("provider", "why"),
    [("silent", "did not answer initialize within 0.5 seconds"), ("dying", "exited with code 3.\nIts last output:")],
)
async def test_one_that_never_starts_fails_the_session_with_the_reason(stage: Stage, provider: str, why: str) -> None:
    with pytest.raises(SessionFailed) as error:
        await stage.chat(provider)

    assert why in str(error.value)


async def test_options_of_all_shapes_are_shown_as_far_as_they_make_sense(stage: Stage) -> None:
    said, _ = await stage.play("hello", "odd")

    assert said == "You said: hello"
    [odd] = [agent for agent in stage.client.root["agents"] if agent["provider"] == "odd"]
    assert [model["id"][0] for model in odd["models"]] == ["m"]


async def test_a_program_and_a_directory_that_disappear_between_turns_are_named(stage: Stage, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    chat = await stage.chat(workspace=place)
    assert (await outcome(chat.send("die"))).startswith("acp/agent-exited")
    place.rmdir()

    assert await outcome(chat.send("again")) == (
        f"acp/start: The agent hostile cannot start: the working directory {place} does not exist."
    )
    place.mkdir()
    await works(chat)


# -- what it must not get, and must not show --------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["read", "save"])
async def test_files_outside_the_workspace_and_what_is_no_file_are_refused(stage: Stage, verb: str) -> None:
    here = stage.workspace / "here"
    here.mkdir()
    (stage.workspace / "outside").write_text("private")
    (here / "link").symlink_to(stage.workspace / "outside")
    os.mkfifo(here / "pipe")
    chat = await stage.chat(workspace=here)

    elsewhere = ("/etc/hostname", f"{here}/../outside", f"{here}/link", "/proc/self/environ")
    for path in (*elsewhere, f"{here}/pipe", f"{here}/\0"):
        assert '"code": -32' in await outcome(chat.send(f"{verb} {path}")), path
    assert (stage.workspace / "outside").read_text() == "private"


async def test_secrets_reach_neither_states_nor_logs(stage: Stage) -> None:
    said, chat = await stage.play("whisper")
    after = await outcome(chat.send("whisper die"))

    assert said == "acp/-32603: hostile answered session/prompt with an error: bad key …"
    assert after.startswith("acp/agent-exited")
    words = (SECRET, "abcdef0123456789", "ghp_abcdef", "qwertyuiop", "zxcvbnm", "hunter2")
    assert [word for word in words if word in shown(chat) + stage.host.errors] == []


async def test_nothing_it_says_drives_the_terminal_of_a_reader(stage: Stage) -> None:
    """The screen refuses every sequence that the chat itself does not use."""
    async with terminal(["chat"], stage.host.home) as person:
        await person.ready()
        person.enter("escapes")
        await person.see("may I", "choose one")
        person.enter("1")
        await person.see("question", "a number from the list:")
        person.enter("1")
        await person.see("failure")
        await person.ready()
        person.type("\x04")
        assert await person.exited() == 0
    assert "\x1b]" not in person.raw
    assert "\x1b[2J" not in person.raw
    assert "\x9b" not in person.raw
