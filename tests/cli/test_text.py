"""Text on its way to a person."""

from hypothesis import given
from hypothesis import strategies as st

from ahpkit.cli.text import plain, printable, shorten, whole_lines, wrapped


@given(st.text())
def test_nothing_that_drives_a_terminal_is_left(text: str) -> None:
    shown = printable(text)
    assert not any((ord(char) < 32 and char not in "\n\t") or 0x7F <= ord(char) < 0xA0 for char in shown)


def test_harmless_text_stays_as_it_is() -> None:
    text = "a\tb\n€ 日本 👩‍🚀 ✓"
    assert printable(text) == text


def test_controls_are_made_visible() -> None:
    assert printable("\x1b[2J\x07\x9b\x7f\r") == "␛[2J␇\\x9b␡"


def test_a_text_cannot_be_turned_around() -> None:
    assert printable("rm \u202eoj.txt\u2066") == "rm \\u202eoj.txt\\u2066"
    assert printable("rm\u200b a\u3164b\u2028c\U000e0041") == "rm\\u200b a\\u3164b\\u2028c\\U000e0041"
    assert printable("\U0001f469\u200d\U0001f4bb") == "\U0001f469\u200d\U0001f4bb"


def test_a_string_may_be_markdown_or_missing() -> None:
    assert [plain("a"), plain({"markdown": "*b*"}), plain(None)] == ["a", "*b*", ""]


@given(st.text(), st.integers(1, 20))
def test_shortened_text_fits_on_one_line(text: str, length: int) -> None:
    short = shorten(text, length)
    assert len(short) <= length
    assert "\n" not in short


def test_only_long_text_is_shortened() -> None:
    assert shorten("one\n two", 7) == "one two"
    assert shorten("one two", 6) == "one t…"


def test_text_that_goes_on_is_cut_into_whole_lines_between_words() -> None:
    assert whole_lines("one two three", 8) == ["one two", "three"]
    assert whole_lines("one\ntwo", 80) == ["one", "two"]
    assert whole_lines("one\n", 80) == ["one", ""]
    assert whole_lines("12345678", 8) == ["12345678"]
    assert whole_lines("1234567890 ab", 8) == ["12345678", "90 ab"]
    assert whole_lines("漢字漢字漢", 5) == ["漢字", "漢字", "漢"]
    assert whole_lines("漢", 1) == ["漢", ""]


def test_prose_is_broken_between_words_and_keeps_its_depth() -> None:
    assert wrapped("  one two three\n    a long line of code", 10) == "  one two\n  three\n    a long line of code"
    assert wrapped("short", 10) == "short"
