"""Approval rules: decisions that a person made for many calls, and which rule applies to a call. Pure.

A rule is about a tool of one owner, and may be narrowed to commands with a prefix, or to paths. It holds in one chat,
one session, one workspace, or everywhere. Of all rules that match, any denial wins; the scope orders only the allows,
the narrowest first. Rules for one owner do not apply to another, even if tools have the same name; but a denial by the
name of an MCP server holds for every server of that name.

* A command prefix matches words, never characters, and never a command with shell operators in it. Where it denies,
  `/bin/rm` is `rm`; a program that runs others (`env`, `sudo`, a shell) may run what is denied, and so may any command
  that contains the denied words later (`uv run rm`), so a person decides.
* A path pattern allows a call only when every file of it matches, with all links followed; it denies when any does.
* What a server says about itself (`readOnlyHint`) decides nothing.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from ahpkit.tools.subject import Subject, fixed_part

Decision = Literal["allow", "deny"]
RuleKind = Literal["tool", "server", "command", "path"]
Scope = Literal["chat", "session", "workspace", "everywhere"]

SCOPES: tuple[Scope, ...] = ("chat", "session", "workspace", "everywhere")
KINDS: tuple[RuleKind, ...] = ("command", "path", "tool", "server")
"""The kinds of rules, the narrowest first, like `SCOPES`."""

_OPERATORS = re.compile(r"[;&|<>()$`\\*?\[\]{}~!#]|[^\S \t]|[\0-\x08\x0b-\x1f\x7f-\x9f]|^\s*\w+\+?=|(?:^|\s)=\S")
"""Characters with which a shell does more than run one program with these words. Among them are control characters,
spaces that only some shells take for a space, and `=rm`, which is `/bin/rm` for zsh."""

_LAUNCHERS = frozenset(
    {
        *("sh", "bash", "zsh", "dash", "ksh", "fish", "csh", "tcsh", "busybox", "toybox", "env", "xargs", "parallel"),
        *("sudo", "doas", "su", "runuser", "chroot", "nsenter", "unshare", "setpriv", "ssh", "nice", "ionice"),
        *("nohup", "setsid", "timeout", "stdbuf", "time", "watch", "strace", "exec", "command", "builtin", "eval"),
        *(
            "pkexec",
            "run0",
            "systemd-run",
            "fakeroot",
            "firejail",
            "bwrap",
            "proot",
            "flock",
            "chrt",
            "taskset",
            "numactl",
        ),
        *("prlimit", "setarch", "ltrace", "script", "unbuffer", "xvfb-run", "dbus-run-session", "entr", "npx", "uvx"),
        *("source", ".", "trap", "find", "if", "then", "while", "until", "do", "for", "case", "function", "coproc"),
        *("-", "noglob", "nocorrect", "repeat", "not", "and", "or", "begin", "foreach", "select", "caffeinate"),
    }
)
"""Programs and shell words that run the command that follows them. That command is not examined."""
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish", "csh", "tcsh", "busybox", "toybox", "eval"})
"""Programs that get a command line as one text."""
_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "kubectl"})
_INTERPRETERS = re.compile(r"(python|pypy|node|deno|bun|perl|ruby|php|lua|osascript|Rscript|[gmn]?awk)[\d.]*")
_RUN = frozenset({"run", "exec", "x", "dlx"})
"""Subcommands that run a program, such as `uv run`."""
_PLAIN_WORD = re.compile(r"[a-z][a-z0-9-]*")

_MAX_WORDS = 8_192
"""Characters of a command that is split into words. A person decides about a longer one."""

_MAX_TEXT = 4_096
"""Characters of each part of a rule."""

_MAX_FOLDERS = 32
"""Parts of a path pattern."""
_MAX_ANY = 4
"""Parts of a path pattern that are `**`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call is made."""

    chat: str
    session: str
    workspace: str

    def of(self, scope: Scope) -> str | None:
        return {"chat": self.chat, "session": self.session, "workspace": self.workspace}.get(scope)


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

    @property
    def meaning(self) -> tuple[object, ...]:
        """The meaning of the rule, without who made it. Of two rules with the same meaning, one is enough."""
        return self.decision, self.kind, self.owner, self.tool, self.pattern, self.scope, self.place

    def as_json(self) -> dict[str, Any]:
        names = {"created_at": "createdAt", "created_by": "createdBy"}
        return {names.get(key, key): value for key, value in asdict(self).items() if value not in (None, "")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rule:
        """Read a rule from JSON. Raises `ValueError` for a value that is not a rule."""
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

        Its kind follows from the keys that are given. Raises `ValueError` when they do not make a rule.
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
            decision=words.get("decision", ""),
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
        """Raise `ValueError` unless the rule makes sense."""
        texts: list[Any] = [self.owner, self.tool, self.pattern, self.place or ""]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("owner, tool, pattern and place of a rule are texts")
        if max(map(len, texts)) > _MAX_TEXT:
            raise ValueError(f"owner, tool, pattern and place of a rule have at most {_MAX_TEXT} characters each")
        if not re.fullmatch(r"host|(agent|client|mcp):.+", self.owner, re.DOTALL):
            raise ValueError("the owner is agent:NAME, client:NAME, mcp:SERVER or host")
        if self.kind == "server" and not self.owner.startswith("mcp:"):
            raise ValueError("only a rule about an MCP server may leave out the tool; name a tool")
        if self.decision not in ("allow", "deny") or self.kind not in KINDS or self.scope not in SCOPES:
            raise ValueError("decision, kind or scope has an unknown value")
        if (self.scope == "everywhere") != (self.place is None):
            raise ValueError("a rule names the place where it applies, unless it applies everywhere")
        if self.kind in ("command", "path") and not self.pattern.strip():
            raise ValueError(f"a {self.kind} rule needs a pattern")
        if self.kind == "path" and not _is_absolute(self.pattern):
            raise ValueError("a path pattern is absolute, such as /project/src/**, and has no . or .. in it")
        folders = self.pattern.split("/")
        if self.kind == "path" and (len(folders) > _MAX_FOLDERS or folders.count("**") > _MAX_ANY):
            raise ValueError(f"a path pattern has at most {_MAX_FOLDERS} folders, and ** at most {_MAX_ANY} times")
        if self.kind == "command" and words_of(self.pattern) is None:
            raise ValueError("a command prefix is a program and words, without shell operators")
        if self.kind != "server" and not self.tool:
            raise ValueError("the rule does not name a tool")

    def holds_in(self, place: Place) -> bool:
        return self.place == place.of(self.scope)

    def is_about(self, owner: str) -> bool:
        """Whether the rule is about the tools of an owner.

        A denial by the name of a server (`mcp:github`) holds wherever a server of that name is declared
        (`mcp:github@file:///…`), also in other letters (`GitHub`). An allow applies to one server only.
        """
        if self.decision == "allow" or not owner.startswith("mcp:"):
            return owner == self.owner
        denied, given = _letters(self.owner), _letters(owner)
        return given == denied or given.startswith(f"{denied}@")

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
    """The decision of the rules: allow or deny, with the rule that decided, or ask a person.

    `ask` with a rule: this denial may apply to the call, but that cannot be judged. `why`: a guard wants a person to
    decide, for this reason.
    """

    decision: Literal["allow", "deny", "ask"]
    rule: Rule | None = None
    why: str | None = None

    @property
    def needs_person(self) -> bool:
        """Whether a person must decide, even if by default nobody is asked or a setting would allow the call."""
        return self.decision == "ask" and (self.rule is not None or self.why is not None)


ASK = Ruling("ask")


def judge(rules: Iterable[Rule], subject: Subject, place: Place) -> Ruling:
    """Find the rule that decides. Any denial wins, then the allow with the narrowest scope, and among these the
    narrowest kind.

    A denial that cannot be judged leaves the call to a person: a command with operators may hide what is denied. The
    order in which rules were made does not matter.
    """
    held = [rule for rule in rules if rule.holds_in(place) and rule.is_about(subject.owner)]
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
    """Whether a rule is about this call. Its place was checked before."""
    if not rule.is_about(subject.owner):
        return False
    if rule.kind == "server":
        return subject.is_server
    if rule.tool != subject.tool:
        return False
    if rule.kind == "command":
        return _begins(rule, subject.command)
    if rule.kind == "path":
        return _denies_path(rule, subject) if rule.decision == "deny" else _allows_path(rule, subject)
    return True


def _allows_path(rule: Rule, subject: Subject) -> bool:
    """Whether the pattern matches every file that the call touches, and every text that may be a file."""
    files = [*subject.touched, *subject.perhaps]
    return bool(subject.touched) and not subject.more and all(path_matches(rule.pattern, path) for path in files)


def _denies_path(rule: Rule, subject: Subject) -> bool:
    """Whether the pattern matches any file of the call, by its name or by its real path."""
    return any(path_matches(rule.pattern, path) for path in subject.named)


def _unclear(rule: Rule, subject: Subject) -> bool:
    """Whether a denial of a command or a path may apply to this call, but that cannot be decided."""
    if rule.tool != subject.tool:
        return False
    if rule.kind == "command":
        words = words_of(subject.command) if subject.command is not None else None
        return words is None or _may_run(words, words_of(rule.pattern) or [""])
    return rule.kind == "path" and _may_touch(rule.pattern, subject)


def _may_run(words: Sequence[str], denied: Sequence[str]) -> bool:
    """Whether a command may run the denied words: through a program that runs others (`env rm`), as words or in a text
    that it is given (`uv run rm`, `tmux new 'rm x'`), with options in between (`git -C . push`), by another path, or in
    other letters (`RM`), which is the same file on some systems."""
    if posixpath.basename(words[0]).casefold() in _LAUNCHERS:
        return True
    pieces = [piece.casefold() for word in words for piece in word.split()]
    program, *others = (word.casefold() for word in denied)
    for number, piece in enumerate(pieces):
        name, rest = posixpath.basename(piece), iter(pieces[number + 1 :])
        if name in _SHELLS or (name == posixpath.basename(program) and all(word in rest for word in others)):
            return True
    return False


def _may_touch(pattern: str, subject: Subject) -> bool:
    """Whether a call may touch denied files: it names a folder above them, a name that differs only in case, a text
    that may be such a file, more files than were checked, or no file at all."""
    files, wanted = (*subject.named, *subject.perhaps), _letters(pattern)
    base = f"{fixed_part(wanted)}/"
    above = any(base.startswith(f"{_letters(path).rstrip('/')}/") for path in files)
    alike = any(path_matches(wanted, _letters(path)) for path in files)
    inside = any(_may_match_below(wanted, _letters(folder)) for folder in subject.folders)
    return not subject.named or subject.more or above or alike or inside


def _letters(path: str) -> str:
    """A path or a name in a form that is the same for all spellings that some file system treats as one name."""
    return unicodedata.normalize("NFC", path).casefold()


def _may_match_below(pattern: str, folder: str) -> bool:
    """Whether a pattern can match something inside a folder: the folder fits the beginning of the pattern."""
    wanted, given = _parts(pattern, folder)
    return any(
        _parts_match(wanted[:count], given) or (wanted[count] == "**" and _parts_match(wanted[: count + 1], given))
        for count in range(1, len(wanted))
    )


def _is_absolute(pattern: str) -> bool:
    return pattern.startswith("/") and not {".", ".."} & set(pattern.split("/")) and "//" not in pattern


def _begins(rule: Rule, command: str | None) -> bool:
    wanted, given = words_of(rule.pattern), words_of(command) if command is not None else None
    if not wanted or given is None:
        return False
    if rule.decision == "deny" and "/" not in wanted[0]:  # A denial of `rm` includes `/bin/rm`.
        given = [posixpath.basename(given[0]), *given[1:]]
    return given[: len(wanted)] == wanted


def words_of(command: str) -> list[str] | None:
    """A command as words; None if a shell would do more with it than run a program."""
    if len(command) > _MAX_WORDS or _OPERATORS.search(command):
        return None
    try:
        return shlex.split(command) or None
    except ValueError:
        return None


def path_matches(pattern: str, path: str) -> bool:
    """A glob: `*` stays inside one folder, `**` is any number of folders. `/project/src/**` matches everything below
    that folder."""
    return _parts_match(*_parts(pattern, path))


def _parts(pattern: str, path: str) -> tuple[list[str], list[str]]:
    return pattern.rstrip("/").split("/"), posixpath.normpath(path).rstrip("/").split("/")


def _parts_match(wanted: Sequence[str], given: Sequence[str]) -> bool:
    """`reached`: how many parts of the path the pattern can have used up so far."""
    reached = {0}
    for number, part in enumerate(wanted):
        if part == "**":
            more = 1 if number == len(wanted) - 1 else 0  # `**` at the end stands for at least one part.
            reached = set(range(min(reached, default=len(given)) + more, len(given) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(given) and fnmatch.fnmatchcase(given[at], part)}
        if not reached:
            return False
    return len(given) in reached


# -- what to offer ----------------------------------------------------------------------------------------------


def command_prefix(command: str | None) -> str | None:
    """The prefix to offer for a command: the program, and the subcommand where there is one. For a program that runs
    others (`uv run`, `python`), the prefix includes what it runs now. None where the prefix would allow anything (`sudo
    …`).
    """
    words = words_of(command) if command is not None else None
    if not words or posixpath.basename(words[0]) in _LAUNCHERS:
        return None
    program, first, second = posixpath.basename(words[0]), *(*words[1:3], "", "")[:2]
    if first in _RUN or (first == "-m" and _INTERPRETERS.fullmatch(program)):
        is_named = _PLAIN_WORD.fullmatch(second) and second not in _LAUNCHERS and not _INTERPRETERS.fullmatch(second)
        return shlex.join(words[:3]) if is_named and program not in _CONTAINERS else None
    if _INTERPRETERS.fullmatch(program):
        return None if first.startswith("-") or not first else shlex.join(words[:2])
    return shlex.join(words[: 2 if _PLAIN_WORD.fullmatch(first) else 1])


def path_pattern(paths: Sequence[str]) -> str | None:
    """The pattern to offer for files: their common folder and below."""
    if not paths:
        return None
    folder = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    return None if folder in ("", "/") else re.sub(r"([*?[])", r"[\1]", folder) + "/**"


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
    "command_prefix",
    "judge",
    "matches",
    "path_matches",
    "path_pattern",
    "words_of",
]
