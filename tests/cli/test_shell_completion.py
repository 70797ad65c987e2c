"""What a shell completes: commands, and the sessions, agents and models of the running host."""

from pathlib import Path

import pytest

from support.process import HostProcess, finish_cli

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def completed(home: Path, words: str) -> list[str]:
    """What bash would offer for the last word."""
    count = str(words.count(" "))
    _, output, errors = await finish_cli([], home, _AHPKIT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
    assert "Traceback" not in errors
    return [line.partition(",")[2] for line in output.splitlines() if line]


async def test_sessions_agents_and_models_of_the_host_are_completed(host: HostProcess) -> None:
    _, output, _ = await finish_cli(["prompt", "/usage", "--keep", "--json"], host.home)
    name = output.partition("ahp-session:/")[2][:8]
    assert name in await completed(host.home, "ahpkit approve ")
    assert await completed(host.home, f"ahpkit sessions show {name[:3]}") == [name]
    assert await completed(host.home, "ahpkit chat --agent d") == ["demo"]
    assert await completed(host.home, "ahpkit prompt --model demo-l") == ["demo-large"]


async def test_without_a_host_there_is_nothing_to_offer_and_nothing_is_said(tmp_path: Path) -> None:
    assert await completed(tmp_path, "ahpkit approve ") == []
    assert "chat" in await completed(tmp_path, "ahpkit ch")
