"""The agent examples run, and the how-to page shows only code that is in them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.examples import shows

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("agent_*.py"))
EXPECTED = {
    "agent_helper": "Oslo is lovely. Porto is lovely.\nAbout Oslo, About Porto",
    "agent_parrot": "Polly wants a cracker",
    "agent_questions": "Cutting … sewing … ironing … here is your green coat.",
    "agent_tools": "Oslo: 717710",
}


def test_every_example_is_expected_to_say_something() -> None:
    assert [example.stem for example in EXAMPLES] == sorted(EXPECTED)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_as_it_is(example: Path) -> None:
    command = [sys.executable, "-W", "error", "-X", "utf8", str(example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == EXPECTED[example.stem]


def test_the_how_to_page_shows_code_of_the_examples() -> None:
    page = (ROOT / "docs" / "how-to" / "write-a-python-agent.md").read_text()
    sources = [example.read_text() for example in EXAMPLES]
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        assert any(shows(block, source) for source in sources), block
