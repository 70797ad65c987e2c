"""Programs that a repository names to git: run only where all of it is as the owner trusted it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.raw_client import Json
from support.repository import Repository
from support.site import Site

COMMIT = "invokeChangesetOperation"


@pytest.fixture
def repo(site: Site) -> Repository:
    made = Repository(site.work)
    made.commit(a_txt="one\n")
    return made


def script(path: Path, mark: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {mark}\ncat 2>/dev/null\n")
    path.chmod(0o755)


async def uncommitted(site: Site, session: str) -> tuple[str, Json]:
    """What is not committed, computed anew."""
    client = site.client
    state = (await client.ask("subscribe", session))["snapshot"]["state"]
    [uri] = [one["uriTemplate"] for one in state["changesets"] if one["changeKind"] == "uncommitted"]
    shown = (await client.ask("subscribe", uri))["snapshot"]["state"]
    if shown["status"] == "computing":
        await client.action(lambda e: e["channel"] == uri and e["action"].get("status") in ("ready", "error"))
        shown = (await client.ask("subscribe", uri))["snapshot"]["state"]
    return uri, shown


async def test_a_filter_in_an_included_file_that_a_client_writes_does_not_run(site: Site, repo: Repository) -> None:
    """Projects keep git settings among their files, and the repository includes them."""
    mark = site.home / "ran"
    repo.write("project.gitconfig", "[core]\n")
    repo.git("config", "include.path", "../project.gitconfig")
    async with site.serving() as client:
        session, chat = await site.session()
        await uncommitted(site, session)
        evil = f'[filter "x"]\n\tclean = "touch {mark}; cat"\n\tsmudge = "touch {mark}; cat"\n'
        assert await site.write(site.work / "project.gitconfig", evil) is None
        assert await site.write(site.work / ".gitattributes", "* filter=x\n") is None
        assert await site.write(site.work / "a.txt", "two\n") is None
        await site.turn(chat)
        uri, _ = await uncommitted(site, session)
        await client.call(COMMIT, uri, operationId="commit")
    assert not mark.exists()


@pytest.mark.parametrize("way", ["hooksPath", "a script of a hook", "a script of a filter", "a driver"])
async def test_what_git_runs_is_bound_to_the_content_that_was_trusted(site: Site, repo: Repository, way: str) -> None:
    mark, before = site.home / "ran", site.home / "before"
    hook, named = site.work / ".git" / "hooks" / "pre-commit", site.work / "tools" / "check.sh"
    script(hook, before)
    script(named, before)
    match way:
        case "hooksPath":
            repo.git("config", "core.hooksPath", "tools")
            named = named.rename(named.with_name("pre-commit"))
        case "a script of a hook":
            hook.write_text("#!/bin/sh\nexec ./tools/check.sh\n")
        case "a script of a filter":
            repo.git("config", "filter.x.clean", "./tools/check.sh")
            repo.write(".gitattributes", "*.txt filter=x\n")
        case _:
            repo.git("config", "merge.x.driver", "./tools/check.sh")
            repo.write(".gitattributes", "*.txt merge=x\n")
    async with site.serving("--allow-hooks", "--trust", str(site.work)) as client:
        session, _ = await site.session()
        (site.work / "a.txt").write_text("two\n")
        uri, _ = await uncommitted(site, session)
        answer = await client.call(COMMIT, uri, operationId="commit")
        assert before.exists(), answer
        error = await site.write(named, f"#!/bin/sh\ntouch {mark}\ncat\n")
        assert error is not None
        script(named, mark)
        (site.work / "a.txt").write_text("three\n")
        uri, _ = await uncommitted(site, session)
        answer = await client.call(COMMIT, uri, operationId="commit")
    assert not mark.exists(), answer
