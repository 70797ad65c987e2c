"""Which session a person means."""

import pytest

from ahpkit.cli.connection import meant, short_id

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
