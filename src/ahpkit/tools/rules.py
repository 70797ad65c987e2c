"""Approval rules: decisions that a person made for many calls, and which rule applies to a call. Pure.

A rule is about a tool of one owner, and may be narrowed to commands that begin in a way, or to paths. It holds in one
chat, one session, one workspace, or everywhere. Of all rules that match, any denial wins; the scope orders only the
allows, the narrowest first. Rules of one owner say nothing about another, also when both have the same name.

* A command prefix matches words, never characters, and never a command with shell operators in it.
* A path pattern allows a call only when every path of it matches; it denies when any does.
* What a server says about itself (`readOnlyHint`) decides nothing.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

Decision = Literal["allow", "deny"]
RuleKind = Literal["tool", "server", "command", "path"]
Scope = Literal["chat", "session", "workspace", "everywhere"]

SCOPES: tuple[Scope, ...] = ("chat", "session", "workspace", "everywhere")
KINDS: tuple[RuleKind, ...] = ("command", "path", "tool", "server")
"""The narrowest first, as `SCOPES`."""

_OPERATORS = re.compile(r"[;&|<>()$`\\*?\[\]{}~!#\n\r\0]|^\s*\w+=")
"""What makes a shell do something else than run one program with these words."""

_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})
_COMMAND_KEYS = ("command", "cmd")
_PATH_KEYS = ("path", "file_path", "filePath", "filepath", "notebook_path", "abs_path", "file")
_HARMLESS = frozenset(
    {"description", "justification", "timeout", "timeout_ms", "timeoutMs", "sandbox_permissions", "yield_time_ms"}
)
_FOLDER_KEYS = frozenset({"cwd", "workdir", "working_directory", "directory"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call is made."""

    chat: str
    session: str
    workspace: str

    def of(self, scope: Scope) -> str | None:
        return {"chat": self.chat, "session": self.session, "workspace": self.workspace}.get(scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a call is, as far as rules care."""

    owner: str
    """Who runs it, in a form that lasts: `agent:goose`, `client:Editor`, `mcp:<where it is declared>`, `host`."""
    tool: str
    is_server: bool = False
    """Its owner is an MCP server: a rule may be about all of its tools."""
    command: str | None = None
    """The command line that it would run, if it is one and nothing else."""
    paths: tuple[str, ...] = ()
    """Files that it names, absolute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`pattern` is a command prefix or a path pattern, else empty. `place` is the URI of the scope."""

    id: str
    decision: Decision
    kind: RuleKind
    owner: str
    tool: str = ""
    pattern: str = ""
    scope: Scope
    place: str | None = None
    created_at: int = 0
    created_by: str = ""

    def as_json(self) -> dict[str, Any]:
        names = {"created_at": "createdAt", "created_by": "createdBy"}
        return {names.get(key, key): value for key, value in asdict(self).items() if value not in (None, "")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rule:
        """Raises `ValueError` for something that is no rule."""
        names = {"createdAt": "created_at", "createdBy": "created_by"}
        fields = {names.get(key, key): value for key, value in data.items()}
        try:
            rule = cls(**fields)
        except TypeError:
            raise ValueError("a rule has id, decision, kind, owner and scope") from None
        rule.check()
        return rule

    @classmethod
    def made(cls, words: Mapping[str, Any], *, id: str) -> Rule:
        """A rule in the words of the configuration: `decision`, `owner`, and `tool`, `command`, `path`, `workspace`.

        What it is about follows from the words that are there. Raises `ValueError` for words that make no rule.
        """
        unknown = words.keys() - {"decision", "owner", "tool", "command", "path", "workspace"}
        if unknown:
            raise ValueError(f"a rule has no key {sorted(unknown)[0]!r}")
        if not all(isinstance(value, str) and value for value in words.values()):
            raise ValueError("every value of a rule is a text that is not empty")
        if "command" in words and "path" in words:
            raise ValueError("a rule is about a command or about a path, not both")
        kind = next((kind for kind in ("command", "path", "tool") if kind in words), "server")
        place = words.get("workspace")
        rule = cls(
            id=id,
            decision=words.get("decision", ""),  # type: ignore[arg-type]  # Checked below.
            kind=cast("RuleKind", kind),
            owner=words.get("owner", ""),
            tool=words.get("tool", ""),
            pattern=words.get("command") or words.get("path") or "",
            scope="everywhere" if place is None else "workspace",
            place=place,
        )
        rule.check()
        return rule

    def check(self) -> None:
        """Raise `ValueError` unless it makes sense."""
        texts: list[Any] = [self.owner, self.tool, self.pattern, self.place or ""]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("owner, tool, pattern and place of a rule are texts")
        if not re.fullmatch(r"host|(agent|client|mcp):.+", self.owner, re.DOTALL):
            raise ValueError("the owner is agent:NAME, client:NAME, mcp:SERVER or host")
        if self.kind == "server" and not self.owner.startswith("mcp:"):
            raise ValueError("a rule about everything of an owner is about an MCP server; name a tool")
        if self.decision not in ("allow", "deny") or self.kind not in KINDS or self.scope not in SCOPES:
            raise ValueError("decision, kind or scope is not a known word")
        if (self.scope == "everywhere") != (self.place is None):
            raise ValueError("a rule names the place where it applies, unless it applies everywhere")
        if self.kind in ("command", "path") and not self.pattern.strip():
            raise ValueError(f"a {self.kind} rule needs a pattern")
        if self.kind == "command" and words_of(self.pattern) is None:
            raise ValueError("a command prefix is a program and words, without shell operators")
        if self.kind != "server" and not self.tool:
            raise ValueError("the rule does not name a tool")

    def holds_in(self, place: Place) -> bool:
        return self.place == place.of(self.scope)

    def says(self) -> str:
        """The rule in words."""
        verb = "Always allow" if self.decision == "allow" else "Always deny"
        what = {
            "tool": self.tool,
            "server": f"all tools of {self.owner.removeprefix('mcp:')}",
            "command": f"`{self.pattern} …`",
            "path": f"{self.tool} in {self.pattern}",
        }[self.kind]
        return f"{verb} {what}{WHERE[self.scope]}"


WHERE: Mapping[Scope, str] = {
    "chat": " in this chat",
    "session": " in this session",
    "workspace": " in this workspace",
    "everywhere": " everywhere",
}


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rules say: allow or deny with the rule that decided, or ask a person.

    `ask` with a rule: this denial may be about the call, and nobody can tell. Then a person decides, also where nobody
    would be asked or a setting would allow.
    """

    decision: Literal["allow", "deny", "ask"]
    rule: Rule | None = None


ASK = Ruling("ask")


def judge(rules: Iterable[Rule], subject: Subject, place: Place) -> Ruling:
    """Any denial wins; then the allow with the narrowest scope, and of those the narrowest kind.

    A denial that cannot be judged leaves the call to a person: a command with operators may hide what is denied. The
    order in which rules were made says nothing.
    """
    held = [rule for rule in rules if rule.holds_in(place) and rule.owner == subject.owner]
    denials = [rule for rule in held if rule.decision == "deny"]
    for rule in denials:
        if matches(rule, subject):
            return Ruling("deny", rule)
    for rule in denials:
        if _unclear(rule, subject):
            return Ruling("ask", rule)
    allows = [rule for rule in held if rule.decision == "allow" and matches(rule, subject)]
    allows.sort(key=lambda rule: (SCOPES.index(rule.scope), KINDS.index(rule.kind)))
    return Ruling("allow", allows[0]) if allows else ASK


def matches(rule: Rule, subject: Subject) -> bool:
    """Whether a rule is about this call. Its place was looked at before."""
    if rule.owner != subject.owner:
        return False
    if rule.kind == "server":
        return subject.is_server
    if rule.tool != subject.tool:
        return False
    if rule.kind == "command":
        return _begins(rule.pattern, subject.command)
    if rule.kind == "path":
        found = [path_matches(rule.pattern, path) for path in subject.paths]
        return any(found) if rule.decision == "deny" else bool(found) and all(found)
    return True


def _unclear(rule: Rule, subject: Subject) -> bool:
    """A denial of a command or a path, and a call of that tool whose command or paths cannot be read."""
    if rule.tool != subject.tool:
        return False
    if rule.kind == "command":
        return subject.command is None or words_of(subject.command) is None
    return rule.kind == "path" and not subject.paths


def _begins(prefix: str, command: str | None) -> bool:
    wanted, given = words_of(prefix), words_of(command) if command is not None else None
    return bool(wanted) and given is not None and given[: len(wanted or ())] == wanted


def words_of(command: str) -> list[str] | None:
    """A command as words; None when a shell would do more with it than run a program."""
    if _OPERATORS.search(command):
        return None
    try:
        return shlex.split(command) or None
    except ValueError:
        return None


def path_matches(pattern: str, path: str) -> bool:
    """`/project/src/**` and below, or a glob in which `*` stays inside one folder."""
    path, pattern = posixpath.normpath(path), pattern.rstrip("/")
    if pattern.endswith("/**"):
        base = pattern.removesuffix("/**")
        return path.startswith(f"{base}/") if base else path.startswith("/")
    wanted, given = pattern.split("/"), path.split("/")
    return len(wanted) == len(given) and all(map(fnmatch.fnmatchcase, given, wanted))


# -- reading a call ------------------------------------------------------------------------------------------------


def subject_of(
    owner: str, tool: str, tool_input: str, *, workspace: str, is_server: bool = False, paths: Sequence[str] = ()
) -> Subject:
    """A call as a subject. `paths` are those that are known besides the input, such as the files of an edit."""
    given = _object(tool_input)
    found = [_absolute(value, workspace) for key in _PATH_KEYS if isinstance(value := given.get(key), str) and value]
    named = dict.fromkeys([*found, *(_absolute(path, workspace) for path in paths)])
    command = _command(given, workspace)
    return Subject(owner=owner, tool=tool, is_server=is_server, command=command, paths=tuple(named))


def _object(tool_input: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(tool_input) if tool_input else {}
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _command(given: Mapping[str, Any], workspace: str) -> str | None:
    """The one command line of an input that says nothing else of importance."""
    named = [key for key in _COMMAND_KEYS if key in given]
    others = given.keys() - set(named) - _HARMLESS
    folders = {key: given[key] for key in others & _FOLDER_KEYS}
    if len(named) != 1 or others - _FOLDER_KEYS:
        return None
    if any(not isinstance(folder, str) or not _inside(folder, workspace) for folder in folders.values()):
        return None
    return _line(given[named[0]])


def _line(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    words = cast("list[Any]", value) if isinstance(value, list) else []
    if not words or not all(isinstance(word, str) for word in words):
        return None
    if len(words) == 3 and posixpath.basename(words[0]) in _SHELLS and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


def _inside(path: str, workspace: str) -> bool:
    whole = _absolute(path, workspace)
    return whole == workspace or whole.startswith(f"{workspace.rstrip('/')}/")


def _absolute(path: str, workspace: str) -> str:
    return posixpath.normpath(posixpath.join(workspace, path))


def command_prefix(command: str | None) -> str | None:
    """The prefix to offer for a command: the program, and the subcommand where there is one."""
    words = words_of(command) if command is not None else None
    if not words:
        return None
    count = 2 if len(words) > 1 and re.fullmatch(r"[a-z][a-z0-9-]*", words[1]) else 1
    return shlex.join(words[:count])


def path_pattern(paths: Sequence[str]) -> str | None:
    """The pattern to offer for files: their common folder and below."""
    if not paths:
        return None
    folder = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    return None if folder in ("", "/") else f"{folder}/**"


__all__ = [
    "ASK",
    "KINDS",
    "SCOPES",
    "WHERE",
    "Decision",
    "Place",
    "Rule",
    "RuleKind",
    "Ruling",
    "Scope",
    "Subject",
    "command_prefix",
    "judge",
    "matches",
    "path_matches",
    "path_pattern",
    "subject_of",
    "words_of",
]
