"""The harness itself: every fault once, and its checks notice what is wrong."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ahpkit.client import Accepted
from soak import checks
from soak.explore import files
from soak.faults import FAULTS
from soak.run import Report, run
from soak.stage import Said, Stage, turn_started, waiting_calls
from support.waiting import until


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_after_each_fault_every_invariant_holds() -> None:
    report = await run(7, lambda report: report.rounds.total() < len(FAULTS), lambda report, name: None)
    assert report.broken is None, report.text()
    assert set(report.rounds) == set(FAULTS)
    assert report.turns > 10, report.text()


@pytest.mark.slow
async def test_what_is_lost_doubled_or_not_allowed_is_noticed(tmp_path: Path) -> None:
    async with Stage(tmp_path, random.Random(1)) as stage:
        first = stage.people[0]
        stage.say(first, stage.chats[0], turn_started("t", '/tool calculate {"expression": "1 + 1"}'))
        await until(lambda: _waiting(stage))
        waiting = _waiting(stage) or ""
        answer = {"approved": True, "confirmed": "user-action"}
        confirmed = {"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": waiting, **answer}
        stage.say(first, stage.chats[0], confirmed)
        await stage.settle()
        with pytest.raises(checks.Broken, match="nobody allowed it"):
            checks.nothing_hangs(stage)
        stage.approved.add(waiting)
        checks.nothing_hangs(stage)

        await stage.kill()
        checks.log_has_everything(stage)
        lost: Any = SimpleNamespace(outcome=Accepted(99_999), client_seq=1, action={"type": "session/titleChanged"})
        stage.said.append(Said(first, stage.sessions[0], lost))
        with pytest.raises(checks.Broken, match="was echoed as 99999"):
            checks.log_has_everything(stage)
        await stage.restart()


def _waiting(stage: Stage) -> str | None:
    found = waiting_calls(stage.people[0].held[stage.chats[0]].confirmed)
    return found[0][1]["toolCallId"] if found else None


def test_a_report_says_how_to_do_it_again() -> None:
    report = Report(4711, broken="after 'kill -9': a turn is gone")
    assert "seed 4711" in report.text()
    assert "BROKEN: after 'kill -9': a turn is gone" in report.text()


def test_properties_are_found() -> None:
    assert any(file.name == "test_state_machine.py" for file in files())
