"""Measures codec, validation and reducers on a conversation. Prints tables with ratios, and JSON for machines.

    python bench/protocol.py [--quick] [--json FILE]

Times are CPU times, the best of several rounds. Look at the ratios: each compares two numbers of the same run.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ahpkit.protocol.channels import reduce
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.validation import check_action, check_params
from ahpkit.wire.codec import Notification, decode, encode, encode_notification

CHAT = "ahp-chat:/0b0e7a52-6f0c-4f3b-9a53-6f6c5d1f8a10"
STARTED = "2024-01-01T00:00:00.000Z"
WORDS = "the quick brown fox jumps over the lazy dog "
PART_LENGTHS = {"1 KB": 1_000, "100 KB": 100_000, "10 MB": 10_000_000}
TARGETS = {"delta": 1.3, "snapshot": 1.5}
"""What the project promises: the longest part against the shortest, our encoder against the library alone."""

Row = dict[str, str | float]


def new_chat() -> JsonObject:
    return {"resource": CHAT, "title": "Bench", "status": 1, "modifiedAt": STARTED, "turns": []}


def turn_actions(number: int) -> Iterator[JsonObject]:
    """One turn: reasoning, text, a tool call with approval, more text, usage, the end."""
    turn = {"turnId": f"turn-{number}"}
    call = {**turn, "toolCallId": f"call-{number}"}
    attachment = {"type": "resource", "uri": "file:///workspace/src/app.py", "label": "app.py"}
    message = {"text": WORDS * 2, "origin": {"kind": "user"}, "attachments": [attachment]}
    yield {"type": "chat/turnStarted", **turn, "startedAt": STARTED, "message": message}
    yield {"type": "chat/responsePart", **turn, "part": {"kind": "reasoning", "id": "r", "content": ""}}
    yield from ({"type": "chat/reasoning", **turn, "partId": "r", "content": WORDS} for _ in range(5))
    yield {"type": "chat/responsePart", **turn, "part": {"kind": "markdown", "id": "m", "content": ""}}
    yield from ({"type": "chat/delta", **turn, "partId": "m", "content": WORDS[:12]} for _ in range(20))
    yield {"type": "chat/toolCallStart", **call, "toolName": "edit", "displayName": "Edit"}
    yield from ({"type": "chat/toolCallDelta", **call, "content": '{"path":"a.py"}'} for _ in range(4))
    yield {"type": "chat/toolCallReady", **call, "invocationMessage": "Edit a.py", "toolInput": '{"path":"a.py"}'}
    yield {"type": "chat/toolCallConfirmed", **call, "approved": True, "confirmed": "user-action"}
    content = [{"type": "text", "text": WORDS}]
    result = {"success": True, "pastTenseMessage": {"markdown": "Edited `a.py`"}, "content": content}
    yield {"type": "chat/toolCallComplete", **call, "result": result}
    yield {"type": "chat/usage", **turn, "usage": {"inputTokens": 1200, "outputTokens": 340}}
    yield {"type": "chat/turnComplete", **turn, "duration": 1_000}


def frames(count: int) -> list[bytes]:
    """`count` actions as a client would dispatch them."""
    found: list[bytes] = []
    for turn in range(count):
        for action in turn_actions(turn):
            params = {"channel": CHAT, "clientSeq": len(found) + 1, "action": action}
            found.append(encode_notification("dispatchAction", params))
            if len(found) == count:
                return found
    return found


def seconds(call: Callable[[], Any]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def race(calls: dict[str, Callable[[], Any]], rounds: int, *, repeat: int = 1) -> dict[str, float]:
    """The best time of each. They run in turns, so that noise hits all of them; repeatedly if caches should be warm."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            best[name] = min(best[name], *(seconds(call) for _ in range(repeat)))
    return best


