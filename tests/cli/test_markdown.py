"""Markdown that streams: what is finished when, and how it looks."""

import re

import pytest

from ahpkit.cli.markdown import Block, Blocks, rendered

TEXT = """Hello:

> quoted

# Heading
Text **bold** and `code`.

- one
- two

  more of two

```python
x = 1

y = 2
```
after

| a | b |
|---|---|
| 1 | 2 |"""

BLOCKS = [
    "Hello:",
    "> quoted",
    "# Heading",
    "Text **bold** and `code`.",
    "- one\n- two\n\n  more of two",
    "```python\nx = 1\n\ny = 2\n```",
    "after",
    "| a | b |\n|---|---|\n| 1 | 2 |",
]


def plain(block: str, columns: int = 60) -> list[str]:
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in rendered(block, columns)]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_blocks_are_the_same_however_the_text_comes(size: int) -> None:
    blocks, found = Blocks(), list[Block]()
    for start in range(0, len(TEXT), size):
        found += blocks.feed(TEXT[start : start + size])
    found.append(blocks.end())
    assert [block.text for block in found] == BLOCKS
    assert blocks.rest == ""


def test_the_block_being_written_is_there_as_far_as_it_goes() -> None:
    blocks = Blocks()
    assert blocks.feed("one\n\ntwo and") == [Block("one")]
    assert blocks.rest == "two and"


def test_long_code_is_finished_piece_by_piece_and_loses_nothing() -> None:
    blocks = Blocks()
    code = [f"line {number}" for number in range(200)]
    found = [*blocks.feed("```\n" + "\n".join(code) + "\n```\n"), blocks.end()]
    shown = [line.strip() for block in found if block.text for line in plain(block.text)]
    assert shown == code
    assert [block.continues for block in found if block.text] == [False, *[True] * (len(shown) // 40 - 0)][
        : len(found) - 1
    ]


def test_how_things_look() -> None:
    assert plain("> quoted") == ["▌ quoted"]
    assert plain("# Heading") == ["Heading"]
    assert plain("Text **bold** and `code`.") == ["Text bold and code."]
    assert plain("- one\n- two") == [" • one", " • two"]
    assert plain("```\n42\n```") == [" 42"]
    assert plain("a [link](https://x.example)") == ["a link (https://x.example)"]


def test_nothing_in_it_drives_the_terminal() -> None:
    assert plain("\x1b[2J and \u202eevil") == ["␛[2J and \\u202eevil"]


def test_a_very_long_line_is_written_in_pieces_that_lose_nothing() -> None:
    blocks, written = Blocks(), list[Block]()
    for number in range(20_000):
        written += blocks.feed(f"word{number} ")
    written.append(blocks.end())
    assert max(len(block.text) for block in written) < 5_000
    assert [block.continues for block in written] == [False] + [True] * (len(written) - 1)
    assert " ".join(block.text.strip() for block in written).split() == [f"word{number}" for number in range(20_000)]


@pytest.mark.parametrize("beginning", ["| a ", "- a ", "> a ", "## a ", "```\n"])
def test_a_long_line_of_something_else_stays_whole(beginning: str) -> None:
    blocks = Blocks()
    assert [block for piece in (beginning, *["more "] * 2_000) for block in blocks.feed(piece)] == []
