"""What escape sequences in a terminal's output say, however the output is cut; and how much of it is kept."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.dialects.v0_4.terminal import terminal_reducer
from ahpkit.host.terminals.output import OutputReader, Tail, forget_oldest, plain, weight
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.terminal import TerminalAction, TerminalContentPart

AVAILABLE = {"type": "terminal/commandDetectionAvailable"}


def read(*pieces: str, now: int = 1000) -> list[TerminalAction]:
    reader = OutputReader()
    fed = [action for piece in pieces for action in reader.feed(piece, now=now)]
    return [*fed, *reader.finish(now=now)]


def data(text: str) -> JsonObject:
    return {"type": "terminal/data", "data": text}


def test_text_is_passed_on_with_its_colours() -> None:
    assert read("a \x1b[31mred\x1b[0m\r\n") == [data("a \x1b[31mred\x1b[0m\r\n")]
    assert read("") == []


@pytest.mark.parametrize("end", ["\x07", "\x1b\\"])
@pytest.mark.parametrize("kind", ["0", "2"])
def test_a_title_is_told_and_stays_in_the_text(kind: str, end: str) -> None:
    sequence = f"\x1b]{kind};vim: a;b{end}"
    assert read(f"x{sequence}y") == [data(f"x{sequence}y"), {"type": "terminal/titleChanged", "title": "vim: a;b"}]


def test_of_several_titles_the_last_counts_and_an_empty_one_never() -> None:
    titles = [action for action in read("\x1b]0;a\x07\x1b]0;b\x07\x1b]0;\x07") if "title" in action]
    assert titles == [{"type": "terminal/titleChanged", "title": "b"}]


def test_a_title_is_short_and_printable() -> None:
    titles = [action["title"] for action in read(f"\x1b]2;a\tb{'c' * 5000}\x07") if "title" in action]
    assert titles == ["ab" + "c" * 254]


@pytest.mark.parametrize(
    ("sequence", "cwd"),
    [
        ("\x1b]7;file://host/a/b%20c\x07", "file:///a/b%20c"),
        ("\x1b]7;file:///grüße\x07", "file:///gr%C3%BC%C3%9Fe"),
        ("\x1b]633;P;Cwd=/a\\x3bb\x07", "file:///a%3Bb"),
        ("\x1b]7;http://host/a\x07", None),
        ("\x1b]7;file://[\x07", None),
        ("\x1b]633;P;Cwd=relative\x07", None),
    ],
)
def test_the_directory_is_told_as_a_uri(sequence: str, cwd: str | None) -> None:
    assert [action["cwd"] for action in read(sequence) if "cwd" in action] == ([cwd] if cwd else [])


def test_a_command_is_told_apart_and_its_marks_are_taken_out() -> None:
    reader = OutputReader()
    prompt = "\x1b]633;A\x07$ \x1b]633;B\x07ls\r\n\x1b]633;E;ls -l \\x3b echo \\\\;nonce\x07\x1b]633;C\x07"
    assert reader.feed(prompt, now=1000) == [
        AVAILABLE,
        data("$ ls\r\n"),
        {
            "type": "terminal/commandExecuted",
            "commandId": "command-1",
            "commandLine": "ls -l ; echo \\",
            "timestamp": 1000,
        },
    ]
    assert reader.feed("file\r\n\x1b]633;D;2\x07", now=1250) == [
        data("file\r\n"),
        {"type": "terminal/commandFinished", "commandId": "command-1", "exitCode": 2, "durationMs": 250},
    ]
    assert reader.finish(now=2000) == []


def test_marks_of_other_shells_work_without_a_command_line() -> None:
    actions = read("\x1b]133;C\x1b\\out\x1b]133;D\x1b\\", now=5)
    assert actions == [
        AVAILABLE,
        {"type": "terminal/commandExecuted", "commandId": "command-1", "commandLine": "", "timestamp": 5},
        data("out"),
        {"type": "terminal/commandFinished", "commandId": "command-1", "durationMs": 0},
    ]


def test_a_command_ends_with_the_next_one_and_with_the_terminal() -> None:
    kinds = [action["type"].partition("/")[2] for action in read("\x1b]133;C\x07\x1b]133;C\x07out")]
    assert kinds == [
        "commandDetectionAvailable",
        "commandExecuted",
        "commandFinished",
        "commandExecuted",
        "data",
        "commandFinished",
    ]


def test_an_end_without_a_beginning_or_with_an_odd_code_is_harmless() -> None:
    assert read("\x1b]133;D;1\x07") == [AVAILABLE]
    assert "exitCode" not in read("\x1b]133;C\x07\x1b]133;D;x\x07")[-1]


def test_a_sequence_is_kept_back_until_it_is_whole() -> None:
    reader = OutputReader()
    assert reader.feed("a\x1b[3", now=0) == [data("a")]
    assert reader.feed("1mb\x1b", now=0) == [data("\x1b[31mb")]
    assert reader.feed("]0;t\x1b", now=0) == []
    assert reader.feed("\\", now=0)[0] == data("\x1b]0;t\x1b\\")


def test_a_sequence_that_does_not_end_is_not_kept_forever() -> None:
    reader = OutputReader()
    assert reader.feed("\x1b]1337;" + "x" * 5000, now=0) == [data("\x1b]1337;" + "x" * 5000)]
    assert reader.feed("a\x1b]0;half", now=0) == [data("a")]
    assert reader.finish(now=0) == [data("\x1b]0;half")]


PIECES = st.sampled_from(
    [
        *("text", "\r\n", "ü", "\\", ";", "\x07", "\x1b", "\x1b]", "\x1b(B", "\x1b[1;31m", "\x1b]2;x"),
        *("\x1b]0;T\x07", "\x1b]7;file:///d\x1b\\", "\x1b]633;E;ls\x07", "\x1b]133;C\x07", "\x1b]133;D;1\x07"),
    ]
)


@given(st.lists(PIECES, max_size=20).map("".join), st.data())
def test_the_terminal_is_the_same_however_its_output_was_cut(text: str, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
    assert shown(read(*pieces)) == shown(read(text))


def shown(actions: list[TerminalAction]) -> JsonObject:
    state: JsonObject = {"title": "", "content": [], "claim": {"kind": "client", "clientId": "c"}}
    for action in actions:
        state = terminal_reducer(state, cast("JsonObject", action), now=0)
    return state


@given(st.lists(PIECES | st.text(), max_size=30).map("".join))
def test_no_output_is_too_strange(text: str) -> None:
    assert all(action["type"].startswith("terminal/") for action in read(text))
    plain(text)


def test_plain_text_is_what_a_pipe_would_carry() -> None:
    coloured = "\x1b]0;t\x07\x1b[1;32mok\x1b[0m\r\n\x1b(B50%\r100%\r\n\x1b[?25h\x1b=done"
    assert plain(coloured) == "ok\n50%\r100%\ndone"


def fold(actions: list[JsonObject], content: list[JsonObject] | None = None) -> list[JsonObject]:
    state: JsonObject = {"title": "", "content": content or [], "claim": {}}
    for action in actions:
        state = terminal_reducer(state, action, now=0)
    return state["content"]


def text(content: list[JsonObject]) -> str:
    return "".join(str(part["output" if part["type"] == "command" else "value"]) for part in content)


def begin(id: str) -> JsonObject:
    return {"type": "terminal/commandExecuted", "commandId": id, "commandLine": f"run {id}", "timestamp": 7}


def finish(id: str) -> JsonObject:
    return {"type": "terminal/commandFinished", "commandId": id, "exitCode": 1, "durationMs": 3}


def forgotten(content: list[JsonObject], keep: int) -> list[JsonObject]:
    return fold([{**action} for action in forget_oldest(parts(content), keep=keep)], content)


def parts(content: list[JsonObject]) -> list[TerminalContentPart]:
    return cast("list[TerminalContentPart]", content)


def test_the_end_of_the_text_is_left() -> None:
    assert forgotten(fold([data("abcdef")]), 2) == [{"type": "unclassified", "value": "ef"}]


def test_what_is_left_begins_with_a_whole_line_if_one_begins_soon() -> None:
    lines = "".join(f"\x1b[3{number % 8}mline {number}\r\n" for number in range(100))
    left = text(forgotten(fold([data(lines)]), 300))
    assert lines.endswith(left)
    assert left.startswith("\x1b[3")
    assert 250 < len(left) <= 300


def test_the_running_command_runs_on() -> None:
    content = fold([data("$ "), begin("a"), data("x" * 50)])
    left = forgotten(content, 10)
    assert left == [{**content[-1], "output": "x" * 10}]
    assert fold([data("y"), finish("a")], left)[0]["output"] == "x" * 10 + "y"


def test_finished_commands_that_fit_are_left_as_they_were() -> None:
    content = fold([begin("a"), data("old"), finish("a"), data("$ "), begin("b"), data("new"), finish("b"), data("$ ")])
    left = forgotten(content, 150)
    assert left == content[-3:]


def test_a_full_screen_program_keeps_its_screen() -> None:
    content = fold([data("shell\x1b[?1049l \x1b[?1049h" + "x" * 100)])
    assert text(forgotten(content, 10)) == "\x1b[?1049h" + "x" * 10
    content = fold([data("\x1b[?1049h editor \x1b[?1049l" + "x" * 100)])
    assert text(forgotten(content, 10)) == "x" * 10


def test_an_empty_terminal_stays_empty() -> None:
    assert forget_oldest([]) == [{"type": "terminal/cleared"}]


STEPS = st.lists(st.sampled_from(["data", "begin", "finish"]), max_size=30)


@given(STEPS, st.integers(0, 400))
def test_what_is_left_is_an_end_of_what_was_there(steps: list[str], keep: int) -> None:
    actions: list[JsonObject] = []
    running = 0
    for number, step in enumerate(steps):
        actions += [data(f"<{number}>" * 5)] if step == "data" else []
        if step == "begin":
            running = number
            actions += [begin(str(number))]
        if step == "finish":
            actions += [finish(str(running))]
    content = fold(actions)
    left = forgotten(content, keep)
    assert text(content).endswith(text(left))
    assert len(text(left)) <= keep
    ids = [part.get("commandId") for part in content]
    assert [part.get("commandId") for part in left] == ids[len(ids) - len(left) :]
    assert sum(map(weight, forget_oldest(parts(content), keep=keep))) <= keep + 2 * (64 + 10)


def test_a_tail_keeps_the_last_bytes_and_says_that_it_does() -> None:
    tail = Tail(10)
    assert tail.read() == ("", False)
    tail.add("0123456789")
    assert tail.read() == ("0123456789", False)
    for _ in range(100):
        tail.add("abc")
    assert tail.read() == ("cabcabcabc", True)


def test_a_tail_is_plain_text_and_counts_its_bytes() -> None:
    tail = Tail(6)
    tail.add("\x1b[31m\x1b[1m\x1b[0mab\r")
    tail.add("\ncd")
    assert tail.read() == ("ab\ncd", False)
    tail.add("üü")
    assert tail.read() == ("cdüü", True)
    tail.add("x")
    assert tail.read() == ("düüx", True)
    tail.add("yz")
    assert tail.read() == ("üxyz", True)


def test_a_tail_of_nothing_keeps_nothing() -> None:
    tail = Tail(0)
    tail.add("abc")
    assert tail.read() == ("", True)
