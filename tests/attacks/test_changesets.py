"""Operations on changesets from outside: they write no file that a client may not write, and follow no link."""

from __future__ import annotations

import asyncio
import json
import os
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


async def test_an_agent_does_not_hide_its_changes_by_naming_a_file_outside(site: Site) -> None:
    """The write is refused, and the changes of the turn are shown as those of any other."""
    Repository(site.work).commit(a_txt="one\n")
    outside = {"path": f"{site.work}/sub/../../../outside/secret", "content": "EVIL"}
    changed = {"path": f"{site.work}/sub/../a.txt", "content": "two\n"}
    steps = [{"request": "fs/write_text_file", "params": params} for params in (outside, changed)]
    async with site.serving(*site.agent(*steps)):
        session, chat = await site.session(provider="scripted")
        await site.turn(chat)
        _, shown = await view(site, session)
        assert [file["id"] for file in shown["files"]] == [(site.work / "a.txt").as_uri()]
        assert "could not be read" not in site.host.errors
    assert (site.outside / "secret").read_text() == SECRET


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


def file_that_names(folder: Path, other: Path) -> None:
    (folder / ".git").write_text(f"gitdir: {other}/.git\n")


def link_to(folder: Path, other: Path) -> None:
    (folder / ".git").symlink_to(other / ".git")


def made_up_work_tree(folder: Path, other: Path) -> None:
    """It says that it belongs to the other repository, which does not know it."""
    made = folder / "made-up" / "worktrees" / "x"
    made.mkdir(parents=True)
    (made / "HEAD").write_text("ref: refs/heads/main\n")
    (made / "commondir").write_text(f"{other}/.git\n")
    (made / "gitdir").write_text(f"{folder}/.git\n")
    (folder / ".git").write_text(f"gitdir: {made}\n")


def borrowed_objects(folder: Path, other: Path) -> None:
    Repository(folder)
    (folder / ".git" / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n")
    (folder / ".git" / "refs" / "heads" / "main").symlink_to(other / ".git" / "refs" / "heads" / "main")


def linked_objects(folder: Path, other: Path) -> None:
    Repository(folder)
    (folder / ".git" / "objects" / "info").rmdir()
    (folder / ".git" / "objects" / "pack").rmdir()
    (folder / ".git" / "objects").rmdir()
    (folder / ".git" / "objects").symlink_to(other / ".git" / "objects")
    (folder / ".git" / "refs" / "heads" / "main").symlink_to(other / ".git" / "refs" / "heads" / "main")


def borrowed_without_end(folder: Path, other: Path) -> None:
    """Thousands of lines that lead back to the same folder, by another name each, and one that leads outside."""
    Repository(folder)
    names = "".join(f"{'./' * number}\n" for number in range(250))
    (folder / ".git" / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n{names}")


def borrowed_in_quotes(folder: Path, other: Path) -> None:
    """Git reads a quoted name without its quotes."""
    borrowed_objects(folder, other)
    (folder / ".git" / "objects" / "info" / "alternates").write_text(f'"{other}/.git/objects"\n')


def borrowed_far_below(folder: Path, other: Path) -> None:
    borrowed_objects(folder, other)
    padding = "# nothing\n" * 10_000
    (folder / ".git" / "objects" / "info" / "alternates").write_text(f"{padding}{other}/.git/objects\n")


def pipe_in_its_place(folder: Path, other: Path) -> None:
    """Reading it never ends."""
    file_that_names(folder, other)
    os.mkfifo(other / ".git" / "gitdir")


async def test_the_repository_of_another_directory_outside_the_roots_is_not_used(site: Site) -> None:
    other = Repository(site.outside)
    other.commit()
    async with site.serving() as client:
        for way in (
            file_that_names,
            link_to,
            made_up_work_tree,
            borrowed_objects,
            linked_objects,
            borrowed_without_end,
            borrowed_in_quotes,
            borrowed_far_below,
            pipe_in_its_place,
        ):
            folder = site.work / way.__name__
            folder.mkdir()
            way(folder, site.outside)
            session, _ = await site.session(folder)
            state = (await client.ask("subscribe", session))["snapshot"]["state"]
            kinds = [one["changeKind"] for one in state["changesets"]]
            assert kinds == ["session", "turn"], way
        assert "outside" not in json.dumps(client.received)
    assert "which clients may not use" in site.host.errors


async def test_a_repository_outside_the_roots_that_knows_the_work_tree_is_used(site: Site) -> None:
    other = Repository(site.outside)
    other.commit(a_txt="a")
    other.git("worktree", "add", "--quiet", str(site.work / "tree"))
    whole = Repository(site.home.parent / "whole")
    whole.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(site.outside), "sub")
    (site.work / "tree" / "new.txt").write_text("new")
    (whole.root / "sub" / "new.txt").write_text("new")
    async with site.serving("--root", str(site.work), "--root", str(whole.root / "sub")):
        for folder in (site.work / "tree", whole.root / "sub"):
            session, _ = await site.session(folder)
            _, shown = await view(site, session, "uncommitted")
            assert [Path(file["id"]).name for file in shown["files"]] == ["new.txt"], folder


async def test_the_changes_of_a_session_that_lies_outside_after_a_change_of_roots_are_shut(site: Site) -> None:
    repository = Repository(site.work)
    repository.commit(a="old")
    async with site.serving("--root", str(site.work)) as client:
        session, _ = await site.session(site.work)
        (site.work / "a").write_text("new")
        opened, shown = await view(site, session, "uncommitted")
        content = shown["files"][0]["edit"]["after"]["content"]["uri"]
        assert (await client.ask("resourceRead", uri=content))["data"] == "new"
        await site.run("roots", "remove", str(site.work))
        refused = await client.refused("invokeChangesetOperation", opened, operationId="commit")
        assert "outside the directories" in refused["message"]
        await client.refused("resourceRead", uri=content)
        await client.refused("subscribe", opened.replace("uncommitted", "session"))
    assert repository.git("rev-list", "--count", "HEAD").strip() == "1"
