"""No request of one client holds the event loop for more than 50 ms of CPU, whatever it asks for.

Counted as CPU time of one step of the loop, so that a busy machine changes nothing.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.dialects import Generation
from ahpkit.host.turns.new_state import NO_CONFIG, new_chat, new_session
from ahpkit.log.datadir import open_storage
from ahpkit.log.entry import ChannelSnapshot
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.protocol.chat.reducer import chat_reducer
from ahpkit.wire.codec import encode
from support.flow import begun, open_session, remark, say, state_of
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOUND = 0.05
"""Seconds of CPU, on a machine that is as fast as `_this_machine` expects."""

ROOT = "ahp-root://"
HOSTILE = Path(__file__).parents[1] / "support" / "hostile_acp.py"
LARGE = 15_000_000
ACTION = 8_000_000
"""Bytes of the largest action that is taken."""
VALUES = 45_000


def _this_machine() -> float:
    """How much slower this machine is now than one that counts to 200,000 in 5 ms.

    The slowest of five looks: whatever else runs takes caches and memory away for moments, and one slow step decides.
    """
    return max(1.0, *(_count() / 0.005 for _ in range(5)))


def _count() -> float:
    began = time.thread_time()
    sum(number for number in range(200_000))
    return time.thread_time() - began


class Target:
    """A host under attack and the session that it is attacked through."""

    def __init__(self, host: HostProcess, steps: Path, client: RawClient, session: str, chat: str) -> None:
        self.host = host
        self.client = client
        self.session = session
        self.chat = chat
        self._steps = steps

    def slow_steps(self) -> list[str]:
        """The steps since the last call that took long, the slowest first."""
        found = self._steps.read_text().splitlines() if self._steps.exists() else []
        self._steps.write_text("")
        return sorted(found, reverse=True)

    async def dispatch(self, channel: str, action: Json) -> None:
        """Dispatch, and wait until it was accepted or refused."""
        await self.client.dispatch(channel, action)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def timed(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[HostProcess, Path]]:
    home = tmp_path_factory.mktemp("host")
    options = ("--terminals", "--agent", f"hostile={sys.executable} {HOSTILE}")
    async with host_process(home, *options, through=("support.timed_host", str(home / "steps"))) as host:
        yield host, home / "steps"
        assert "Traceback" not in host.errors, host.errors


@pytest_asyncio.fixture(loop_scope="module")
async def target(timed: tuple[HostProcess, Path]) -> AsyncGenerator[Target]:
    host, steps = timed
    client = await host.client(ROOT)
    session, chat = await open_session(client, provider="demo")
    await client.ask("subscribe", f"{session}/annotations")
    yield Target(host, steps, client, session, chat)
    await client.ask("disposeSession", session)
    await client.aclose()


async def large_remark(target: Target) -> None:
    await target.dispatch(f"{target.session}/annotations", remark("1,2,[{:" * (ACTION // 7)))
    await target.client.ask("subscribe", f"{target.session}/annotations")
    await target.dispatch(f"{target.session}/annotations", remark("small"))


async def remark_to_all_versions(target: Target) -> None:
    """A large remark and a small one after it, for a subscriber of each version."""
    remarks = f"{target.session}/annotations"
    readers = [await target.host.connect(generation.release) for generation in Generation]
    for reader in readers:
        await reader.initialize(remarks, protocolVersions=[reader.client_id])
    target.client.post(remarks, remark("x" * ACTION))
    last = await target.client.accepted(remarks, remark("small"))
    for reader in readers:
        await reader.action(_from(last["origin"]))
        texts = [told["action"]["annotation"]["entries"][0]["text"] for told in reader.actions(remarks)]
        assert [len(text) for text in texts] == [ACTION, len("small")], reader.client_id
        await reader.aclose()


async def escaped_remark(target: Target) -> None:
    for escapes in (300_000, LARGE // 6):
        text = '"\\\n' * escapes
        await target.dispatch(f"{target.session}/annotations", remark(text + "x" * (ACTION - 6 * escapes)))


def _from(origin: Json) -> Callable[[Json], bool]:
    """Whether an action is the one with that origin."""
    return lambda told: told.get("origin") == origin


async def foreign_remark(target: Target) -> None:
    """Characters that take long to read: several bytes each, or written as escapes."""
    for letter, count in (("😀", 1_900_000), ("€", 2_600_000), ("ä", 3_900_000), ("\\u00e4", 900_000)):
        action = json.dumps(remark("@")).replace("@", letter * count)
        seq = time.monotonic_ns() // 1000
        call = f'{{"channel":"{target.session}/annotations","clientSeq":{seq},"action":{action}}}'
        target.client.send_bytes(f'{{"jsonrpc":"2.0","method":"dispatchAction","params":{call}}}'.encode())
        origin = {"clientId": target.client.client_id, "clientSeq": seq}
        told = await target.client.action(_from(origin))
        assert "rejectionReason" not in told, told["rejectionReason"]


async def large_title(target: Target) -> None:
    await target.dispatch(target.session, {"type": "session/titleChanged", "title": "x" * ACTION})
    await target.dispatch(target.session, {"type": "session/titleChanged", "title": "x" * LARGE})


async def many_values(target: Target) -> None:
    action = {"type": "session/isReadChanged", "isRead": True, "_meta": {"a": [{"b": 1}] * (VALUES // 3)}}
    await target.dispatch(target.session, action)
    await target.dispatch(target.session, {**action, "_meta": {str(number): [] for number in range(VALUES // 3)}})


async def too_many_values(target: Target) -> None:
    for value in ("[]", "{}", "0", '""'):
        values = f"{value}," * (LARGE // (len(value) + 1)) + value
        target.client.received.clear()
        frame = f'{{"jsonrpc":"2.0","id":"v","method":"ping","params":{{"channel":"{ROOT}","a":[{values}]}}}}'
        target.client.send_bytes(frame.encode())
        assert "error" in await target.client.wait(lambda message: "error" in message)


async def wrong_everywhere(target: Target) -> None:
    wrong = [{"id": number} for number in range(VALUES // 3)]
    await target.client.refused("createSession", "ahp-session:/x", activeClient={"clientId": "tester", "tools": wrong})


async def long_names(target: Target) -> None:
    name = "x" * LARGE
    assert "error" in await target.client.call(name)
    assert "error" in await target.client.call("subscribe", name)
    assert "error" in await target.client.call("resourceRead", uri=f"file:///{name}")
    name = "x" * ACTION
    await target.dispatch(f"ahp-session:/{name}", {"type": "session/isReadChanged", "isRead": True})
    await target.dispatch(target.session, {"type": name})


async def many_subscriptions(target: Target) -> None:
    wanted = [f"ahp-chat:/{number}" for number in range(4_000)]
    for method in ("initialize", "reconnect"):
        client = await target.host.connect("many")
        await client.call(
            method,
            clientId="many",
            protocolVersions=["0.4.0"],
            initialSubscriptions=wanted,
            lastSeenServerSeq=0,
            subscriptions=wanted,
        )
        await client.aclose()


async def long_completions(target: Target) -> None:
    for text in ("x" * LARGE, "@a " * 300_000, "/" * 1_000_000, "ä" * 1_000_000):
        await target.client.call("completions", target.chat, text=text, offset=len(text), kind="userMessage")


async def long_message(target: Target) -> None:
    for number, text in enumerate(("a/b.py " * (ACTION // 7), "#" * (ACTION - 999), "x" * (ACTION - 999))):
        target.client.received.clear()
        await target.dispatch(target.chat, say(text, f"long-{number}"))
        await target.dispatch(target.chat, {"type": "chat/turnCancelled", "turnId": f"long-{number}"})


async def many_tools(target: Target) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^\w{1,20}$"}}}
    tools = [{"name": f"t{number}", "inputSchema": {**schema, "title": str(number)}} for number in range(1_000)]
    claim: Json = {"clientId": "tester", "tools": tools}
    await target.dispatch(target.session, {"type": "session/activeClientChanged", "activeClient": claim})
    await target.dispatch(target.session, {"type": "session/activeClientChanged", "activeClient": None})


async def hostile_patterns(target: Target) -> None:
    schema: Json = {"patternProperties": {f"^\\p{{L}}{{{number}}}": {} for number in range(1, 15)}}
    canvas: Json = {"canvasId": "c", "displayName": "C", "description": "A canvas", "inputSchema": schema}
    claim: Json = {"clientId": "tester", "tools": [], "canvasProviders": [canvas]}
    await target.dispatch(target.session, {"type": "session/activeClientChanged", "activeClient": claim})


async def many_remarks(target: Target) -> None:
    entries = [{"id": str(number), "text": "x"} for number in range(VALUES // 5)]
    action: Json = remark("x")
    action["annotation"]["entries"] = entries
    await target.dispatch(f"{target.session}/annotations", action)
    for number in range(20):
        entry = {"id": str(number), "text": "y"}
        await target.dispatch(
            f"{target.session}/annotations", {"type": "annotations/entrySet", "annotationId": "a", "entry": entry}
        )


async def long_configuration(target: Target) -> None:
    config = {str(number): "x" for number in range(VALUES // 2)}
    await target.client.call("resolveSessionConfig", config=config)
    await target.client.call(
        "createSession", f"ahp-session:/configured-{time.monotonic_ns()}", provider="demo", config=config
    )
    await target.dispatch(target.session, {"type": "session/configChanged", "config": config})


async def many_requests(target: Target) -> None:
    for _ in range(2_000):
        target.client.send({"jsonrpc": "2.0", "method": "dispatchAction", "params": {"channel": 7}})
    for number in range(500):
        target.client.post(target.session, {"type": "session/titleChanged", "title": f"t{number}"})
    await target.client.ask("listSessions")


async def many_rules(target: Target) -> None:
    folder = target.host.home / "workspace" / ".github" / "instructions"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1_500):
        choices = ",".join(f"{choice}{number}*" for choice in range(20))
        text = f'---\napplyTo: "src/**/{{{choices}}}/**/*.py"\n---\nRule {number}\n'
        (folder / f"r{number}.instructions.md").write_text(text)
    session = f"ahp-session:/rules-{time.monotonic_ns()}"
    directory = (target.host.home / "workspace").as_uri()
    await target.client.ask("createSession", session, provider="demo", workingDirectory=directory)
    state = (await target.client.ask("subscribe", session))["snapshot"]["state"]
    if state["lifecycle"] == "creating":
        await target.client.action(
            lambda said: said["channel"] == session and said["action"]["type"] == "session/ready"
        )
    await target.client.ask("subscribe", state["defaultChat"])
    await target.dispatch(state["defaultChat"], say(" ".join(f"src/{n}/a/b{n}/c.py" for n in range(200)), "rules"))
    await target.client.action(lambda said: said["action"]["type"] in ("chat/turnComplete", "chat/error"))


async def large_write(target: Target) -> None:
    """In base64, as a text, and almost in base64."""
    uri = (await _working(target)).as_uri() + "/large"
    data = base64.b64encode(bytes(range(256)) * 40_000).decode()
    await target.client.ask("resourceWrite", uri=uri, data=data, encoding="base64")
    await target.client.ask("resourceWrite", uri=uri, data=data, encoding="utf-8")
    for wrong in (f"{data}é", f"{data[: 1 << 20]}===={data}"):
        refused = await target.client.refused("resourceWrite", uri=uri, data=wrong, encoding="base64")
        assert "not valid base64" in refused["message"]


async def _working(target: Target) -> Path:
    """A folder that a session works in."""
    folder = target.host.home / f"folder-{time.monotonic_ns()}"
    folder.mkdir()
    uri = f"ahp-session:/{folder.name}"
    await target.client.ask("createSession", uri, provider="demo", workingDirectory=folder.as_uri())
    return folder


async def long_cursors(target: Target) -> None:
    cursor = "QUJD" * (LARGE // 4)
    await target.client.call("listSessions", cursor=cursor)
    await target.client.call("fetchTurns", target.chat, before=cursor)


async def malformed_import(target: Target) -> None:
    """The reason for a refusal does not quote 15 MB."""
    turn: Json = {"id": "t", "message": {"text": "x" * LARGE, "origin": {"kind": "user"}}, "responseParts": []}
    document: Json = {"format": 1, "chats": [{"resource": "ahp-chat:/i", "title": 7, "turns": [turn]}]}
    await target.client.refused("_ahpkit/sessions/import", document=document)


def _turn(number: int, text: str = "x") -> Json:
    message = {"text": text, "origin": {"kind": "user"}}
    return {"id": f"t{number}", "message": message, "responseParts": [], "state": "complete"}


async def large_import(target: Target) -> None:
    """In pieces, then copied, attached and cut."""
    for piece in range(5):
        turns = [_turn(piece * 4_000 + number) for number in range(4_000)]
        await target.client.ask("_ahpkit/sessions/stage", chat=0, turns=turns)
    document: Json = {"format": 1, "title": "x", "provider": "demo", "chats": [{"title": "c", "turns": []}]}
    session = (await target.client.ask("_ahpkit/sessions/import", document=document, staged=20_000))["session"]
    chat = (await target.client.ask("subscribe", session))["snapshot"]["state"]["chats"][0]["resource"]
    source = {"chat": chat, "turnId": "t19990"}
    await target.client.ask("createChat", session, chat=f"ahp-chat:/{time.monotonic_ns()}", source=source)
    chats = [{"type": "chat", "label": "l", "resource": chat}] * 20
    message = say("look", f"look-{time.monotonic_ns()}")
    message["message"]["attachments"] = chats
    await target.dispatch(target.chat, message)
    await target.client.action(lambda told: told["action"]["type"] in ("chat/turnComplete", "chat/error"))
    await target.client.ask("subscribe", chat)
    await target.dispatch(chat, {"type": "chat/truncated", "turnId": "t10000"})
    await target.client.ask("disposeSession", session)


async def long_rules(target: Target) -> None:
    rule = {"decision": "allow", "kind": "command", "owner": "agent:demo", "tool": "run", "scope": "everywhere"}
    await target.client.call("_ahpkit/rules/add", **rule, pattern="a " * 500_000)
    for words in range(50):
        made = await target.client.ask("_ahpkit/rules/add", **rule, pattern="a " * 1_000 + str(words))
        await target.client.ask("_ahpkit/rules/remove", id=made["id"])


def _of(turn_id: str, kind: str) -> Callable[[Json], bool]:
    """Whether an action of that type is about the turn."""
    return lambda told: (told["action"].get("turnId"), told["action"]["type"]) == (turn_id, kind)


async def deep_paths(target: Target) -> None:
    """A person edits an input: thousands of folders in a path, many paths, and all the rules that a tool may have."""
    rule = {"decision": "deny", "kind": "path", "owner": "agent:demo", "tool": "calculate", "scope": "everywhere"}
    made = [await target.client.call("_ahpkit/rules/add", **rule, pattern="/a" * 30 + f"/{n}") for n in range(110)]
    taken = [answer["result"]["id"] for answer in made if "result" in answer]
    assert len(taken) == 100
    edits: list[Json] = [
        {"path": "a/" * 200_000},
        {"paths": ["/a" * 500 + f"/x{number}" for number in range(999)]},
        {"paths": [f"/a/{number}" for number in range(999)]},
        {"anything": ["~/" + "a/" * 400] * 999},
    ]
    for edit in edits:
        turn = f"edit-{time.monotonic_ns()}"
        await target.dispatch(target.chat, say('/tool calculate {"expression": "6*7"}', turn))
        asked = await target.client.action(_of(turn, "chat/toolCallReady"))
        answer = {"type": "chat/toolCallConfirmed", "approved": True, "confirmed": "user-action"}
        about = {key: asked["action"][key] for key in ("turnId", "toolCallId")}
        await target.dispatch(target.chat, {**answer, **about, "editedToolInput": json.dumps(edit)})
        await target.client.action(_of(turn, "chat/turnComplete"))
    for id in taken:
        await target.client.ask("_ahpkit/rules/remove", id=id)


async def many_annotations(target: Target) -> None:
    """Nearly as many as a session may have. Each action looks for one of them, the last; 64 come at once."""
    for number in range(4_900):
        action = remark("x")
        action["annotation"]["id"] = str(number)
        target.client.post(f"{target.session}/annotations", action)
    await target.client.ask("ping")
    for number in range(4_900 - 64, 4_900):
        action = {"type": "annotations/updated", "annotationId": str(number), "resolved": True}
        target.client.post(f"{target.session}/annotations", action)
    await target.client.action(
        lambda told: (told["action"]["type"], told["action"].get("annotationId")) == ("annotations/updated", "4899")
    )


async def long_numbers(target: Target) -> None:
    action = {"type": "session/isReadChanged", "isRead": True, "_meta": {"n": [10**99] * 40_000}}
    await target.dispatch(target.session, action)
    await target.dispatch(target.session, {**action, "_meta": {"n": [10**4200] * 1_800}})


async def deep_values(target: Target) -> None:
    value: Any = 1
    for _ in range(180):
        value = {"a": value}
    await target.client.ask("ping", _meta={"v": [value] * 200})


async def many_watches(target: Target) -> None:
    """Each change is compared with each pattern of each watch."""
    folder = await _working(target)
    patterns = {"items": [f"*a*b*c*{number}{'x' * 100}" for number in range(99)]}
    for _ in range(60):
        made = await target.client.ask("createResourceWatch", uri=folder.as_uri(), recursive=True, excludes=patterns)
        await target.client.ask("subscribe", made["channel"])
    for number in range(300):
        (folder / f"{'abc' * 30}{number}").write_text("x")
    await target.client.action(lambda said: said["channel"].startswith("ahp-resource-watch:"))
    for subscribed in {said["channel"] for said in target.client.actions()}:
        if subscribed.startswith("ahp-resource-watch:"):
            target.client.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": subscribed}})


def _repository(folder: Path, *, files: int) -> None:
    (folder / "packages").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    for number in range(files):
        (folder / "packages" / f"{number:05}").touch()


async def many_changes(target: Target) -> None:
    """Files that git does not know, as a folder of packages has them that nobody ignores. All are reviewed at once."""
    folder = target.host.home / f"repository-{time.monotonic_ns()}"
    _repository(folder, files=6_000)
    session = f"ahp-session:/{folder.name}"
    await target.client.ask("createSession", session, provider="demo", workingDirectory=folder.as_uri())
    found = (await begun(target.client, session))["changesets"]
    changeset = next(one["uriTemplate"] for one in found if one["uriTemplate"].endswith("/uncommitted"))
    state = await state_of(target.client, changeset)
    while state["status"] != "ready":
        state = await state_of(target.client, changeset)
    *listed, more = state["files"]
    assert len(listed) == 5_000
    assert more["_meta"]["ahpkit/note"] == "1000 more files changed; they are not listed"
    reviewer = await target.host.connect("1.0.0")
    await reviewer.initialize(changeset, protocolVersions=["1.0.0"])
    files = [one["id"] for one in listed]
    await reviewer.accepted(changeset, {"type": "changeset/filesReviewChanged", "files": files, "reviewed": True})
    await reviewer.aclose()
    await target.client.ask("disposeSession", session)


async def agent_that_says_much(target: Target) -> None:
    """Its client reads all the time, so it is not taken for one that does not."""
    session = f"ahp-session:/much-{time.monotonic_ns()}"
    await target.client.ask("createSession", session, provider="hostile")
    chat = (await begun(target.client, session))["defaultChat"]
    await target.client.ask("subscribe", chat)
    await target.client.accepted(chat, say("much"))
    await target.client.action(lambda said: said["channel"] == chat and said["action"]["type"] == "chat/turnComplete")
    turn = (await state_of(target.client, chat))["turns"][-1]
    told = [part["content"] for part in turn["responseParts"] if "content" in part]
    assert told[-1] == "the end"
    assert "one message may hold 200000 values" in told[-2]
    await target.client.ask("disposeSession", session)


async def agent_with_many_settings(target: Target) -> None:
    """Each is an option of the session, with many choices."""
    session = f"ahp-session:/settings-{time.monotonic_ns()}"
    await target.client.ask("createSession", session, provider="hostile")
    chat = (await begun(target.client, session))["defaultChat"]
    await target.client.ask("subscribe", chat)
    for sizes in ("300 200", "900 60", "1 60000"):
        target.client.received.clear()
        await target.client.accepted(chat, say(f"settings {sizes}", f"settings {sizes}"))
        await target.client.action("chat/turnComplete")
        assert len(json.dumps(await state_of(target.client, session))) < 200_000
    await target.client.ask("disposeSession", session)


QUICK: list[Callable[[Target], Awaitable[Any]]] = [
    many_values,
    wrong_everywhere,
    many_subscriptions,
    many_tools,
    hostile_patterns,
    many_remarks,
    long_configuration,
    many_requests,
    deep_values,
]
"""Attacks with many things or deep ones, but few bytes."""

LARGE_ONES: list[Callable[[Target], Awaitable[Any]]] = [
    large_remark,
    remark_to_all_versions,
    escaped_remark,
    foreign_remark,
    large_title,
    too_many_values,
    long_names,
    long_completions,
    long_message,
    many_rules,
    large_write,
    long_cursors,
    malformed_import,
    large_import,
    long_rules,
    deep_paths,
    many_annotations,
    long_numbers,
    many_watches,
    many_changes,
    agent_that_says_much,
    agent_with_many_settings,
]


ATTACKS = [*QUICK, *(pytest.param(attack, marks=pytest.mark.slow) for attack in LARGE_ONES)]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
async def test_no_request_holds_the_loop(target: Target, attack: Callable[[Target], Awaitable[Any]]) -> None:
    """The best of three: caches and memory are shared with everything else that runs on this machine."""
    found: list[list[str]] = []
    for _ in range(3):
        target.slow_steps()
        await attack(target)
        assert await target.client.ask("ping") is None
        found.append(target.slow_steps())
        target.client.received.clear()
        if _worst(found[-1]) <= BOUND * _this_machine():
            return
    raise AssertionError(f"{attack.__name__} holds the loop: {min(found, key=_worst)[:5]}")


def _worst(steps: list[str]) -> float:
    return float(steps[0].split()[0]) if steps else 0.0


async def test_an_action_that_is_too_much_is_refused_under_its_number(target: Target) -> None:
    remarks = f"{target.session}/annotations"
    assert "an action may have 8388608 bytes" in await target.client.rejected(remarks, remark("x" * LARGE))
    for seq in ("7000.0", "7e3"):  # However the number is written.
        sent = f'{{"channel":"{remarks}","clientSeq":{seq},"action":{json.dumps(remark("x" * 9_000_000))}}}'
        target.client.received.clear()
        target.client.send_bytes(f'{{"jsonrpc":"2.0","method":"dispatchAction","params":{sent}}}'.encode())
        refused = await target.client.action(_from({"clientId": target.client.client_id, "clientSeq": 7000}))
        assert "an action may have 8388608 bytes" in refused["rejectionReason"]
    assert "1000000 backslashes" in await target.client.rejected(remarks, remark("\n" * 1_100_000))
    values = [{"id": str(number), "text": "x"} for number in range(VALUES)]
    action: Json = remark("x")
    action["annotation"]["entries"] = values
    assert "50000 values" in await target.client.rejected(remarks, action)
    await target.client.accepted(remarks, remark("\n" * 900_000))


async def test_a_request_that_is_too_much_is_refused_under_its_id(target: Target) -> None:
    """Whoever asks gets an answer, also when the request is not read."""
    refused = await target.client.refused("ping", _meta={"a": [0] * 60_000})
    assert "50000 values" in refused["message"]
    refused = await target.client.refused("resourceWrite", uri="file:///x", data="\n" * 1_100_000, encoding="utf-8")
    assert "1000000 backslashes" in refused["message"]


@pytest.mark.slow
async def test_the_first_session_does_not_hold_the_loop(tmp_path: Path) -> None:
    """What is loaded only when it is needed is not loaded in the event loop."""
    steps, work = tmp_path / "steps", tmp_path / "work"
    work.mkdir()
    async with host_process(tmp_path, through=("support.timed_host", str(steps))) as host:
        steps.write_text("")  # Nobody is connected while it starts.
        client = await host.client(ROOT)
        await client.ask("createSession", "ahp-session:/first", workingDirectory=work.as_uri())
        state = (await client.ask("subscribe", "ahp-session:/first"))["snapshot"]["state"]
        if state["lifecycle"] == "creating":
            await client.action("session/ready")
        await client.ask("subscribe", state["defaultChat"])
        await client.accepted(state["defaultChat"], say("hello"))
        await client.action("chat/turnComplete")
        assert _worst(sorted(steps.read_text().splitlines(), reverse=True)) <= 2 * BOUND * _this_machine()
        await client.aclose()


@pytest.mark.slow
async def test_looking_at_a_large_session_that_rests_does_not_hold_the_loop(tmp_path: Path) -> None:
    """After a restart sessions are text. It is read piece by piece, for all chats of a session."""
    steps = tmp_path / "steps"
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        session, chat = await open_session(client)
        await client.ask("createChat", session, chat="ahp-chat:/beside")
        await client.accepted(chat, say("hello"))
        await client.action("chat/turnComplete")
        await client.aclose()
        await host.stop()
    _make_long(tmp_path, {chat: 8000, "ahp-chat:/beside": 8000}, like=chat)
    async with host_process(tmp_path, through=("support.timed_host", str(steps))) as host:
        steps.write_text("")  # Nobody is connected while it starts.
        client = await host.client(ROOT)
        await client.ask("subscribe", session)
        shown = (await client.ask("subscribe", chat))["snapshot"]["state"]
        assert len(shown["turns"]) == 8000
        assert _worst(sorted(steps.read_text().splitlines(), reverse=True)) <= BOUND * _this_machine()
        await client.aclose()


@pytest.mark.slow
async def test_nothing_that_needs_many_sessions_that_rest_holds_the_loop(tmp_path: Path) -> None:
    """After a restart their states are texts. A refusal needs them, because one of them may open the file; and a client
    may follow all of them with one frame."""
    steps, work = tmp_path / "steps", tmp_path / "work"
    work.mkdir()
    (work / "file").write_text("x")
    uris = [f"ahp-session:/{number}" for number in range(300)]
    _make_many(tmp_path / "data", uris, work)
    async with host_process(tmp_path, through=("support.timed_host", str(steps))) as host:
        steps.write_text("")  # Nobody is connected while it starts.
        client = await host.client(ROOT)
        await client.refused("resourceRead", uri=(tmp_path / "elsewhere").as_uri())
        assert (await client.ask("resourceRead", uri=(work / "file").as_uri()))["data"] == "x"
        woken = uris[:60]  # Each has its agent and its features prepared.
        for uri in woken:
            client.post(uri, {"type": "session/titleChanged", "title": "new"})
        changed = {"channel": ROOT, "session": woken[-1]}
        await client.wait(lambda told: changed.items() <= told.get("params", {}).items() and "title" in str(told))
        assert (await client.ask("resourceRead", uri=(work / "file").as_uri()))["data"] == "x"
        for version in ("1.0.0", "0.4.0"):
            all_of_them = await host.connect(version)
            told = await all_of_them.initialize(*uris, protocolVersions=[version])
            assert [one["resource"] for one in told["snapshots"]] == uris
            await all_of_them.aclose()
        back = await host.connect("1.0.0")
        told = await back.ask("reconnect", clientId="1.0.0", lastSeenServerSeq=0, subscriptions=uris)
        assert [one["resource"] for one in told["snapshots"]] == uris
        await back.aclose()
        slow = steps.read_text().splitlines()
        await client.aclose()
    assert _worst(sorted(slow, reverse=True)) <= BOUND * _this_machine(), slow


async def made_up_turn(client: RawClient, session: str, chat: str) -> None:
    await client.refused("subscribe", f"{session}/changeset/turn/made-up")


async def made_up_changeset(client: RawClient, session: str, chat: str) -> None:
    """Its name is compared with those of all sessions."""
    await client.refused("subscribe", "ahp-changeset:/made-up/turn/made-up")


async def older_turns(client: RawClient, session: str, chat: str) -> None:
    assert "result" in await client.call("fetchTurns", chat)


async def search(client: RawClient, session: str, chat: str) -> None:
    """In all sessions."""
    assert (await client.ask("_ahpkit/sessions/search", words="nobody said this"))["found"] == []


async def fork(client: RawClient, session: str, chat: str) -> None:
    source = {"session": session, "turnId": "turn 0"}
    await client.ask("createSession", f"{session}-fork", _meta={"ahpkit.dev/fork": source})


async def move_to_it(client: RawClient, session: str, chat: str) -> None:
    own, _ = await open_session(client, provider="demo")
    await client.ask("createChat", own, chat=f"{chat}-moved")
    await client.ask("moveChat", f"{chat}-moved", destination={"kind": "session", "session": session})


async def attach_it(client: RawClient, session: str, chat: str) -> None:
    _, own = await open_session(client, provider="demo")
    message: Json = {**say("look"), "startedAt": "2026-01-01T00:00:00Z"}
    message["message"]["attachments"] = [{"type": "chat", "label": "l", "resource": chat}]
    await client.accepted(own, message)
    await client.action(lambda told: told["channel"] == own and told["action"]["type"] == "chat/turnComplete")


async def begin_with_it(client: RawClient, session: str, chat: str) -> None:
    own, _ = await open_session(client, provider="demo")
    message = say("look")["message"] | {"attachments": [{"type": "chat", "label": "l", "resource": chat}]}
    await client.ask("createChat", own, chat=f"{chat}-begun", initialMessage=message)


async def wake_it(client: RawClient, session: str, chat: str) -> None:
    client.post(session, {"type": "session/titleChanged", "title": "new"})
    if (await state_of(client, session))["title"] != "new":
        await client.action("session/titleChanged")


async def dispose(client: RawClient, session: str, chat: str) -> None:
    await client.ask("disposeSession", session)


@pytest.mark.slow
async def test_no_request_about_a_large_session_that_rests_holds_the_loop(tmp_path: Path) -> None:
    """Whatever needs its state reads it piece by piece. Each request finds another session that rests."""
    steps, work = tmp_path / "steps", tmp_path / "work"
    looking = (made_up_changeset, made_up_turn, older_turns, search)
    requests = (*looking, fork, move_to_it, attach_it, begin_with_it, wake_it, dispose)
    work.mkdir()
    uris = [f"ahp-session:/{number}" for number in range(len(requests))]
    _make_many(tmp_path / "data", uris, work, turns=20_000, annotations=5_000)
    held: dict[str, str] = {}
    async with host_process(tmp_path, through=("support.timed_host", str(steps))) as host:
        client = await host.connect()
        await client.initialize(ROOT, protocolVersions=["1.0.0"])
        for uri, request in zip(uris, requests, strict=True):
            steps.write_text("")
            await request(client, uri, uri.replace("session", "chat"))
            await client.ask("ping")
            slow = sorted(steps.read_text().splitlines(), reverse=True)
            if _worst(slow) > BOUND * _this_machine():
                held[request.__name__] = slow[0]
        await client.aclose()
    assert not held


@pytest.mark.slow
async def test_copying_a_very_large_chat_does_not_hold_the_loop(tmp_path: Path) -> None:
    """A new chat is stored in one step with all that it begins with: a fork, and an import in the same way."""
    steps = tmp_path / "steps"
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        session, chat = await open_session(client)
        await client.accepted(chat, say("hello"))
        await client.action("chat/turnComplete")
        await client.aclose()
        await host.stop()
    _make_long(tmp_path, {chat: 6000}, like=chat, text="x" * 20_000)
    async with host_process(tmp_path, through=("support.timed_host", str(steps))) as host:
        client = await host.client(ROOT)
        steps.write_text("")
        source = {"chat": chat, "turnId": "turn 5999"}
        await client.ask("createChat", session, chat="ahp-chat:/copy", source=source)
        await client.ask("createSession", "ahp-session:/copy", fork={"session": session, "turnId": "turn 5999"})
        slow = steps.read_text().splitlines()
        await client.aclose()
    assert _worst(sorted(slow, reverse=True)) <= BOUND * _this_machine(), slow


def _make_many(data: Path, sessions: Sequence[str], work: Path, *, turns: int = 0, annotations: int = 0) -> None:
    """A data directory with these sessions, each with one chat, as a host leaves it."""
    states: dict[str, Json] = {}
    remarks = [{**remark("x")["annotation"], "id": str(number)} for number in range(annotations)]
    parts = [{"kind": "markdown", "id": str(number), "content": "x"} for number in range(10)]
    said = [{**_turn(number), "id": f"turn {number}", "responseParts": parts} for number in range(turns)]
    for session in sessions:
        chat = new_chat(session.replace("session", "chat"), title="One", now=0)
        made = new_session(provider="demo", directories=[work.as_uri()], project=None, config=NO_CONFIG)
        states[session] = {
            **made,
            "lifecycle": "ready",
            "defaultChat": chat["resource"],
            "chats": [{**chat}],
        }
        states |= {chat["resource"]: {**chat, "turns": said}, f"{session}/annotations": {"annotations": remarks}}
    data.mkdir()
    storage = open_storage(data, "normal")
    storage.load()
    for uri, state in states.items():
        storage.commit([ChannelSnapshot(uri, 0, encode(state))])
    storage.close()


def _make_long(home: Path, chats: dict[str, int], *, like: str, text: str = "") -> None:
    """Give chats as many turns, each like the first one of another chat. The host does not run."""
    [log] = home.glob("**/log.db")
    storage = SqliteStorage(log)
    recovery = storage.load()
    states: dict[str, Json] = {uri: json.loads(recovery.snapshots[uri].state) for uri in chats}
    for entry in recovery.tail:
        if entry.channel in chats:
            states[entry.channel] = chat_reducer(states[entry.channel], json.loads(entry.payload)["action"])
    [turn] = states[like]["turns"]
    turn = {**turn, "message": {**turn["message"], "text": text or turn["message"]["text"]}}
    for uri, count in chats.items():
        states[uri] = {**states[uri], "turns": [{**turn, "id": f"turn {number}"} for number in range(count)]}
    storage.commit([ChannelSnapshot(uri, recovery.head_seq, encode(state)) for uri, state in states.items()])
    storage.close()
