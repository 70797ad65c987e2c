"""What the Tab key makes of a line."""

from typing import Any

from ahpkit.cli.line_editor import LineEditor, complete, utf16_length
from support import requirement


def line(before: str, after: str = "") -> LineEditor:
    editor = LineEditor()
    editor.before, editor.after = before, after
    return editor


def item(text: str, start: int, end: int, about: str = "") -> Any:
    attachment = {"type": "simple", "label": text, "_meta": {"description": about}}
    return {"insertText": text, "rangeStart": start, "rangeEnd": end, "attachment": attachment}


def test_one_item_takes_the_place_of_what_was_typed() -> None:
    editor = line("/str", "x y")
    assert complete(editor, [item("/stream ", 0, 5)]) == ()
    assert (editor.before, editor.after) == ("/stream ", " y")


def test_several_items_share_a_beginning() -> None:
    editor = line("/s")
    assert complete(editor, [item("/stream ", 0, 2), item("/strip ", 0, 2)]) == ()
    assert editor.text == "/str"


def test_several_items_are_shown_when_nothing_is_certain() -> None:
    editor = line("/s")
    shown = complete(editor, [item("/sleep ", 0, 2, "takes\nits time"), item("/stream ", 0, 2)])
    assert shown == ["  /sleep            takes its time", "  /stream"]
    assert editor.text == "/s"


@requirement("commands:completions:contains")
def test_what_only_contains_the_typed_part_is_shown_and_nothing_typed_is_lost() -> None:
    editor = line("/bra")
    assert len(complete(editor, [item("/code-branch ", 0, 4), item("/library ", 0, 4)])) == 2
    assert editor.text == "/bra"
    complete(editor, [item("/superpowers:brainstorm ", 0, 4)])
    assert editor.text == "/superpowers:brainstorm "


@requirement("commands:completions:says-more")
def test_more_than_a_screenful_is_said_not_shown() -> None:
    shown = complete(line("/"), [item(f"/{number:03} ", 0, 1) for number in range(123)])
    assert (len(shown), shown[-1]) == (41, "  … and 83 more: type on, and press Tab again")


def test_nothing_to_complete_changes_nothing() -> None:
    editor = line("hello")
    assert complete(editor, []) == ()
    assert editor.text == "hello"


def test_places_count_in_utf_16_units() -> None:
    assert utf16_length("a😀") == 3
    editor = line("😀 @he")
    complete(editor, [item("@helper ", 3, 6)])
    assert editor.text == "😀 @helper "


def test_an_item_without_a_range_is_put_in_at_the_cursor() -> None:
    editor = line("see ", "!")
    complete(editor, [{"insertText": "this", "attachment": {"type": "simple", "label": "this"}}])
    assert (editor.before, editor.after) == ("see this", "!")
