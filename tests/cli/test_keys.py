"""Key presses from bytes, however they are cut into reads."""

import pytest

from ahpkit.cli.keys import Key, Keys, Paste


def keys(data: bytes) -> list[Key]:
    return Keys().feed(data)


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
        assert [*reader.feed(whole[:cut]), *reader.feed(whole[cut:])] == keys(whole)


def test_a_paste_is_one_key_with_its_line_ends() -> None:
    assert keys(b"\x1b[200~one\r\ntwo\rthree\x1b[201~x") == [Paste("one\ntwo\nthree"), "x"]


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert keys(b"a\xffb") == ["a", "\ufffd", "b"]
