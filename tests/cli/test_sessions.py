"""`ahpkit sessions`: listing, tidying up, and sessions as files. A real host."""

import json
import re
import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.host.sessions.session_import import FORMAT
from support.process import HostProcess, finish_cli, host_process
from support.raw_client import RawClient
from support.scripted_acp import scripted_command
from support.shell import shell
from support.terminal import terminal

pytestmark = pytest.mark.asyncio(loop_scope="module")

TURN: Any = {
    "id": "t1",
    "message": {"text": "hi", "origin": {"kind": "user"}},
    "responseParts": [],
    "state": "complete",
}
DOCUMENT: Any = {
    "format": FORMAT,
    "title": "Imported",
    "provider": "demo",
    "chats": [{"title": "Imported", "turns": [TURN]}],
}


async def sessions(host: HostProcess, *arguments: str, **options: Any) -> tuple[int, str, str]:
    return await finish_cli(["sessions", *arguments], host.home, **options)


async def listed(host: HostProcess, *arguments: str) -> list[Any]:
    code, output, _ = await sessions(host, "list", "--json", *arguments)
    assert code == 0
    return json.loads(output)


@asynccontextmanager
async def by_hand(host: HostProcess) -> AsyncGenerator[RawClient]:
    """A connection for what is not the point of a test: a command takes longer."""
    client = await host.client()
    try:
        yield client
    finally:
        await client.aclose()


async def imported(host: HostProcess, title: str) -> str:
    """The id of a session with one turn."""
    async with by_hand(host) as client:
        made = await client.ask("_ahpkit/sessions/import", document={**DOCUMENT, "title": title})
    return made["session"].rpartition("/")[2]


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def no_sessions(host: HostProcess) -> AsyncGenerator[None]:
    """Nothing is left for the next test."""
    yield
    async with by_hand(host) as client:
        for summary in (await client.ask("listSessions"))["items"]:
            await client.ask("disposeSession", summary["resource"])


@pytest_asyncio.fixture(loop_scope="module")
async def session(host: HostProcess) -> str:
    return await imported(host, "A session of its own")


# Listing and showing.


async def test_without_sessions_the_list_says_how_to_start_one(host: HostProcess) -> None:
    assert await sessions(host, "list") == (0, "There are no sessions. Start one with:  ahpkit chat\n", "")
    assert await sessions(host, "list", "--json") == (0, "[]\n", "")


async def test_the_list_has_a_line_for_each_the_last_changed_first(host: HostProcess, session: str) -> None:
    other = await imported(host, "Another\none " + "x" * 100)
    code, output, _ = await sessions(host, "list")
    assert code == 0
    first, second = output.splitlines()
    assert first.startswith(other[:8])
    assert first.endswith("Another one xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…")
    assert re.fullmatch(rf"{session[:8]}  \d+-\d\d-\d\d \d\d:\d\d  demo +idle +A session of its own", second)


async def test_sessions_without_a_title_are_told_apart_by_the_command_that_they_began_with(host: HostProcess) -> None:
    for command in ("/stream 3", "/think"):
        assert (await finish_cli(["prompt", command], host.home))[0] == 0
    assert {one["title"] for one in await listed(host)} == {"New session"}
    _, output, _ = await sessions(host, "list")
    assert [line.split("  ")[-1] for line in output.splitlines()] == ["(/think)", "(/stream 3)"]


