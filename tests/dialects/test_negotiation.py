"""Versions that clients offer, and what comes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from ahpkit.dialects import SPOKEN, Generation, negotiate, pin, supported_versions
from ahpkit.protocol.errors import InvalidParams, UnsupportedProtocolVersion
from support import requirement
from support.specification import specification

OFFICIAL = tuple(generation for generation in Generation if generation >= Generation.V0_9)
"""What the host of the specification's table speaks: 1.x and 0.9."""


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [
        (["1.0.0", "0.9.0"], "1.0.0"),
        (["0.9.0", "1.0.0"], "1.0.0"),
        (["0.9.7"], "0.9.7"),
        (["1.10.0", "1.2.0"], "1.10.0"),
        (["1.0.0", "1.10.0", "0.9.0"], "1.10.0"),
        (["2.0.0", "0.9.0"], "0.9.0"),
        (["0.4.0", "0.5.0"], "0.5.0"),
        (["0.5.2", "0.5.10", "0.5.1"], "0.5.10"),
        (["0.4.9"], "0.4.9"),
        (["1.0.0", "0.9.0", "0.4.0"], "1.0.0"),
        (["99999999999999999999.0.0", "0.9.0"], "0.9.0"),
        (["1.99999999999999999999.0", "1.2.0"], "1.99999999999999999999.0"),
    ],
)
@requirement("core:connection:version-choice")
@requirement("core:connection:version-compatibility")
@requirement("gen:negotiation:highest-offered")
@requirement("gen:negotiation:echo-exact")
@requirement("gen:negotiation:real-one")
@requirement("gen:negotiation:ranges")
def test_the_highest_version_that_is_spoken_is_chosen_and_echoed(offered: list[str], agreed: str) -> None:
    assert negotiate(offered).version == agreed
    assert negotiate(offered[::-1]).version == agreed


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [
        (["1.0.0", "0.8.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"], "0.8.0"),
        (["1.0.0", "0.9.0", "0.8.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"], "0.9.0"),
        (["0.5.1", "1.0.0"], "0.5.1"),
        (["1.0.0", "0.4.0"], "0.4.0"),
        (["1.0.0", "0.9.0", "0.4.0", "0.5.0"], "0.9.0"),
    ],
)
@requirement("gen:negotiation:draft-one")
def test_a_draft_that_calls_itself_one_point_zero_is_not_taken_at_its_word(offered: list[str], agreed: str) -> None:
    assert negotiate(offered).version == agreed


@pytest.mark.parametrize("offered", [[], ["2.0.0"], ["0.10.0"], ["0.3.0"]])
@requirement("core:wire:version-error-data")
def test_nothing_in_common_names_what_is_spoken(offered: list[str]) -> None:
    with pytest.raises(UnsupportedProtocolVersion) as caught:
        negotiate(offered)
    assert caught.value.data == {"supportedVersions": supported_versions()}
    assert caught.value.code == -32005
    assert supported_versions()[0] == SPOKEN[-1].release


@pytest.mark.parametrize("offered", [["0.8.0"], ["0.4.0", "0.5.0"]])
def test_a_side_can_speak_less(offered: list[str]) -> None:
    with pytest.raises(UnsupportedProtocolVersion):
        negotiate(offered, OFFICIAL)


@pytest.mark.parametrize(
    "malformed",
    [
        "invalid",
        "1.0",
        "1",
        "v1.0.0",
        "01.0.0",
        "1.0.0-beta",
        "1.0.0+x",
        "1.0.0\n",
        " 1.0.0",
        "-1.0.0",
        "",
        f"1.{'9' * 300}.0",
        1,
        None,
        [],
    ],
)
@pytest.mark.parametrize("place", [0, 1])
@requirement("gen:negotiation:malformed-offer")
def test_one_malformed_entry_spoils_the_offer_and_is_named(malformed: object, place: int) -> None:
    offered: list[object] = ["1.0.0"]
    offered.insert(place, malformed)
    with pytest.raises(InvalidParams, match=rf"protocolVersions\[{place}\]"):
        negotiate(offered)


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        ("0.9", ["0.9.0"]),
        ("0.9.0", ["0.9.0"]),
        ("1", [release for release in supported_versions() if release.startswith("1.")]),
        ("1.0", ["1.0.0"]),
        ("0.5", ["0.5.2", "0.5.1", "0.5.0"]),
        ("0.5.1", ["0.5.1"]),
    ],
)
def test_a_side_can_be_pinned(text: str, pinned: list[str]) -> None:
    assert supported_versions(pin(text)) == pinned


@pytest.mark.parametrize("text", ["", "0.3", "2", "0.9.x", "newest", "0.9.0.0", "9" * 5000])
def test_a_pin_that_names_no_version_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"supported: {', '.join(supported_versions()[:2])}")):
        pin(text)


CHOSEN_BY_OFFICIAL: list[tuple[list[str], str | None]] = [
    (["1.0.0", "0.9.0"], "1.0.0"),
    (["0.9.0", "1.0.0"], "1.0.0"),
    (["0.9.0"], "0.9.0"),
    (["0.9.7"], "0.9.7"),
    (["1.10.0", "1.2.0"], "1.10.0"),
    (["1.0.0", "1.10.0", "0.9.0"], "1.10.0"),
    (["2.0.0", "0.9.0"], "0.9.0"),
    (["2.0.0"], None),
    (["0.10.0"], None),
    (["0.8.0"], None),
    (["0.4.0", "0.5.0"], None),
    ([], None),
]
"""What is offered, and what a host that speaks 1.x and 0.9 chooses."""


def given() -> list[dict[str, Any]]:
    """Our table, and the specification's own one when its data is beside the checkout."""
    ours: list[dict[str, Any]] = [{"offered": offered, "expected": chosen} for offered, chosen in CHOSEN_BY_OFFICIAL]
    ours += [{"offered": ["1.0.0", malformed], "invalid": True} for malformed in ("invalid", "1", "1.0.0-beta", "")]
    files = [path for path in specification("ahp-1.0.0", "fixtures") if path.stem == "version-negotiation"]
    return [*ours, *(case for path in files for case in json.loads(path.read_text()))]


def chosen(offered: list[str], spoken: Sequence[Generation]) -> str | None:
    try:
        return negotiate(offered, spoken).version
    except UnsupportedProtocolVersion:
        return None


@pytest.mark.parametrize("case", given(), ids=lambda case: repr(case["offered"]))
def test_the_specifications_table_holds(case: dict[str, Any]) -> None:
    if case.get("invalid"):
        for spoken in (OFFICIAL, SPOKEN):
            with pytest.raises(InvalidParams):
                chosen(case["offered"], spoken)
        return
    assert chosen(case["offered"], OFFICIAL) == case["expected"]
    if case["expected"] is not None:
        assert chosen(case["offered"], SPOKEN) == case["expected"]
