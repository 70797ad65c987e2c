import codecs

import pytest

from ahpkit.customizations.text import DESCRIPTION_LIMIT, clean_name, clean_text, decode, first_paragraph, slug


def test_plain_text_is_taken_as_it_is() -> None:
    assert decode("grün".encode()) == ("grün", None)


def test_a_byte_order_mark_is_no_text() -> None:
    assert decode(codecs.BOM_UTF8 + b"x") == ("x", None)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_unicode_is_read_and_said(encoding: str) -> None:
    text, problem = decode("name".encode(encoding))
    assert text == "name"
    assert problem is not None
    assert "not UTF-8" in problem


def test_bytes_that_are_no_text_are_replaced_and_said() -> None:
    text, problem = decode(b"a\xffb")
    assert text == "a�b"
    assert problem is not None


def test_nul_characters_are_removed_and_said() -> None:
    assert decode(b"a\0b") == ("ab", "NUL characters were removed")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain", "plain"),
        ("two  words", "two words"),
        ("non\u00a0breaking", "non breaking"),
        ("a/b\\c:d", "a-b-c-d"),
        ("right\u202eleft", "rightleft"),
        ("tag\U000e0041ged", "tagged"),
        ("smug\U000e0100gled", "smuggled"),
        ("line\nbreak\ttab", "line break tab"),
        ("bell\x07", "bell"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
        ("\udcff", ""),
    ],
)
def test_names_show_nothing_that_cannot_be_seen(given: str, shown: str) -> None:
    assert clean_name(given) == shown


def test_names_and_descriptions_have_an_end() -> None:
    assert len(clean_name("x" * 10_000)) == 128
    assert len(clean_text("x" * 100_000)) == DESCRIPTION_LIMIT


def test_line_breaks_of_a_description_stay() -> None:
    assert clean_text("a\nb\u2028c\x1b[31m") == "a\nb\nc[31m"


@pytest.mark.parametrize(("name", "token"), [("Plan Mode", "Plan-Mode"), ("p:x", "p:x"), ("🚀", ""), ("a!b", "a-b")])
def test_what_is_typed_is_one_word(name: str, token: str) -> None:
    assert slug(name) == token


def test_the_first_paragraph_skips_headings_and_comments() -> None:
    assert first_paragraph("# Title\n\n<!-- note -->\n\nIt does\nthis.\n\nMore.") == "It does this."
    assert first_paragraph("# Only a title") == ""
