"""The fence: roots, cuts, and the words of a refusal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ahpkit.host.owner_file import OwnerFile
from ahpkit.host.resources.fence import ExcludedPlaces, Fence, check_root, default_roots
from ahpkit.protocol.errors import InvalidParams, PermissionDenied

HOME = Path("/home/ada")
CUTS = ExcludedPlaces(HOME, private=[HOME / "data"], open_folders=[".claude/skills"])


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/ETC/shadow",
        "/proc/self/environ",
        "/sys/kernel",
        "/dev/null",
        "/usr/lib",
        "/var/log/syslog",
        "/run/user/1000/ahpkit",
        "/home/ada/data/token",
        "/home/ada/DATA/token",
        "/home/ada/.bashrc",
        "/home/ada/.ssh/id_ed25519",
        "/home/ada/.claude/settings.json",
        "/home/ada/.claude/skills-not",
        "/home/bob/.ssh/id_ed25519",
        "/Users/eve/.zshrc",
    ],
)
def test_what_is_cut_out_of_every_root(path: str) -> None:
    fence = Fence(CUTS, [Path("/")])
    assert "--root" in (fence.refusal(Path(path)) or "")


@pytest.mark.parametrize(
    "path",
    ["/home/ada/work", "/home/ada/work/.env", "/home/ada/.claude/skills/x", "/srv/app", "/var/tmp/x", "/home/bob/work"],
)
def test_everything_else_below_a_root_is_open(path: str) -> None:
    assert Fence(CUTS, [Path("/")]).refusal(Path(path)) is None


def test_a_home_inside_a_system_directory_is_a_home() -> None:
    excluded = ExcludedPlaces(Path("/usr/share/ada"))
    assert excluded.reason(Path("/usr/share/other")) is not None
    assert excluded.reason(Path("/usr/share/ada/work")) is None
    assert excluded.reason(Path("/usr/share/ada/.ssh")) is not None


def test_outside_the_roots_the_refusal_names_the_option_and_the_command() -> None:
    fence = Fence(CUTS, [HOME / "work"])
    assert fence.refusal(HOME / "work" / "a") is None
    with pytest.raises(PermissionDenied, match=r"--root /home/ada/other.*ahpkit roots add /home/ada/other"):
        fence.check(HOME / "other")
    assert fence.refusal(HOME / "workshop") is not None


@pytest.mark.parametrize("started_in", ["/", "/etc", "/home", "/home/ada/.config"])
def test_a_host_started_in_no_place_for_work_has_only_the_home(started_in: str) -> None:
    assert default_roots(Path(started_in), HOME, CUTS) == [HOME]


def test_by_default_the_start_directory_and_the_home_are_roots(tmp_path: Path) -> None:
    assert default_roots(tmp_path, HOME, CUTS) == [tmp_path, HOME]


def test_the_owner_adds_and_removes_roots_while_the_host_runs(tmp_path: Path) -> None:
    kept = OwnerFile(tmp_path / "roots.json")
    fence = Fence(CUTS, [Path("/srv/a")], kept)
    assert fence.roots() == [Path("/srv/a")]
    kept.change(lambda said: {"added": ["/srv/b"], "removed": ["/srv/a"]})
    assert fence.roots() == [Path("/srv/b")]


def test_a_root_may_have_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    odd = os.fsdecode(b"/srv/\xfc")
    OwnerFile(tmp_path / "roots.json").change(lambda said: {"added": [odd]})
    assert Fence(CUTS, [], OwnerFile(tmp_path / "roots.json")).roots() == [Path(odd)]


def test_a_root_must_be_a_directory_and_not_be_cut_out(tmp_path: Path) -> None:
    assert check_root(tmp_path, CUTS) == tmp_path
    for wrong in (tmp_path / "none", Path("/etc"), Path("/proc/self")):
        with pytest.raises(InvalidParams):
            check_root(wrong, CUTS)


def test_the_hosts_own_directory_is_barred_by_what_it_is_not_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    [(device, number)] = Fence(ExcludedPlaces(HOME, [tmp_path / "data", tmp_path / "none"])).barred()
    found = (tmp_path / "data").stat()
    assert (device, number) == (found.st_dev, found.st_ino)
