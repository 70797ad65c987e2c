"""One run: fault after fault, with the checks after each. Says where it is; ends at the first broken invariant."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ahpkit.client import Accepted, Rejected
from soak import checks
from soak.faults import FAULTS
from soak.stage import Stage


@dataclass
class Report:
    """What happened in a run."""

    seed: int
    rounds: Counter[str] = field(default_factory=Counter[str])
    actions: int = 0
    answered: int = 0
    echoed: int = 0
    turns: int = 0
    """Turns that clients started."""
    refused: Counter[str] = field(default_factory=Counter[str])
    """Why actions were not taken."""
    seconds: float = 0.0
    broken: str | None = None

    def text(self) -> str:
        said = f"{self.actions} actions of clients: {self.answered} answered, {self.echoed} taken, {self.turns} turns"
        lines = [f"seed {self.seed}: {self.rounds.total()} faults in {self.seconds:.0f} s", f"  {said}"]
        lines += [f"  {count:4} × {name}" for name, count in self.rounds.most_common()]
        lines += [f"  {count:4} refused: {reason}" for reason, count in self.refused.most_common(5)]
        lines.append(f"BROKEN: {self.broken}" if self.broken else "every invariant held after every fault")
        return "\n".join(lines)


def order(rng: random.Random) -> Iterator[str]:
    """All faults once, in any order, again and again."""
    while True:
        names = list(FAULTS)
        rng.shuffle(names)
        yield from names


async def run(seed: int, goes_on: Callable[[Report], bool], told: Callable[[Report, str], None]) -> Report:
    """Break things while `goes_on`; `told` hears of each fault before it happens."""
    rng, report, began = random.Random(seed), Report(seed), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        async with Stage(Path(folder), rng) as stage:
            await stage.work(0.3)
            await stage.settle()
            before = stage.host.memory
            for name in order(rng):
                report.seconds = time.monotonic() - began
                if not goes_on(report):
                    break
                told(report, name)
                try:
                    await one_round(stage, name, before)
                except (checks.Broken, TimeoutError, AssertionError) as error:
                    report.broken = f"after {name!r}: {str(error) or describe(stage)}"
                    break
                finally:
                    report.rounds[name] += 1
                    count(report, stage)
            await stage.stop()
            if report.broken is None:
                await asyncio.to_thread(checks.log_has_everything, stage)
    return report


def count(report: Report, stage: Stage) -> None:
    outcomes = [(said.dispatch.action, said.dispatch.outcome) for said in stage.said]
    taken = [action for action, outcome in outcomes if isinstance(outcome, Accepted)]
    report.actions = len(outcomes)
    report.answered = sum(outcome is not None for _, outcome in outcomes)
    report.echoed = len(taken)
    report.turns = sum(action["type"] == "chat/turnStarted" for action in taken)
    report.refused = Counter(outcome.reason[:100] for _, outcome in outcomes if isinstance(outcome, Rejected))


async def one_round(stage: Stage, name: str, before: int) -> None:
    await stage.work(stage.rng.uniform(0.05, 0.3))
    await FAULTS[name](stage)
    await stage.work(0.1)
    await stage.settle()
    checks.everyone_agrees(stage)
    checks.nothing_hangs(stage)
    checks.turns_are_there_once(stage)
    checks.memory_is_back(stage, before)
    checks.said_no_traceback(stage)


def describe(stage: Stage) -> str:
    """What was still under way when nothing went on."""
    waiting = [said.dispatch.action for said in stage.said if said.dispatch.outcome is None]
    running = [uri for uri in stage.chats if stage.people[0].held[uri].confirmed.get("activeTurn")]
    status = [person.client.status for person in stage.people]
    asked = f"unanswered: {waiting[:5]}, asked of canvases: {stage.requests()[:5]}"
    words = f"it did not settle: clients are {status}, turns run in {running}, {asked}"
    return f"{words}\n{stage.host.errors[-2000:]}"


__all__ = ["Report", "order", "run"]
