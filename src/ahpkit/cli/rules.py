"""`ahpkit rules` and `ahpkit approvals`: what is allowed or denied without asking, and what was decided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from ahpkit.cli.ask_person import in_words
from ahpkit.cli.asking import WholeNumber
from ahpkit.cli.connection import connected, find_session, host_command, short_id
from ahpkit.cli.output import Output
from ahpkit.cli.session_search import session_title
from ahpkit.cli.shell_completion import SESSION
from ahpkit.cli.text import as_json, printable, shorten
from ahpkit.cli.watching import LOOK, json_text, show, watch_option
from ahpkit.client import Client
from ahpkit.tools.rules import SCOPES, WHERE

_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_REMEMBERED = {
    "command": "commands like this",
    "path": "this tool in this place",
    "tool": "this tool",
    "server": "every tool of this server",
}
_KINDS = {"allowed": "approve", "denied": "deny"}

_UNNAMED = {"person": "a person", "client": "a program, without asking"}

_ID = 8
"""Characters of a rule's id that are shown, and that people type."""


@click.group()
def rules() -> None:
    """List, add and remove approval rules: which tool calls are allowed or denied without asking.

    Most rules are made by picking "always" when a call waits for approval.

    \b
    Example:
      ahpkit rules list
      ahpkit rules remove 3f2a91c0
    """


@rules.command("list")
@watch_option
@click.option("--json", "json_output", is_flag=True, help="The rules as JSON; with --watch one list on each line.")
@host_command
async def list_rules(url: str | None, token: str | None, watching: bool, json_output: bool) -> None:
    """List the rules of the host, those of its configuration first.

    \b
    Example:
      ahpkit rules list
      ahpkit rules list --json
    """

    async def lines() -> str:
        found = await client.rules()
        if json_output:
            return json_text(found, watching=watching)
        return "\n".join(map(_line, found)) or "There are no rules. You are asked about every call that needs approval."

    async with connected(url, token) as client:
        await show(lines, watching=watching, client=client, every=LOOK, clear=not json_output)


def _line(rule: Any) -> str:
    where = "configuration" if rule.get("configured") else rule.get("place", "")
    id = rule["id"] if rule.get("configured") else f"{rule['id'][:_ID]:8}"
    return printable("  ".join(filter(None, [id, rule["says"], f"({rule['owner']})", where])))


class _Decision(click.Choice[str]):
    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        return "Say allow or deny."


