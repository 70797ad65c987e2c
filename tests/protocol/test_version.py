"""Versions: reading and ordering."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ahpkit.protocol.version import Version

IN_ORDER = [
    "0.0.1",
    "0.3.9",
    "0.4.0-0",
    "0.4.0-2",
    "0.4.0-10",
    "0.4.0-alpha",
    "0.4.0-alpha.1",
    "0.4.0-alpha.beta",
    "0.4.0-beta",
    "0.4.0-beta.2",
    "0.4.0-beta.11",
    "0.4.0-rc.1",
    "0.4.0",
    "0.4.10",
    "0.10.0",
    "1.0.0",
    "2.0.0",
]


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(IN_ORDER)))
def test_versions_have_the_order_of_semver(lower: str, higher: str) -> None:
    assert Version.parse(lower) < Version.parse(higher)
    assert Version.parse(higher) > Version.parse(lower)


@pytest.mark.parametrize("text", IN_ORDER)
def test_a_version_is_written_as_it_was_read(text: str) -> None:
    assert str(Version.parse(text)) == text


def test_build_metadata_means_nothing() -> None:
    assert Version.parse("0.4.0+linux.7") == Version.parse("0.4.0")


@pytest.mark.parametrize(
    "text",
    ["", "0.4", "v0.4.0", "0.4.0.0", "00.4.0", "0.4.0-", "0.4.0-01", "0.4.0+", "0.4.x", " 0.4.0", "0.4.0\n", "٠.٤.٠"],
)
def test_what_is_not_semver_is_not_a_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        Version.parse(text)


def test_a_very_long_text_is_not_a_version() -> None:
    with pytest.raises(ValueError, match="is not a version"):
        Version.parse("0." * 100_000 + "0")
