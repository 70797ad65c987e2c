"""Limits of a process: lines of its log. Those of children are tested where they are started."""

from __future__ import annotations

import logging

import pytest

from ahpkit.platform.limits import LogLimit


class Lines(logging.Handler):
    """What a log shows."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.shown: list[str] = []
        self.addFilter(LogLimit(monotonic=lambda: self.now))

    def emit(self, record: logging.LogRecord) -> None:
        self.shown.append(record.getMessage())


@pytest.fixture
def log() -> tuple[logging.Logger, Lines]:
    lines = Lines()
    logger = logging.Logger("test", logging.INFO)
    logger.addHandler(lines)
    return logger, lines


def test_the_first_of_many_lines_alike_are_shown_each_minute(log: tuple[logging.Logger, Lines]) -> None:
    logger, lines = log
    for lines.now in (0.0, 30.0, 60.0):
        for number in range(50):
            logger.warning("the same %d", number)
        logger.warning("another")
    assert len(lines.shown) == 20 + 1 + 1 + 20 + 1
    assert lines.shown[19] == "the same 19; more lines like this are left out for a minute"


def test_long_lines_are_cut_and_further_lines_are_indented(log: tuple[logging.Logger, Lines]) -> None:
    logger, lines = log
    logger.warning("%s", "x" * 10_000)
    logger.warning("100 %% of %s", "one\nERROR two\rthree")
    assert lines.shown[0].endswith("x… (10000 characters)")
    assert len(lines.shown[0]) < 4_100
    assert lines.shown[1] == "100 % of one\n    ERROR two\n    three"
