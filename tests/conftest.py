"""For all tests: properties are checked with the same examples every time, and no clock decides about them."""

import fcntl
import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from ahpkit.platform.signals import keep_ignored_signals_from_children

settings.register_profile(
    "steady",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=50,  # They are the same in every run. New ones are looked for by `make soak`.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("steady"), derandomize=False, max_examples=1_000)
settings.register_profile("brief", settings.get_profile("explore"), max_examples=60)
settings.load_profile("steady")  # `pytest --hypothesis-profile explore` looks for new examples.

keep_ignored_signals_from_children()  # `nohup make test` must not change how the children of tests end.

gc.disable()  # Collecting ten thousand tests makes a million objects, and none that can go.


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    """One worker after another: the first one compiles the tests, the others load what it compiled."""
    if not hasattr(session.config, "workerinput"):
        return (yield)
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return (yield)


def pytest_collection_finish() -> None:
    """What was collected stays until the end: a garbage collection during a test need not look at it."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)  # `pytest -p no:xdist` runs everything in one process.
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: many tests wait for another process. One more left a sixth of the time unused."""
    return (os.cpu_count() or 1) + 2
