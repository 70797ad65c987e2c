from pathlib import Path

import pytest

from ahpkit.agents.acp.access import MAX_FILE, RESOURCE_NOT_FOUND, DirectoryFiles
from ahpkit.protocol.errors import InvalidParams, PermissionDenied, RpcError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "root"
    inside.mkdir()
    (tmp_path / "secret").write_text("secret")
    return inside


async def test_files_inside_are_read_and_written_with_the_directories_they_need(root: Path) -> None:
    files = DirectoryFiles(root)

    await files.write(root / "a" / "b.txt", "ü")

    assert await files.read(root / "a" / "b.txt") == "ü"


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "link", "dir-link/secret"])
async def test_nothing_outside_is_reached_also_not_through_links(root: Path, path: str) -> None:
    (root / "link").symlink_to(root.parent / "secret")
    (root / "dir-link").symlink_to(root.parent)
    files = DirectoryFiles(root)

    with pytest.raises(PermissionDenied, match="outside the working directory"):
        await files.read(root / path)
    with pytest.raises(PermissionDenied):
        await files.write(root / path, "x")
    assert (root.parent / "secret").read_text() == "secret"


async def test_a_root_that_is_itself_a_link_works(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    (root / "a").write_text("x")

    assert await DirectoryFiles(root.parent / "alias").read(root.parent / "alias" / "a") == "x"


async def test_refusals_say_what_is_wrong(root: Path) -> None:
    files = DirectoryFiles(root)
    (root / "binary").write_bytes(b"\xff\xfe\x00")
    with (root / "large").open("wb") as large:
        large.truncate(MAX_FILE + 1)

    with pytest.raises(RpcError, match="does not exist") as missing:
        await files.read(root / "missing")
    assert missing.value.code == RESOURCE_NOT_FOUND
    with pytest.raises(InvalidParams, match="not absolute"):
        await files.read(Path("relative"))
    with pytest.raises(InvalidParams, match="UTF-8"):
        await files.read(root / "binary")
    with pytest.raises(InvalidParams, match="larger than"):
        await files.read(root / "large")
    with pytest.raises(RpcError, match="directory"):
        await files.read(root)
    with pytest.raises(RpcError, match="irectory"):
        await files.write(root, "x")
    with pytest.raises(InvalidParams, match="more than"):
        await files.write(root / "big", "x" * (MAX_FILE + 1))
