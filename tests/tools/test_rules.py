"""Approval rules: what matches, what wins, and what never leaks."""

from __future__ import annotations

import json
import shlex
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ahpkit.tools.rules import (
    KINDS,
    SCOPES,
    Place,
    Rule,
    Ruling,
    Scope,
    command_prefix,
    judge,
    matches,
    path_matches,
    path_pattern,
    words_of,
)
from ahpkit.tools.subject import Subject, subject_of

HERE = Place(chat="chat:1", session="session:1", workspace="file:///code")
SHELL = Subject(owner="agent:x", tool="shell", command="git status")


def rule(decision: str = "allow", kind: str = "tool", scope: Scope = "session", **fields: str) -> Rule:
    given_ = {"id": "r", "owner": "agent:x", "tool": "shell", **fields}
    place = given_.pop("place", HERE.of(scope))
    return Rule(decision=decision, kind=kind, scope=scope, place=place, **given_)  # type: ignore[arg-type]  # Fields of any kind.


def test_without_rules_a_person_is_asked() -> None:
    assert judge([], SHELL, HERE).decision == "ask"


@pytest.mark.parametrize("scope", SCOPES)
def test_an_allow_holds_in_its_own_place_only(scope: Scope) -> None:
    known = rule(scope=scope)
    assert judge([known], SHELL, HERE).rule is known
    other = Place(chat="chat:2", session="session:2", workspace="file:///other")
    assert judge([known], SHELL, other).decision == ("allow" if scope == "everywhere" else "ask")


def test_one_chats_rule_says_nothing_in_another_chat_of_the_session() -> None:
    other = Place(chat="chat:2", session=HERE.session, workspace=HERE.workspace)
    assert judge([rule(scope="chat")], SHELL, other).decision == "ask"


@given(st.permutations([rule(scope=scope) for scope in SCOPES]), st.sampled_from(SCOPES))
def test_any_denial_wins_whatever_its_scope_and_place_in_the_list(allows: list[Rule], scope: Scope) -> None:
    denial = rule("deny", scope=scope)
    for position in range(len(allows) + 1):
        assert judge([*allows[:position], denial, *allows[position:]], SHELL, HERE).rule is denial


@given(st.permutations([rule(scope=scope) for scope in SCOPES]))
def test_the_narrowest_allow_is_the_one_that_decided(allows: list[Rule]) -> None:
    ruling = judge(allows, SHELL, HERE)
    assert ruling.rule is not None
    assert ruling.rule.scope == "chat"


def test_a_rule_is_about_one_owner() -> None:
    stranger = Subject(owner="mcp:other", tool="shell", command="git status")
    assert judge([rule()], stranger, HERE).decision == "ask"


@pytest.mark.parametrize(("kind", "tool"), [("server", ""), ("tool", "delete")])
def test_a_denial_by_a_servers_name_holds_wherever_it_is_declared_and_an_allow_does_not(kind: str, tool: str) -> None:
    here, named_alike = "mcp:github@file:///code/.mcp.json", "mcp:github2"
    in_other_letters = "mcp:GitHub@file:///code/.mcp.json"
    for owner, denied in ((here, "deny"), ("mcp:github", "deny"), (in_other_letters, "deny"), (named_alike, "ask")):
        subject = Subject(owner=owner, tool="delete", is_server=True)
        rules = [rule("deny", kind, owner="mcp:github", tool=tool), rule(kind="server", owner=owner, tool="")]
        assert judge(rules[:1], subject, HERE).decision == denied
        assert judge(rules, subject, HERE).decision == ("allow" if denied == "ask" else "deny")
    elsewhere = Subject(owner=here, tool="delete", is_server=True)
    assert judge([rule("allow", kind, owner="mcp:github", tool=tool)], elsewhere, HERE).decision == "ask"


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("git status", True),
        ("git status --short", True),
        ("git", False),
        ("git statusx", False),
        ("git stash", False),
        ("gitx status", False),
        ("git status; rm -rf /", False),
        ("git status && rm x", False),
        ("git status | sh", False),
        ("git status > /etc/passwd", False),
        ("git status $(rm x)", False),
        ("git status `rm x`", False),
        ("git status\nrm x", False),
        ("git status &", False),
        ("PAGER=evil git status", False),
        ("git status 'unbalanced", False),
        ("env git status", False),
        ("git status *", False),
        ("git\u00a0status", False),
        ("git status \x0brm x", False),
        ("git status \u2028rm x", False),
        ("git status \x85rm x", False),
        ("git status \x1b[2K", False),
    ],
)
def test_a_command_prefix(command: str, allowed: bool) -> None:
    subject = Subject(owner="agent:x", tool="shell", command=command)
    decision = judge([rule(kind="command", pattern="git status")], subject, HERE).decision
    assert decision == ("allow" if allowed else "ask")


