"""Versions: reading, ordering, negotiating."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ahpkit.protocol.errors import InvalidParams, UnsupportedProtocolVersion, to_error_object
from ahpkit.protocol.registry import ACTIONS, NOTIFICATIONS
from ahpkit.protocol.version import SPOKEN, Version, has_action, has_notification, negotiate
from support import requirement

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


@requirement("core:connection:version-choice")
def test_the_first_offer_that_fits_is_taken() -> None:
    assert negotiate(["0.9.0", "0.4.0", "0.4.1"], spoken=["0.4.0", "0.9.1"]) == "0.9.0"
    assert negotiate(["0.5.0", "0.4.0", "0.9.0"], spoken=["0.9.0", "0.4.0"]) == "0.4.0"


@requirement("core:connection:version-compatibility")
@pytest.mark.parametrize("offer", ["0.4.0", "0.4.1", "0.4.99", "0.4.0+build"])
def test_before_1_0_the_same_minor_fits(offer: str) -> None:
    assert negotiate([offer]) == offer


@pytest.mark.parametrize("offer", ["0.3.0", "0.5.0", "1.4.0", "0.4.0-rc.1", "0.4.1-alpha"])
def test_another_minor_and_pre_releases_do_not_fit(offer: str) -> None:
    with pytest.raises(UnsupportedProtocolVersion):
        negotiate([offer])


def test_from_1_0_on_the_same_major_fits() -> None:
    assert negotiate(["2.0.0", "1.7.0"], spoken=["1.2.0"]) == "1.7.0"


def test_a_pre_release_fits_itself() -> None:
    assert negotiate(["0.5.0-rc.1"], spoken=["0.5.0-rc.1"]) == "0.5.0-rc.1"


@requirement("core:wire:version-error-data")
@pytest.mark.parametrize("offered", [[], ["0.1.0", "7.0.0"]])
def test_no_version_in_common_names_the_ones_we_speak(offered: list[str]) -> None:
    with pytest.raises(UnsupportedProtocolVersion) as caught:
        negotiate(offered)
    assert to_error_object(caught.value)["data"] == {"supportedVersions": list(SPOKEN)}
    assert caught.value.code == -32005


@pytest.mark.parametrize("malformed", ["latest", "", 4, None])
def test_a_malformed_offer_is_named_even_behind_one_that_fits(malformed: str) -> None:
    with pytest.raises(InvalidParams, match=r"^protocolVersions\[1\]: "):
        negotiate(["0.4.0", malformed])


def test_a_version_has_what_was_introduced_up_to_it() -> None:
    assert has_action("0.1.0", "session/ready")
    assert not has_action("0.2.9", "session/canvasRegistryChanged")
    assert has_action("0.3.0", "session/canvasRegistryChanged")
    assert not has_action("0.3.0", "chat/delta")
    assert not has_action("0.4.0", "chat/hologram")
    assert has_notification("0.1.0", "action")
    assert not has_notification("0.1.0", "otlp/exportLogs")
    assert has_notification("0.2.0", "otlp/exportLogs")
    assert not has_notification("0.4.0", "root/party")


def test_what_we_speak_has_every_action_and_notification_of_the_tables() -> None:
    assert SPOKEN == ("0.4.0",)
    assert all(has_action(SPOKEN[0], action) for action in ACTIONS)
    assert all(has_notification(SPOKEN[0], method) for method in NOTIFICATIONS)
