"""`ahpkit sessions`: lists, searches, shows, changes, exports and deletes the sessions of a host.

The module is long because the group has many commands, each with a few lines and its help.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from ahpkit.cli.asking import WholeNumber, confirm, confirm_deletion, read_whole
from ahpkit.cli.connection import EXIT_FAILED, connected, find_session, host_command, short_id, taken
from ahpkit.cli.edits import changed_lines, headline, shown_name
from ahpkit.cli.output import Output, patiently, progress
from ahpkit.cli.session_documents import Redactor, export_session, import_session
from ahpkit.cli.session_search import UNTITLED, Filter, filter_options, search, session_title, summary_line
from ahpkit.cli.shell_completion import SESSION
from ahpkit.cli.text import as_json, plain, printable, shorten
from ahpkit.cli.watching import json_text, watch_option
from ahpkit.cli.watching import show as show_list
from ahpkit.client import Client, Session
from ahpkit.client.answers import input_text
from ahpkit.client.changesets import ChangesetView
from ahpkit.platform.files import CLOSE_ON_EXEC
from ahpkit.protocol.chat.turns import find_turn
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.meta_keys import OPENING
from ahpkit.wire.codec import encode


@click.group()
def sessions() -> None:
    """List, search, show, rename, archive, dispose, export and import sessions.

    SESSION is the URI of a session, its id or the beginning of it, or part of its title.

    \b
    Example:
      ahpkit sessions list
      ahpkit sessions export 3f2a > session.json
    """


@sessions.command("list")
@click.option("--all", "everything", is_flag=True, help="Archived ones too.")
@filter_options
@click.option("--ask-agents", is_flag=True, help="Start agents that do not run, for the conversations they keep.")
@watch_option
@click.option("--json", "json_output", is_flag=True, help="The summaries as JSON; with --watch one list on each line.")
@host_command
async def list_sessions(
    url: str | None,
    token: str | None,
    everything: bool,
    agent: str | None,
    directory: Path | None,
    status: str | None,
    since: timedelta | None,
    ask_agents: bool,
    watching: bool,
    json_output: bool,
) -> None:
    """List sessions, the one changed last first.

    The list includes conversations that agents store themselves, if the agent runs or was asked before.

    \b
    Example:
      ahpkit sessions list --all
      ahpkit sessions list --dir . --status "needs input" --since 12h
      ahpkit sessions list --ask-agents
    """
    wanted = Filter(agent, directory, status, since, everything)

    async def lines() -> str:
        found = await _fitting(client, wanted, ask_agents=ask_agents)
        if json_output:
            return json_text(found, watching=watching)
        nothing = (
            "No session fits."
            if replace(wanted, everything=False) != Filter()
            else "There are no sessions. Start one with:  ahpkit chat"
        )
        return "\n".join(map(summary_line, found)) or nothing

    async with connected(url, token) as client:
        await show_list(lines, watching=watching, client=client, clear=not json_output)


async def _fitting(client: Client, wanted: Filter, *, ask_agents: bool = False) -> list[Any]:
    listed = await patiently(client.sessions(ask_agents=ask_agents), "Asking the agents")
    now = datetime.now(UTC)
    return sorted((one for one in listed if wanted.fits(one, now)), key=lambda one: one["modifiedAt"], reverse=True)


@sessions.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--all", "everything", is_flag=True, help="Archived ones too.")
@filter_options
@click.option("--limit", type=WholeNumber(min=1), default=20, show_default=True, help="Turns that are shown.")
@click.option("--json", "json_output", is_flag=True, help="One line of JSON for each turn.")
@host_command
async def search_command(
    url: str | None,
    token: str | None,
    words: tuple[str, ...],
    everything: bool,
    agent: str | None,
    directory: Path | None,
    status: str | None,
    since: timedelta | None,
    limit: int,
    json_output: bool,
) -> int:
    """Find turns that contain all WORDS: in messages, answers, thoughts or tool calls. Exits with 1 if there is none.

    \b
    Example:
      ahpkit sessions search migration
      ahpkit sessions search "release notes" --agent claude --since 30d
    """
    if not any(word.strip() for word in words):
        raise click.UsageError("give at least one word to look for")
    output, found = Output(), 0
    async with connected(url, token) as client:
        fitting = await _fitting(client, Filter(agent, directory, status, since, everything))
        async with aclosing(search(client, fitting, words)) as hits:
            async for hit in hits:
                found += 1
                name = short_id(hit.session)
                output.say(
                    encode(asdict(hit)).decode() if json_output else f"{name}  {shorten(hit.title, 40):40}  {hit.text}"
                )
                if found >= limit:
                    break
    if not found and not json_output:
        output.say("Nothing was found.", error=True)
    return 0 if found else EXIT_FAILED


@sessions.command()
@click.argument("session", shell_complete=SESSION)
@click.option("--json", "json_output", is_flag=True, help="The whole session as JSON, as export writes it.")
@host_command
async def show(url: str | None, token: str | None, session: str, json_output: bool) -> None:
    """Print a session's conversation.

    \b
    Example:
      ahpkit sessions show hello
    """
    async with connected(url, token) as client:
        with progress("Reading") as tell:
            document = await export_session(client, await find_session(client, session), tell)
    output = Output()
    if json_output:
        output.say(as_json(document))
        return
    output.say(f"{document_title(document)}  ({document['provider']})", "bold")
    for number, chat in enumerate(document["chats"]):
        if number:
            output.say(f"\n## {chat['title']}", "bold")
        for turn in chat["turns"]:
            output.say(f"\n> {turn['message']['text']}", "bold")
            _show_answer(output, turn)


def _show_answer(output: Output, turn: Any) -> None:
    for part in turn["responseParts"]:
        if (text := _part(part)) is not None:
            (output.markdown if part["kind"] == "markdown" else output.say)(text)
    if turn["state"] == "cancelled":
        output.say("✗ cancelled")
    for part in turn["responseParts"]:
        if part["kind"] == "error":
            output.say(f"✗ {part['error']['message']}")


def document_title(document: Any) -> str:
    """The title of an exported session. As in lists, a session without one is named by its first message."""
    first = next((turn["message"]["text"] for chat in document["chats"] for turn in chat["turns"]), "")
    return session_title({"title": document["title"], "_meta": {OPENING: shorten(first, 60)}}) or UNTITLED


def _part(part: Any) -> str | None:
    match part["kind"]:
        case "markdown":
            return part["content"].rstrip("\n")
        case "systemNotification":
            return f"! {plain(part['content'])}"
        case "toolCall":
            call = part["toolCall"]
            if call["status"] == "completed":
                return f"{'✓' if call['success'] else '✗'} {plain(call['pastTenseMessage']) or call['displayName']}"
            return f"✗ {call['displayName']}: not run"
        case _:
            return None


@sessions.command()
@click.argument("session", shell_complete=SESSION)
@click.argument("title")
@host_command
async def rename(url: str | None, token: str | None, session: str, title: str) -> None:
    """Give a session another title.

    \b
    Example:
      ahpkit sessions rename 3f2a "Release notes"
    """
    async with connected(url, token) as client:
        await taken((await client.session(await find_session(client, session))).rename(title))


@sessions.command()
@click.argument("session", shell_complete=SESSION)
@click.option("--undo", is_flag=True, help="Take it out of the archive again.")
@host_command
async def archive(url: str | None, token: str | None, session: str, undo: bool) -> None:
    """Archive a session: it is kept, and no longer listed.

    \b
    Example:
      ahpkit sessions archive 3f2a
    """
    async with connected(url, token) as client:
        await taken((await client.session(await find_session(client, session))).archive(not undo))


@sessions.command()
@click.argument("session", shell_complete=SESSION)
@click.option("--yes", is_flag=True, help="Do not ask.")
@host_command
async def dispose(url: str | None, token: str | None, session: str, yes: bool) -> None:
    """Delete a session with all its chats, for good.

    \b
    Example:
      ahpkit sessions dispose 3f2a --yes
    """
    async with connected(url, token) as client:
        uri = await find_session(client, session)
        opened = await client.session(uri)
        if not yes:
            confirm_deletion(f"Delete {short_id(uri)} ({shorten(opened.state['title'], 60)}) for good?")
        own: Any = opened.state.get("_meta", {}).get("ahpkit/worktree", {})
        await opened.dispose()
        if own and not own.get("removed"):
            place = printable(f"{own['path']} (branch {own['branch']})")
            Output().say(f"Its work tree is removed, or kept if something in it is nowhere else: {place}")


@sessions.command("export")
@click.argument("session", shell_complete=SESSION)
@click.option("--output", type=click.Path(dir_okay=False, allow_dash=True), default="-", help="Write to a file.")
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="The format.",
)
@click.option("--no-secrets", is_flag=True, help="Remove what looks like a key, a token or a password.")
@host_command
async def export_command(
    url: str | None, token: str | None, session: str, output: str, force: bool, form: str, no_secrets: bool
) -> None:
    """Write a session as JSON, which `import` takes, or as Markdown, for people.

    The document has the title, the agent, and the chats with their finished turns.

    \b
    Example:
      ahpkit sessions export 3f2a --output session.json
      ahpkit sessions export 3f2a --format markdown --no-secrets > session.md
    """
    _check_target(output, force=force)
    async with connected(url, token) as client:
        with progress("Exporting") as tell:
            document = await export_session(client, await find_session(client, session), tell)
    if no_secrets:
        redactor = Redactor(os.environ)
        document = redactor.clean(document)
        click.echo(f"{redactor.removed} removed; check the result before you pass it on", err=True)
    text = as_json(document) if form == "json" else as_markdown(document)
    if output == "-":
        click.echo(text)
    else:
        _write_private(output, f"{text}\n", replace_it=force)


def _check_target(output: str, *, force: bool) -> None:
    """Refuse a target that exists, before anything is read. A person's file is replaced only with `--force`."""
    if not output:
        raise click.UsageError("--output is empty; leave it out for standard output")
    if output != "-" and not force and Path(output).exists():
        raise click.UsageError(f"{output} exists already; --force replaces it")


