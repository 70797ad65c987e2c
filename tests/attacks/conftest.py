"""One real host process for all attacks of a file: in the end it is alive, and nothing in it has failed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from support.process import HostProcess, host_process
from support.site import Site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[HostProcess]:
    async with host_process(tmp_path_factory.mktemp("host")) as running:
        yield running
        assert running.process.returncode is None
        assert "Traceback" not in running.errors, running.errors


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A machine of its own, for attacks on files."""
    return Site(tmp_path)
