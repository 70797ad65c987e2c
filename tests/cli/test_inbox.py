"""`ahpkit inbox` and deciding from a shell: a real host, one command after the other."""

import json
from typing import Any

import click
import pytest

from ahpkit.cli.inbox import read_answers
from support.process import HostProcess, finish_cli, run_cli
from support.terminal import terminal

pytestmark = pytest.mark.asyncio(loop_scope="module")

APPROVAL = '/tool calculate {"expression": "6*7"}'


async def run(host: HostProcess, *arguments: str) -> tuple[int, str, str]:
    return await finish_cli(arguments, host.home)


async def begun(host: HostProcess, text: str) -> str:
    """A session in which something waits."""
    code, output, _ = await run(host, "prompt", text, "--no-wait")
    assert code == 0
    name = output.strip()
    while name not in (await run(host, "inbox"))[1]:
        pass
    return name


async def ended(host: HostProcess, name: str, text: str) -> None:
    while text not in (await run(host, "sessions", "show", name))[1]:
        pass


async def test_what_waits_is_listed_and_approved(host: HostProcess) -> None:
    name = await begun(host, APPROVAL)
    _, output, _ = await run(host, "inbox")
    assert f"{name}  " in output
    assert "approval of Calculate ({" in output
    assert f"ahpkit approve {name}   or   ahpkit deny {name}" in output
    _, output, _ = await run(host, "inbox", "--json")
    [item] = [one for one in json.loads(output) if name in one["session"]]
    assert (item["kind"], item["call"]["toolName"]) == ("approval", "calculate")
    assert await run(host, "approve", name) == (0, 'approved: approval of Calculate ({"expression": "6*7"})\n', "")
    await ended(host, name, "✓ Used Calculate")
    assert name not in (await run(host, "inbox"))[1]
    code, _, errors = await run(host, "approve", name)
    assert (code, errors) == (1, f"Error: no approval waits in '{name}'; see: ahpkit inbox\n")


async def test_a_part_of_a_title_means_the_session_in_which_something_waits(host: HostProcess) -> None:
    for _ in range(2):
        await run(host, "prompt", "a title that comes twice", "--keep")
    assert "could be any of these" in (await run(host, "sessions", "show", "title that comes"))[2]
    code, _, errors = await run(host, "approve", "title that comes")
    assert (code, errors) == (1, "Error: no approval waits in 'title that comes'; see: ahpkit inbox\n")
    code, _, errors = await run(host, "cancel", "title that comes")
    assert (code, errors) == (1, "Error: no turn runs in 'title that comes'\n")
    waiting = await begun(host, APPROVAL)
    await run(host, "sessions", "rename", waiting, "a title that comes three times")
    code, output, _ = await run(host, "deny", "title that comes")
    assert (code, output.startswith("denied: approval of Calculate")) == (0, True)
    assert output.endswith(f" in {waiting} (a title that comes three times)\n")


async def test_a_call_is_denied_with_a_reason(host: HostProcess) -> None:
    name = await begun(host, APPROVAL)
    code, output, _ = await run(host, "deny", name, "--reason", "not today")
    assert (code, output.startswith("denied: approval of Calculate")) == (0, True)
    await ended(host, name, "✗ Calculate: not run")


async def test_an_option_is_named_in_words_and_a_wrong_one_says_what_there_is(host: HostProcess) -> None:
    name = await begun(host, APPROVAL)
    code, _, errors = await run(host, "approve", name, "--option", "sometimes")
    assert code == 2
    assert "'sometimes' is not an option of this call; possible: 1. Allow once" in errors
    code, _, _ = await run(host, "approve", name, "--option", "allow once")
    assert code == 0


async def test_questions_are_listed_answered_and_declined(host: HostProcess) -> None:
    name = await begun(host, "/ask")
    _, output, _ = await run(host, "answer", name)
    assert "name: What is your name? (text, 1 to 80 characters, required)\n" in output
    assert "age: How old are you? (a whole number from 0 to 150)\n" in output
    assert "    1. Red\n" in output
    code, _, errors = await run(host, "answer", name, "Ada", "", "many")
    assert (code, "age: please give a whole number" in errors) == (2, True)
    code, output, _ = await run(host, "answer", name, "Ada", "", "36", "colour=blue", "", "y", "1")
    assert code == 0
    await ended(host, name, "**colour**: blue")
    name = await begun(host, "/ask")
    declined = "declined: the agent asks: The demo agent has a few questions.\n"
    assert (await run(host, "answer", name, "--decline"))[:2] == (0, declined)
    await ended(host, name, "You chose to decline.")


async def test_a_running_turn_is_cancelled(host: HostProcess) -> None:
    name = (await run(host, "prompt", "/sleep 60", "--no-wait"))[1].strip()
    assert (await run(host, "cancel", "/sleep 60"))[:2] == (0, f"cancelled: /sleep 60 in {name} (/sleep 60)\n"), (
        "found as lists show it"
    )
    await ended(host, name, "✗ cancelled")
    code, _, errors = await run(host, "cancel", name)
    assert (code, errors) == (1, f"Error: no turn runs in '{name}'\n")


async def test_the_inbox_is_watched_and_rings(host: HostProcess) -> None:
    async with terminal(["inbox", "--watch", "--notify", "bell"], host.home, columns=160) as person:
        await person.until(lambda screen: "Nothing waits for you." in screen.text or "ahpkit approve" in screen.text)
        name = await begun(host, APPROVAL)
        await person.until(lambda screen: name in screen.text and screen.bells)
        person.interrupt()
        assert await person.exited() == 130


async def test_the_inbox_as_lines_of_json_for_programs(host: HostProcess) -> None:
    process = await run_cli(["inbox", "--watch", "--json"], host.home)
    assert process.stdout is not None
    json.loads(await process.stdout.readline())
    name = await begun(host, APPROVAL)
    while name not in str(json.loads(await process.stdout.readline())):
        pass
    process.kill()
    await process.wait()


QUESTIONS: Any = [{"id": "a", "kind": "text"}, {"id": "b", "kind": "integer", "defaultValue": 7}]


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        (["x", "1"], {"a": "x", "b": 1}),
        (["b=2", "x"], {"b": 2, "a": "x"}),
        (["a=x=y"], {"a": "x=y"}),
        (["https://example.org/?x=y"], {"a": "https://example.org/?x=y"}),
        (["", ""], {"a": None, "b": 7}),
    ],
)
async def test_answers_go_to_their_questions(given: list[str], answers: dict[str, Any]) -> None:
    assert read_answers(QUESTIONS, given) == answers


async def test_too_many_answers_are_refused() -> None:
    with pytest.raises(click.UsageError, match="2 asked, 3 answered"):
        read_answers(QUESTIONS, ["x", "1", "2"])


async def test_a_mistyped_name_answers_no_other_question() -> None:
    questions = [{"id": "name", "kind": "text"}, {"id": "colour", "kind": "text"}]
    for name in ("color", "shade"):
        with pytest.raises(click.UsageError) as refused:
            read_answers(questions, [f"{name}=blue"])
        whole = f"if the text itself is the answer, write name={name}=blue"
        assert str(refused.value) == f"there is no question {name!r}, there are: name, colour; {whole}"
