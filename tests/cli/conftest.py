"""One host process for all tests of a module: starting one takes longer than most of what is tested."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from support.process import HostProcess, host_process


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[HostProcess]:
    home = tmp_path_factory.mktemp("home")
    async with host_process(home, "--durability", "memory", "--root", str(home.parent)) as running:
        yield running
