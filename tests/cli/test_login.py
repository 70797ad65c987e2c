"""`ahpkit login`, against a host whose agent wants a key."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio

from support.process import finish_cli, host_process
from support.scripted_acp import scripted_command

KEY = {"id": "key", "name": "API key", "type": "env_var", "vars": [{"name": "MY_KEY"}]}
PAGE = {"id": "page", "name": "Log in with a page"}


@pytest_asyncio.fixture
async def home(tmp_path: Path) -> AsyncGenerator[Path]:
    script = {"requires_env": "MY_KEY", "initialize": {"authMethods": [KEY, PAGE]}}
    command = " ".join(scripted_command(tmp_path / "script.json", **script))
    async with host_process(tmp_path, "--agent", f"shy={command}"):
        yield tmp_path


async def test_an_agent_that_wants_a_key_says_so_gets_it_and_works(home: Path) -> None:
    code, _, errors = await finish_cli(["prompt", "hello", "--agent", "shy"], home)
    assert code == 1
    assert "Authentication required" in errors
    assert "To log in:  ahpkit login shy" in errors
    assert "ahp-session:" not in errors

    code, _, errors = await finish_cli(["login", "shy"], home)
    assert (code, errors.splitlines()[1:]) == (1, ["  API key", "  Log in with a page"])

    code, output, _ = await finish_cli(["login", "shy", "api"], home, input="sk-secret\n")
    assert (code, output) == (0, "Done. Try it:  ahpkit chat --agent shy\n")
    code, output, _ = await finish_cli(["prompt", "hello", "--agent", "shy"], home)
    assert (code, output) == (0, "You said: hello\n")


async def test_a_session_that_could_not_begin_is_not_kept(home: Path) -> None:
    await finish_cli(["prompt", "hello", "--agent", "shy"], home)
    _, output, _ = await finish_cli(["sessions", "list", "--all"], home)
    assert output.startswith("There are no sessions")


async def test_agents_that_need_no_login_and_agents_that_are_not_there(home: Path) -> None:
    code, _, errors = await finish_cli(["login", "demo"], home)
    assert (code, errors.partition(".")[0]) == (1, "Error: demo offers no way to log in")
    code, _, errors = await finish_cli(["login", "nobody"], home)
    assert (code, errors) == (1, "Error: the host has no agent 'nobody'; it has: shy, demo\n")
