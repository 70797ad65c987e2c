"""Fixture files: found at any depth, and refused with a reason."""

from pathlib import Path

import pytest

from ahpkit.testing.conformance import MalformedFixture, fixture_paths, read_fixture


def test_every_json_file_is_found_in_order(tmp_path: Path) -> None:
    for name in ("b.json", "sub/a.json", "a.json", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "folder.json").mkdir()
    assert [path.relative_to(tmp_path).as_posix() for path in fixture_paths(tmp_path)] == [
        "a.json",
        "b.json",
        "sub/a.json",
    ]


def test_a_fixture_is_read_with_what_it_has_beyond_the_required_members(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('{"reducer": "chat", "more": 1}')
    assert read_fixture(path, {"reducer": str}) == {"reducer": "chat", "more": 1}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "cannot be read"),
        (b"\xff\xfe{", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b"[]", "is not a JSON object"),
        (b'{"actions": []}', 'has no "reducer"'),
        (b'{"reducer": 1, "actions": []}', '"reducer" is a int'),
        (b'{"actions": {}}', 'has no "reducer"; "actions" is a dict'),
    ],
)
def test_a_file_that_is_no_fixture_is_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(content)
    with pytest.raises(MalformedFixture, match=reason):
        read_fixture(path, {"reducer": str, "actions": list})
