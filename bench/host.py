"""How fast and how frugal a host is, each number beside its baseline in the same run.

    python bench/host.py [--quick] [--json FILE]

The host runs in a separate process on SQLite with full durability; subscribers are real WebSocket connections in
another process that only counts bytes. The baseline is a loop that writes the same pre-framed bytes to the same number
of connections with the same library, and does nothing else. It writes eight frames at once, as in the comparison by
which the library was chosen, or as many as the host writes in a burst. See `host_roles.py`.

Host and baseline take turns, a few rounds each; the medians are shown. Rates depend on what else the machine does and
on how fast the subscribers' process reads. CPU per delivery depends on neither.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from io import FileIO
from pathlib import Path
from typing import Any

from caller import Caller, Child, measure_start, milliseconds, running_host, state_of
from host_roles import RUN, SESSION, connect, initialize

from ahpkit.transports.connect import connect_transport

COALESCED = 8
"""Frames that the baseline writes at once."""
FLOOD = "!60000"
"""Deltas that a stalled reader does not take: several times its budget."""
DISPATCHERS = 4
"""Clients that dispatch at the same time."""
TARGETS = {
    "baseline_ratio": ("share of the coalesced raw loop's rate at 100 subscribers", ">=", 0.8),
    "streamed": ("streamed actions a second, durable, 100 subscribers", ">=", 20_000),
    "dispatched": ("dispatched actions a second, durable, 100 subscribers", ">=", 20_000),
    "echo_p50_ms": ("echo p50, ms", "<=", 2.0),
    "echo_ratio": ("echo p50 against one fdatasync and one ping", "<=", 1.3),
    "action_us": ("µs of CPU for a dispatched action, one subscriber", "<=", 20),
    "stall_gap_ms": ("ms of gap for others while a reader stalls", "<=", 10),
    "missed_ratio": ("bytes for 10,000 missed actions against a snapshot", "<=", 1.1),
    "kib_per_subscriber": ("KiB for an idle subscriber", "<=", 16),
    "stalled_mib": ("MiB a stalled reader costs", "<=", 8),
    "restart_s": ("seconds to restart with 1 M actions", "<=", 1.0),
    "list_ms": ("ms for listSessions with 10 k sessions", "<=", 50),
}
BESIDE = {
    "echo_p99_ms": "echo p99, ms",
    "ping_p50_ms": "ping p50, ms",
    "sync_p50_ms": "fdatasync of 4 KiB on this disk p50, ms",
    "mirror_us": "µs of CPU to decode, encode and send an action back, nothing else",
    "bare_us": "µs of CPU to decode, encode and send it back once it is a row in SQLite, nothing else",
    "even_gap_ms": "ms of gap for others when nobody stalls",
    "missed_bytes": "bytes of the answer to somebody who missed 10,000 actions",
    "missed_ms": "ms for it",
    "replay_bytes": "bytes of the actions themselves",
    "replay_ms": "ms for them",
    "stalled_dropped_s": "seconds until the stalled reader is dropped",
    "restart_cpu_s": "seconds of CPU for that restart",
    "start_s": "seconds from start to an answered initialize, empty log",
    "start_cpu_s": "seconds of CPU for that start",
}

Result = dict[str, Any]

# -- processes and clients ---------------------------------------------------------------------------------------------


async def clients(host: Child, count: int) -> Result:
    """Wait until the host has that many clients; return what it then reports about itself."""
    while (now := await host.ask())["clients"] != count:
        await asyncio.sleep(0.02)
    return now


# -- what is measured --------------------------------------------------------------------------------------------------


async def measure_fanout(directory: Path, subscribers: int, deltas: int, rounds: int) -> Result:
    """Deliveries a second and CPU per delivery, of the host and the raw loops in turns."""
    results: dict[str, list[Result]] = {"host": [], "raw": [], "copying": []}
    for number in range(rounds):
        results["host"].append(await stream(directory / f"fanout-{subscribers}-{number}", subscribers, deltas))
        results["raw"].append(await broadcast(subscribers, deltas, COALESCED))
        results["copying"].append(await broadcast(subscribers, deltas, RUN))
    return {"subscribers": subscribers} | {name: medians(found) for name, found in results.items()}


async def stream(directory: Path, subscribers: int, deltas: int) -> Result:
    async with (
        running_host(directory) as (host, url, caller, chat),
        Child.start("sink", url=url, count=subscribers, channel=chat) as sink,
    ):
        await sink.said()
        before, begun = await host.ask(), time.perf_counter()
        caller.start_turn(chat, str(deltas))
        counted = await sink.said()
        wall, after = time.perf_counter() - begun, await host.ask()
    assert counted["deltas"] == deltas, counted
    return rates(subscribers, deltas, wall, after["cpu"] - before["cpu"])


async def broadcast(subscribers: int, deltas: int, batch: int) -> Result:
    async with Child.start("raw", count=subscribers, frames=deltas, batch=batch) as server:
        url = (await server.said())["url"]
        async with Child.start("sink", url=url, count=subscribers) as sink:
            await sink.said()
            begun = time.perf_counter()
            spent = await server.ask()
            counted = await sink.said()
            wall = time.perf_counter() - begun
    return rates(subscribers, counted["deltas"], wall, spent["cpu"])


def rates(subscribers: int, actions: int, wall: float, cpu: float) -> Result:
    deliveries = subscribers * actions
    return {"rate": deliveries / wall, "cpu_us": cpu / deliveries * 1e6, "actions": actions / wall}


def medians(results: list[Result]) -> Result:
    return {key: statistics.median(result[key] for result in results) for key in results[0]}


async def measure_dispatching(directory: Path, subscribers: int, actions: int) -> Result:
    """Actions that clients dispatch: decoded, checked, logged, sent to everyone. Done when all echoes came."""
    async with (
        running_host(directory / "dispatching") as (host, url, _, _),
        Child.start("load", url=url, count=DISPATCHERS, frames=actions) as load,
        Child.start("sink", url=url, count=subscribers - DISPATCHERS, channel=SESSION) as sink,
    ):
        await load.said()
        await sink.said()
        before, begun = await host.ask(), time.perf_counter()
        await load.ask()
        wall, after = time.perf_counter() - begun, await host.ask()
    return {"dispatched": actions / wall, "dispatched_cpu_us": (after["cpu"] - before["cpu"]) / actions * 1e6}


async def measure_action(directory: Path, actions: int) -> Result:
    """CPU of one dispatched action with one subscriber, who is its sender, beside a server that only sends it back, and
    one that also stores it."""
    async with running_host(directory / "action") as (host, url, _, _):
        spent = await dispatch_all(host, url, actions)
    async with Child.start("mirror") as mirror:
        baseline = await dispatch_all(mirror, (await mirror.said())["url"], actions)
    async with Child.start("bare", dir=directory / "bare") as bare:
        stored = await dispatch_all(bare, (await bare.said())["url"], actions)
    costs = {"action_us": spent, "mirror_us": baseline, "bare_us": stored}
    return {name: seconds / actions * 1e6 for name, seconds in costs.items()}


async def dispatch_all(server: Child, url: str, actions: int) -> float:
    """Seconds of CPU that a server uses for these actions of one client."""
    async with Child.start("load", url=url, count=1, frames=actions) as load:
        await load.said()
        before = await server.ask()
        await load.ask()
        return (await server.ask())["cpu"] - before["cpu"]


async def measure_latency(directory: Path, rounds: int) -> Result:
    """Echo of a durable action, against a ping and one `fdatasync` of the same disk, in turns and unloaded."""
    pings, syncs, echoes = list[float](), list[float](), list[float]()
    async with running_host(directory / "latency") as (_, _, caller, _):
        await caller.call("subscribe", SESSION)
        with (directory / "synced").open("wb", buffering=0) as file:
            for _ in range(rounds):
                pings.append(await milliseconds(lambda: caller.answer("ping")))
                syncs.append(await milliseconds(lambda: synced(file)))
                echoes.append(await milliseconds(caller.echo))
    both = statistics.median(pings) + statistics.median(syncs)
    return {
        "ping_p50_ms": statistics.median(pings),
        "sync_p50_ms": statistics.median(syncs),
        "echo_p50_ms": statistics.median(echoes),
        "echo_p99_ms": statistics.quantiles(echoes, n=100)[98],
        "echo_ratio": statistics.median(echoes) / both,
    }


async def synced(file: FileIO) -> None:
    file.write(bytes(4096))
    os.fdatasync(file.fileno())


async def measure_missed(directory: Path, actions: int) -> Result:
    """What a client gets that missed that many actions: states, because they are smaller, or the actions if it asks."""
    async with running_host(directory / "missed") as (host, url, *_):
        before = (await host.ask())["head"]
        await host.ask(actions=actions)
        answers: dict[str, tuple[float, int]] = {}
        for wish in ("states", "actions", ""):
            back = Caller(await connect_transport(url))
            params: dict[str, Any] = {"clientId": f"missed-{wish}", "lastSeenServerSeq": before}
            params |= {"subscriptions": [SESSION], "_meta": {"ahpkit/missed": wish}}
            begun = time.perf_counter()
            answer = await back.answer("reconnect", **params)
            answers[wish] = (time.perf_counter() - begun) * 1000, len(answer)
            await back.transport.aclose()
    return {
        "missed_ms": answers[""][0],
        "missed_bytes": answers[""][1],
        "missed_ratio": answers[""][1] / answers["states"][1],
        "replay_ms": answers["actions"][0],
        "replay_bytes": answers["actions"][1],
    }


async def measure_gaps(directory: Path, deltas: int, rounds: int) -> Result:
    """The longest wait of a subscriber in an even stream, alone and beside one that never reads.

    It is the median of several streams, in turns: one slow sync of the disk makes a gap too, which is not the host's
    fault.
    """
    even: list[float] = []
    beside: list[float] = []
    for number in range(rounds):
        async with running_host(directory / f"even-{number}") as (_, url, caller, chat):
            even.append(await longest_gap(url, caller, chat, deltas))
        async with running_host(directory / f"stalling-{number}") as (_, url, caller, chat):
            stalled = await asyncio.to_thread(connect, url, initialize("stalled", chat))
            beside.append(await longest_gap(url, caller, chat, deltas))
            stalled.close()
    return {"even_gap_ms": statistics.median(even), "stall_gap_ms": statistics.median(beside)}


async def longest_gap(url: str, caller: Caller, chat: str, deltas: int) -> float:
    async with Child.start("gaps", url=url, channel=chat) as watching:
        await watching.said()
        caller.start_turn(chat, f"~{deltas}")
        return (await watching.said())["longest"]


async def measure_memory(directory: Path, count: int) -> Result:
    """What an idle subscriber costs, and what one that never reads costs before it is dropped."""
    async with running_host(directory / "memory") as (host, url, caller, chat):
        before = await host.ask()
        async with Child.start("sink", url=url, count=count, channel=chat) as sink:
            await sink.said()
            idle = await clients(host, count + 1)
        await clients(host, 1)
        stalled = await measure_stalled(host, url, caller, chat)
    return {"kib_per_subscriber": (idle["rss"] - before["rss"]) / count / 1024, **stalled}


async def measure_stalled(host: Child, url: str, caller: Caller, chat: str) -> Result:
    caller.start_turn(chat, FLOOD)  # First without the stalled reader: text, log and the first stream take memory too.
    while not (await state_of(caller, chat))["turns"]:  # Not `activeTurn`: the turn may not have begun.
        await asyncio.sleep(0.1)
    caller.send({"method": "unsubscribe", "params": {"channel": chat}})
    stalled = await asyncio.to_thread(connect, url, initialize("stalled", chat))
    before, begun, most = await clients(host, 2), time.perf_counter(), 0
    caller.start_turn(chat, FLOOD)
    while (now := await host.ask())["clients"] > 1:
        most = max(most, now["rss"] - before["rss"])
        await asyncio.sleep(0.005)
    dropped = time.perf_counter() - begun
    stalled.close()
    return {"stalled_mib": most / 2**20, "stalled_dropped_s": dropped}


async def measure_restart(directory: Path, actions: int, rounds: int) -> Result:
    """A restart on a long log, beside a start on an empty one."""
    place = directory / "restart"
    async with running_host(place) as (host, *_):
        await host.ask(actions=actions)
    await measure_start(directory / "first")
    fresh = [await measure_start(directory / f"start-{number}") for number in range(rounds)]
    again = [await measure_start(place) for _ in range(rounds)]
    return {
        "restart_s": min(one.wall for one in again),
        "restart_cpu_s": min(one.cpu for one in again),
        "start_s": min(one.wall for one in fresh),
        "start_cpu_s": min(one.cpu for one in fresh),
    }


async def measure_listing(directory: Path, sessions: int) -> Result:
    async with running_host(directory / "listing") as (host, _, caller, _):
        await host.ask(sessions=sessions)
        taken = [await milliseconds(lambda: caller.answer("listSessions")) for _ in range(9)]
    return {"list_ms": statistics.median(taken)}


# -- reporting ---------------------------------------------------------------------------------------------------------


async def measure_all(directory: Path, *, quick: bool) -> Result:
    fanout: list[Result] = []
    for count in [1, 10, 100] if quick else [1, 10, 50, 100, 1000]:
        deltas = max(4 * RUN, min(64 * RUN, 6000 * RUN // count // RUN * RUN)) // (4 if quick else 1)
        fanout.append(await measure_fanout(directory, count, deltas, 1 if quick else 3))
    at_100 = next(one for one in fanout if one["subscribers"] == 100)
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "load_before": os.getloadavg()[0],
        "fanout": fanout,
        "baseline_ratio": at_100["host"]["rate"] / at_100["raw"]["rate"],
        "streamed": at_100["host"]["actions"],
        **await measure_dispatching(directory, 100, 8_000 if quick else 80_000),
        **await measure_action(directory, 8_000 if quick else 40_000),
        **await measure_latency(directory, 200 if quick else 1000),
        **await measure_missed(directory, 10_000),
        **await measure_gaps(directory, 1_500, 1 if quick else 5),
        **await measure_memory(directory, 200 if quick else 1000),
        **await measure_restart(directory, 50_000 if quick else 1_000_000, 1 if quick else 3),
        **await measure_listing(directory, 1_000 if quick else 10_000),
    }


def show(result: Result) -> None:
    print(f"{result['machine']}, load {result['load_before']:.1f}\n")
    print("subscribers      host/s     raw 8/s  ratio  raw 1024/s  ratio   host µs  raw 8 µs  raw 1024 µs  actions/s")
    for one in result["fanout"]:
        host, raw, copying = one["host"], one["raw"], one["copying"]
        rates = "".join(f"  {other['rate']:>10,.0f}  {host['rate'] / other['rate']:>5.2f}" for other in (raw, copying))
        costs = f"{host['cpu_us']:>8.2f}  {raw['cpu_us']:>8.2f}  {copying['cpu_us']:>11.2f}"
        print(f"{one['subscribers']:>11}  {host['rate']:>10,.0f}{rates}  {costs}  {host['actions']:>9,.0f}")
    print()
    for key, (what, relation, target) in TARGETS.items():
        value = result[key]
        met = value >= target if relation == ">=" else value <= target
        print(f"{what:<55} {value:>12,.2f}   target {relation} {target:<8,} {'ok' if met else 'MISSED'}")
    for key, what in BESIDE.items():
        print(f"{what:<55} {result[key]:>12,.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller numbers, for a look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured here")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="ahpkit-bench-"))
    try:
        result = asyncio.run(measure_all(directory, quick=options.quick))
    finally:
        shutil.rmtree(directory)
    show(result)
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
