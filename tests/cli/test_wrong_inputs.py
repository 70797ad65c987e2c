"""Wrong inputs from a shell: each is answered with one clear line, an exit code, and nothing else."""

from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import CliRunner

from ahpkit.cli.main import cli
from support.process import HostProcess, environment, finish_cli

WRONG: dict[str, tuple[list[str], int, str]] = {
    "a command that nobody knows": (["chta"], 2, "Did you mean 'chat'?"),
    "an inbox that takes a name": (["inbox", "hello"], 2, "Got unexpected extra argument (hello)"),
    "a message without quotes": (
        ["prompt", "two", "words"],
        2,
        "(words); words that belong together are put in quotes",
    ),
    "a command of a group that resembles none": (["sessions", "delete", "x"], 2, "There are: archive, diff, dispose,"),
    "a call named beside all of them": (
        ["approve", "x", "--all", "--number", "2"],
        2,
        "leave out --number and --option",
    ),
    "a way to approve all": (["approve", "x", "--all", "--option", "3"], 2, "leave out --number and --option"),
    "a denied call beside all": (["deny", "x", "--all", "--number", "1"], 2, "leave out --number"),
    "an answer that is declined": (["answer", "x", "--decline", "y"], 2, "leave out the answers"),
    "a bell for a list that is shown once": (
        ["inbox", "--notify", "bell"],
        2,
        "--notify works only together with --watch",
    ),
    "servers of a host that never was": (["mcp", "list", "--host-name", "wrok"], 1, "there is no host named wrok"),
    "a chat with a name": (["chat", "hello"], 2, "(hello); a session is named with --session"),
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
    "a prompt without a message": (["prompt"], 2, "the message is empty: there is nothing to send"),
    "a file that is not there": (["prompt", "x", "--file", "no.txt"], 2, "'no.txt' does not exist"),
    "a directory as a file": (["prompt", "x", "--file", "."], 2, "'.' is a directory"),
    "a file that is no text": (["prompt", "x", "--file", "bytes.bin"], 1, "bytes.bin is not UTF-8 text"),
    "a file with nothing in it": (
        ["prompt", "--file", "nothing.txt"],
        2,
        "the message is empty: there is nothing to send",
    ),
    "the status of nobody": (["status", "--host-name", "nobody"], 1, "there is no host named nobody; there are: d"),
    "the end of nobody": (["down", "--host-name", "nobody"], 1, "there is no host named nobody; there are: d"),
    "the log of a name that nobody has": (["logs", "--host-name", "nobody"], 1, "there is no host named nobody"),
    "the inbox of nobody": (["inbox", "--host-name", "nobody"], 1, "To make one: ahpkit up --host-name nobody"),
    "a phone for nobody": (["pair", "--host-name", "nobody"], 1, "there is no host named nobody; there are: d"),
    "a page of nobody": (["open", "--print", "--host-name", "nobody"], 1, "there is no host named nobody"),
    "a chat with nobody": (["chat", "--host-name", "nobody"], 1, "there is no host named nobody"),
    "trust for nobody": (["trust", "list", "--host-name", "nobody"], 1, "there is no host named nobody"),
    "a root for nobody": (["roots", "add", "empty", "--host-name", "nobody"], 1, "there is no host named nobody"),
    "a file that cannot be read": (
        ["prompt", "x", "--file", "/proc/self/mem"],
        1,
        "/proc/self/mem cannot be read: Input/output error",
    ),
    "a rule for a place that is not there": (
        ["rules", "add", "deny", "--owner", "agent:x", "--tool", "t", "--workspace", "porject"],
        2,
        "'porject' does not exist",
    ),
    "a setting with a home that nobody has": (
        ["config", "show", "--config", "home.toml"],
        1,
        "host.data_dir must be a path; ~NAME at its beginning is the home of a user of this machine, not '~nobody9/x'",
    ),
    "a home that nobody has in a rule": (["config", "show", "--config", "rule.toml"], 1, "rule 1 of [[rules]]: a path"),
    "an agent in a home that nobody has": (
        ["serve", "--config", "cwd.toml", "--port", "0", "--data-dir", "other"],
        1,
        "agents.mine.cwd: ~NAME is the home of a user of this machine, and '~nobody9' names none",
    ),
    "a model at an odd address": (
        ["serve", "--config", "ftp.toml", "--port", "0", "--data-dir", "other"],
        1,
        "agent mine: 'ftp://x' is not an http or https URL",
    ),
    "a program and a model at once": (
        ["serve", "--config", "both.toml", "--port", "0", "--data-dir", "other"],
        1,
        "agents.mine: give a command or a url, not both",
    ),
    "a first directory that is not there": (
        ["serve", "--config", "first.toml", "--port", "0", "--data-dir", "other"],
        1,
        "host.default_directory: /gone9 is not a directory",
    ),
    "a directory to trust from a variable that is not set": (
        ["serve", "--trust", "", "--port", "0", "--data-dir", "other"],
        2,
        "Invalid value for '--trust': it is empty; name a file or folder.",
    ),
    "a data directory from a variable that is not set": (["serve", "--data-dir", ""], 2, "it is empty"),
    "a root from a variable that is not set": (["roots", "add", ""], 2, "it is empty"),
    "an address of another machine": (
        ["serve", "--host", "192.0.2.1", "--port", "0", "--data-dir", "other"],
        1,
        "this machine has no such address",
    ),
    "a phone for a host that nothing reaches": (
        ["pair"],
        1,
        "it listens on this machine only, or without TLS. To change that",
    ),
    "a timeout in words": (["prompt", "x", "--timeout", "soon"], 2, "'soon' is not a valid number"),
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
        "--continue takes the last session as it is: leave out --agent",
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
        "'yesterday' is not a duration; write 45min, 12h, 30d or 2w",
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
        "bytes.bin is not a backup, or it is damaged",
    ),
    "a backup over something else": (
        ["data", "backup", "bytes.bin"],
        1,
        "bytes.bin is there already and is no backup; choose another name",
    ),
    "a project's file at home": (["config", "init", "--project"], 1, "is not read; run this in a project"),
    "a host without a name": (["prompt", "x", "--host-name", ""], 2, "'' cannot be a host's name"),
    "a service without a name": (["service", "install", "--host-name", ""], 2, "'' cannot be a host's name"),
    "an address without letters": (["prompt", "x", "--url", ""], 2, "--url is empty; leave it out"),
    "an address where nobody listens": (
        ["sessions", "list", "--url", "ws://127.0.0.1:1"],
        1,
        "ws://127.0.0.1:1: nobody listens there. Is the host running? Start one with",
    ),
    "a rule without a decision": (["rules", "add"], 2, "Say allow or deny."),
    "no longer trusting nothing": (["trust", "remove", ""], 1, "nothing of '' is trusted"),
    "an import of bytes": (["sessions", "import", "bytes.bin"], 1, "bytes.bin: not JSON: it is not UTF-8 text"),
    "undoing what nobody changed": (
        ["sessions", "undo", "QUIET", "no.txt"],
        1,
        "'no.txt' is not one of the changed files: there are none",
    ),
    "an agent without letters": (["serve", "--agent", ""], 1, "there is no known agent ''; write NAME=COMMAND ARGS"),
    "an address that this machine has not": (
        ["serve", "--host", "192.0.2.1", "--port", "0"],
        1,
        "cannot listen on 192.0.2.1, port 0: this machine has no such address",
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
    "a command of a group that nobody knows": (["sessions", "lst"], 2, "Did you mean 'list'?"),
    "a list of agents, misspelt": (["agents", "lst"], 2, "Did you mean 'list'?"),
    "an agent that nobody knows": (["agents", "install", "claud"], 2, "there is no known agent 'claud'; did you mean"),
    "an agent unlike any other": (["agents", "install", "zzz"], 2, "there is no known agent 'zzz'; known: claude,"),
    "an agent the host does not have": (["prompt", "x", "--agent", "nope"], 1, "'nope'; known: demo"),
    "a model the agent does not have": (["prompt", "x", "--model", "nope"], 1, "demo has no model 'nope'; known:"),
    "a directory of the system": (["chat", "--dir", "/etc"], 1, "it is a system directory"),
    "one more directory that is not there": (["chat", "--add-dir", "gone"], 2, "'gone' does not exist"),
    "one more directory for an old session": (
        ["chat", "--session", "QUIET", "--add-dir", "empty"],
        2,
        "in the chat, :add DIR adds a directory",
    ),
    "a session without a name": (["prompt", "x", "--session", ""], 2, "--session is empty; leave it out"),
    "resuming what did not fail": (["resume", "QUIET"], 1, "its last turn did not fail, or cannot be continued"),
    "resuming nothing": (["resume", "nowhere"], 1, "there is no session 'nowhere'"),
    "an empty title": (["sessions", "rename", "QUIET", ""], 1, "Error: a title must not be empty"),
    "a search for blanks": (["sessions", "search", "  "], 2, "give at least one word to look for"),
    "changes of a turn that is not there": (
        ["sessions", "diff", "QUIET", "--of", "turn", "--turn", "nope"],
        1,
        "there is no turn 'nope' in",
    ),
    "a deletion nobody can confirm": (["sessions", "dispose", "QUIET"], 2, "no terminal to ask at; --yes deletes"),
    "an import of nothing": (["sessions", "import", "gone.json"], 2, "'gone.json': No such file or directory"),
    "an import of something else": (["sessions", "import", "half.json"], 1, "half.json: not JSON"),
    "an address of the web": (
        ["prompt", "x", "--url", "http://127.0.0.1:1"],
        1,
        "expected ws://, wss:// or ws+unix://",
    ),
    "a port beyond the last": (["prompt", "x", "--url", "ws://127.0.0.1:99999"], 1, "the URL is malformed"),
    "a wrong token": (["prompt", "x", "--token", "wrong"], 1, "not let in: the token is wrong"),
    "a port in words": (["serve", "--port", "abc"], 2, "'abc' is not a valid whole number"),
    "two agents of one name": (
        ["serve", "--agent", "a=b", "--agent", "a=c", "--port", "0"],
        2,
        "--agent a is given twice",
    ),
    "a command that is empty": (["serve", "--agent", "a=", "--port", "0"], 1, "agent a: the command is empty"),
    "a configuration that is not there": (["serve", "--config", "gone.toml"], 1, "gone.toml: No such file"),
    "a configuration that is no TOML": (["serve", "--config", "bad.toml"], 1, "bad.toml: not valid TOML"),
    "a configuration with a typing error": (
        ["serve", "--config", "typo.toml"],
        1,
        "unknown key host.prt; did you mean port?",
    ),
    "a configuration with another type": (["config", "show", "--config", "types.toml"], 1, "host.port must be a whole"),
    "a root that is not there": (["serve", "--root", "gone"], 1, "is not a directory, so it cannot be a root"),
    "an option in the background": (["up", "--prot", "0"], 2, "No such option '--prot'"),
    "an option of a service": (["service", "install", "--", "--port", "abc"], 2, "'abc' is not a valid whole number"),
    "a log of nobody": (["logs", "--data-dir", "gone"], 1, "there is no log at gone/logs/host.log"),
    "a login nobody offers": (["login", "demo"], 1, "demo offers no way to log in"),
    "a server that is not there": (["mcp", "tools", "nope"], 1, "this session has no MCP server 'nope'"),
    "arguments that are no JSON": (
        ["mcp", "call", "time", "x", "words"],
        2,
        "not valid JSON: Expecting value",
    ),
    "a rule for nobody": (["rules", "add", "allow"], 2, "Missing option '--owner'"),
    "a rule that is not there": (["rules", "remove", "x"], 1, "there is no rule 'x'"),
    "trust in nothing": (["trust", "add", "gone"], 1, "there is no file, directory or item 'gone'"),
    "a device nobody has": (["devices", "revoke", "nope"], 1, "no devices have an id that begins with 'nope'"),
    "a time before all times": (["sessions", "list", "--since", "999999999999d"], 2, "is longer ago than there are"),
    "rules for a time before all times": (["data", "prune", "--older-than", "99999999999w"], 2, "is longer ago than"),
    "a timeout that is no number": (["prompt", "x", "--timeout", "nan"], 2, "--timeout nan is not a number of seconds"),
    "an agent without a name": (["prompt", "x", "--agent", ""], 2, "--agent is empty; leave it out for the usual one"),
    "a model without a name": (["chat", "--model", " "], 2, "--model is empty; leave it out for the usual one"),
    "an export to no name": (["sessions", "export", "QUIET", "--output", ""], 2, "--output is empty; leave it out"),
    "an export over a file": (["sessions", "export", "QUIET", "--output", "bad.toml"], 2, "bad.toml exists already"),
    "resuming nothing at all": (["resume", ""], 2, "which session? Give its id, or a part of its title"),
    "a tail of nothing at all": (["tail", " "], 2, "which session? Give its id, or a part of its title"),
    "a host named like a path": (["up", "--host-name", "../x"], 2, "'../x' cannot be a host's name"),
    "a service named like a path": (["service", "install", "--host-name", "a/b"], 2, "'a/b' cannot be a host's name"),
    "a list from a host named like a path": (
        ["sessions", "list", "--host-name", "/"],
        2,
        "'/' cannot be a host's name",
    ),
    "a page where nobody listens": (["open", "--url", "ws://127.0.0.1:1"], 1, "does not answer: nobody listens there"),
    "a thrown away session for later": (["prompt", "x", "--no-keep", "--no-wait"], 2, "--no-keep deletes the session"),
    "a message larger than any": (
        ["prompt", "x", "--file", "huge.txt"],
        1,
        "huge.txt has more than 8 MB, a host",
    ),
    "several files that are too much together": (
        ["prompt", "x", "--file", "large.txt", "--file", "large.txt"],
        1,
        "the message has 10 MB, a host takes 8",
    ),
    "a file without an end": (["prompt", "x", "--file", "/dev/zero"], 1, "/dev/zero has more than 8 MB"),
    "an import without an end": (["sessions", "import", "/dev/zero"], 1, "/dev/zero has more than 500 MB"),
    "a file that leads to itself": (["prompt", "x", "--file", "loop"], 2, "'loop' does not exist"),
    "undoing with nobody to ask": (["sessions", "undo", "QUIET", "--of", "moon"], 2, "'moon' is not one of"),
    "a phone that cannot reach us": (["pair"], 1, "or without TLS. To change that, write"),
}
"""What is typed, the exit code, and words of the one line. QUIET stands for a session in which nothing waits."""