async def test_show_prints_the_conversation(host: HostProcess) -> None:
    lines = '/tool calculate {"expression": "6*7"}\n1\n/tool calculate {"expression": "x"}\n2\n/think\n/fail badly\n'
    await finish_cli(["chat"], host.home, input=lines)
    [made] = await listed(host)
    name = made["resource"]
    code, output, _ = await sessions(host, "show", name)
    assert code == 0
    title, _, conversation = output.partition("\n\n")
    assert title == '(/tool calculate {"expression": "6*7"})  (demo)', "as in the list"
    assert conversation.startswith('> /tool calculate {"expression": "6*7"}\n✓ Used Calculate\n`calculate` returned:')
    assert '> /tool calculate {"expression": "x"}\n✗ Calculate: not run\n' in conversation
    assert "> /think\nI thought about it, and this is my answer.\n\n> /fail" in conversation
    assert conversation.endswith("> /fail badly\nThis goes wrong now.\n✗ badly\n")
    _, output, _ = await sessions(host, "show", name, "--json")
    states = [turn["state"] for turn in json.loads(output)["chats"][0]["turns"]]
    assert states == ["complete", "complete", "complete", "error"]
    async with terminal(["sessions", "show", name], host.home) as person:
        assert await person.exited() == 0
        assert "calculate returned:" in person.screen.text, "a terminal shows Markdown rendered"


# Changing.


async def test_a_session_can_be_renamed(host: HostProcess, session: str) -> None:
    assert await sessions(host, "rename", session, "Better") == (0, "", "")
    assert [one["title"] for one in await listed(host)] == ["Better"]


async def test_a_title_must_not_be_empty(host: HostProcess, session: str) -> None:
    code, _, errors = await sessions(host, "rename", session, " ")
    assert code == 1
    assert "a title must not be empty" in errors


async def test_an_archived_session_is_listed_on_request_only(host: HostProcess, session: str) -> None:
    assert await sessions(host, "archive", session) == (0, "", "")
    assert await listed(host) == []
    assert len(await listed(host, "--all")) == 1
    _, output, _ = await sessions(host, "list", "--all")
    assert "idle, archived" in output
    assert await sessions(host, "archive", session, "--undo") == (0, "", "")
    assert len(await listed(host)) == 1


async def test_nothing_is_deleted_without_a_word(host: HostProcess, session: str) -> None:
    code, _, errors = await sessions(host, "dispose", session)
    assert code == 2
    assert "there is no terminal to ask at; --yes deletes without asking" in errors
    assert len(await listed(host)) == 1


async def test_a_person_is_asked_before_something_is_deleted(host: HostProcess, session: str) -> None:
    async with terminal(["sessions", "dispose", session], host.home) as person:
        await person.see(f"Delete {session[:8]} (A session of its own) for good? [y/N]:")
        person.enter("n")
        assert await person.exited() == 1
    assert len(await listed(host)) == 1
    async with terminal(["sessions", "dispose", session], host.home) as person:
        await person.see("for good?")
        person.enter("y")
        assert await person.exited() == 0
    assert await listed(host) == []


async def test_what_was_typed_before_the_question_deletes_nothing(host: HostProcess, session: str) -> None:
    async with terminal(["sessions", "dispose", session], host.home) as person:
        person.enter("y")
        await person.asked(f"Delete {session[:8]} (A session of its own) for good? [y/N]:")
        person.enter("n")
        assert await person.exited() == 1
    assert len(await listed(host)) == 1


# Naming.


@pytest.mark.parametrize("command", ["show", "archive", "dispose", "export"])
async def test_an_unknown_name_is_refused(host: HostProcess, command: str) -> None:
    code, output, errors = await sessions(host, command, "nothing")
    assert (code, output) == (1, "")
    assert errors == "Error: there is no session 'nothing'; see: ahpkit sessions list --all\n"


async def test_an_ambiguous_name_is_refused_with_what_it_could_be(host: HostProcess, session: str) -> None:
    other = await imported(host, "A session of another")
    code, _, errors = await sessions(host, "dispose", "session of", "--yes")
    assert code == 1
    assert errors.startswith("Error: 'session of' could be any of these; use the id:\n")
    assert f"  {session[:8]}  A session of its own\n" in errors
    assert f"  {other[:8]}  A session of another\n" in errors
    assert len(await listed(host)) == 2


# Files.


