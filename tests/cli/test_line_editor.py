"""Editing a line, without a terminal."""

from __future__ import annotations

import pytest

from ahpkit.cli.line_editor import Key, Keys, Layout, LineEditor, Paste, lay_out


def typed(*keys: str) -> LineEditor:
    """An editor after those keys; a text of several characters that is no name is typed letter by letter."""
    editor = LineEditor()
    press(editor, *keys)
    return editor


def press(editor: LineEditor, *keys: str) -> None:
    names = {"left", "right", "home", "end", "word-left", "word-right", "up", "down", "delete"}
    for key in keys:
        for one in [key] if key in names else key:
            assert editor.press(one) is None


@pytest.mark.parametrize(
    ("keys", "before", "after"),
    [
        (["abc"], "abc", ""),
        (["abc", "left", "x"], "abx", "c"),
        (["abc", "\x02\x02\x06"], "ab", "c"),
        (["abc", "home", "x"], "x", "abc"),
        (["abc", "\x01", "end", "x"], "abcx", ""),
        (["abc", "\x7f"], "ab", ""),
        (["\x7f"], "", ""),
        (["abc", "left", "\x08"], "a", "c"),
        (["abc", "home", "delete"], "", "bc"),
        (["abc", "home", "\x04"], "", "bc"),
        (["abc", "left", "left", "\x15"], "", "bc"),
        (["abc", "left", "left", "\x0b"], "a", ""),
        (["one two  ", "\x17"], "one ", ""),
        (["one two", "word-left"], "one ", "two"),
        (["one two", "home", "word-right"], "one", " two"),
        (["one two", "home", "word-right", "word-right"], "one two", ""),
        (["left", "right", "word-left", "word-right", "up", "down"], "", ""),
        (["a\tb"], "a b", ""),
        (["a\x00\x07b"], "ab", ""),
    ],
)
def test_keys_do_what_they_do_in_every_shell(keys: list[str], before: str, after: str) -> None:
    editor = typed(*keys)
    assert (editor.before, editor.after) == (before, after)


def test_enter_ends_the_line_and_keeps_it() -> None:
    editor = typed("hello", "left")
    assert editor.press("\r") == "enter"
    assert editor.text == "hello"


def test_ctrl_d_ends_the_input_only_on_an_empty_line() -> None:
    assert typed().press("\x04") == "end"
    assert typed("a").press("\x04") is None


def test_a_paste_is_inserted_with_its_lines_and_without_the_last_end() -> None:
    editor = typed("ac", "left")
    editor.press(Paste("1\n2\n\n"))
    assert editor.text == "a1\n2c"


def test_older_lines_come_back_and_the_new_one_is_kept() -> None:
    editor = typed()
    for line in ("first", "second"):
        editor.remember(line)
    press(editor, "draft", "up")
    assert editor.text == "second"
    press(editor, "up", "up")
    assert editor.text == "first"
    press(editor, "down", "down", "down")
    assert editor.text == "draft"


def test_blank_and_repeated_lines_are_not_remembered() -> None:
    editor = typed()
    for line in ("same", "same", " ", ""):
        editor.remember(line)
    assert editor.history == ["same"]


def test_after_clear_the_history_begins_at_its_end_again() -> None:
    editor = typed()
    editor.remember("old")
    press(editor, "up")
    editor.clear()
    assert editor.text == ""
    press(editor, "up")
    assert editor.text == "old"


@pytest.mark.parametrize(
    ("keys", "cursor", "end"),
    [
        ([], (0, 2), (0, 2)),
        (["abc"], (0, 5), (0, 5)),
        (["abcdefgh"], (1, 0), (1, 0)),
        (["abcdefghi", "home"], (0, 2), (1, 1)),
        (["日本", "left"], (0, 4), (0, 6)),
        (["abcdefg日"], (1, 2), (1, 2)),
        (["e\u0301"], (0, 3), (0, 3)),
    ],
)
def test_rows_and_columns_are_those_of_the_screen(
    keys: list[str], cursor: tuple[int, int], end: tuple[int, int]
) -> None:
    layout = lay_out("> ", typed(*keys), 10)
    assert (layout.cursor, layout.end) == (cursor, end)


def test_line_ends_and_controls_are_shown_as_signs() -> None:
    editor = typed()
    editor.press(Paste("a\nb\x1b"))
    assert lay_out("> ", editor, 80) == Layout("> a⏎b␛", (0, 6), (0, 6))


def keys(data: bytes) -> list[Key]:
    return Keys().feed(data, 0)


def test_characters_are_keys() -> None:
    assert keys("aü→\x03\x7f\r".encode()) == ["a", "ü", "→", "\x03", "\x7f", "\r"]


@pytest.mark.parametrize(
    ("sequence", "name"),
    [
        (b"\x1b[A", "up"),
        (b"\x1bOB", "down"),
        (b"\x1b[C", "right"),
        (b"\x1b[D", "left"),
        (b"\x1b[H", "home"),
        (b"\x1b[4~", "end"),
        (b"\x1b[3~", "delete"),
        (b"\x1b[1;5D", "word-left"),
        (b"\x1bf", "word-right"),
        (b"\x1b\x1b[A", "up"),
    ],
)
def test_sequences_have_names(sequence: bytes, name: str) -> None:
    assert keys(b"a" + sequence + b"b") == ["a", name, "b"]


@pytest.mark.parametrize("sequence", [b"\x1b[15~", b"\x1b[1;2P", b"\x1b[?1;2c", b"\x1bx", b"\x1b[200", b"\x1b\x1b"])
def test_sequences_nobody_knows_are_dropped(sequence: bytes) -> None:
    assert "a" not in keys(sequence)
    assert keys(sequence + b"~") in ([], ["~"])


@pytest.mark.parametrize("whole", [b"\x1b[1;5C", "ü".encode(), b"\x1b[200~a\x1b[Ab\x1b[201~", b"x\x1bOAy"])
def test_it_does_not_matter_where_reads_are_cut(whole: bytes) -> None:
    for cut in range(1, len(whole)):
        reader = Keys()
        assert [*reader.feed(whole[:cut], 0), *reader.feed(whole[cut:], 0.1)] == keys(whole)


def test_esc_alone_does_not_swallow_the_key_that_is_pressed_later() -> None:
    reader = Keys()
    assert [reader.feed(b"\x1b", 10), reader.feed(b"1", 12)] == [[], ["1"]]


def test_a_paste_is_one_key_with_its_line_ends() -> None:
    assert keys(b"\x1b[200~one\r\ntwo\rthree\x1b[201~x") == [Paste("one\ntwo\nthree"), "x"]


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert keys(b"a\xffb") == ["a", "\ufffd", "b"]
