"""The page about terminals: its program runs, its numbers are the code's."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.terminals import chat_terminals, feature, output, pool
from ahpkit.platform import processes
from ahpkit.testing.memory_host import memory_host
from support.bench import ScriptedAgent
from support.terminals import features
from support.waiting import BOUND

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "terminals.md").read_text(encoding="utf-8")


async def test_the_program_opens_a_terminal_and_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = re.search(r"```python\n(import asyncio\n.*?)```", PAGE, re.DOTALL)
    assert program is not None
    names: dict[str, Any] = {"__name__": "page"}
    exec(program.group(1), names)
    async with asyncio.timeout(BOUND), memory_host(ScriptedAgent(), features=features(tmp_path)) as host:
        async with host.client() as client:
            await names["main"](client)
    assert capsys.readouterr().out.endswith("hello\r\nexit code: 0\n")


@pytest.mark.parametrize(
    "said",
    [
        f"more than {output.MAX_KEPT} characters",
        f"{output.KEPT} are left",
        f"kills after {processes.GRACE:.0f} seconds",
        f"| terminals of a host | {pool.MAX_TERMINALS} |",
        f"no longer needs the terminal; the last {pool.MAX_RELEASED} ",
        f"| columns and rows | {feature.MAX_SIZE} |",
        f"{feature.MAX_INPUT} characters |",
        f"the last {chat_terminals.MAX_PREVIEW} characters as",
        f"(at most {feature.AGENT_OUTPUT})",
    ],
)
def test_the_numbers_are_those_of_the_code(said: str) -> None:
    assert said in PAGE.replace("\n", " ")