def mixed_actions(count: int, rounds: int) -> list[Row]:
    """Decode, validate, reduce and encode, apart and together, against the JSON library's decode and encode."""
    data = frames(count)
    messages = [decode(frame) for frame in data]
    params = [message.params for message in messages if isinstance(message, Notification)]
    envelopes = [{"channel": CHAT, "serverSeq": seq, "action": each["action"]} for seq, each in enumerate(params)]

    def validate() -> None:
        for each in params:
            check_params("dispatchAction", each)
            check_action(each["action"])

    def fold() -> None:
        state = new_chat()
        for each in params:
            state = reduce(CHAT, state, each["action"])

    def everything() -> None:
        state = new_chat()
        for seq, frame in enumerate(data):
            message = decode(frame)
            assert isinstance(message, Notification)
            check_params(message.method, message.params)
            action = message.params["action"]
            check_action(action)
            state = reduce(CHAT, state, action)
            encode_notification("action", {"channel": CHAT, "serverSeq": seq, "action": action})

    def library() -> None:
        for frame in data:
            msgspec.json.encode(msgspec.json.decode(frame))

    stages: dict[str, Callable[[], Any]] = {
        "JSON library alone (decode + encode)": library,
        "decode": lambda: [decode(frame) for frame in data],
        "validate": validate,
        "reduce": fold,
        "encode": lambda: [encode_notification("action", envelope) for envelope in envelopes],
        "decode + validate + reduce + encode": everything,
    }
    taken = race(stages, rounds)
    alone = next(iter(taken.values()))
    return [
        {
            "stage": name,
            "µs/action": round(spent / count * 1e6, 2),
            "actions/s": round(count / spent),
            "ratio": ratio(spent, alone),
        }
        for name, spent in taken.items()
    ]


def streaming(length: int) -> JsonObject:
    """A chat whose running turn has a markdown part of `length` characters."""
    state = new_chat()
    turn = {"turnId": "t"}
    part = {"kind": "markdown", "id": "m", "content": ""}
    chunk = (WORDS * 25)[:1000]
    for action in (
        {
            "type": "chat/turnStarted",
            **turn,
            "startedAt": STARTED,
            "message": {"text": "go", "origin": {"kind": "user"}},
        },
        {"type": "chat/responsePart", **turn, "part": part},
        *({"type": "chat/delta", **turn, "partId": "m", "content": chunk} for _ in range(length // 1000)),
    ):
        state = reduce(CHAT, state, action)
    return state


def deltas(count: int, rounds: int) -> list[Row]:
    """One `chat/delta` on parts of three lengths."""
    delta = {"type": "chat/delta", "turnId": "t", "partId": "m", "content": WORDS[:20]}
    states = {name: streaming(length) for name, length in PART_LENGTHS.items()}

    def append(state: JsonObject) -> None:
        for _ in range(count):
            state = reduce(CHAT, state, delta)

    taken = race({name: partial(append, state) for name, state in states.items()}, rounds)
    shortest = next(iter(taken.values()))
    return [
        {
            "part": name,
            "µs/delta": round(spent / count * 1e6, 2),
            "ratio": ratio(spent, shortest),
            "target": TARGETS["delta"],
        }
        for name, spent in taken.items()
    ]


def snapshot(size: int, rounds: int) -> list[Row]:
    """A chat state of about `size` bytes through our encoder, and the same data through the library alone."""
    state, number = new_chat(), 0
    while len(encode(state)) < size:
        for _ in range(20):
            for action in turn_actions(number):
                state = reduce(CHAT, state, action)
            number += 1
    live = streaming(size)
    joined = msgspec.json.decode(encode(live))
    calls: dict[str, Callable[[], Any]] = {
        "library, finished turns": lambda: msgspec.json.encode(state),
        "ours, finished turns": lambda: encode(state),
        "library, 1 MB of streamed text": lambda: msgspec.json.encode(joined),
        "ours, 1 MB of streamed text": lambda: encode(live),
        "standard library, finished turns": lambda: json.dumps(state),
    }
    taken = race(calls, rounds, repeat=4)
    base = {"streamed": taken["library, 1 MB of streamed text"], "finished": taken["library, finished turns"]}
    rows: list[Row] = []
    for name, spent in taken.items():
        alone = base["streamed" if "streamed" in name else "finished"]
        rows.append(
            {"encode": name, "ms": round(spent * 1e3, 3), "ratio": ratio(spent, alone), "target": TARGETS["snapshot"]}
        )
    return rows


def ratio(spent: float, base: float) -> float:
    return round(spent / base, 2)


def table(rows: list[Row]) -> str:
    lines = [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, for a look")
    parser.add_argument("--json", type=Path, help="also write the results here")
    options = parser.parse_args()
    count, rounds = (10_000, 3) if options.quick else (100_000, 5)
    results = {
        "actions": mixed_actions(count, rounds),
        "delta": deltas(count // 10, 3 * rounds),
        "snapshot": snapshot(1_000_000, 3 * rounds),
    }
    print(*map(table, results.values()), sep="\n\n")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
