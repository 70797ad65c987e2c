"""One real host process for all tests of a file that only talk to it, and what they all need to begin with."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator

import pytest
import pytest_asyncio

from support.frames import all_frames_fit
from support.process import HostProcess, host_process


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[HostProcess]:
    """Whatever its clients do to it, in the end it is alive and nothing in it has failed."""
    async with host_process(tmp_path_factory.mktemp("host")) as running:
        yield running
        assert running.process.returncode is None
        assert "Traceback" not in running.errors, running.errors


@pytest.fixture(autouse=True)
def _frames() -> Generator[None]:
    with all_frames_fit():
        yield
