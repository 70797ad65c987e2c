import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.details import HookDetail
from ahpkit.customizations.hook_process import Outcome, PlacedHook, run_hooks
from ahpkit.customizations.hooks import HookEvent
from ahpkit.host.trust import Standing
from support.waiting import BOUND, gone, is_alive, until


def script(body: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": sys.executable, "args": ["-c", body], **more}


async def run(
    tmp_path: Path, *actions: dict[str, Any], trust: Standing = "trusted", event: HookEvent = "PreToolUse"
) -> Outcome:
    async def standing(hook: PlacedHook) -> Standing:
        return trust

    hooks = [PlacedHook(HookDetail(event, None, actions, "claude"), "/plugin", "/w/hooks.json")]
    facts = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    async with asyncio.timeout(BOUND):
        return await run_hooks(
            hooks, event, standing=standing, session_id="s", workspace=str(tmp_path), now=1, facts=facts
        )


async def test_what_nobody_trusted_does_not_run(tmp_path: Path) -> None:
    assert await run(tmp_path, script("open('ran', 'w')"), trust="unknown") == Outcome()
    assert not (tmp_path / "ran").exists()


async def test_what_changed_does_not_run_and_a_guard_that_changed_denies(tmp_path: Path) -> None:
    outcome = await run(tmp_path, script("open('ran', 'w')"), trust="changed")
    assert outcome.denied
    assert "/w/hooks.json changed since it was trusted" in (outcome.reason or "")
    outcome = await run(tmp_path, script("open('ran', 'w')"), trust="changed", event="PostToolUse")
    assert (outcome.denied, len(outcome.messages)) == (False, 1)
    assert not (tmp_path / "ran").exists()


async def test_a_hook_reads_what_happened_and_may_deny(tmp_path: Path) -> None:
    body = "import json,sys; d=json.load(sys.stdin); sys.stderr.write(d['tool_name']+d['cwd']); sys.exit(2)"
    assert await run(tmp_path, script(body)) == Outcome(True, f"Bash{tmp_path}")


async def test_a_denial_ends_it_and_later_hooks_do_not_run(tmp_path: Path) -> None:
    outcome = await run(tmp_path, script("import sys; sys.exit(2)"), script("open('later', 'w')"))
    assert outcome.denied
    assert not (tmp_path / "later").exists()


async def test_hooks_run_in_the_workspace_without_the_hosts_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    body = "import os; open('env', 'w').write(repr(dict(os.environ)))"
    assert not (await run(tmp_path, script(body))).denied
    seen = (tmp_path / "env").read_text()
    assert "s3cret" not in seen
    assert "'CLAUDE_PLUGIN_ROOT': '/plugin'" in seen


async def test_a_hook_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    outcome = await run(tmp_path, {"command": "sleep 600 & sleep 600 & sleep 600", "timeout": 0.5})
    assert outcome == Outcome(True, "a hook that guards this tool failed: took longer than 0.5 s")
    await until(lambda: not _running_in(tmp_path))


def _running_in(directory: Path) -> list[str]:
    """Processes that work in a directory: the hook and what it started, however far it came."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # Gone, or not ours.
            if (process / "cwd").readlink() == directory:
                found.append(process.name)
    return found


async def test_cancelling_ends_the_hook(tmp_path: Path) -> None:
    body = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    task = asyncio.create_task(run(tmp_path, script(body)))
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_endless_output_is_bounded(tmp_path: Path) -> None:
    outcome = await run(tmp_path, script("print('x' * 5_000_000)"), event="UserPromptSubmit")
    assert len(outcome.context[0]) == 256 * 1024


async def test_a_hook_that_does_not_read_its_input_is_fine(tmp_path: Path) -> None:
    assert not (await run(tmp_path, script("import os; os.close(0)"))).denied


async def test_a_program_that_is_not_there_denies_what_it_guards(tmp_path: Path) -> None:
    outcome = await run(tmp_path, {"command": "./no-such-program"})
    assert outcome.denied
    assert outcome.reason is not None
    assert "cannot run ./no-such-program" in outcome.reason


async def test_other_kinds_of_hooks_are_said_not_run(tmp_path: Path) -> None:
    outcome = await run(tmp_path, {"type": "http", "url": "http://127.0.0.1:9"}, event="Stop")
    assert outcome == Outcome(messages=("a Stop hook of type `http` is not run: only commands are",))
    guard = await run(tmp_path, {"type": "http", "url": "http://127.0.0.1:9"})
    assert guard == Outcome(doubts=("a PreToolUse hook of type `http` is not run: only commands are",))


async def test_of_several_guards_a_denial_wins_and_every_doubt_is_kept(tmp_path: Path) -> None:
    first, second = (script(f'print(\'{{"permissionDecision": "ask", "reason": "{why}"}}\')') for why in "ab")
    assert await run(tmp_path, first, second) == Outcome(doubts=("a", "b"))
    assert await run(tmp_path, first, {"command": "echo no >&2; exit 2"}) == Outcome(True, "no", doubts=("a",))


@pytest.mark.skipif(os.name != "posix", reason="shell lines are for /bin/sh")
async def test_a_line_of_shell_runs_in_one(tmp_path: Path) -> None:
    await run(tmp_path, {"command": 'echo "$CLAUDE_PLUGIN_ROOT" > out && true'})
    assert (tmp_path / "out").read_text() == "/plugin\n"


async def test_what_a_hook_leaves_in_the_background_ends_with_it_and_holds_up_nobody(tmp_path: Path) -> None:
    """It has the hook's output open, which so never ends by itself."""
    line = "sleep 60 & echo $! > pid; echo said; exit 0"

    outcome = await run(tmp_path, {"command": line}, event="UserPromptSubmit")

    assert outcome == Outcome(context=("said",))
    pid = int((tmp_path / "pid").read_text())
    await gone(pid)
