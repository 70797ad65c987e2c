"""What the first use of an action would build is built before anybody waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

_PROGRAM = """
import asyncio, jsonschema_rs
from ahpkit.cli.serve import build_checks
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.registry import ACTIONS, COMMANDS
from ahpkit.protocol.validation import check_action, check_params

if {warm}:
    asyncio.run(build_checks(pause=0))
built, build = [], jsonschema_rs.validator_for
jsonschema_rs.validator_for = lambda schema, **options: built.append(schema) or build(schema, **options)
for kind, spec in ACTIONS.items():
    if spec.client_dispatchable or spec.channel in ("session", "chat"):
        try:
            check_action({{"type": kind}})
        except InvalidParams:
            pass
for method in COMMANDS:
    try:
        check_params(method, {{}})
    except InvalidParams:
        pass
print(len(built))
"""


async def _built_at_first_use(*, warm: bool) -> int:
    """How many checks a fresh process builds when each action and method is checked for the first time."""
    command = [sys.executable, "-c", _PROGRAM.format(warm=warm)]
    done = await asyncio.to_thread(subprocess.run, command, stdout=subprocess.PIPE, check=True)
    return int(done.stdout)


async def test_after_the_start_no_action_of_a_session_waits_for_its_check_to_be_built() -> None:
    assert await _built_at_first_use(warm=False) > 100
    assert await _built_at_first_use(warm=True) == 0