@given(st.text(max_size=20), st.sampled_from(list(";&|<>()$`\\*?[]{}~!#\n\r")), st.text(max_size=20))
def test_no_prefix_matches_a_command_with_an_operator(before: str, operator: str, after: str) -> None:
    subject = Subject(owner="agent:x", tool="shell", command=f"git status {before}{operator}{after}")
    assert judge([rule(kind="command", pattern="git status")], subject, HERE).decision == "ask"


@given(st.lists(st.from_regex(r"[a-z][a-z0-9./-]{0,8}", fullmatch=True), min_size=1, max_size=5))
def test_an_offered_prefix_matches_the_command_it_was_made_from(words: list[str]) -> None:
    command = shlex.join(words)
    prefix = command_prefix(command)
    assume(prefix is not None)  # Programs that run others.
    assert prefix is not None
    subject = Subject(owner="agent:x", tool="shell", command=command)
    assert judge([rule(kind="command", pattern=prefix)], subject, HERE).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *("bash -c ls", "sudo ls", "/usr/bin/env ls", "timeout 5 ls", "find . -name x", "noglob ls", "- ls", "=ls"),
        *(
            "docker exec box ls",
            "uv run bash -c ls",
            "uv run python x.py",
            "npm exec",
            "python -c pass",
            "python",
            "node -",
        ),
        "python -m ./x",
    ],
)
def test_no_prefix_is_offered_for_a_program_that_runs_others(command: str) -> None:
    assert command_prefix(command) is None


@pytest.mark.parametrize(
    ("command", "prefix"),
    [
        ("git status --short", "git status"),
        ("ls -l", "ls"),
        ("npm run test -- -x", "npm run test"),
        ("uv run pytest -q", "uv run pytest"),
        ("python manage.py migrate", "python manage.py"),
        ("python3.12 -m pytest -q", "python3.12 -m pytest"),
        ("node 'a b.js' x", "node 'a b.js'"),
    ],
)
def test_an_offered_prefix_names_what_runs(command: str, prefix: str) -> None:
    assert command_prefix(command) == prefix


def test_a_denied_command_cannot_hide_behind_an_operator() -> None:
    rules = [rule(scope="everywhere"), rule("deny", kind="command", pattern="rm")]
    assert judge(rules, SHELL, HERE).decision == "allow"
    hidden = Subject(owner="agent:x", tool="shell", command="ls; rm -rf /")
    assert judge(rules, hidden, HERE).decision == "ask"
    unreadable = Subject(owner="agent:x", tool="shell", command=None)
    assert judge(rules, unreadable, HERE).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("/bin/rm x", "./rm x", "'rm' x", "r''m x", "\trm x"),
    ],
)
def test_a_denied_program_is_the_same_by_another_path(command: str) -> None:
    rules = [rule(scope="everywhere"), rule("deny", kind="command", pattern="rm")]
    assert judge(rules, Subject(owner="agent:x", tool="shell", command=command), HERE).decision == "deny"


@pytest.mark.parametrize(
    ("denied", "command"),
    [
        *(("rm", f"{launcher} rm x") for launcher in ("env", "sudo", "/usr/bin/env", "nice -n 5", "xargs", "exec")),
        *(("rm", f"{launcher} rm x") for launcher in ("time", "timeout 5", "command", "eval", "busybox", "if")),
        *(("rm", f"{launcher} rm x") for launcher in ("pkexec", "flock lock", "systemd-run", "npx", "taskset 1")),
        ("rm", "script -c 'rm x'"),
        ("rm", "RM x"),
        ("rm", "/bin/Rm x"),
        ("rm", "rm\u00a0x"),
        ("rm", "bash -c 'rm x'"),
        ("rm", "A+=b rm x"),
        ("rm", "find . -delete"),
        ("git push", "git -C . push"),
        ("git push", "git --no-pager push origin"),
        *(("rm", f"{launcher} rm x") for launcher in ("uv run", "docker exec box", "- ", "noglob", "repeat 3", "not")),
        *(("rm", f"{other} rm x") for other in ("git", "git submodule foreach", "an-unknown-program", "echo")),
        *(("rm", command) for command in ("=rm x", "tmux new 'sleep 1 rm x'", "docker exec box bash -c \"r''m x\"")),
        ("git push", "uv run git -C . push"),
        *(("/bin/rm", command) for command in ("rm x", "/usr/bin/rm x", "../bin/rm x")),
    ],
)
def test_a_command_that_may_run_what_is_denied_is_left_to_a_person(denied: str, command: str) -> None:
    rules = [rule(scope="everywhere"), rule("deny", kind="command", pattern=denied)]
    assert judge(rules, Subject(owner="agent:x", tool="shell", command=command), HERE).decision == "ask"