async def test_an_exported_session_is_the_same_after_import(host: HostProcess) -> None:
    await finish_cli(["prompt", "/subagent look around", "--keep"], host.home)
    [summary] = await listed(host)
    code, exported, _ = await sessions(host, "export", summary["resource"])
    assert code == 0
    document = json.loads(exported)
    assert [len(chat["turns"]) for chat in document["chats"]] == [1, 1]
    code, output, errors = await sessions(host, "import", "-", input=exported)
    assert (code, errors) == (0, "")
    assert output.strip() != summary["resource"]
    _, again, _ = await sessions(host, "export", output.strip())
    assert json.loads(again) == document
    code, output, _ = await finish_cli(["prompt", "/usage", "--session", output.strip(), "--json"], host.home)
    assert (code, '"cacheReadTokens":1' in output) == (0, True)


async def test_export_writes_a_file_only_when_there_is_something_to_write(
    host: HostProcess, session: str, tmp_path: Path
) -> None:
    target = tmp_path / "session.json"
    assert (await sessions(host, "export", "nothing", "--output", str(target)))[0] == 1
    assert not target.exists()
    assert await sessions(host, "export", session, "--output", str(target)) == (0, "", "")
    assert json.loads(target.read_text())["title"] == "A session of its own"
    assert target.stat().st_mode & 0o777 == 0o600, "a conversation is nobody else's"
    code, _, errors = await sessions(host, "export", session, "--output", "/does/not/exist.json")
    assert (code, "Traceback" in errors) == (1, False)
    assert "/does/not/exist.json" in errors


async def test_export_replaces_a_file_only_when_it_is_told_to(host: HostProcess, session: str, tmp_path: Path) -> None:
    target = tmp_path / "mine.json"
    target.write_text("precious")
    code, _, errors = await sessions(host, "export", session, "--output", str(target))
    assert (code, f"{target} exists already; --force replaces it" in errors) == (2, True)
    assert target.read_text() == "precious"
    assert await sessions(host, "export", session, "--output", str(target), "--force") == (0, "", "")
    assert json.loads(target.read_text())["title"] == "A session of its own"
    assert target.stat().st_mode & 0o777 == 0o600, "also when it was there before"


async def test_a_session_larger_than_a_message_travels_in_pieces(tmp_path: Path) -> None:
    text = {"kind": "markdown", "id": "p", "content": "x" * 500_000}
    turns = [{**TURN, "id": f"t{number}", "responseParts": [text]} for number in range(45)]
    document = {**DOCUMENT, "title": "Big", "chats": [{"title": "Big", "turns": turns}]}
    (tmp_path / "big.json").write_text(json.dumps(document))
    async with host_process(tmp_path, "--durability", "memory") as host:
        code, output, errors = await sessions(host, "import", "big.json", "--json")
        assert (code, errors) == (0, "")
        made = json.loads(output)
        assert made["provider"] == "demo"
        code, output, errors = await sessions(host, "export", made["session"])
        assert (code, errors) == (0, "")
        assert json.loads(output) == document
        code, output, errors = await finish_cli(["prompt", "/usage", "--session", "Big"], tmp_path)
        assert (code, errors) == (0, "")


async def test_long_work_shows_how_far_it_is(host: HostProcess, session: str) -> None:
    async with terminal(["sessions", "export", session, "--output", "out.json"], host.home) as person:
        assert await person.exited() == 0
        assert "Exporting" in person.raw
        assert person.is_sane


async def test_an_agent_the_host_does_not_have_is_replaced_and_named(host: HostProcess) -> None:
    code, _, errors = await sessions(host, "import", "-", input=json.dumps({**DOCUMENT, "provider": "gone"}))
    assert (code, errors) == (0, "the host has no agent 'gone'; the session continues with 'demo'\n")


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "document: expected object, got array"),
        ({**DOCUMENT, "format": 2}, "document.format: only format 1 can be read, not 2; is ahpkit up to date?"),
        ({**DOCUMENT, "chats": [{"title": "c"}]}, "document.chats[0].turns: missing"),
    ],
)
async def test_a_document_that_is_no_session_is_refused_with_the_path(
    host: HostProcess, document: Any, problem: str
) -> None:
    code, output, errors = await sessions(host, "import", "-", input=json.dumps(document))
    assert (code, output) == (1, "")
    assert errors.startswith(f"Error: <stdin>: not imported: {problem}")


