"""Operations on changesets from outside: they write no file that a client may not write, and follow no link."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support.flow import say
from support.raw_client import Json
from support.repository import Repository
from support.site import SECRET, Site
from support.waiting import BOUND

OWN = {"isolation": "worktree"}
HOOK = json.dumps({"hooks": {"Stop": [{"command": "touch ran"}]}})


async def view(site: Site, session: str, kind: str = "session") -> tuple[str, Json]:
    """A changeset of a session, once it is computed: its URI and state."""
    client = site.client
    state = (await client.ask("subscribe", session))["snapshot"]["state"]
    [uri] = [one["uriTemplate"] for one in state["changesets"] if one["changeKind"] == kind]
    shown = (await client.ask("subscribe", uri))["snapshot"]["state"]
    if shown["status"] == "computing":
        ended = ("ready", "error")
        await client.action(lambda e: e["channel"] == uri and e["action"].get("status") in ended)
        shown = (await client.ask("subscribe", uri))["snapshot"]["state"]
    return uri, shown


async def with_files(site: Site, session: str) -> str:
    """What a session changed, as soon as there is something."""
    async with asyncio.timeout(BOUND):
        while True:
            uri, shown = await view(site, session)
            if shown["files"]:
                return uri


async def move(site: Site, source: Path, destination: Path) -> Json:
    return await site.client.call("resourceMove", source=source.as_uri(), destination=destination.as_uri())


@pytest.mark.parametrize("folder", [".github/hooks", ".claude/hooks/sub"])
async def test_undo_in_a_folder_of_sealed_files_leaves_them_alone(site: Site, folder: str) -> None:
    inside = site.work / folder
    Repository(inside).commit(run_json=HOOK)
    file = inside / "run.json"
    async with site.serving(*site.agent({"file": str(file), "content": "{}"})) as client:
        session, chat = await site.session(inside, provider="scripted")
        await site.turn(chat)
        assert file.read_text() == "{}"
        answer = await client.call("invokeChangesetOperation", await with_files(site, session), operationId="undo")
    assert file.read_text() == "{}", answer
    assert "Left alone" in answer["result"]["message"]


async def test_undo_puts_no_link_where_sealed_files_belong(site: Site) -> None:
    repo = Repository(site.work)
    repo.write("innocent/hooks/evil.json", HOOK)
    (site.work / ".github").symlink_to("innocent")
    repo.commit()
    async with site.serving() as client:
        session, chat = await site.session()
        active = {"clientId": client.client_id, "tools": [{"name": "own"}]}
        await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": active})
        await client.accepted(chat, say("/tool own {}", "t"))
        await client.action("chat/toolCallReady")  # What changes while a call runs counts as the agent's.
        assert "error" not in await client.call("resourceDelete", uri=(site.work / ".github").as_uri())
        await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t"})
        answer = await client.ask("invokeChangesetOperation", await with_files(site, session), operationId="undo")
    assert "Left alone: .github" in answer["message"]
    assert not (site.work / ".github").is_symlink()


async def test_a_link_in_place_of_the_directory_is_not_followed(site: Site) -> None:
    """The session wrote a file; then a client puts a link where its directory was, and undoes that."""
    plain = site.work / "plain"
    plain.mkdir()
    file = plain / "secret"
    file.write_text("before")
    (site.work / "link").symlink_to(site.outside)
    told = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit", "kind": "edit", "status": "completed"}
    diff = {"type": "diff", "path": str(file), "oldText": "before", "newText": SECRET}
    steps: list[Json] = [{"file": str(file), "content": SECRET}, {"update": {**told, "content": [diff]}}]
    async with site.serving(*site.agent(*steps)) as client:
        await site.session()
        session, chat = await site.session(plain, provider="scripted")
        await site.turn(chat)
        uri = await with_files(site, session)
        assert "error" not in await move(site, plain, site.work / "old")
        assert "error" not in await move(site, site.work / "link", plain)
        answer = await client.call("invokeChangesetOperation", uri, operationId="undo")
    assert (site.outside / "secret").read_text() == SECRET, answer
    assert sorted(path.name for path in site.outside.iterdir()) == ["secret"]


@pytest.mark.parametrize("name", [".github/hooks/evil.json", "sub/.mcp.json", ".claude", "plugin.json"])
async def test_a_merge_writes_nothing_that_can_cause_execution(site: Site, name: str) -> None:
    repo = Repository(site.work)
    repo.commit(a_txt="one\n")
    async with site.serving() as client:
        session, _ = await site.session(config=OWN)
        state = (await client.ask("subscribe", session))["snapshot"]["state"]
        file = Path(state["_meta"]["ahpkit/worktree"]["path"]) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if name == ".claude":
            file.symlink_to("a.txt")
        else:
            file.write_text(HOOK)
        uri, _ = await view(site, session, "uncommitted")
        refusal = await client.refused("invokeChangesetOperation", uri, operationId="merge")
    assert name in refusal["message"]
    assert "git merge ahpkit/" in refusal["message"]
    assert not (site.work / name).exists()


async def test_a_merge_writes_nothing_outside_the_roots(site: Site) -> None:
    """The work tree holds the whole repository, but the session lives in a folder of it."""
    repo = Repository(site.work)
    repo.write("sub/b.txt", "b\n")
    repo.commit(a_txt="one\n")
    inside = site.work / "sub"
    async with site.serving("--root", str(inside)) as client:
        session, _ = await site.session(inside, config=OWN)
        state = (await client.ask("subscribe", session))["snapshot"]["state"]
        tree = Path(state["_meta"]["ahpkit/worktree"]["path"])
        await site.session(tree)
        assert await site.write(tree / "a.txt") is None
        uri, _ = await view(site, session, "uncommitted")
        refusal = await client.refused("invokeChangesetOperation", uri, operationId="merge")
    assert "a.txt" in refusal["message"]
    assert (site.work / "a.txt").read_text() == "one\n"
