"""Agents that nobody here wrote, with MCP servers that nobody here wrote: what each reaches through the host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.test_edits_of_kinds import is_undone
from ahpkit.changes.feature import Changesets
from ahpkit.host.resources.feature import Resources
from ahpkit.testing.fake_model import FakeModel
from support.raw_client import Json
from support.real_agents import AGENTS, EVERYTHING, FILES, NODE, everything_over, made, needs_agents
from support.repository import Repository
from support.scripted_acp import MARK
from support.stage import Stage, calling, staged

pytestmark = needs_agents


@pytest.mark.parametrize("name", ["goose", "codex", "opencode", "kimi"])
async def test_it_reaches_everything_and_passes_the_gate(name: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "note.txt").write_text("written by a person")
    async with FakeModel(calling) as model, everything_over("streamableHttp") as url:
        agent = made(name, model, tmp_path / "home", tmp_path / "work", **{MARK: str(tmp_path)})
        servers = {
            "everything": {"command": NODE, "args": [EVERYTHING]},
            "files": {"command": NODE, "args": [FILES, str(tmp_path / "work")]},
            "web": {"type": "http", "url": url},
        }
        async with staged(agent, tmp_path, servers=servers) as stage:
            for server in servers:
                await stage.server(server, "ready")
            await _calls_servers(stage)
            await _reaches_people(stage)
            await _is_switched_off(stage)


@pytest.mark.parametrize("name", ["goose"])  # Others ask in their own ways, or not at all.
async def test_its_edit_is_shown_as_a_change_of_the_turn_and_undone(name: str, tmp_path: Path) -> None:
    """With its own tool, which asks: the file is written, listed with its content, and gone after the undo."""
    repository = Repository(tmp_path / "work")
    repository.commit(kept_txt="as it was\n")
    target, real = repository.root / "written.txt", AGENTS[name]
    changes = Changesets(tmp_path / "ours", default_directory=repository.root)
    resources = Resources(content_directory=tmp_path / "content")
    async with FakeModel(calling) as model:
        agent = made(name, model, tmp_path / "home", repository.root, **{MARK: str(tmp_path)})
        async with staged(agent, tmp_path, features=[resources, changes], seconds=200.0) as stage:
            write = f"CALL {real.tool} {json.dumps(real.write(target))}"
            turn = await stage.turn(write, decisions=["allow-once"])
            assert [call["status"] for call in turn.calls] == ["completed"]
            assert target.read_text().strip() == "hello"
            await is_undone(stage, turn, target)
            assert (repository.root / "kept.txt").read_text() == "as it was\n"


async def _calls_servers(stage: Stage) -> None:
    """Approval, denial and a remembered rule; one card for each call, with the server it belongs to."""
    entry = await stage.server("everything", "ready")
    echo = 'CALL everything_echo {"message": "hi"}'
    allowed = await stage.turn(echo, decisions=["allow-once"])
    assert _cards(allowed.calls) == [("echo", "completed", "Echo: hi")]
    assert allowed.calls[0]["contributor"] == {"kind": "mcp", "customizationId": entry["id"]}
    assert "Echo: hi" in allowed.text
    [asked] = allowed.approvals
    assert '"hi"' in asked["toolInput"]
    assert [option["kind"] for option in asked["options"][:2]] == ["approve", "deny"]

    denied = await stage.turn(echo, decisions=["deny-once"])
    assert [(call["status"], call["reason"]) for call in denied.calls] == [("cancelled", "denied")]

    await stage.turn(echo, decisions=["allow:tool:session"])
    remembered = await stage.turn('CALL everything_echo {"message": "again"}')
    assert _cards(remembered.calls) == [("echo", "completed", "Echo: again")]

    read = f'CALL files_read_text_file {{"path": "{stage.bench.config.default_directory}/note.txt"}}'
    assert "written by a person" in (await stage.turn(read, decisions=["allow-once"])).text
    over_http = await stage.turn('CALL web_get-sum {"a": 2, "b": 3}', decisions=["allow-once"])
    assert "5" in over_http.calls[0]["content"][0]["text"]


async def _reaches_people(stage: Stage) -> None:
    """A tool of the client, a canvas in it, and a question."""
    shown = await stage.turn('CALL show_note {"text": "hi"}')
    assert stage.ran == [("show_note", {"text": "hi"})]
    assert "show_note was shown" in shown.text
    assert [(call["toolName"], call["status"]) for call in shown.calls] == [("show_note", "completed")]

    opened = await stage.turn('CALL canvas_open {"canvasId": "board", "instanceId": "one"}')
    driven = await stage.turn('CALL canvas_invoke {"instanceId": "one", "actionName": "add", "input": {"card": "x"}}')
    assert stage.board.verbs() == ["open one", "add one"]
    assert [call["success"] for call in (*opened.calls, *driven.calls)] == [True, True]

    asked = await stage.turn('CALL ask_user {"question": "Which colour?"}', answer="green")
    assert [question["questions"][0]["message"] for question in asked.questions] == ["Which colour?"]
    assert "green" in asked.text


async def _is_switched_off(stage: Stage) -> None:
    """In mid-session, at once, and without a new session of the agent."""
    await stage.switch("everything", on=False)
    gone = await stage.turn('CALL everything_echo {"message": "hi"}')
    assert not [call for call in gone.calls if call.get("success")]
    await stage.switch("everything", on=True)
    back = await stage.turn('CALL everything_echo {"message": "back"}')
    assert _cards(back.calls) == [("echo", "completed", "Echo: back")]


def _cards(calls: list[Json]) -> list[tuple[str, str, str]]:
    return [(call["toolName"], call["status"], call.get("content", [{}])[0].get("text", "")) for call in calls]
