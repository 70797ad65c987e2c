"""How a tool call is read: which texts are files, which may be, and what links and odd spellings change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.tools.approvals import options_for
from ahpkit.tools.rules import Place, Rule, judge, path_pattern
from ahpkit.tools.subject import Subject, subject_of

HERE = Place(chat="chat:1", session="session:1", workspace="file:///code")


def read(tool_input: Any, **fields: Any) -> Subject:
    return subject_of("agent:x", "edit", json.dumps(tool_input), workspace="/code", home="/home/ann", **fields)


def decided(subject: Subject, **patterns: str) -> str:
    """What happens under `deny=PATTERN`, under `allow=PATTERN`, and with an allow for the whole tool otherwise."""
    about = {"owner": "agent:x", "tool": "edit", "scope": "everywhere", "place": None}
    rules = [
        Rule(id=decision, decision=decision, kind="path", pattern=pattern, **about)  # type: ignore[arg-type]  # Fields of any kind.
        for decision, pattern in patterns.items()
    ]
    if "allow" not in patterns:
        rules.append(Rule(id="tool", decision="allow", kind="tool", **about))  # type: ignore[arg-type]  # Fields of any kind.
    return judge(rules, subject, HERE).decision


@pytest.mark.parametrize(
    "tool_input",
    [
        {"path": "/code/src/a.py", "destination": "/etc/passwd"},
        {"path": "src/a.py", "output": "b.py"},
        {"path": "src/a.py", "edits": [{"file": "../b.py"}]},
        {"paths": ["src/a.py", "b.py"]},
        {"source": "src/a.py", "destination": "b.py"},
        {"path": "src/a.py", "cwd": "/elsewhere"},
        {"path": "~/src/a.py"},
        {"path": "src/a.py", "patch": "*** Update File: /etc/passwd"},
        {"path": "src/../b.py"},
        {"path": "src/%2e%2e/b.py"},
        {"path": "file:///code/b.py"},
        {"path": "src/a.py", "args": [f"/etc/{number}" for number in range(2000)]},
    ],
)
def test_an_allow_for_a_folder_is_no_allow_for_anything_else_that_a_call_names(tool_input: Any) -> None:
    assert decided(read(tool_input), allow="/code/src/**") == "ask"


@pytest.mark.parametrize(
    "tool_input",
    [
        {"path": "src/a.py", "content": "open('/etc/passwd')"},
        {"path": "/code/src/a.py", "edits": [{"oldText": "a/b", "newText": "c/d"}]},
        {"source": "src/a.py", "destination": "src/b.py"},
        {"uri": "file:///code/src/a%20b.py"},
        {"path": "src/a.py\0.txt", "timeout": 5},
    ],
)
def test_what_a_call_writes_is_not_what_it_touches(tool_input: Any) -> None:
    assert decided(read(tool_input), allow="/code/src/**") == "allow"


@pytest.mark.parametrize(
    "tool_input",
    [
        {"path": "secret/key"},
        {"path": "file:///code/secret/key"},
        {"uri": "file:///code/s%65cret/key"},
        {"path": "src//.././secret/key"},
        {"path": "src/%2E./secret%2fkey"},
        {"paths": ["src/a", "secret/key"]},
        {"source": "secret/key", "destination": "src/key"},
        {"edits": [{"path": "secret/key"}]},
        {"path": "secret/key\0"},
        {"path": "FILE:///code/secret/key"},
        {"path": " secret/key"},
        {"path": "src\\..\\secret\\key"},
    ],
)
def test_a_denied_file_is_found_however_it_is_written(tool_input: Any) -> None:
    assert decided(read(tool_input), deny="/code/secret/**") == "deny"


@pytest.mark.parametrize(
    "tool_input",
    [
        {"path": "secret"},
        {"path": "/code"},
        {"path": "SECRET/key"},
        {"path": "ſecret/key"},
        {"path": "src/a", "template": "secret/key"},
        {"path": "src/a", "target": "secret"},
        {"path": "src/a", "root": "."},
        {"path": "sec*/key"},
        {"path": "src", "pattern": "../sec*/key"},
        {"path": "{src,secret}/key"},
        {"path": "$PWD/secret/key"},
        {"path": "src/a", "command": "cat secret/key"},
        {"path": "file://elsewhere/code/src/a"},
        {"anything": 1},
    ],
)
def test_a_call_that_may_touch_a_denied_file_is_left_to_a_person(tool_input: Any) -> None:
    assert decided(read(tool_input), deny="/code/secret/**") == "ask"


@pytest.mark.parametrize("denied", ["/**/.env", "/code/**/*.key", "/code/src/*", "/code/*/b/c", "/code/src/**"])
def test_a_folder_in_which_denied_files_may_be_is_left_to_a_person(denied: str) -> None:
    folders = {"/code/src"}
    assert decided(read({"path": "src"}, is_folder=folders.__contains__), deny=denied) == "ask"
    assert decided(read({"path": "other/a", "in": "./src"}, is_folder=folders.__contains__), deny=denied) == "ask"
    assert decided(read({"path": "other/a.py"}, is_folder=folders.__contains__), deny=denied) == "allow"


def test_a_folder_beside_denied_files_is_not_asked_about() -> None:
    for denied in ("/code/secret/**", "/code/*.key"):
        assert decided(read({"path": "src"}, is_folder={"/code/src"}.__contains__), deny=denied) == "allow"


@pytest.mark.parametrize(
    "tool_input",
    [
        {"path": "src/a", "command": "rm -rf ~"},
        {"path": "src/a", "cmd": ["rm", "x"]},
        {"path": "src/a", "command": {"run": "rm"}},
        {"path": "src/{a,../../secret/key}"},
        {"path": "src/*/../../secret/key"},
    ],
)
def test_a_folder_is_not_allowed_or_offered_where_more_may_happen(tool_input: Any) -> None:
    subject = read(tool_input)
    assert decided(subject, allow="/code/src/**") == "ask"
    assert not [option for option in options_for(subject) if ":path:" in option["id"]]


def test_the_operation_of_an_editor_is_no_command_line() -> None:
    assert decided(read({"command": "view", "path": "src/a"}), allow="/code/src/**") == "allow"


def test_a_command_in_a_folder_that_a_link_leads_out_of_is_not_judged() -> None:
    def real(path: str) -> str:
        return path.replace("/code/door", "/etc")

    assert read({"command": "ls", "cwd": "src"}, real=real).command == "ls"
    assert read({"command": "ls", "cwd": "door"}, real=real).command is None


def test_an_input_with_one_name_twice_is_left_to_a_person() -> None:
    """Who runs the call may read the other one."""
    for twice in ('{"path": "/etc/passwd", "path": "src/a.py"}', '{"edits": [{"path": "/etc/x", "path": "src/a.py"}]}'):
        subject = subject_of("agent:x", "edit", twice, workspace="/code")
        assert decided(subject, allow="/code/src/**") == "ask"
        assert decided(subject, deny="/etc/**") == "ask"
    assert subject_of("agent:x", "shell", '{"command": "rm x", "command": "ls"}', workspace="/code").command is None


def test_home_is_where_a_tilde_may_lead() -> None:
    assert decided(read({"path": "~/.ssh/id"}), deny="/home/ann/.ssh/**") == "deny"


def test_links_are_followed_as_the_system_follows_them() -> None:
    """`link/..` is the folder above where the link leads, for a program that does not tidy the path first."""
    links = {"/code/src/link/../a": "/etc/a", "/code/src/door": "/etc/door"}

    def real(path: str) -> str:
        return links.get(path, path)

    assert decided(read({"path": "src/link/../a"}, real=real), allow="/code/src/**") == "ask"
    assert decided(read({"path": "src/door"}, real=real), allow="/code/src/**") == "ask"
    assert decided(read({"path": "src/door"}, real=real), deny="/etc/**") == "deny"
    assert decided(read({"path": "src/door"}, real=real), deny="/code/src/**") == "deny"
    assert decided(read({"path": "src/other"}, real=real), allow="/code/src/**") == "allow"


def test_names_that_are_no_files_make_no_offer_of_a_folder() -> None:
    assert read({"source": "UTC", "target": "Europe/Berlin", "time": "12:00"}).paths == ()
    assert read({"from": "EUR", "to": "USD"}).paths == ()
    assert read({"query": "a/b", "limit": 3}).paths == ()
    assert read({"source": "https://a.example/x", "destination": "b"}).paths == ()


@given(st.lists(st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1), min_size=2, max_size=4))
def test_an_offered_pattern_matches_the_file_it_was_made_from(parts: list[str]) -> None:
    subject = read({"path": "/" + "/".join(parts)})
    pattern = path_pattern(subject.touched)
    if pattern is not None and not subject.more:
        Rule(
            id="r", decision="allow", kind="path", owner="agent:x", tool="edit", pattern=pattern, scope="everywhere"
        ).check()
        assert decided(subject, allow=pattern) == "allow"


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_input_can_be_read(tool_input: Any) -> None:
    read(tool_input)


@pytest.mark.parametrize(
    "given",
    [
        {"path": "a/" * 200_000},
        {"paths": [*(f"a/{number}" for number in range(900)), "secret/x"]},
        {"text": ["x"] * 1_000, "path": "secret/x"},
    ],
    ids=["deep", "many", "late"],
)
def test_what_is_not_looked_at_is_for_a_person(given: Any) -> None:
    looked_up: list[str] = []

    def real(path: str) -> str:
        looked_up.append(path)
        return path

    subject = read(given, real=real)
    assert sum(path.count("/") for path in looked_up) < 1_000
    assert decided(subject, allow="/code/**") == "ask"
    assert decided(subject, deny="/code/secret/**") == "ask"