@pytest.fixture(scope="module")
def places(host: HostProcess) -> Path:
    (host.home / "bytes.bin").write_bytes(b"\xff\xfe\x00")
    (host.home / "data/log.db").touch()  # As if this host kept anything.
    (host.home / "empty").mkdir()
    (host.home / "nothing.txt").write_text("\n")
    (host.home / "huge.txt").write_bytes(b"x" * 40_000_000)
    (host.home / "large.txt").write_bytes(b"x" * 5_000_000)
    (host.home / "loop").symlink_to("loop")
    (host.home / "half.json").write_text("{")
    (host.home / "bad.toml").write_text("x = [")
    (host.home / "typo.toml").write_text("[host]\nprt = 1\n")
    (host.home / "types.toml").write_text('[host]\nport = "x"\n')
    (host.home / "home.toml").write_text('[host]\ndata_dir = "~nobody9/x"\n')
    rule = 'decision = "deny"\nowner = "agent:x"\ntool = "t"\nworkspace = "~nobody9"\n'
    (host.home / "rule.toml").write_text(f"[[rules]]\n{rule}")
    (host.home / "cwd.toml").write_text('[agents.mine]\ncommand = "x"\ncwd = "~nobody9"\n')
    (host.home / "ftp.toml").write_text('[agents.mine]\nurl = "ftp://x"\n')
    (host.home / "both.toml").write_text('[agents.mine]\ncommand = "x"\nurl = "http://x"\n')
    (host.home / "first.toml").write_text('[host]\ndefault_directory = "/gone9"\n')
    return host.home


