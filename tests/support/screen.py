"""A screen of unlimited height, for tests: interprets what the command line writes, as a person sees it."""

from __future__ import annotations

import re
import unicodedata

_TOKEN = re.compile(r"\x1b\[(?P<private>\?)?(?P<number>\d*)[\d;]*(?P<command>[A-Za-z])|(?P<char>[^\x1b])", re.DOTALL)


class Row(list[str]):
    """The characters of one row."""

    goes_on = False
    """Whether a line was broken at its end because the screen is not wider."""


class Screen:
    """Rows of characters and a cursor. Sequences it does not know fail the test that writes them."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows = [Row()]
        self.row = self.column = 0
        self.modes = {"25"}
        """Private modes that are on: 25 shows the cursor, 2004 marks pastes."""
        self.bells = 0
        self.styles = 0
        """How often the style was changed."""
        self.of_shell = False
        """Whether a shell writes to it, which may step back; our own command line never does."""
        self._rest = ""

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.rows)

    @property
    def above(self) -> int:
        """How many characters of the text are above the cursor's row."""
        return sum(len("".join(row).rstrip()) + 1 for row in self.rows[: self.row])

    @property
    def line(self) -> str:
        """The row with the cursor, up to the cursor."""
        return "".join(self.rows[self.row][: self.column])

    def resize(self, columns: int) -> None:
        """Wrap the lines again, as most terminals do; the cursor stays at its character."""
        rows, place, cursor = [Row()], self.column, 0
        for number, row in enumerate(self.rows):
            if number == self.row:
                place += len(rows[-1])
                cursor = len(rows) - 1
            rows[-1] += row
            if not row.goes_on and number + 1 < len(self.rows):
                rows.append(Row())
        broken: list[Row] = []
        for number, line in enumerate(rows):
            if number == cursor:
                self.row, self.column = len(broken) + place // columns, place % columns
            parts = [Row(line[start : start + columns]) for start in range(0, max(len(line), 1), columns)]
            for part in parts[:-1]:
                part.goes_on = True
            broken += parts
        self.rows, self.columns = broken, columns
        self._to(self.row, self.column)

    def feed(self, text: str) -> None:
        text, self._rest = self._rest + text, ""
        position = 0
        while position < len(text):
            token = _TOKEN.match(text, position)
            if token is None:
                self._rest = text[position:]
                assert len(self._rest) < 20, f"not understood: {self._rest!r}"
                return
            position = token.end()
            if token["char"]:
                self._put(token["char"])
            elif token["private"]:
                (self.modes.add if token["command"] == "h" else self.modes.discard)(token["number"])
            else:
                self._command(token["command"], int(token["number"] or 0))

    def _put(self, char: str) -> None:
        if char == "\n":
            self._to(self.row + 1, self.column)
        elif char == "\r":
            self.column = 0
        elif char == "\b" and self.of_shell:
            self.column -= 1
        elif char == "\t" and self.of_shell:
            pass  # The system echoes it when it is typed before the shell looks.
        elif char == "\a":
            self.bells += 1
        else:
            assert char.isprintable(), f"a control character reached the terminal: {char!r}"
            width = 2 if unicodedata.east_asian_width(char) in "WF" else 1
            if self.column + width > self.columns:  # Waited at the right edge until now.
                self.rows[self.row].goes_on = True
                self._to(self.row + 1, 0)
            row = self.rows[self.row]
            row.extend(" " * (self.column + width - len(row)))
            row[self.column : self.column + width] = [char, *[""] * (width - 1)]
            self.column += width

    def _command(self, command: str, number: int) -> None:
        match command:
            case "A":
                assert self.row >= number, "the cursor left the screen"
                self._to(self.row - number, self.column)
            case "C":
                self.column += number
            case "H":
                self._to(0, 0)
            case "J":
                if number == 2:
                    self._to(0, 0)
                del self.rows[self.row][self.column :]
                del self.rows[self.row + 1 :]
                self.rows[self.row].goes_on = False
            case "K":
                del self.rows[self.row][0 if number == 2 else self.column :]
            case "m":
                self.styles += 1
            case _:
                raise AssertionError(f"not understood: {command!r}")

    def _to(self, row: int, column: int) -> None:
        self.rows.extend(Row() for _ in range(row + 1 - len(self.rows)))
        self.row, self.column = row, column


__all__ = ["Screen"]
