"""Which session a person means."""

import asyncio
from pathlib import Path

import click
import pytest

from ahpkit.cli.connection import connected, meant, short_id
from support.process import host_process

SESSIONS = [
    {"resource": "ahp-session:/3f2a9c11-aaaa", "title": "Release notes"},
    {"resource": "ahp-session:/3f2b0000-bbbb", "title": "Release"},
    {"resource": "ahp-session:/77770000-cccc", "title": "3f2a9c11 in the title"},
    {"resource": "ahp-session:/dddd", "title": ""},
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ahp-session:/dddd", ["dddd"]),
        ("dddd", ["dddd"]),
        ("3f2a9c11-aaaa", ["3f2a9c11-aaaa"]),
        ("3f2a", ["3f2a9c11-aaaa"]),
        ("3f2", ["77770000-cccc"]),
        ("release", ["3f2b0000-bbbb"]),
        ("NOTES", ["3f2a9c11-aaaa"]),
        ("e", ["3f2a9c11-aaaa", "3f2b0000-bbbb", "77770000-cccc"]),
        ("nothing", []),
    ],
)
def test_the_closest_kind_of_match_counts(name: str, expected: list[str]) -> None:
    assert [one["resource"].rpartition("/")[2] for one in meant(SESSIONS, name)] == expected


def test_the_short_form_of_an_id_is_what_people_type() -> None:
    assert short_id("ahp-session:/3f2a9c11-aaaa") == "3f2a9c11"
    assert meant(SESSIONS, short_id("ahp-session:/3f2a9c11-aaaa")) == SESSIONS[:1]


async def test_a_command_says_that_its_host_is_gone_and_does_not_wait_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with host_process(tmp_path) as host:
        with pytest.raises(click.ClickException, match=r"the connection to the host did not come back within 0.2 s"):
            async with connected(host.url, host.token, patience=0.2):
                host.process.kill()
                await asyncio.Event().wait()
    assert "connection lost; trying to get it back" in capsys.readouterr().err