@pytest.mark.parametrize(("denied", "command"), [("rm", "rmdir x"), ("git push", "git pull"), ("git push", "push")])
def test_a_denial_leaves_other_commands_alone(denied: str, command: str) -> None:
    rules = [rule(scope="everywhere"), rule("deny", kind="command", pattern=denied)]
    assert judge(rules, Subject(owner="agent:x", tool="shell", command=command), HERE).decision == "allow"


def test_an_allow_is_about_one_program() -> None:
    known = rule(kind="command", pattern="git status")
    assert judge([known], Subject(owner="agent:x", tool="shell", command="./git status"), HERE).decision == "ask"


def test_paths_allow_together_and_deny_alone() -> None:
    both = Subject(owner="agent:x", tool="edit", paths=("/code/src/a.py", "/etc/passwd"))
    one = Subject(owner="agent:x", tool="edit", paths=("/code/src/a.py",))
    allow = rule(kind="path", tool="edit", pattern="/code/src/**")
    deny = rule("deny", kind="path", tool="edit", pattern="/etc/**")
    assert judge([allow], one, HERE).decision == "allow"
    assert judge([allow], both, HERE).decision == "ask"
    assert judge([allow, deny], both, HERE).decision == "deny"
    assert judge([allow], Subject(owner="agent:x", tool="edit"), HERE).decision == "ask"


@pytest.mark.parametrize(
    ("pattern", "path", "matched"),
    [
        ("/code/**", "/code/a/b", True),
        ("/code/**", "/code/../etc/passwd", False),
        ("/code/**", "/codex/a", False),
        ("/code/*.py", "/code/a.py", True),
        ("/code/*.py", "/code/sub/a.py", False),
        ("/**", "/anything", True),
        ("/code/**/key", "/code/key", True),
        ("/code/**/key", "/code/a/b/key", True),
        ("/code/**/key", "/code/a/b/keys", False),
        ("/code/**/b/**", "/code/a/b/c", True),
        ("/code/**/b/**", "/code/a/b", False),
        ("/code/**", "/code", False),
        ("/code/a[1]/*", "/code/a1/x", True),
        ("/code/a[[]1]/**", "/code/a[1]/x", True),
    ],
)
def test_a_path_pattern_matches_whole_paths(pattern: str, path: str, matched: bool) -> None:
    assert path_matches(pattern, path) is matched


def test_a_server_rule_covers_its_tools_and_no_others() -> None:
    known = rule(kind="server", owner="mcp:time", tool="")
    assert judge([known], Subject(owner="mcp:time", tool="now", is_server=True), HERE).decision == "allow"
    assert judge([known], Subject(owner="mcp:files", tool="now", is_server=True), HERE).decision == "ask"


@pytest.mark.parametrize(
    ("tool_input", "command"),
    [
        ('{"command": "git status"}', "git status"),
        ('{"command": ["bash", "-lc", "git status && rm x"]}', "git status && rm x"),
        ('{"command": ["/bin/bash", "-c", "git status"]}', "git status"),
        ('{"command": ["./bash", "-c", "git status"]}', "./bash -c 'git status'"),
        ('{"command": ["git", "status"]}', "git status"),
        ('{"cmd": "ls", "workdir": "/code/sub", "justification": "because"}', "ls"),
        ('{"cmd": "ls", "workdir": "/etc"}', None),
        ('{"command": "ls", "cmd": "rm"}', None),
        ('{"command": "ls", "env": {"PATH": "/evil"}}', None),
        ('{"command": 5}', None),
        ("[1]", None),
        ("not json", None),
        ("", None),
    ],
)
def test_the_command_of_an_input_is_read_carefully(tool_input: str, command: str | None) -> None:
    assert subject_of("agent:x", "shell", tool_input, workspace="/code").command == command


def test_the_paths_of_an_input_are_absolute() -> None:
    subject = subject_of("a", "edit", json.dumps({"path": "src/../../etc/passwd"}), workspace="/code", paths=["b"])
    assert subject.paths == ("/etc/passwd", "/code/b")
    assert path_pattern(["/code/src/a", "/code/src/b/c"]) == "/code/src/**"
    assert path_pattern(["/a", "/b"]) is None


def test_rules_survive_being_written_down() -> None:
    for known in (rule(), rule("deny", kind="command", pattern="rm -rf"), rule(scope="everywhere")):
        assert Rule.from_json(json.loads(json.dumps(known.as_json()))) == known


@pytest.mark.parametrize(
    "bad",
    [
        {"decision": "maybe"},
        {"kind": "mood"},
        {"scope": "planet"},
        {"kind": "command", "pattern": " "},
        {"kind": "command", "pattern": "rm; ls"},
        {"kind": "path", "pattern": "src/**"},
        {"kind": "path", "pattern": "/code/../etc/**"},
        {"kind": "path", "pattern": "~/x"},
        {"place": None},
        {"tool": ""},
        {"surprise": 1},
    ],
)
def test_what_is_no_rule_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Rule.from_json({**rule().as_json(), **bad})


