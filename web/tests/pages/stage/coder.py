"""An agent for the tests and pictures of the page: edits files, asks with reasons, plans, calls MCP tools, stumbles."""

from __future__ import annotations

import asyncio
import json

from ahpkit.agents import AgentError, Turn, agent
from ahpkit.protocol.common.state import FileEdit

PLAN = ["Find where the file is read", "Read it line by line", "Run the tests"]

FOUND = """The loader keeps the **whole** file in memory. Three places do it:

1. `read_all` in the loader
2. the cache, which never forgets
3. a test helper

| file | before | after |
|---|---:|---:|
| `loader.py` | 812 MB | 14 MB |
| `cache.py` | 120 MB | 9 MB |

```python
def lines(path: Path) -> Iterator[str]:
    \"\"\"One line at a time.\"\"\"
    with path.open(encoding="utf-8") as file:
        yield from file
```

> The old interface stays for one release.
"""

BEFORE = '''"""Reads a file."""

from pathlib import Path


def read_all(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return text.splitlines()
'''

AFTER = '''"""Reads a file."""

from collections.abc import Iterator
from pathlib import Path


def lines(path: Path) -> Iterator[str]:
    """One line at a time."""
    with path.open(encoding="utf-8") as file:
        yield from file
'''


@agent(name="coder", title="Coder", models=["quick", "careful"])
async def coder(turn: Turn) -> None:
    """Knows one task, and does it again and again."""
    word, _, rest = turn.message["text"].partition(" ")
    doing = {"Why": look, "Change": change, "Deploy": deploy, "Call": call, "Stumble": stumble, "Plan": plan}
    await doing.get(word, answer)(turn, rest)
    turn.usage({"inputTokens": 18_240, "outputTokens": 940, "cacheReadTokens": 12_000, "model": "careful"})


async def answer(turn: Turn, rest: str) -> None:
    turn.text(f"You said: {turn.prompt}")
    if turn.chat.history:
        turn.text(f"\n\nYou asked before: {turn.chat.history[0]['message']['text']}")


async def look(turn: Turn, rest: str) -> None:
    turn.think("Look at where the file is read, then at who keeps it.")
    for number, path in enumerate(("src/loader.py", "src/cache.py", "tests/helper.py")):
        reading = turn.tool_call("read_file", display_name="Read file", id=f"read-{turn.id}-{number}")
        reading.running(tool_input=json.dumps({"path": path}), message=f"Read {path}")
        reading.complete(message=f"Read {path}", content=[{"type": "text", "text": BEFORE}])
    searching = turn.tool_call("grep", display_name="Search")
    searching.running(tool_input=json.dumps({"pattern": "read_all"}), message="Search for read_all")
    searching.complete(message="Searched for read_all", content=[{"type": "text", "text": "src/loader.py:6\n"}])
    turn.text(FOUND)


def _edit(turn: Turn, name: str, before: str, after: str) -> FileEdit:
    uri = (turn.chat.working_directory / name).as_uri()
    old = turn.store(before.encode(), content_type="text/x-python")
    new = turn.store(after.encode(), content_type="text/x-python")
    return {
        "before": {"uri": uri, "content": {"uri": old}},
        "after": {"uri": uri, "content": {"uri": new}},
        "diff": {"added": 7, "removed": 3},
    }


async def change(turn: Turn, rest: str) -> None:
    turn.text("I will read the loader's file line by line.")
    path = turn.chat.working_directory / "src" / "loader.py"
    writing = turn.tool_call(
        "edit", display_name="Edit file", intention="One line in memory instead of the whole file."
    )
    edit = _edit(turn, "src/loader.py", BEFORE, AFTER)
    writing.assess("It changes one file of the project, which git has.", safety=0.9)
    answer = await writing.confirm(
        tool_input=json.dumps({"path": "src/loader.py"}), message="Edit src/loader.py", edits=[edit]
    )
    if not answer.approved:
        turn.text("\n\nThen I leave it as it is.")
        return
    path.parent.mkdir(exist_ok=True)
    path.write_text(AFTER, encoding="utf-8")
    writing.complete(message="Edited src/loader.py", content=[{"type": "fileEdit", **edit}])
    turn.text("\n\nThe loader reads **one line at a time** now.")


async def deploy(turn: Turn, rest: str) -> None:
    turn.text("The tests pass. Now the release.")
    command = "git push --force origin main && kubectl rollout restart deployment/parser --namespace production"
    running = turn.tool_call("shell", display_name="Run a command", intention="Put the faster parser into production.")
    running.assess("Looking at the command …")
    asked = asyncio.ensure_future(running.confirm(tool_input=command, message="Run a command", editable=True))
    running.assess("It rewrites the shared branch and restarts production.", safety=0.1)
    given = await asked
    if not given.approved:
        turn.text("\n\nNot deployed.")
        return
    running.complete(message="Ran a command", content=[{"type": "text", "text": "deployment restarted\n"}])
    turn.text("\n\nDeployed.")


async def call(turn: Turn, rest: str) -> None:
    name, _, given = rest.partition(" ")
    outcome = await turn.call_tool(name, given or "{}")
    turn.text(f"{name}: {'worked' if outcome.success else 'did not work'}")


async def stumble(turn: Turn, rest: str) -> None:
    if turn.resumed:
        turn.text(" … and the second half, after the network was back.")
        return
    turn.text("Here is the first half")
    raise AgentError("The model's service did not answer (503).", error_type="coder/overloaded", resumable=True)


async def plan(turn: Turn, rest: str) -> None:
    states = ["completed", "in_progress", "pending"]
    entries = [{"content": text, "status": status} for text, status in zip(PLAN, states, strict=True)]
    turn.chat.meta("ahpkit/plan", [{"entries": entries}])
    turn.text("That is the plan.")
