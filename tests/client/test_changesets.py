"""What a client makes of a catalogue of changesets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ahpkit.changes.feature import Changesets
from ahpkit.client import Client, Session
from ahpkit.client.changesets import ConfirmationRequired, expand, offered
from ahpkit.host.agent import Turn
from ahpkit.host.resources.feature import Resources
from ahpkit.testing.fake_host import FakeHost
from ahpkit.testing.memory_host import memory_host
from support import requirement
from support.bench import ScriptedAgent
from support.clients import SESSION, eventually
from support.repository import Repository

STATIC = {"label": "a", "uriTemplate": "ahp-changeset:/s/session", "changeKind": "session"}
TURN = {"label": "b", "uriTemplate": "ahp-changeset:/s/turn/{turnId}", "changeKind": "turn"}
PAIR = {"label": "c", "uriTemplate": "ahp-changeset:/s/{originalTurnId}/{modifiedTurnId}", "changeKind": "x-new"}


@requirement("changesets:template:static")
def test_a_template_without_variables_is_the_uri() -> None:
    assert expand(STATIC["uriTemplate"]) == "ahp-changeset:/s/session"


@requirement("changesets:template:turn")
@requirement("changesets:template:expansion-escaped")
def test_a_turns_id_is_put_in_percent_encoded() -> None:
    assert expand(TURN["uriTemplate"], turnId="a/b c") == "ahp-changeset:/s/turn/a%2Fb%20c"


@requirement("changesets:template:compare")
def test_two_turns_are_needed_where_two_are_named() -> None:
    assert expand(PAIR["uriTemplate"], originalTurnId="1", modifiedTurnId="2") == "ahp-changeset:/s/1/2"
    with pytest.raises(ValueError, match="needs values for: modifiedTurnId"):
        expand(PAIR["uriTemplate"], originalTurnId="1")


@requirement("changesets:template:unknown-variable")
@requirement("changesets:kind:unknown")
def test_entries_with_unknown_variables_are_left_out_and_unknown_kinds_are_not() -> None:
    strange = {"label": "d", "uriTemplate": "ahp-changeset:/s/{branch}", "changeKind": "branch"}
    assert offered({"changesets": [STATIC, strange, PAIR]}) == [STATIC, PAIR]
    assert offered({}) == []


FILE: dict[str, Any] = {"id": "file:///a", "edit": {"after": {"uri": "file:///a", "content": {"uri": "x:1"}}}}
OPEN: dict[str, Any] = {"id": "open", "label": "Open", "scopes": ["changeset"], "status": "idle"}
VIEW = "ahp-changeset:/s/session"


@pytest.fixture
async def looked_at(host: FakeHost, client: Client) -> Session:
    """A session with one changeset, on a host that says what the test wants."""
    session = await client.session(SESSION)
    entry = {"label": "Changes", "uriTemplate": VIEW, "changeKind": "session"}
    host.open(
        VIEW,
        {"status": "ready", "files": [FILE], "operations": [OPEN, {**OPEN, "id": "drop", "confirmation": "Sure?"}]},
    )
    host.emit(SESSION, {"type": "session/changesetsChanged", "changesets": [entry]})
    await eventually(lambda: session.state.get("changesets"))
    return session


@requirement("changesets:operation:follow-up")
@pytest.mark.parametrize("external", [True, False])
async def test_what_follows_an_operation_is_to_be_opened_outside_or_shown(
    host: FakeHost, looked_at: Session, external: bool
) -> None:
    follow_up = {"content": {"uri": "https://example.org/1"}, **({"external": True} if external else {})}
    host.handlers["invokeChangesetOperation"] = lambda params: {"message": {"markdown": "Done."}, "followUp": follow_up}
    async with looked_at.changeset("session") as view:
        result = await view.invoke("open")
    assert (str(result), result.open_outside, result.show) == (
        ("Done.", "https://example.org/1", None) if external else ("Done.", None, "https://example.org/1")
    )


@requirement("changesets:operation:confirmation", "changesets:operation:no-optimism")
async def test_nothing_is_done_unconfirmed_and_nothing_changes_before_the_host_says_so(
    host: FakeHost, looked_at: Session
) -> None:
    host.handlers["invokeChangesetOperation"] = lambda params: {}
    async with looked_at.changeset("session") as view:
        with pytest.raises(ConfirmationRequired, match="Sure"):
            await view.invoke("drop")
        assert host.sent("invokeChangesetOperation") == []
        before = view.state
        await view.invoke("drop", confirmed=True)
        assert view.state == before


@requirement("changesets:review:absent-is-false", "changesets:review:ui-gate")
async def test_a_file_that_says_nothing_is_not_reviewed_and_review_is_for_those_that_offer_it(
    looked_at: Session,
) -> None:
    async with looked_at.changeset("session") as view:
        assert not view.is_reviewed(FILE["id"])
        assert not view.can_review
        with pytest.raises(ValueError, match="does not offer review"):
            view.review([FILE["id"]])


@requirement("changesets:end:not-distinguished")
async def test_a_changeset_that_was_cleared_goes_on(host: FakeHost, looked_at: Session) -> None:
    async with looked_at.changeset("session") as view:
        host.emit(VIEW, {"type": "changeset/cleared"})
        await eventually(lambda: not view.files)
        host.emit(VIEW, {"type": "changeset/fileSet", "file": FILE})
        await eventually(lambda: view.files)
        assert [file["id"] for file in view.files] == [FILE["id"]]


@requirement("changesets:operation:confirmation", "changesets:review:ui-gate")
async def test_a_real_hosts_changes_are_reviewed_and_undone_by_the_sdk(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt="one\n")
    agent = ScriptedAgent()

    async def script(turn: Turn) -> None:
        (repo.root / "a.txt").write_text("two\n")

    agent.script = script
    changesets = Changesets(tmp_path / "ours", default_directory=repo.root)
    async with memory_host(agent, features=[changesets], directory=repo.root) as host, host.client() as client:
        session = await client.create_session()
        await (await session.chat()).ask("go")
        async with session.changeset("session") as view:
            await eventually(lambda: view.files)
            [file] = view.files
            await view.review([file["id"]]).accepted()
            assert view.is_reviewed(file["id"])
            with pytest.raises(ConfirmationRequired):
                await view.invoke("undo")
            undone = "Undid 1 file. It is not known who wrote a.txt; redo brings the content back."
            assert str(await view.invoke("undo", confirmed=True)) == undone
    assert (repo.root / "a.txt").read_text() == "one\n"


async def test_a_file_whose_content_the_host_has_not_kept_has_no_text(tmp_path: Path) -> None:
    """`sessions diff` ended with an error at the first such file."""
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt="one\n")
    agent = ScriptedAgent()

    async def script(turn: Turn) -> None:
        with (repo.root / "huge.iso").open("wb") as file:
            file.truncate(17 * 2**20)

    agent.script = script
    changesets = Changesets(tmp_path / "ours", default_directory=repo.root)
    async with (
        memory_host(agent, features=[Resources(), changesets], directory=repo.root) as host,
        host.client() as client,
    ):
        session = await client.create_session()
        await (await session.chat()).ask("go")
        async with session.changeset("session") as view:
            await eventually(lambda: view.files)
            [file] = view.files
            assert file["_meta"] == {"ahpkit/note": "too large"}
            assert await view.read(file["edit"]["after"]) is None
