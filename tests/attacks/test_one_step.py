"""Checking and using a file are one step: no link leads out, however it gets there."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import pytest

from support import requirement
from support.raw_client import Json, RawClient
from support.site import SECRET, Site


def send(client: RawClient, number: int, method: str, **params: Any) -> None:
    """One of many requests that are sent without waiting."""
    request = {"jsonrpc": "2.0", "id": f"p{number}", "method": method, "params": {"channel": "ahp-root://", **params}}
    client.send(request)


@requirement("security:files:one-step")
async def test_pipelined_moves_reads_and_writes_on_a_directory_that_holds_a_link_stay_inside(site: Site) -> None:
    (site.work / "real").mkdir()
    (site.work / "real" / "secret").write_text("inside")
    (site.work / "door").symlink_to(site.outside)
    at = (site.work / "at").as_uri()
    real, door = (site.work / "real").as_uri(), (site.work / "door").as_uri()
    async with site.serving() as client:
        await site.session()
        number = 0
        for _ in range(20):
            for method, params in (
                ("resourceMove", {"source": real, "destination": at}),
                ("resourceRead", {"uri": f"{at}/secret"}),
                ("resourceMove", {"source": at, "destination": real}),
                ("resourceMove", {"source": door, "destination": at}),
                ("resourceRead", {"uri": f"{at}/secret"}),
                ("resourceWrite", {"uri": f"{at}/pwned", "data": "EVIL", "encoding": "utf-8"}),
                ("resourceMkdir", {"uri": f"{at}/made"}),
                ("resourceDelete", {"uri": f"{at}/secret"}),
                ("resourceCopy", {"source": f"{at}/secret", "destination": f"{real}/stolen"}),
                ("resourceMove", {"source": at, "destination": door}),
            ):
                number += 1
                send(client, number, method, **params)
        for one in range(1, number + 1):
            await client.wait(lambda message, one=one: message.get("id") == f"p{one}")
    assert SECRET not in json.dumps(client.received)
    assert os.listdir(site.outside) == ["secret"]
    assert (site.outside / "secret").read_text() == SECRET


@requirement("security:files:one-step")
async def test_a_link_that_other_programs_swap_all_the_time_leads_nowhere(site: Site) -> None:
    """Reads and writes while a program of the user swaps a directory and a link to outside, as fast as it can."""
    (site.work / "at").mkdir()
    (site.work / "at" / "secret").write_text("inside")
    swap = (
        "import os\n"
        "while True:\n"
        "    os.rename('at', 'kept'); os.symlink('../../outside', 'at'); os.unlink('at'); os.rename('kept', 'at')\n"
    )
    secret = (site.work / "at" / "secret").as_uri()
    async with site.serving() as client:
        await site.session()
        swapping = await asyncio.create_subprocess_exec(sys.executable, "-c", swap, cwd=site.work)
        try:
            for number in range(150):
                send(client, 2 * number, "resourceRead", uri=secret)
                send(client, 2 * number + 1, "resourceWrite", uri=secret, data="EVIL", encoding="utf-8")
            for one in range(300):
                await client.wait(lambda message, one=one: message.get("id") == f"p{one}")
        finally:
            swapping.kill()
            await swapping.wait()
    assert SECRET not in json.dumps(client.received)
    assert (site.outside / "secret").read_text() == SECRET
    assert os.listdir(site.outside) == ["secret"]


@pytest.mark.parametrize("method", ["resourceCopy", "resourceMove"])
@requirement("security:files:one-step")
async def test_a_link_in_the_destination_of_a_copy_or_a_move_is_not_followed(site: Site, method: str) -> None:
    settings = site.work / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    (site.work / "to-settings").symlink_to(settings)
    (site.work / "to-outside").symlink_to(site.outside / "secret")
    (site.work / "folder-outside").symlink_to(site.outside)
    tree = site.work / "tree" / "folder-outside"
    tree.mkdir(parents=True)
    (tree / "secret").write_text("EVIL")
    target = site.work / "target"
    target.mkdir()
    (target / "folder-outside").symlink_to(site.outside)
    (site.work / "evil").write_text("EVIL")
    async with site.serving() as client:
        await site.session()
        for name in ("to-settings", "to-outside", "folder-outside/secret", "folder-outside/new"):
            await client.call(method, source=(site.work / "evil").as_uri(), destination=(site.work / name).as_uri())
            (site.work / "evil").write_text("EVIL")
        await client.call(method, source=(site.work / "tree").as_uri(), destination=target.as_uri())
    assert settings.read_text() == "{}"
    assert (site.outside / "secret").read_text() == SECRET
    assert os.listdir(site.outside) == ["secret"]


async def test_a_hard_link_is_not_written_through(site: Site) -> None:
    settings = site.work / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    os.link(settings, site.work / "innocent")
    async with site.serving() as client:
        await site.session()
        for mode in ("append", "truncate", "insert"):
            uri = (site.work / "innocent").as_uri()
            await client.call("resourceWrite", uri=uri, data="EVIL", encoding="utf-8", mode=mode)
    assert settings.read_text() == "{}"


@requirement("security:files:regular-only")
async def test_only_regular_files_are_read_and_nothing_hangs_the_host(site: Site) -> None:
    os.mkfifo(site.work / "pipe")
    (site.work / "device").symlink_to("/dev/zero")
    (site.work / "kernel").symlink_to("/proc/kmsg")
    (site.work / "loop").symlink_to("loop")
    (site.work / "plain").write_text("plain")
    names = ["pipe", "device", "kernel", "loop"]
    async with site.serving() as client:
        await site.session()
        number = 0
        for name in names * 8:
            for uri in ((site.work / name).as_uri(), "file:///proc/kmsg", "file:///dev/stdin"):
                number += 1
                send(client, number, "resourceRead", uri=uri)
        assert (await client.ask("resourceRead", uri=(site.work / "plain").as_uri()))["data"] == "plain"
        answers: list[Json] = [
            await client.wait(lambda message, one=one: message.get("id") == f"p{one}") for one in range(1, number + 1)
        ]
        assert all("error" in answer for answer in answers)
        assert await site.host.stop() == 0


@requirement("security:files:flat-memory")
async def test_a_byte_added_to_a_large_file_costs_no_memory_and_no_copy(site: Site) -> None:
    large = site.work / "large"
    with large.open("wb") as file:
        file.truncate(1_500_000_000)
    inode = large.stat().st_ino
    async with site.serving() as client:
        await site.session()
        before = site.host.memory
        await client.ask("resourceWrite", uri=large.as_uri(), data="x", encoding="utf-8", mode="append")
        assert "larger than" in (await client.refused("resourceRead", uri=large.as_uri()))["message"]
        assert site.host.memory - before < 50_000_000
    assert (large.stat().st_size, large.stat().st_ino) == (1_500_000_001, inode)


async def test_new_files_have_the_rights_that_the_users_mask_leaves(site: Site) -> None:
    async with site.serving() as client:
        await site.session()
        mask = os.umask(0)
        os.umask(mask)
        assert await site.write(site.work / "new", "x") is None
        (site.work / "private").write_text("old")
        (site.work / "private").chmod(0o600)
        assert await site.write(site.work / "private", "x") is None
        assert client.closed is None
    assert (site.work / "new").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (site.work / "private").stat().st_mode & 0o777 == 0o600


async def test_a_client_that_copies_a_large_folder_does_not_keep_others_from_writing(site: Site) -> None:
    """The folder lies elsewhere. Changes of the same place still wait for each other."""
    mine, theirs = site.work / "mine", site.work / "theirs"
    (mine / "large").mkdir(parents=True)
    theirs.mkdir()
    for number in range(3_000):
        (mine / "large" / str(number)).touch()
    async with site.serving() as client:
        await site.session()
        other = await site.host.client(client_id="other")
        send(client, 1, "resourceCopy", source=(mine / "large").as_uri(), destination=(mine / "copy").as_uri())
        await client.ask("ping")  # The copy has begun.
        await other.ask("resourceWrite", uri=(theirs / "file").as_uri(), data="x", encoding="utf-8")
        assert not any(message.get("id") == "p1" for message in client.received)
        inside = (mine / "copy" / "file").as_uri()
        await other.ask("resourceWrite", uri=inside, data="x", encoding="utf-8")
        copied = await client.wait(lambda message: message.get("id") == "p1")
        assert "error" not in copied
        await other.aclose()
    assert len(os.listdir(mine / "copy")) == 3_001
