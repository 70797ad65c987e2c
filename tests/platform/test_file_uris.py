from __future__ import annotations

import os
from pathlib import Path

import pytest

from ahpkit.platform.file_uris import local_path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("FILE:///a", "/a"),
        ("file://localhost/a", "/a"),
        ("file://LocalHost/a", "/a"),
        ("file:///", "/"),
        ("file:////a", "/a"),
        ("file:///a%20b%C3%A9%23%3F", "/a bé#?"),
        ("file:///a/../b", "/a/../b"),
    ],
)
def test_the_path_of_a_file_on_this_machine(uri: str, path: str) -> None:
    assert local_path(uri) == Path(path)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/a",
        "file:",
        "file:a",
        "file://a",
        "file://other/a",
        "file://user@localhost/a",
        "file:///a?x",
        "file:///a#x",
        "file:///a%00b",
        "file://[/a",
        "https://localhost/a",
        "files:///a",
    ],
)
def test_everything_else_names_no_file_of_ours(uri: str) -> None:
    assert local_path(uri) is None


def test_a_shell_may_name_its_own_machine() -> None:
    assert local_path("file://my-laptop/home/me", any_host=True) == Path("/home/me")
    assert local_path("file://my-laptop", any_host=True) is None


@pytest.mark.parametrize("name", [b"plain", "zażółć".encode(), b"\xff\xfe", b"a%b", b"a b?#"])
def test_every_name_that_a_file_can_have_comes_back(name: bytes) -> None:
    path = Path(os.fsdecode(b"/tmp/" + name))
    assert local_path(path.as_uri()) == path
