"""The command `ahpkit` and the table of its subcommands. A subcommand is imported when it runs, not before.

To add one, write a click command or group in a module of this package and add a line to `COMMANDS`. The help text in
the table is what `ahpkit --help` shows, so that help and version answer without importing anything else.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final, NamedTuple

import click

from ahpkit import __version__


def explain(error: Exception) -> click.ClickException | None:
    """The error as a message that says what to do; None if a person cannot do anything about it."""
    from ahpkit.client.errors import ActionRejected, ConnectionLost  # Imported late, so that help is shown quickly.
    from ahpkit.protocol.errors import AhpError
    from ahpkit.transports.errors import ConnectError

    match error:
        case BrokenPipeError():  # The program that reads our output has ended; click ends without a message.
            return None
        case ConnectError(status=401):
            text = f"{error}. Give the host's token with --token or AHPKIT_TOKEN."
        case ConnectError(transient=True) | ConnectionLost():
            text = f"{error}. Is the host running? Start one with: ahpkit serve"
        case ActionRejected(reason=reason):  # People do not know the names of actions.
            text = reason
        case AhpError():
            text = str(error)
        case TimeoutError():
            text = "the host did not answer in time; is it busy? See: ahpkit doctor"
        case FileNotFoundError(filename=None) if not _is_somewhere():
            text = "the current directory was removed; change to another one and try again"
        case OSError(filename=str(name), strerror=str(reason)):
            text = f"{name}: {reason}"
        # The error happened while something was written, and names no file.
        case OSError(errno=number, strerror=str(reason)) if number in _FULL:
            text = f"something could not be written: {reason}"
        case _:
            return None
    return click.ClickException(text or type(error).__name__)


def _is_somewhere() -> bool:
    """Whether the current directory still exists. Another program may have removed it."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _advice(error: click.UsageError) -> str:
    """A hint at what a person meant, if they typed an unknown command or a word too many."""
    if error.ctx is None or error.ctx.parent is None:
        return ""
    command = error.ctx.command
    if error.format_message().startswith("No such command") and isinstance(command, click.Group):
        suggests = "Did you mean" in error.format_message()
        return "" if suggests else f" There are: {', '.join(command.list_commands(error.ctx))}."
    if not error.message.startswith("Got unexpected extra argument"):
        return ""
    parameters = command.params
    if any(isinstance(one, click.Argument) for one in parameters):
        return "; words that belong together are put in quotes"
    return "; a session is named with --session" if any("--session" in one.opts for one in parameters) else ""


class Subcommand(NamedTuple):
    """Where a subcommand is defined (`module:object`), and its line in the list of commands."""

    target: str
    help: str


COMMANDS: Final[dict[str, Subcommand]] = {
    "chat": Subcommand("ahpkit.cli.chat:chat", "Chat with an agent."),
    "prompt": Subcommand("ahpkit.cli.prompt:prompt", "Send one message and print the answer."),
    "resume": Subcommand("ahpkit.cli.prompt:resume", "Go on with a turn that failed."),
    "inbox": Subcommand("ahpkit.cli.inbox:inbox", "List everything that waits for you."),
    "approve": Subcommand("ahpkit.cli.inbox:approve", "Approve a tool call that waits in a session."),
    "deny": Subcommand("ahpkit.cli.inbox:deny", "Deny a tool call that waits in a session."),
    "answer": Subcommand("ahpkit.cli.inbox:answer", "Answer the questions that wait in a session."),
    "cancel": Subcommand("ahpkit.cli.inbox:cancel", "Cancel the turns that run in a session."),
    "sessions": Subcommand("ahpkit.cli.sessions:sessions", "List, search, show, rename, archive, export and more."),
    "usage": Subcommand("ahpkit.cli.usage:usage", "Add up tokens and cost by session, agent or day."),
    "tail": Subcommand("ahpkit.cli.tail:tail", "Follow a session, or any channel, as it happens."),
    "up": Subcommand("ahpkit.cli.service:up", "Start a host in the background."),
    "down": Subcommand("ahpkit.cli.service:down", "End the host."),
    "status": Subcommand("ahpkit.cli.service:status", "Show the hosts that run."),
    "logs": Subcommand("ahpkit.cli.service:logs", "Show what the host in the background logged."),
    "serve": Subcommand("ahpkit.cli.serve:serve", "Start a host and serve until Ctrl-C."),
    "service": Subcommand("ahpkit.cli.service:service", "Have the system start the host when you log in."),
    "open": Subcommand("ahpkit.cli.page:open_page", "Open the host's page in a browser."),
    "pair": Subcommand("ahpkit.cli.page:pair", "Show a code that lets a phone in."),
    "devices": Subcommand("ahpkit.cli.page:devices", "List or revoke the browsers that may come in."),
    "doctor": Subcommand("ahpkit.cli.doctor:doctor", "Check the installation and the running host."),
    "agents": Subcommand("ahpkit.cli.agents:agents", "List the agents ahpkit knows, or install one."),
    "login": Subcommand("ahpkit.cli.login:login", "Log an agent in."),
    "mcp": Subcommand("ahpkit.cli.mcp:mcp", "List MCP servers and tools, call one, log in."),
    "customizations": Subcommand(
        "ahpkit.cli.customizations:customizations", "Show skills, rules, servers …; switch them on or off."
    ),
    "rules": Subcommand("ahpkit.cli.rules:rules", "List, add and remove approval rules."),
    "approvals": Subcommand("ahpkit.cli.rules:approvals", "Look up what was allowed or denied, and by whom."),
    "trust": Subcommand("ahpkit.cli.trust:trust", "Show or change what may run: hooks and servers, by content."),
    "roots": Subcommand("ahpkit.cli.roots:roots", "Show or change the directories in which sessions work."),
    "config": Subcommand("ahpkit.cli.config:config", "Show or write the configuration."),
    "data": Subcommand("ahpkit.cli.data:data", "Save, put back and tidy up the data of a host."),
    "conformance": Subcommand("ahpkit.cli.conformance:conformance", "Check a host, reducers or types of AHP."),
}

SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Talk to agents": (
        "chat",
        "prompt",
        "resume",
        "inbox",
        "approve",
        "deny",
        "answer",
        "cancel",
        "sessions",
        "usage",
        "tail",
    ),
    "The host": ("up", "down", "status", "logs", "serve", "service", "open", "pair", "devices", "doctor"),
    "Agents, tools and rules": ("agents", "login", "mcp", "customizations", "rules", "approvals", "trust", "roots"),
    "Settings and data": ("config", "data", "conformance"),
}
"""The commands in the order of `ahpkit --help`. Commands in no section are listed last."""


_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Error numbers of a disk that cannot take any more data."""

_INTERRUPTED = 130
"""The exit code after Ctrl-C, the same as in shells."""


class _LazyGroup(click.Group):
    """A group whose subcommands are listed in `COMMANDS`. Each one is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].target.partition(":")
        return getattr(import_module(module), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # Imported late, because it is needed for misspelt commands only.

            if not (close := get_close_matches(args[0], COMMANDS, n=1)):
                raise
            raise click.UsageError(f"{error.message} Did you mean {close[0]!r}?", ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. This is the only place where errors become messages."""
        from ahpkit.cli.text import printable  # Imported late, so that help is shown quickly.

        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if not (advice := _advice(error)):
                raise
            raise click.UsageError(error.message + advice, error.ctx) from error
        except click.ClickException as error:
            if (message := printable(error.message)) == error.message:
                raise
            raise click.ClickException(message) from error  # The message quotes what a server said.
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:  # Ctrl-C before anything began: there is nothing to clean up.
            raise click.exceptions.Exit(_INTERRUPTED) from None
        except Exception as error:  # `explain` decides which errors are for people.
            if (explained := explain(error)) is None:
                raise
            raise click.ClickException(printable(explained.message)) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        placed = {name for names in SECTIONS.values() for name in names}
        rest = tuple(name for name in self.list_commands(ctx) if name not in placed)
        width = max(map(len, COMMANDS))  # The width is the same in all sections, so that the texts are aligned.
        for title, names in {**SECTIONS, **({"More": rest} if rest else {})}.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), COMMANDS[name].help) for name in names])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="ahpkit %(version)s")
def cli() -> None:
    """The Agent Host Protocol: host, client and conformance kit.

    \b
    Example:
      ahpkit prompt "hello"     one question; starts a host in the background if none runs
      ahpkit chat               a conversation
      ahpkit COMMAND --help     more about a command, with examples
    """


def main() -> None:
    """Run the command line and end the process."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream: TextIOWrapper | None = getattr(sys, name)
        if stream is None:  # The stream was closed by the caller: `ahpkit … >&-`.
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  # For as long as the process lives.
        elif mode == "w":
            # Characters that the terminal cannot show are written as escapes.
            stream.reconfigure(errors="backslashreplace")
    if "_AHPKIT_COMPLETE" in os.environ:
        # Imported late, because only a shell that completes needs it.
        from ahpkit.cli.shell_completion import prepare_completion

        prepare_completion()
    try:
        cli(prog_name="ahpkit")
    except OSError as error:  # Errors of `--help` and `--version`, which do not come to `invoke`.
        if (explained := explain(error)) is None:
            raise
        explained.show()
        sys.exit(explained.exit_code)
    finally:
        _end_output()


def _end_output() -> None:
    """Drop output that cannot be written. The error was already reported, and Python would report it again at its
    end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


__all__ = ["COMMANDS", "Subcommand", "cli", "explain", "main"]
