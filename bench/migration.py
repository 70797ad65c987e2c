"""How long a host takes to convert a log of 0.4.0 when it opens it, and how much memory.

    python bench/migration.py [--actions 1000000] [--sessions 1000] [--quick]

Two files with the same history: one whose states are as recent as a host keeps them (checkpoints), and one whose states
were never written after the beginning, so that every action is applied again. Each is opened in a separate process. CPU
seconds are shown beside elapsed time: they do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from ahpkit.dialects.v0_4.channels import reduce
from ahpkit.host.sessions.old_log import convert_0_4
from ahpkit.log.entry import ChannelSnapshot, Entry, Recovery
from ahpkit.log.salvage import create
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.platform.limits import collect_nothing_yet
from ahpkit.wire.codec import encode

Json = dict[str, Any]

TARGET = 10.0
"""Seconds for a million actions in a thousand sessions."""
RECENT = 20_000
"""How many actions follow the newest stored states of a host that was killed."""
BEGAN = 1_700_000_000_000
WORDS = "a few words of an answer that is told as it comes, "
DELTAS = 40
"""Pieces of an answer."""


def session_uri(number: int) -> str:
    return f"ahp-session:/{number:08x}"


def chat_uri(number: int) -> str:
    return f"ahp-chat:/{number:08x}"


def beginnings(sessions: int) -> Iterator[tuple[str, Json]]:
    """The states of new sessions as 0.4.0 had them."""
    yield "ahp-root://", {"agents": [], "activeSessions": sessions}
    for number in range(sessions):
        session, chat = session_uri(number), chat_uri(number)
        listed = {"resource": chat, "title": "", "status": 1, "modifiedAt": "2023-11-14T22:13:20.000Z"}
        times = {"createdAt": BEGAN, "modifiedAt": BEGAN}
        summary = {"resource": session, "provider": "demo", "title": f"Session {number}", "status": 1, **times}
        yield session, {"summary": summary, "lifecycle": "ready", "chats": [listed], "defaultChat": chat}
        yield chat, {**listed, "turns": []}
        yield f"{session}/annotations", {"annotations": []}


def turn(number: int) -> Iterator[Json]:
    """One turn: a tool call and an answer in pieces."""
    turn_id = f"t{number}"
    yield {"type": "chat/turnStarted", "turnId": turn_id, "message": {"text": "go on", "origin": {"kind": "user"}}}
    call = {"turnId": turn_id, "toolCallId": f"c{number}"}
    yield {"type": "chat/toolCallStart", **call, "toolName": "read", "displayName": "Read"}
    yield {"type": "chat/toolCallReady", **call, "invocationMessage": "Reads", "confirmed": "not-needed"}
    yield {"type": "chat/toolCallComplete", **call, "result": {"success": True, "pastTenseMessage": "Read"}}
    part = {"kind": "markdown", "id": f"p{number}", "content": ""}
    yield {"type": "chat/responsePart", "turnId": turn_id, "part": part}
    for _ in range(DELTAS):
        yield {"type": "chat/delta", "turnId": turn_id, "partId": part["id"], "content": WORDS}
    yield {"type": "chat/usage", "turnId": turn_id, "usage": {"inputTokens": 100, "outputTokens": 400}}
    yield {"type": "chat/turnComplete", "turnId": turn_id}


def told(sessions: int) -> Iterator[tuple[str, Json]]:
    """Turn after turn, in all sessions in their order, for ever."""
    number = 0
    while True:
        for session in range(sessions):
            for action in turn(number):
                yield chat_uri(session), action
            yield session_uri(session), {"type": "session/titleChanged", "title": f"Turn {number}"}
        number += 1


def entries(actions: int, sessions: int) -> Iterator[tuple[Entry, Json]]:
    for seq, (channel, action) in enumerate(islice(told(sessions), actions), 1):
        origin = {"clientId": "me", "clientSeq": seq}
        payload = encode({"channel": channel, "action": action, "origin": origin, "serverSeq": seq})
        yield Entry(seq, channel, payload, "me", seq, BEGAN + seq), action


def write_log(path: Path, actions: int, sessions: int, recent: int) -> None:
    """A file as ahpkit wrote it when it stored 0.4.0; its states lack the last `recent` actions."""
    states = dict(beginnings(sessions))
    opened = {uri: ChannelSnapshot(uri, 0, encode(state)) for uri, state in states.items()}
    create(path, Recovery(snapshots=opened))
    storage = SqliteStorage(path, durability="normal")
    storage.load()
    source, known = entries(actions, sessions), 0
    while batch := list(islice(source, 10_000)):
        storage.commit([entry for entry, _ in batch])
        if batch[-1][0].seq <= actions - recent:
            for entry, action in batch:
                states[entry.channel] = reduce(entry.channel, states[entry.channel], action, now=entry.at)
            known = batch[-1][0].seq
    if known:
        storage.commit([ChannelSnapshot(uri, known, encode(state)) for uri, state in states.items()])
    storage.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE meta SET value = 1 WHERE key = 'schema'")
        db.execute("DROP TABLE parts")


def convert(path: Path) -> Json:
    """Open the file in this process, as `ahpkit serve` does."""
    collect_nothing_yet()
    clock, cpu = time.perf_counter(), time.process_time()
    storage = SqliteStorage(path, convert=convert_0_4)
    converted = storage.load()
    took = {"seconds": time.perf_counter() - clock, "cpu": time.process_time() - cpu}
    storage.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**took, "mib": memory, "channels": len(converted.snapshots)}


def measure(place: Path, name: str, actions: int, sessions: int, recent: int) -> float:
    path = place / f"{recent}.db"
    write_log(path, actions, sessions, recent)
    size = path.stat().st_size / (1 << 20)
    done = subprocess.run([sys.executable, __file__, "--convert", path], check=True, stdout=subprocess.PIPE)
    found: Json = json.loads(done.stdout)
    assert found["channels"] == 3 * sessions + 1, found
    print(
        f"{name:44} {found['seconds']:8.2f} s  {found['cpu']:8.2f} s CPU  {found['mib']:6.0f} MiB  file {size:5.0f} MiB"
    )
    return found["seconds"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actions", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--convert", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.convert is not None:
        print(json.dumps(convert(options.convert)))
        return 0
    part = 10 if options.quick else 1
    actions, sessions = options.actions // part, options.sessions // part
    print(f"{actions:,} actions, {sessions:,} sessions; target for a million and a thousand: {TARGET:g} s")
    with tempfile.TemporaryDirectory() as place:
        measure(Path(place), "states up to the last 20,000 actions", actions, sessions, min(RECENT, actions))
        slowest = measure(Path(place), "states of the beginning, all actions again", actions, sessions, actions)
    return 0 if slowest * part <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
