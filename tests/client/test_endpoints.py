"""Finding a running host: by file, by environment, and never by a stale or foreign file."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ahpkit import __version__
from ahpkit.client.endpoints import (
    Endpoint,
    endpoints_directory,
    find_endpoint,
    find_endpoints,
    links_directory,
    publish_endpoint,
)
from support.waiting import BOUND


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AHPKIT_URL", raising=False)
    monkeypatch.delenv("AHPKIT_TOKEN", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def write(directory: Path, name: str, **fields: object) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    path.write_text(json.dumps({"url": "ws://x", "pid": os.getpid(), "startedAt": 1, **fields}))
    return path


@pytest.fixture
def dead_pid() -> int:
    process = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, timeout=BOUND
    )
    return int(process.stdout)


def test_a_published_endpoint_is_found_and_gone_afterwards(tmp_path: Path):
    with publish_endpoint(url="ws://127.0.0.1:1", token="t", data_dir=tmp_path, started_at=5) as path:
        found = Endpoint("ws://127.0.0.1:1", "t", os.getpid(), str(tmp_path), 5, version=__version__)
        assert find_endpoint() == found
        assert path.is_relative_to(endpoints_directory())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    assert not path.exists()
    assert find_endpoint() is None


def test_a_host_is_found_from_a_shell_with_another_runtime_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with publish_endpoint(url="ws://one", token="t", data_dir=tmp_path, started_at=1) as path:
        [here] = find_endpoints()
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "other"))
        assert not path.is_relative_to(endpoints_directory())
        assert find_endpoints() == [here]
        with publish_endpoint(url="ws://two", token=None, data_dir=tmp_path, started_at=2):
            assert [endpoint.url for endpoint in find_endpoints()] == ["ws://two", "ws://one"]
        path.unlink()  # As after a crash and a restart of the machine.
        with publish_endpoint(url="ws://two", token=None, data_dir=tmp_path, started_at=2):
            assert [endpoint.url for endpoint in find_endpoints()] == ["ws://two"]
            assert len(list(links_directory().iterdir())) == 1, "a link to nothing is removed"

    assert list(links_directory().iterdir()) == []


def test_a_home_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with publish_endpoint(url="ws://one", token=None, data_dir=tmp_path, started_at=1):
        assert [endpoint.url for endpoint in find_endpoints()] == ["ws://one"]


def test_a_host_without_a_token_publishes_none(tmp_path: Path):
    with publish_endpoint(url="ws://x", token=None, data_dir=tmp_path, started_at=5) as path:
        assert "token" not in json.loads(path.read_text())
        found = find_endpoint()
        assert found is not None
        assert found.token is None


def test_the_file_is_removed_when_the_host_fails(tmp_path: Path):
    with pytest.raises(RuntimeError), publish_endpoint(url="ws://x", token=None, data_dir=tmp_path, started_at=5):
        raise RuntimeError
    assert find_endpoints() == []


def test_two_hosts_of_one_process_do_not_get_in_each_others_way(tmp_path: Path):
    with publish_endpoint(url="ws://one", token=None, data_dir=tmp_path, started_at=1):
        with publish_endpoint(url="ws://two", token=None, data_dir=tmp_path, started_at=2):
            assert [endpoint.url for endpoint in find_endpoints()] == ["ws://two", "ws://one"]
        assert [endpoint.url for endpoint in find_endpoints()] == ["ws://one"]


def test_the_newest_running_host_is_taken(tmp_path: Path):
    write(tmp_path, "old", url="ws://old", startedAt=1)
    write(tmp_path, "new", url="ws://new", startedAt=2)

    found = find_endpoint(directory=tmp_path)

    assert found is not None
    assert found.url == "ws://new"


def test_the_file_of_a_dead_host_is_ignored_and_cleaned_up_by_the_next(tmp_path: Path, dead_pid: int):
    stale = write(tmp_path, "stale", pid=dead_pid)
    assert find_endpoint(directory=tmp_path) is None

    with publish_endpoint(url="ws://x", token=None, data_dir=tmp_path, started_at=1, directory=tmp_path):
        assert not stale.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '{"url": "ws://x"}', '{"url": "ws://x", "pid": "nonsense"}'])
def test_a_file_that_says_nothing_sensible_is_ignored(tmp_path: Path, text: str):
    (tmp_path / "broken.json").write_text(text)

    assert find_endpoint(directory=tmp_path) is None


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="giving a file away needs root")
def test_the_file_of_another_user_is_not_believed(tmp_path: Path):
    os.chown(write(tmp_path, "planted"), 65534, 65534)

    assert find_endpoint(directory=tmp_path) is None


def test_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path, "running")
    monkeypatch.setenv("AHPKIT_URL", "ws://elsewhere")
    monkeypatch.setenv("AHPKIT_TOKEN", "secret")

    assert find_endpoint(directory=tmp_path) == Endpoint("ws://elsewhere", "secret")


def test_no_directory_means_no_host(tmp_path: Path):
    assert find_endpoints(directory=tmp_path / "nowhere") == []
