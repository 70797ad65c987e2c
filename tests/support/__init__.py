"""Shared by the tests: the requirement marker, and one test for a whole table. Fixtures stand beside their users."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Row = TypeVar("Row")

requirement = pytest.mark.requirement
"""`@requirement("core:wire:ids")`: this test proves that sentence of the specification."""


def for_each(rows: Iterable[Row]) -> Callable[[Callable[[Row], None]], Callable[[], None]]:
    """One test for all rows of a large table; it names every row that is wrong.

    With `parametrize` each row is a separate test. That is better for rows that take long or need a fixture. But it
    costs 3 ms of CPU for each row, and most rows of our tables take far less.
    """
    table = list(rows)

    def of_table(test: Callable[[Row], None]) -> Callable[[], None]:
        def checked() -> None:
            wrong: list[tuple[Row, Exception]] = []
            for row in table:
                try:
                    test(row)
                except Exception as error:
                    wrong.append((row, error))
            if wrong or not table:
                told = "".join(f"\n\n{row}: {type(error).__name__}: {error}" for row, error in wrong)
                first = wrong[0][1] if wrong else None
                raise AssertionError(f"{len(wrong)} of {len(table)} rows are wrong{told}") from first

        checked.__name__, checked.__qualname__ = test.__name__, test.__qualname__
        checked.__doc__, checked.__module__ = test.__doc__, test.__module__
        return checked

    return of_table


__all__ = ["for_each", "requirement"]