def as_markdown(document: Any) -> str:
    """The conversation as Markdown: the messages, the answers, and what tools did."""
    lines = [f"# {document_title(document)}", "", f"With {document['provider']}."]
    for number, chat in enumerate(document["chats"]):
        if number:
            lines += ["", f"## {chat['title'] or 'Another chat'}"]
        for turn in chat["turns"]:
            asked = "\n".join(f"> {line}".rstrip() for line in turn["message"]["text"].split("\n"))
            lines += ["", "---", "", asked, "", *_markdown_parts(turn)]
    return printable("\n".join(lines))


def _markdown_parts(turn: Any) -> list[str]:
    lines: list[str] = []
    for part in turn["responseParts"]:
        if part["kind"] == "reasoning":
            lines += ["<details><summary>Thoughts</summary>", "", part["content"].strip(), "", "</details>", ""]
        elif part["kind"] == "toolCall" and part["toolCall"].get("toolInput"):
            given = input_text(part["toolCall"])
            fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", given)), default=0))
            lines += [f"*{_part(part)}*", "", fence, given, fence, ""]
        elif (text := _part(part)) is not None:
            lines += [text, ""]
    lines += ["*Cancelled.*"] if turn["state"] == "cancelled" else []
    return lines + [f"*{part['error']['message']}*" for part in turn["responseParts"] if part["kind"] == "error"]