@given(st.text(max_size=50))
def test_words_never_fail(command: str) -> None:
    assert words_of(command) is None or words_of(command)


# -- which rule wins: the list in `docs/topics/approvals.md` -------------------------------------------------------

PATTERNS = {"command": ["git", "git status", "rm"], "path": ["/code/**", "/code/a.txt", "/etc/**"]}
PLACES = [HERE, Place(chat="chat:2", session="session:2", workspace="file:///other")]
CALLS = [
    SHELL,
    Subject(owner="agent:x", tool="shell", command="ls; rm a"),
    Subject(owner="agent:x", tool="edit", paths=("/code/a.txt",)),
    Subject(owner="agent:x", tool="edit", paths=("/code/a.txt", "/etc/passwd")),
    Subject(owner="agent:x", tool="edit"),
    Subject(owner="mcp:y", tool="edit", is_server=True, paths=("/code/b.txt",)),
    Subject(owner="client:z", tool="show"),
]


@st.composite
def any_rule(draw: st.DrawFn) -> Rule:
    kind = draw(st.sampled_from(KINDS))
    scope = draw(st.sampled_from(SCOPES))
    made = Rule(
        id=draw(st.uuids()).hex,
        decision=draw(st.sampled_from(["allow", "deny"])),
        kind=kind,
        owner="mcp:y" if kind == "server" else draw(st.sampled_from(["agent:x", "mcp:y", "client:z"])),
        tool="" if kind == "server" else draw(st.sampled_from(["shell", "edit", "show"])),
        pattern=draw(st.sampled_from(PATTERNS.get(kind, [""]))),
        scope=scope,
        place=draw(st.sampled_from(PLACES)).of(scope),
    )
    made.check()
    return made


def is_hidden(denial: Rule, call: Subject) -> bool:
    """Whether nobody can tell if a denial is about a call."""
    same = (denial.owner, denial.tool) == (call.owner, call.tool)
    readable = {"command": call.command is not None and ";" not in call.command, "path": bool(call.paths)}
    return same and not readable.get(denial.kind, True)


@given(st.lists(any_rule(), max_size=8), st.sampled_from(CALLS), st.randoms())
def test_the_order_of_rules(rules: list[Rule], call: Subject, chance: Random) -> None:
    """A denial, then a denial of which nobody can tell, then the narrowest scope, then the narrowest kind, then ask."""
    here = [rule for rule in rules if rule.holds_in(HERE)]
    denials = [rule for rule in here if rule.decision == "deny" and matches(rule, call)]
    hidden = [rule for rule in here if rule.decision == "deny" and is_hidden(rule, call)]
    allows = [rule for rule in here if rule.decision == "allow" and matches(rule, call)]
    ruling = judge(rules, call, HERE)
    if denials:
        assert (ruling.decision, ruling.rule in denials) == ("deny", True)
    elif hidden:
        assert (ruling.decision, ruling.rule in hidden) == ("ask", True)
    elif allows:
        assert (ruling.decision, ruling.rule in allows) == ("allow", True)
        assert _width(ruling.rule) == min(map(_width, allows))
    else:
        assert ruling == Ruling("ask")
    shuffled = list(rules)
    chance.shuffle(shuffled)
    again = judge(shuffled, call, HERE)
    assert (again.decision, _width(again.rule)) == (ruling.decision, _width(ruling.rule)) or denials or hidden
    assert again.decision == ruling.decision


def _width(rule: Rule | None) -> tuple[int, int]:
    return (
        (9, 9) if rule is None else (SCOPES.index(rule.scope), ("command", "path", "tool", "server").index(rule.kind))
    )


@given(st.lists(any_rule(), max_size=6), any_rule(), st.sampled_from(CALLS))
def test_one_more_denial_never_allows_and_one_more_allow_never_denies(
    rules: list[Rule], more: Rule, call: Subject
) -> None:
    ranks = {"deny": 0, "ask": 1, "allow": 2}
    before, after = ranks[judge(rules, call, HERE).decision], ranks[judge([*rules, more], call, HERE).decision]
    assert after <= before if more.decision == "deny" else after >= before


@given(st.lists(any_rule(), max_size=6), st.sampled_from(CALLS))
def test_rules_of_other_places_and_owners_change_nothing(rules: list[Rule], call: Subject) -> None:
    ours = [rule for rule in rules if rule.owner == call.owner and rule.place in (None, HERE.of(rule.scope))]
    assert judge(rules, call, HERE) == judge(ours, call, HERE)
