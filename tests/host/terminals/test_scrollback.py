"""What is forgotten of a terminal's output, and what is left."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from ahpkit.dialects.v0_4.terminal import terminal_reducer
from ahpkit.host.terminals.scrollback import Tail, forget_oldest, weight
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.terminal import TerminalContentPart


def fold(actions: list[JsonObject], content: list[JsonObject] | None = None) -> list[JsonObject]:
    state: JsonObject = {"title": "", "content": content or [], "claim": {}}
    for action in actions:
        state = terminal_reducer(state, action, now=0)
    return state["content"]


def text(content: list[JsonObject]) -> str:
    return "".join(str(part["output" if part["type"] == "command" else "value"]) for part in content)


def data(value: str) -> JsonObject:
    return {"type": "terminal/data", "data": value}


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