def _write_private(path: str, text: str, *, replace_it: bool) -> None:
    """Write a file that only its owner can read, even if the file existed before."""
    there = os.O_TRUNC if replace_it else os.O_EXCL
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | there | CLOSE_ON_EXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o600)
            file.write(text)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from error


@sessions.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--json", "json_output", is_flag=True, help="Print the new session's URI and agent as JSON.")
@host_command
async def import_command(url: str | None, token: str | None, file: Any, json_output: bool) -> None:
    """Create a session from an exported one and print its URI. "-" reads standard input.

    \b
    Example:
      ahpkit sessions import session.json
    """
    document = _read_document(file)
    async with connected(url, token) as client:
        with progress("Importing") as tell:
            try:
                made = await import_session(client, document, tell)
            except InvalidParams as error:
                raise click.ClickException(f"{file.name}: not imported: {error}") from error
    if json_output:
        click.echo(json.dumps(made))
        return
    click.echo(made["session"])
    if made["provider"] != document["provider"]:
        wanted, taken = document["provider"], made["provider"]
        click.echo(f"the host has no agent {wanted!r}; the session continues with {taken!r}", err=True)


_LARGEST_DOCUMENT = 500_000_000
"""Characters of a session that can be imported."""


def _read_document(file: Any) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(read_whole(file, file.name, _LARGEST_DOCUMENT), parse_constant=refuse)
    except UnicodeDecodeError:
        raise click.ClickException(f"{file.name}: not JSON: it is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{file.name}: not JSON: {error}") from error


