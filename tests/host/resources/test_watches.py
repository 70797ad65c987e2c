from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.resources import watches


@pytest.fixture
def used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if other programs had all watchers of this user: really using them up would disturb everybody."""
    real: Any = watches.RustNotify

    def opening(paths: list[str], debug: bool, polling: bool, *rest: Any) -> Any:
        if not polling:
            raise RuntimeError("Error creating recommended watcher: Too many open files (os error 24)")
        return real(paths, debug, polling, *rest)

    monkeypatch.setattr(watches, "RustNotify", opening)


@pytest.mark.usefixtures("used_up")
def test_without_the_system_files_are_looked_at(tmp_path: Path) -> None:
    watching = watches.open_notify([str(tmp_path)], recursive=True)
    (tmp_path / "new").write_text("x")
    changes = watching.watch(1_600, 50, 60_000, threading.Event())
    assert any(path == str(tmp_path / "new") for _, path in changes if isinstance(changes, set))
    watching.close()


@pytest.mark.usefixtures("used_up")
def test_a_place_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        watches.open_notify([str(tmp_path / "none")], recursive=False)