@rules.command("add")
@click.argument("decision", type=_Decision(["allow", "deny"]))
@click.option("--owner", required=True, help="Whose tool: agent:NAME, mcp:SERVER, client:NAME or host.")
@click.option("--tool", help="The tool. Without it: every tool of an MCP server.")
@click.option("--command", help='Only commands that begin so: "git status".')
@click.option("--path", "pattern", help='Only files that match: "/project/src/**".')
@click.option("--session", shell_complete=SESSION, help="Only in this session: its URI, id, or part of its title.")
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Only in sessions in this directory.",
)
@click.option("--json", "json_output", is_flag=True, help="The rule as JSON.")
@host_command
async def add_rule(
    url: str | None,
    token: str | None,
    decision: str,
    owner: str,
    tool: str | None,
    command: str | None,
    pattern: str | None,
    session: str | None,
    workspace: Path | None,
    json_output: bool,
) -> None:
    """Always allow or deny a tool, all tools of a server, commands or paths.

    \b
    Example:
      ahpkit rules add allow --owner agent:goose --tool shell --command "git status"
      ahpkit rules add deny --owner mcp:github --tool delete_repository
    """
    if session is not None and workspace is not None:
        raise click.UsageError("a rule applies to a session or to a workspace: give one of them")
    async with connected(url, token) as client:
        try:
            made = await client.add_rule(
                decision,
                owner=owner,
                tool=tool,
                command=command,
                path=pattern,
                session=None if session is None else await find_session(client, session),
                workspace=None if workspace is None else _uri(workspace),
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    Output().say(as_json(made) if json_output else _line(made))


@rules.command("remove")
@click.argument("rule")
@host_command
async def remove_rule(url: str | None, token: str | None, rule: str) -> None:
    """Remove a rule. RULE is its id, or the beginning of it. You are asked again from the next call on.

    \b
    Example:
      ahpkit rules remove 3f2a91c0
    """
    async with connected(url, token) as client:
        found = _meant(await client.rules(), rule)
        await client.remove_rule(found["id"])
    Output().say(printable(f"removed: {found['says']}"))


def _uri(folder: Path) -> str:
    return folder.absolute().as_uri()


def _meant(rules: Sequence[Any], name: str) -> Any:
    found = [rule for rule in rules if rule["id"] == name] or [rule for rule in rules if rule["id"].startswith(name)]
    if not found:
        raise click.ClickException(f"there is no rule {name!r}; see: ahpkit rules list")
    if len(found) > 1:
        lines = "\n".join(f"  {_line(rule)}" for rule in found)
        raise click.ClickException(f"{name!r} could be any of these:\n{lines}")
    return found[0]


@click.group()
def approvals() -> None:
    """Look up which tool calls were allowed or denied, by whom, and what was shown.

    \b
    Example:
      ahpkit approvals log
    """


@approvals.command("log")
@click.option("--session", shell_complete=SESSION, help="Only of this session: its URI, id, or part of its title.")
@click.option("--limit", type=WholeNumber(1, 1000), default=50, show_default=True, help="How many, the newest.")
@watch_option
@click.option("--json", "json_output", is_flag=True, help="The decisions as JSON, with what was shown.")
@host_command
async def log(
    url: str | None, token: str | None, session: str | None, limit: int, watching: bool, json_output: bool
) -> None:
    """List decisions about tool calls, the newest last: when, what, by whom or by which rule.

    \b
    Example:
      ahpkit approvals log
      ahpkit approvals log --session hello --json
    """

    async def lines() -> str:
        found = await client.approvals(session=only, limit=limit)
        if json_output:
            return json_text(found, watching=watching)
        titles = {one["resource"]: session_title(one) for one in await client.sessions()} if found else {}
        lines = [_decision(entry, titles.get(entry["session"])) for entry in found]
        return "\n".join(lines) or "Nothing was decided yet."

    async with connected(url, token) as client:
        only = await _session(client, session)
        await show(lines, watching=watching, client=client, every=LOOK, clear=not json_output)


async def _session(client: Client, name: str | None) -> str | None:
    return None if name is None else await find_session(client, name)


def _decision(entry: Any, title: str | None) -> str:
    """One line for a decision. A session that was deleted is shown by its id only."""
    when = datetime.fromtimestamp(entry["at"] / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    place = f"{short_id(entry['session'])}  {shorten(title or '(deleted)', 30):30}"
    of_what = f"result of {entry['tool']}" if entry.get("of") == "result" else entry["tool"]
    shown = shorten(f"{of_what} {entry['shown'].get('input', '')}", 80)
    reason = f"  {shorten(entry['reason'], 80)}" if entry.get("reason") else ""
    return printable(
        f"{when}  {place}  {entry['decision']:7}  {shown}  ({entry['owner']})  by {_by(entry)}{_chosen(entry)}{reason}"
    )


def _by(entry: Any) -> str:
    """Who decided. A client without a name has a random id, which is not shown, because it means nothing to a
    person."""
    who = entry.get("who", "")
    if entry["by"] in _UNNAMED and (not who or _RANDOM.fullmatch(who)):
        return _UNNAMED[entry["by"]]
    return f"{entry['by']} {who}".strip()


def _chosen(entry: Any) -> str:
    """The option that was chosen, if it says more than yes or no."""
    option = entry.get("option") or ""
    match option.split(":"):
        case [decision, kind, scope] if kind in _REMEMBERED and scope in SCOPES:
            return f", always {decision} {_REMEMBERED[kind]}{WHERE[scope]}"
        case _:
            plain = option in ("", "allow", "deny", "allow-once", "deny-once")
    return "" if plain else f", {in_words({'id': option, 'label': option, 'kind': _KINDS[entry['decision']]})}"


__all__ = ["approvals", "rules"]