@pytest.mark.parametrize("text", ["{", "[" * 200_000, '{"a": NaN}'])
async def test_a_file_that_is_no_json_is_refused(host: HostProcess, text: str) -> None:
    code, output, errors = await sessions(host, "import", "-", input=text)
    assert (code, output) == (1, "")
    assert errors.startswith("Error: <stdin>: not JSON: ")


async def test_a_file_that_is_no_text_or_not_there_is_refused(host: HostProcess, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b"\xff")
    code, _, errors = await sessions(host, "import", str(tmp_path / "bad.json"))
    assert (code, errors.startswith(f"Error: {tmp_path / 'bad.json'}: not JSON: it is not UTF-8")) == (1, True)
    code, _, errors = await sessions(host, "import", "missing.json")
    assert (code, "No such file" in errors) == (2, True)


async def test_a_list_can_be_cut_short(host: HostProcess, session: str) -> None:
    code, output, errors = await shell("ahpkit sessions list | head -c 1", host.home)
    assert (code, output, errors) == (0, session[:1], "")


async def test_conversations_that_an_agent_keeps_are_listed_when_asked_for_and_can_be_shown(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    kept = {"cwd": str(tmp_path), "history": [["user", "Six times seven?"], ["agent", "Forty-two."]]}
    (store / "kept-1.json").write_text(json.dumps(kept))
    command = shlex.join(scripted_command(tmp_path / "script.json", store=str(store)))
    async with host_process(tmp_path, "--durability", "memory", "--agent", f"keeper={command}") as host:
        assert await listed(host) == []
        code, output, _ = await sessions(host, "list", "--ask-agents")
        assert (code, output.split()[3:]) == (0, ["keeper", "idle", "Six", "times", "seven?"])
        code, output, _ = await sessions(host, "show", "Six times")

    assert code == 0
    assert "> Six times seven?\nForty-two." in output


# Finding and handing on.


async def test_sessions_are_found_by_what_was_said_and_by_what_they_are(host: HostProcess) -> None:
    (host.home / "found").mkdir(exist_ok=True)
    await finish_cli(["prompt", "find the blue needle", "--keep", "--dir", "found"], host.home)
    await finish_cli(["prompt", "something else", "--keep"], host.home)
    code, output, _ = await sessions(host, "search", "NEEDLE", "blue")
    assert (code, output.count("\n")) == (0, 1)
    assert "find the blue needle" in output
    code, output, _ = await sessions(host, "search", "needle", "--json")
    assert json.loads(output)["title"] == "find the blue needle"
    code, _, errors = await sessions(host, "search", "haystack")
    assert (code, errors) == (1, "Nothing was found.\n")
    assert [one["title"] for one in await listed(host, "--dir", "found")] == ["find the blue needle"]
    assert len(await listed(host, "--agent", "demo", "--since", "1h", "--status", "idle")) == 2
    assert await listed(host, "--status", "running") == []
    code, _, errors = await sessions(host, "list", "--since", "soon")
    assert (code, "'soon' is not a duration; write 45min" in errors) == (2, True)


async def test_an_export_is_markdown_for_people_and_without_secrets(host: HostProcess) -> None:
    await finish_cli(["prompt", "my password=hunter22 is here", "--keep"], host.home)
    code, output, errors = await sessions(host, "export", "password", "--format", "markdown", "--no-secrets")
    assert code == 0
    assert "hunter22" not in output
    assert "With demo.\n\n---\n\n> my password=[removed] is here\n\n" in output
    assert re.fullmatch(r"\d removed; check the result before you pass it on\n", errors)
    _, output, _ = await sessions(host, "export", "password")
    assert "hunter22" in output
