"""The analytics example of the extensibility document, as a whole program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support import requirement
from support.bench import running_bench
from support.examples import EXAMPLES, load_example

EXAMPLE = EXAMPLES / "extension_analytics.py"
NAME = "example.com/analytics"


@requirement("extensibility:practice:descriptive-names", "extensibility:practice:fails-gracefully")
def test_it_advertises_receives_events_and_answers_the_summary() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.splitlines() == [
        "announced: {'version': '1.0', 'events': ['user_action', 'model_call']}",
        "summary: {'period': 'current_session', 'events': {'user_action': 1}}",
        "all: {'period': 'all', 'events': {'user_action': 1, 'model_call': 1}}",
        "weather: this host does not have it, so it was not asked",
    ]
    assert done.stderr == ""


async def test_its_handlers_take_what_strangers_send(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        await bench.stop()
        await bench.start(load_example("extension_analytics").add_analytics)
        client = await bench.client()
        for params in ({}, {"event": 5}, {"event": ["x"]}, {"event": "unheard_of"}, {"event": "model_call"}):
            client.send({"jsonrpc": "2.0", "method": f"_{NAME}/event", "params": params})
        assert await client.ask(f"_{NAME}/summary") == {"period": "all", "events": {"model_call": 1}}
        assert (await client.refused(f"_{NAME}/summary", period="ever"))["code"] == -32602
        assert (await client.refused(f"_{NAME}/summary", period=["all"]))["code"] == -32602
