"""Wrong inputs from a shell: each is answered with one clear line, an exit code, and nothing else."""

import asyncio
from pathlib import Path

import pytest

from support.process import HostProcess, finish_cli

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRONG: dict[str, tuple[list[str], int, str]] = {
    "a command that nobody knows": (["chta"], 2, "Did you mean 'chat'?"),
    "an inbox that takes a name": (["inbox", "hello"], 2, "Got unexpected extra argument (hello)"),
    "a bell of another kind": (["inbox", "--notify", "gong"], 2, "'gong' is not one of 'none', 'bell', 'desktop'"),
    "approve without a session": (["approve"], 2, "Missing argument 'SESSION'"),
    "approve a session that is not there": (["approve", "nowhere"], 1, "there is no session 'nowhere'"),
    "deny a session that is not there": (["deny", "nowhere"], 1, "there is no session 'nowhere'"),
    "answer a session that is not there": (["answer", "nowhere", "x"], 1, "there is no session 'nowhere'"),
    "cancel a session that is not there": (["cancel", "nowhere"], 1, "there is no session 'nowhere'"),
    "approve where nothing waits": (["approve", "QUIET"], 1, "no approval waits in"),
    "answer where nobody asks": (["answer", "QUIET"], 1, "no question waits in"),
    "cancel where nothing runs": (["cancel", "QUIET"], 1, "no turn runs in"),
    "a number that is none": (["approve", "QUIET", "--number", "two"], 2, "'two' is not a valid integer"),
    "a prompt without a message": (["prompt"], 2, "there is nothing to send: the message is empty"),
    "a file that is not there": (["prompt", "x", "--file", "no.txt"], 2, "'no.txt' does not exist"),
    "a directory as a file": (["prompt", "x", "--file", "."], 2, "'.' is a directory"),
    "a file that is no text": (["prompt", "x", "--file", "bytes.bin"], 1, "bytes.bin is not UTF-8 text"),
    "a timeout in words": (["prompt", "x", "--timeout", "soon"], 2, "'soon' is not a valid float"),
    "no time at all": (["prompt", "x", "--timeout", "0"], 2, "0.0 is not in the range x>0"),
    "waiting and not waiting": (
        ["prompt", "x", "--no-wait", "--timeout", "5"],
        2,
        "--no-wait leaves the turn to itself",
    ),
    "deciding without waiting": (
        ["prompt", "x", "--no-wait", "--approve", "all"],
        2,
        "--no-wait leaves the turn to itself",
    ),
    "going on with two": (
        ["prompt", "x", "--continue", "--session", "y"],
        2,
        "--continue takes the last session as it is",
    ),
    "going on with another agent": (
        ["chat", "--continue", "--agent", "demo"],
        2,
        "--continue takes the last session as it is",
    ),
    "going on where nothing was": (
        ["prompt", "x", "--continue", "--dir", "empty"],
        1,
        "there is no session in empty yet",
    ),
    "a search for nothing": (["sessions", "search"], 2, "Missing argument 'WORDS...'"),
    "a search with no end": (["sessions", "search", "x", "--limit", "0"], 2, "0 is not in the range x>=1"),
    "a time that is none": (
        ["sessions", "list", "--since", "yesterday"],
        2,
        "'yesterday' is no duration; write 45min, 12h, 30d or 2w",
    ),
    "a status that is none": (["sessions", "list", "--status", "bored"], 2, "'bored' is not one of"),
    "a place that is not there": (["sessions", "list", "--dir", "gone"], 2, "'gone' does not exist"),
    "a form that is none": (
        ["sessions", "export", "QUIET", "--format", "pdf"],
        2,
        "'pdf' is not one of 'json', 'markdown'",
    ),
    "an export into nowhere": (
        ["sessions", "export", "QUIET", "--output", "no/dir/x.json"],
        1,
        "no/dir/x.json cannot be written",
    ),
    "a backup into nowhere": (["data", "backup", "no/dir/x.tar.gz"], 1, "no/dir/x.tar.gz: No such file or directory"),
    "a backup of nothing": (
        ["data", "backup", "x.tar.gz", "--data-dir", "gone"],
        1,
        "gone does not exist: there is nothing to save",
    ),
    "a backup that is none": (
        ["data", "restore", "bytes.bin", "--data-dir", "new"],
        1,
        "bytes.bin is no backup, or it is damaged",
    ),
    "pruning without a rule": (["data", "prune"], 2, "give a rule: --older-than, --archived or --keep"),
    "pruning by a number": (["data", "prune", "--keep", "-1"], 2, "-1 is not in the range x>=0"),
    "usage by the moon": (["usage", "--by", "moon"], 2, "'moon' is not one of 'session', 'agent', 'day'"),
    "switching what is not there": (
        ["customizations", "off", "magic", "--session", "QUIET"],
        1,
        "the session has no customization 'magic'",
    ),
    "a doctor for nobody": (["doctor", "--url", "ws://127.0.0.1:1"], 1, "ws://127.0.0.1:1: nobody listens there"),
    "a tail of nothing": (["tail", "nowhere"], 1, "there is no session 'nowhere'"),
}
"""What is typed, the exit code, and words of the one line. QUIET stands for a session in which nothing waits."""


@pytest.fixture(scope="module")
def places(host: HostProcess) -> Path:
    (host.home / "bytes.bin").write_bytes(b"\xff\xfe\x00")
    (host.home / "empty").mkdir()
    return host.home


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_input_is_answered_with_one_clear_line(host: HostProcess, places: Path, name: str) -> None:
    arguments, code, words = WRONG[name]
    if "QUIET" in arguments:
        quiet = await _quiet(host)
        arguments = [quiet if word == "QUIET" else word for word in arguments]
    exited, output, errors = await finish_cli(arguments, places)
    assert exited == code, errors
    said = [line for line in (errors + output).splitlines() if words in line]
    assert len(said) == 1, errors + output
    assert "Traceback" not in errors
    assert len([line for line in errors.splitlines() if line.startswith(("Error", "✗"))]) <= 1


_QUIET: dict[str, asyncio.Future[str]] = {}


async def _quiet(host: HostProcess) -> str:
    if host.url not in _QUIET:
        _QUIET[host.url] = asyncio.get_running_loop().create_future()
        _, _, errors = await finish_cli(["prompt", "nothing waits here", "--keep"], host.home)
        _QUIET[host.url].set_result(errors.strip().rpartition("/")[2][:8])
    return await _QUIET[host.url]
