"""The page about transports: its example runs, and its limits are the code's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ahpkit.http import router, server
from ahpkit.http.connection import Limits
from ahpkit.transports import connect, stdio, websocket
from ahpkit.wire import peer, rpc
from support.waiting import BOUND

PAGE = Path(__file__).parents[2] / "docs" / "topics" / "transports.md"


EXAMPLES: list[str] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES, ids=["transport", "routes"])
def test_the_examples_run(code: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(code)
    subprocess.run([sys.executable, "-W", "error", script], check=True, timeout=BOUND)


@pytest.mark.parametrize(
    ("row", "limit"),
    [
        ("message from a client", f"{server.MAX_SIZE >> 20} MiB"),
        ("message from a host", f"{connect.MAX_SIZE >> 20} MiB"),
        ("line on stdio", f"{stdio.MAX_LINE // 10**6} MB"),
        ("missing pong", f"{websocket.PING_INTERVAL:.0f} s"),
        ("closing handshake", f"{websocket.CLOSE_TIMEOUT:.0f} s"),
        ("head of an HTTP request", f"{Limits().head:.0f} s"),
        ("body of an HTTP request", f"{router.MAX_BODY >> 20} MiB"),
        ("answer that is not read", f"{Limits().unread:.0f} s"),
        ("HTTP connections", f"{Limits().connections}"),
        ("requests in flight", f"{peer.MAX_PENDING}"),
        ("output of an `RpcConnection`", f"{rpc.MAX_BUFFERED >> 20} MiB"),
    ],
)
def test_the_limits_are_the_codes(row: str, limit: str) -> None:
    (line,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {row}")]
    assert f"| {limit}" in line
