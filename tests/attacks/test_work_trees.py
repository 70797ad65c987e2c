"""Work trees of sessions from outside: what a repository holds leads nowhere else and runs nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.repository import Repository
from support.site import SECRET, Site

OWN = {"isolation": "worktree"}


@pytest.fixture
def repo(site: Site) -> Repository:
    made = Repository(site.work)
    made.commit(a_txt="one\n")
    return made


def everything(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


async def refused(site: Site, **params: Any) -> str:
    """Ask for a session that must not come to life; why it did not."""
    uri = "ahp-session:/evil"
    answer = await site.client.call("createSession", uri, workingDirectory=site.work.as_uri(), config=OWN, **params)
    if "error" in answer:
        return answer["error"]["message"]
    state = (await site.client.ask("subscribe", uri))["snapshot"]["state"]
    if state["lifecycle"] == "creating":
        failed = await site.client.action(lambda e: e["channel"] == uri and e["action"]["type"] in ENDS)
        assert failed["action"]["type"] == "session/creationFailed", failed
        return failed["action"]["error"]["message"]
    assert state["lifecycle"] == "creationFailed", state["lifecycle"]
    return state["creationError"]["message"]


ENDS = ("session/ready", "session/creationFailed")


@pytest.mark.parametrize("link", [".ahpkit", ".ahpkit/worktrees"])
@pytest.mark.parametrize("outside", [True, False])
async def test_a_link_in_the_repository_does_not_place_work_trees_elsewhere(
    site: Site, repo: Repository, link: str, outside: bool
) -> None:
    target = site.outside if outside else site.home / "elsewhere"
    target.mkdir(exist_ok=True)
    (site.work / link).parent.mkdir(exist_ok=True)
    (site.work / link).symlink_to(target)
    before = everything(target)
    async with site.serving():
        assert "link" in await refused(site)
    assert everything(target) == before
    assert "ahpkit/" not in repo.git("branch", "--list", "--all")


async def test_a_link_in_place_of_the_ignored_list_is_not_written_through(site: Site, repo: Repository) -> None:
    (site.work / ".ahpkit").mkdir()
    (site.work / ".ahpkit" / ".gitignore").symlink_to(site.home / ".profile")
    async with site.serving():
        await site.session(config=OWN)
    assert not (site.home / ".profile").exists()


HOOKS = ("post-checkout", "pre-commit", "post-commit", "pre-merge-commit", "post-merge", "reference-transaction")
PROGRAMS = (
    "filter.evil.smudge",
    "filter.evil.clean",
    "filter.evil.process",
    "merge.evil.driver",
    "diff.evil.command",
    "diff.evil.textconv",
    "core.fsmonitor",
    "core.sshCommand",
    "core.editor",
    "gpg.program",
)


def quietly(repo: Repository, *arguments: str) -> None:
    """As a person who runs none of the repository's programs."""
    off = dict.fromkeys(PROGRAMS, "") | {"core.hooksPath": os.devnull, "commit.gpgSign": "false"}
    repo.git(*(part for name, value in off.items() for part in ("-c", f"{name}={value}")), *arguments)


async def test_nothing_of_the_repository_runs_when_a_work_tree_is_made_and_merged(site: Site, repo: Repository) -> None:
    mark = site.home / "ran"
    evil = f"touch {mark} #"
    repo.write(".gitattributes", "* merge=evil diff=evil\n*.bin filter=evil\n")
    repo.commit("attributes", b_bin="filtered\n")
    for name in HOOKS:
        hook = site.work / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{evil}\n")
        hook.chmod(0o755)
    for name in PROGRAMS:
        repo.git("config", name, evil)
    repo.git("config", "commit.gpgSign", "true")
    async with site.serving() as client:
        session, chat = await site.session(config=OWN)
        state = (await client.ask("subscribe", session))["snapshot"]["state"]
        (Path(state["_meta"]["ahpkit/worktree"]["path"]) / "a.txt").write_text("theirs\n")
        (site.work / "a.txt").write_text("ours\n")
        quietly(repo, "commit", "-qam", "ours")
        await site.turn(chat)
        [uri] = [one["uriTemplate"] for one in state["changesets"] if one["changeKind"] == "session"]
        shown = (await client.ask("subscribe", uri))["snapshot"]["state"]
        if shown["status"] != "ready":
            await client.action(lambda e: e["channel"] == uri and e["action"].get("status") == "ready")
        refusal = await client.refused("invokeChangesetOperation", uri, operationId="merge")
        assert "both sides changed a.txt" in refusal["message"]
    assert not mark.exists()
    assert (site.work / "a.txt").read_text() == "ours\n"


async def test_names_of_branches_and_folders_come_from_the_host_alone(site: Site, repo: Repository) -> None:
    async with site.serving():
        session, _ = await site.session(config={**OWN, "branch": "../../evil", "name": "../evil", "path": "/etc"})
        state = (await site.client.ask("subscribe", session))["snapshot"]["state"]
        tree = state["_meta"]["ahpkit/worktree"]
        assert Path(tree["path"]).parent == site.work / ".ahpkit" / "worktrees"
        assert tree["branch"].startswith("ahpkit/")
        assert SECRET not in str(state)


async def test_contents_of_changes_are_named_in_full_and_not_searched_for(site: Site, repo: Repository) -> None:
    """Git takes four letters of an object's name: whoever tries all of them would read what lies beside the session."""
    repo.write("sub/near.txt", "near\n")
    repo.write("secret.txt", SECRET)
    repo.commit("a secret beside the session")
    secret, near = (repo.git("rev-parse", f"HEAD:{name}").strip() for name in ("secret.txt", "sub/near.txt"))
    repo.git("tag", "leak", secret)
    async with site.serving() as client:
        session, chat = await site.session(site.work / "sub")
        (site.work / "sub" / "near.txt").write_text("changed\n")
        await site.turn(chat)
        state = (await client.ask("subscribe", session))["snapshot"]["state"]
        [uri] = [one["uriTemplate"] for one in state["changesets"] if one["changeKind"] == "uncommitted"]
        shown = (await client.ask("subscribe", uri))["snapshot"]["state"]
        if shown["status"] != "ready":
            await client.action(lambda e: e["channel"] == uri and e["action"].get("status") == "ready")
            shown = (await client.ask("subscribe", uri))["snapshot"]["state"]
        content = shown["files"][0]["edit"]["before"]["content"]["uri"]
        assert near in content
        assert (await client.ask("resourceRead", uri=content, encoding="utf-8"))["data"] == "near\n"
        for name in (secret[:4], secret[:7], secret[:39], secret.upper(), "leak", "HEAD"):
            for mode in ("100644", "120000", "160000"):
                odd = content.replace(near, name).replace(".100644.", f".{mode}.")
                assert "error" in await client.call("resourceRead", uri=odd, encoding="utf-8"), odd
