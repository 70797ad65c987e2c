"""`ahpkit prompt`: what scripts rely on. A real host, real pipes and signals."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from ahpkit.testing.acp_agent import scripted_command
from support.process import HostProcess, finish_cli, host_process, run_cli
from support.shell import shell
from support.template import Started
from support.waiting import BOUND, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

APPROVAL = '/tool calculate {"expression": "6*7"}'


async def prompt(host: HostProcess, *arguments: str, **options: Any) -> tuple[int, str, str]:
    return await finish_cli(["prompt", *arguments], host.home, **options)


async def waiting(host: HostProcess, session: str) -> str:
    """The inbox, once something of a session waits in it."""
    async with asyncio.timeout(BOUND):
        while True:
            _, inbox, _ = await finish_cli(["inbox"], host.home)
            if session in inbox:
                return inbox


async def started(arguments: list[str], home: Path) -> Started:
    """A running command with nothing on its standard input."""
    process = await run_cli(arguments, home)
    assert process.stdin is not None
    process.stdin.close()
    return process


async def titles(host: HostProcess) -> list[str]:
    _, output, _ = await finish_cli(["sessions", "list", "--json"], host.home)
    return [summary["title"] for summary in json.loads(output)]


async def test_the_answer_is_all_there_is_on_standard_output(host: HostProcess) -> None:
    assert await prompt(host, "/think") == (0, "I thought about it, and this is my answer.\n", "")


async def test_a_turn_that_fails_exits_with_1(host: HostProcess) -> None:
    assert await prompt(host, "/fail badly") == (1, "This goes wrong now.\n", "✗ badly\n")


async def test_the_message_can_come_from_standard_input(host: HostProcess) -> None:
    code, output, _ = await prompt(host, "-", input="two\nlines — ünïcode\n")
    assert code == 0
    assert "> two\n> lines — ünïcode\n" in output


@pytest.mark.parametrize(("text", "input"), [("", ""), ("  ", ""), ("-", ""), ("-", "\n")])
async def test_an_empty_message_is_not_sent(host: HostProcess, text: str, input: str) -> None:
    code, _, errors = await prompt(host, text, input=input)
    assert code == 2
    assert "the message is empty: there is nothing to send" in errors


async def test_standard_input_that_is_no_text_is_refused(host: HostProcess) -> None:
    code, _, errors = await shell(r"printf '\377' | ahpkit prompt -", host.home)
    assert (code, errors) == (1, "Error: standard input is not UTF-8 text\n")


async def test_a_directory_that_was_removed_meanwhile_is_said_in_one_line(host: HostProcess) -> None:
    code, _, errors = await shell("mkdir gone; cd gone; rmdir ../gone; ahpkit prompt hi", host.home)
    assert (code, errors) == (1, "Error: the current directory was removed; change to another one and try again\n")


async def test_every_event_is_a_line_of_json(host: HostProcess) -> None:
    code, output, errors = await prompt(host, APPROVAL, "--json", "--approve", "all")
    assert (code, errors) == (0, "")
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["event"] for line in lines] == [
        "Session",
        "TurnStarted",
        "ToolCallStarted",
        "ConfirmationNeeded",
        "ToolCallRunning",
        "ToolCallCompleted",
        "TextDelta",
        "TurnCompleted",
    ]
    assert lines[0]["session"].startswith("ahp-session:/")
    assert lines[0]["chat"].startswith("ahp-chat:/")
    assert lines[-1]["turn"]["state"] == "complete"


async def test_tools_run_only_when_they_may(host: HostProcess) -> None:
    code, output, errors = await prompt(host, APPROVAL)
    assert code == 0
    assert "42" not in output
    assert errors == "✗ Calculate: not run (approvals are off; --approve all turns them on)\n"
    code, output, errors = await prompt(host, APPROVAL, "--approve", "all")
    assert (code, "42" in output, errors) == (0, True, "")


async def test_questions_are_declined_because_nobody_is_there(host: HostProcess) -> None:
    code, output, errors = await prompt(host, "/ask")
    assert (code, output) == (0, "You chose to decline.\n")
    assert "nobody is there to answer" in errors


async def test_the_session_stays_unless_it_is_not_wanted(host: HostProcess) -> None:
    code, _, errors = await prompt(host, "stay with me")
    assert (code, errors) == (0, "")
    assert "stay with me" in await titles(host)
    _, _, errors = await prompt(host, "keep me", "--keep")
    assert errors.startswith("kept as ahp-session:/")
    assert "keep me" in await titles(host)
    code, _, errors = await prompt(host, "forget me", "--no-keep")
    assert (code, errors) == (0, "")
    assert "forget me" not in await titles(host)


async def test_continue_goes_on_with_the_last_prompt_and_usage_counts_it(host: HostProcess) -> None:
    (host.home / "daily").mkdir()
    await prompt(host, "what I do each day", "--dir", "daily")
    code, output, _ = await prompt(host, "/usage", "--continue", "--dir", "daily", "--json")
    assert (code, '"cacheReadTokens":1' in output.replace(" ", "")) == (0, True)
    _, output, _ = await finish_cli(["usage", "--by", "session", "--json"], host.home)
    assert [row["turns"] for row in json.loads(output) if row["title"] == "what I do each day"] == [1]
    assert all(row["session"].startswith("ahp-session:/") for row in json.loads(output))


async def test_a_session_in_which_nothing_was_said_does_not_stay(host: HostProcess) -> None:
    before = await titles(host)
    (host.home / "large.txt").write_text("x" * 5_000_000)
    (host.home / "huge.txt").write_text("x" * 40_000_000)
    for files, said in (["huge.txt"], "huge.txt has more than 8 MB"), (["large.txt"] * 2, "the message has 10 MB"):
        code, _, errors = await prompt(host, "read this", *(word for name in files for word in ("--file", name)))
        assert (code, errors.splitlines()[0].partition(": put")[0]) == (1, f"Error: {said}, a host takes 8")
    (host.home / "nearly.txt").write_text('"' * 7_900_000)  # Twice as large when it is sent.
    code, _, errors = await prompt(host, "read this", "--file", "nearly.txt")
    assert (code, errors.startswith("✗ an action may have")) == (1, True)
    assert await titles(host) == before


@pytest.mark.parametrize("other", [["--no-wait"], ["--worktree"], ["--continue"], ["--session", "x"]])
async def test_a_session_that_is_needed_later_cannot_be_thrown_away(host: HostProcess, other: list[str]) -> None:
    code, _, errors = await prompt(host, "hello", "--no-keep", *other)
    assert (code, "--no-keep" in errors) == (2, True)


async def test_a_session_can_be_gone_on_with_and_stays(host: HostProcess) -> None:
    await prompt(host, "go on with me", "--keep")
    code, output, _ = await prompt(host, "/usage", "--session", "go on with me", "--json")
    assert code == 0
    usage = [json.loads(line) for line in output.splitlines() if '"Usage"' in line]
    assert usage[0]["usage"]["cacheReadTokens"] == 1
    assert "go on with me" in await titles(host)


async def test_model_agent_and_directory_are_those_of_the_new_session(host: HostProcess) -> None:
    (host.home / "project").mkdir(exist_ok=True)
    (host.home / "project" / "note.txt").write_text("found it")
    arguments = ["--agent", "demo", "--model", "demo-large", "--dir", "project"]
    _, output, _ = await prompt(host, "hello", *arguments)
    assert "`demo-large`" in output
    _, output, _ = await prompt(host, '/tool read_file {"path": "note.txt"}', *arguments, "--approve", "all")
    assert "found it" in output


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--model", "gpt-0"], 1, "gpt-0"),
        (["--agent", "nobody"], 1, "nobody"),
        (["--session", "nothing like it"], 1, "there is no session 'nothing like it'; see: ahpkit sessions list"),
        (["--dir", "/does/not/exist"], 2, "/does/not/exist"),
        (["--approve", "some"], 2, "'some' is not one of 'none', 'all'"),
        (["--url", "ws://127.0.0.1:1"], 1, "nobody listens there. Is the host running? Start one with: ahpkit serve"),
        (["--url", "http://127.0.0.1"], 1, "expected ws://, wss:// or ws+unix://"),
        (["--url", "nonsense"], 1, "expected ws://, wss:// or ws+unix://"),
        (["--url", "ws+unix:///does/not/exist"], 1, "there is no such socket"),
        (["--token", "wrong"], 1, "Give the host's token with --token or AHPKIT_TOKEN."),
    ],
)
async def test_what_cannot_work_is_said_in_a_line(
    host: HostProcess, arguments: list[str], code: int, expected: str
) -> None:
    given, output, errors = await prompt(host, "hello", *arguments)
    assert (given, output) == (code, "")
    assert expected in errors
    assert "Traceback" not in errors


async def test_without_a_host_it_says_how_to_start_one(tmp_path: Path) -> None:
    code, output, errors = await finish_cli(["prompt", "hello"], tmp_path)
    assert (code, output) == (1, "")
    assert errors == "Error: no running host found: start one with `ahpkit up`, or pass its URL\n"


async def test_without_a_runtime_directory_nobody_is_warned(tmp_path: Path) -> None:
    """The place that is used instead may have hosts of whoever runs the tests: a message must not go there."""
    place = {"XDG_RUNTIME_DIR": "", "TMPDIR": str(tmp_path)}
    _, _, errors = await finish_cli(["sessions", "list"], tmp_path, **place)
    assert "Error: no running host found" in errors or not errors
    assert errors.count("\n") <= 1


async def test_the_address_can_come_from_the_environment(host: HostProcess, tmp_path: Path) -> None:
    place = {"AHPKIT_URL": host.url, "AHPKIT_TOKEN": host.token or ""}
    code, output, _ = await finish_cli(["prompt", "/think"], tmp_path, **place)
    assert (code, output) == (0, "I thought about it, and this is my answer.\n")


async def interrupted_after(process: Started, beginning: bytes, signum: int) -> tuple[int, str]:
    """Send a signal once the output has begun; exit code and errors."""
    assert process.stdout is not None
    async with asyncio.timeout(BOUND):
        assert await process.stdout.readexactly(len(beginning)) == beginning
        process.send_signal(signum)
        _, errors = await process.communicate()
    return process.returncode or 0, errors.decode()


async def test_ctrl_c_cancels_the_turn_and_exits_with_130(host: HostProcess) -> None:
    process = await started(["prompt", "/sleep 60", "--keep"], host.home)
    code, errors = await interrupted_after(process, b"Sleeping for 60 seconds.", signal.SIGINT)
    assert code == 130
    assert errors.startswith("✗ cancelled\nkept as ahp-session:/")
    _, output, _ = await finish_cli(["sessions", "show", errors.split()[-1]], host.home)
    assert output.endswith("✗ cancelled\n")


async def test_ctrl_c_leaves_no_session_behind_that_is_not_wanted(host: HostProcess) -> None:
    process = await started(["prompt", "/sleep 61", "--no-keep"], host.home)
    code, errors = await interrupted_after(process, b"Sleeping for 61 seconds.", signal.SIGINT)
    assert (code, errors) == (130, "✗ cancelled\n")
    assert "/sleep 61" not in await titles(host)


def is_pending(pid: int, signum: int) -> bool:
    """Whether a signal was sent to a process and not yet taken by it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = (int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd:", "ShdPnd:")))
    return any(mask >> (signum - 1) & 1 for mask in masks)


async def test_a_second_ctrl_c_does_not_wait_for_the_host(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        process = await started(["prompt", "/sleep 60", "--keep"], tmp_path)
        assert process.stdout is not None
        async with asyncio.timeout(BOUND):
            await process.stdout.readexactly(8)
            host.process.send_signal(signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
            await until(lambda: not is_pending(process.pid, signal.SIGINT))  # Two that wait would count as one.
            process.send_signal(signal.SIGINT)
            _, errors = await process.communicate()
        assert process.returncode == 130
        assert b"Traceback" not in errors


async def test_a_reader_that_has_enough_is_no_error(host: HostProcess) -> None:
    _, output, errors = await shell("ahpkit prompt '/stream 2000' --json | head -1", host.home)
    assert json.loads(output)["event"] == "Session"
    assert errors == ""


async def test_an_output_that_lacks_characters_does_not_stop_it(host: HostProcess) -> None:
    code, output, errors = await prompt(host, "grüße", PYTHONIOENCODING="ascii")
    assert (code, errors) == (0, "")
    assert "gr\\xfc\\xdfe" in output


# More ways in.


async def test_what_is_piped_in_is_joined_to_the_text(host: HostProcess) -> None:
    code, output, errors = await prompt(host, "Review this:", input="one\ntwo\n")
    assert (code, errors) == (0, "")
    assert "> Review this:\n>\n> one\n> two\n" in output.replace("> \n", ">\n")


async def test_a_pipe_that_stays_open_does_not_stop_a_text(host: HostProcess) -> None:
    process = await run_cli(["prompt", "/usage"], host.home)
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.timeout(BOUND):
        assert "few tokens" in (await process.stdout.read()).decode()
        assert "nothing came on standard input" in (await process.stderr.read()).decode()
        assert await process.wait() == 0


async def test_files_are_added_with_their_names(host: HostProcess) -> None:
    (host.home / "notes.md").write_text("remember the milk\n")
    code, output, _ = await prompt(host, "Sum up.", "--file", "notes.md")
    assert code == 0
    assert "> Sum up.\n" in output
    assert "> notes.md:\n" in output
    assert "> remember the milk\n" in output
    code, output, _ = await prompt(host, "--file", "notes.md")
    assert (code, "> remember the milk" in output) == (0, True)


async def test_a_turn_that_takes_too_long_is_cancelled(host: HostProcess) -> None:
    code, _, errors = await prompt(host, "/sleep 60", "--timeout", "0.5")
    assert (code, errors) == (124, "✗ no answer within 0.5 s; the turn was cancelled\n")


async def test_without_waiting_the_session_is_named_and_what_it_asks_waits_in_the_inbox(host: HostProcess) -> None:
    code, output, errors = await prompt(host, APPROVAL, "--no-wait")
    assert (code, errors) == (0, "")
    name = output.strip()
    assert "approval of Calculate" in await waiting(host, name)
    _, approved, _ = await finish_cli(["approve", name], host.home)
    assert "approved: approval of Calculate" in approved


@pytest.mark.parametrize("approve", ["none", "all"])
async def test_a_call_that_waits_in_somebody_elses_turn_is_not_decided(host: HostProcess, approve: str) -> None:
    _, output, _ = await prompt(host, APPROVAL, "--no-wait")
    name = output.strip()
    await waiting(host, name)
    code, output, errors = await prompt(host, "and?", "--session", name, "--approve", approve)
    assert (code, output) == (1, "")
    assert errors.count("\n") == 1
    assert "is still running; queue the message, or cancel the turn first" in errors
    _, inbox, _ = await finish_cli(["inbox"], host.home)
    assert name in inbox
    await finish_cli(["deny", name], host.home)


async def test_the_last_session_of_a_directory_is_gone_on_with(host: HostProcess) -> None:
    for place in ("here", "there"):
        (host.home / place).mkdir(exist_ok=True)
        await prompt(host, f"I am {place}", "--keep", "--dir", place)
    code, output, _ = await prompt(host, "/usage", "--continue", "--dir", "here", "--json")
    assert code == 0
    assert '"cacheReadTokens":1' in output.replace(" ", "")
    (host.home / "nowhere").mkdir(exist_ok=True)
    code, _, errors = await prompt(host, "x", "--continue", "--dir", "nowhere")
    assert (code, "there is no session in nowhere yet" in errors) == (1, True)


async def test_an_agent_that_hangs_at_start_says_so_and_where_its_log_is(tmp_path: Path) -> None:
    script = {"methods": {"session/new": [{"stderr": "loading\n"}, {"sleep": 5}, {"result": {"sessionId": "s"}}]}}
    agent = " ".join(scripted_command(tmp_path / "slow.json", **script))
    async with host_process(tmp_path, "--agent", f"slow={agent}") as host:
        _, _, errors = await finish_cli(["prompt", "hi", "--agent", "slow"], tmp_path)
        waited = "Starting the agent … Waiting for slow to answer session/new; it last wrote: loading."
        assert f"{waited} The host's log: in the terminal in which it runs. Ctrl-C gives up." in errors
        await until(lambda: "has not answered session/new for 3 seconds" in host.errors)
        assert "loading" in host.errors


async def test_a_turn_that_failed_goes_on_from_the_shell(host: HostProcess) -> None:
    code, output, errors = await prompt(host, "/stumble", "--keep")
    assert (code, output) == (1, "This is the first half. \n")
    command = errors.strip().rpartition("To go on with it:  ahpkit ")[2].split()
    assert command[0] == "resume"
    assert await finish_cli(command, host.home) == (0, "And here is the second half.\n", "")
    code, _, errors = await finish_cli(command, host.home)
    assert (code, "its last turn did not fail, or cannot be continued" in errors) == (1, True)


async def test_one_message_of_an_old_session_goes_to_another_model(host: HostProcess) -> None:
    _, _, errors = await prompt(host, "hello", "--keep")
    name = errors.strip().rpartition("/")[2]
    code, output, _ = await prompt(host, "again", "--session", name, "--model", "demo-large")
    assert (code, "(`demo-large`)" in output) == (0, True)
    code, _, errors = await prompt(host, "again", "--session", name, "--model", "huge")
    assert (code, errors) == (1, "✗ demo has no model 'huge'; known: demo-small, demo-large, m1\n")