HOSTS = [name for name, (arguments, _, _) in WRONG.items() if arguments[0] in ("serve", "up")]
"""Those that would be a host, or start one, if they were right: each is a process of its own."""


@pytest.mark.parametrize("name", HOSTS)
async def test_a_host_that_cannot_start_says_so_in_one_clear_line(places: Path, name: str) -> None:
    arguments, code, words = WRONG[name]
    exited, output, errors = await finish_cli(arguments, places)
    assert exited == code, errors
    assert "Traceback" not in errors
    _check_one_line(output, errors, words)


@pytest.mark.parametrize("name", sorted(WRONG.keys() - HOSTS))
def test_a_wrong_input_is_answered_with_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, places: Path, name: str, quiet: str
) -> None:
    """In this process: a hundred processes would say the same a minute later."""
    arguments, code, words = WRONG[name]
    monkeypatch.chdir(places)
    for variable, value in environment(places).items():
        monkeypatch.setenv(variable, value)
    result = CliRunner().invoke(cli, [quiet if word == "QUIET" else word for word in arguments])
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    _check_one_line(result.stdout, result.stderr, words)


def _check_one_line(output: str, errors: str, words: str) -> None:
    said = [line for line in (errors + output).splitlines() if words in line]
    assert len(said) == 1, errors + output
    assert len([line for line in errors.splitlines() if line.startswith(("Error", "✗"))]) <= 1
    assert not errors.startswith("Error") or len(errors.splitlines()) == 1, errors


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def quiet(host: HostProcess) -> str:
    """The id of a session in which nothing waits."""
    _, _, errors = await finish_cli(["prompt", "nothing waits here", "--keep"], host.home)
    return errors.strip().rpartition("/")[2][:8]