_VIEWS = click.Choice(["session", "uncommitted", "turn"])


async def _session(client: Client, name: str) -> Session:
    return await client.session(await find_session(client, name))


async def _view(session: Session, name: str, kind: str, turn: str | None) -> ChangesetView:
    """Open one changeset of a session. For the changes of a turn without an id, the last turn is taken."""
    if kind == "turn" and turn is None:
        chat = await session.chat()
        turns = chat.confirmed["turns"]
        if not turns:
            raise click.ClickException("There is no turn yet.")
        turn = turns[-1]["id"]
    elif turn is not None:
        await _check_turn(session, turn, name)
    try:
        return session.changeset(kind, **({"turnId": turn} if kind == "turn" and turn is not None else {}))
    except LookupError:
        own: Mapping[str, Any] = session.confirmed.get("_meta", {}).get("ahpkit/worktree", {})
        why = (
            f"its work tree {own['path']} was removed" if "removed" in own else "its directory is in no git repository"
        )
        raise click.ClickException(f"This session offers no {kind} changes: {why}.") from None


async def _check_turn(session: Session, turn: str, name: str) -> None:
    """Raise if no chat of the session has a turn with this id."""
    for one in session.chats:
        async with await session.chat(one["resource"]) as chat:
            if find_turn(chat.confirmed, turn) is not None:
                return
    raise click.ClickException(f"there is no turn {turn!r} in {name!r}; see: ahpkit sessions show {name} --json")


@sessions.command()
@click.argument("session", shell_complete=SESSION)
@click.option("--of", "kind", type=_VIEWS, default="session", show_default=True, help="Which changes.")
@click.option("--turn", help="The id of a turn, with --of turn; the last one without it.")
@click.option("--stat", is_flag=True, help="Only names and counts.")
@click.option("--json", "json_output", is_flag=True, help="The changed files as JSON.")
@host_command
async def diff(
    url: str | None, token: str | None, session: str, kind: str, turn: str | None, stat: bool, json_output: bool
) -> None:
    """Show which files a session changed, and how.

    \b
    Example:
      ahpkit sessions diff hello
      ahpkit sessions diff hello --of uncommitted --stat
    """
    output = Output()
    async with (
        connected(url, token) as client,
        await _session(client, session) as found,
        await _view(found, session, kind, turn) as view,
    ):
        if json_output:
            output.say(as_json(list(view.files)))
            return
        if not view.files:
            output.say("Nothing changed.")

        async def read(uri: str) -> str | None:
            return await view.read({"content": {"uri": uri}})

        for file in view.files:
            output.say(printable(headline(file["edit"], _directories(found), _remark(file))))
            for line in [] if stat else await changed_lines(file["edit"], read):
                output.say(line, {"+": "green", "-": "red"}.get(line[:1], ""))


@sessions.command()
@click.argument("session", shell_complete=SESSION)
@click.argument("files", nargs=-1)
@click.option(
    "--of", "kind", type=click.Choice(["session", "turn"]), default="session", show_default=True, help="Which changes."
)
@click.option("--turn", help="The id of a turn, with --of turn; the last one without it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@host_command
async def undo(
    url: str | None, token: str | None, session: str, files: tuple[str, ...], kind: str, turn: str | None, yes: bool
) -> None:
    """Undo a session's changes to files: all of them, or those to FILES.

    Later changes by others are not touched; they are reported.

    \b
    Example:
      ahpkit sessions undo hello
      ahpkit sessions undo hello src/main.py --of turn
    """
    output = Output()
    async with (
        connected(url, token) as client,
        await _session(client, session) as found,
        await _view(found, session, kind, turn) as view,
    ):
        if not view.files and not files:
            output.say("Nothing changed.")
            return
        directories = _directories(found)
        chosen = [_changed_file(view, name, directories) for name in files]
        if not yes:
            for file in chosen or [one["id"] for one in view.files]:
                output.say(f"  {printable(shown_name(file, directories))}")
            if not sys.stdin.isatty():
                raise click.UsageError("there is no terminal to ask at; --yes undoes without asking")
            if not confirm("Undo these changes?"):
                raise click.ClickException("nothing was undone")
        for file in chosen or [None]:
            output.say(str(await view.invoke("undo", file=file, confirmed=True)))


@sessions.command()
@click.argument("session", shell_complete=SESSION)
@host_command
async def redo(url: str | None, token: str | None, session: str) -> None:
    """Make the changes again that the last undo of a session took back.

    Later changes by others are not touched; they are reported. A second redo brings back what the undo before took.

    \b
    Example:
      ahpkit sessions undo hello
      ahpkit sessions redo hello
    """
    output = Output()
    async with (
        connected(url, token) as client,
        await _session(client, session) as found,
        await _view(found, session, "session", None) as view,
    ):
        if not any(operation["id"] == "redo" for operation in view.operations):
            output.say("There is no undo to bring back.")
            return
        output.say(str(await view.invoke("redo")))


@sessions.command()
@click.argument("session", shell_complete=SESSION)
@click.option("-m", "--message", help="Message of the commit, if something is not committed yet.  [default: the title]")
@click.option("--remove", is_flag=True, help="Remove the work tree and its branch afterwards.")
@host_command
async def merge(url: str | None, token: str | None, session: str, message: str | None, remove: bool) -> None:
    """Merge what a session did in its own work tree into the directory it was started from.

    What is not committed yet is committed first. A conflict changes nothing.

    \b
    Example:
      ahpkit prompt --worktree "Add a changelog"
      ahpkit sessions merge changelog --remove
    """
    output = Output()
    async with (
        connected(url, token) as client,
        await _session(client, session) as found,
        await _view(found, session, "uncommitted", None) as view,
    ):
        if not any(operation["id"] == "merge" for operation in view.operations):
            raise click.ClickException("This session has no work tree of its own.")
        output.say(str(await view.invoke("merge", message=message)))
        if remove:
            output.say(str(await view.invoke("remove", confirmed=True)))


def _directories(session: Session) -> list[str]:
    return list(session.state.get("workingDirectories", ()))


def _remark(file: Any) -> str:
    """The reason why no lines of a file are shown."""
    note: str = file.get("_meta", {}).get("ahpkit/note", "")
    return note or ("" if "diff" in file["edit"] else "binary")


def _changed_file(view: ChangesetView, name: str, directories: list[str]) -> str:
    """The changed file that a person names by its path from the working directory, by its URI, or by the end of its
    path."""
    names = {file["id"]: shown_name(file["id"], directories) for file in view.files}
    found = [id for id, shown in names.items() if name in (id, shown)]
    found = found or [id for id in names if id.endswith(f"/{quote(name)}")]
    if len(found) != 1:
        wrong = "is more than one of" if found else "is not one of"
        changed = printable(", ".join(names.values())) or "there are none"
        raise click.ClickException(f"{name!r} {wrong} the changed files: {changed}")
    return found[0]


__all__ = ["sessions"]
