"""The `resource*` methods over a connection, on a real directory."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.resources.feature import Resources
from ahpkit.protocol.session.actions import (
    session_customizations_changed,
    session_working_directory_set,
)
from support import requirement
from support.bench import Bench
from support.raw_client import Json, RawClient


@pytest.fixture
async def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
async def bench(tmp_path: Path, work: Path) -> AsyncGenerator[Bench]:
    made = Bench(work, sockets=True)
    (tmp_path / "lend").mkdir()
    made.features = [Resources(content_directory=tmp_path / "content", grantable=[tmp_path / "lend"])]
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@pytest.fixture
async def client(bench: Bench, work: Path) -> RawClient:
    client = await bench.client()
    await bench.session(client, workingDirectory=work.as_uri())
    return client


async def put(client: RawClient, path: Path, data: str, **params: Any) -> None:
    assert await client.ask("resourceWrite", uri=path.as_uri(), data=data, encoding="utf-8", **params) == {}


async def etag(client: RawClient, path: Path) -> str:
    return (await client.ask("resourceResolve", uri=path.as_uri()))["etag"]


async def test_a_file_is_written_listed_and_read_back(client: RawClient, work: Path) -> None:
    await put(client, work / "a.txt", "grüße")
    await client.ask("resourceMkdir", uri=(work / "d").as_uri())
    listed = await client.ask("resourceList", uri=work.as_uri())
    assert listed == {"entries": [{"name": "a.txt", "type": "file"}, {"name": "d", "type": "directory"}]}
    read = await client.ask("resourceRead", uri=(work / "a.txt").as_uri())
    assert read == {"data": "grüße", "encoding": "utf-8", "contentType": "text/plain"}


async def test_binary_travels_as_base64_whatever_was_preferred(client: RawClient, work: Path) -> None:
    data = bytes(range(256))
    encoded = base64.b64encode(data).decode()
    await client.ask("resourceWrite", uri=(work / "b").as_uri(), data=encoded, encoding="base64")
    assert (work / "b").read_bytes() == data
    read = await client.ask("resourceRead", uri=(work / "b").as_uri(), encoding="utf-8")
    assert read == {"data": encoded, "encoding": "base64"}
    bad = await client.refused("resourceWrite", uri=(work / "b").as_uri(), data="%%%", encoding="base64")
    assert bad["code"] == -32602


@requirement("core:resource:write-modes")
async def test_the_three_write_modes_place_data_where_they_say(client: RawClient, work: Path) -> None:
    path = work / "m"
    await put(client, path, "abcdef")
    await put(client, path, "XY", mode="insert", position=2)
    assert path.read_text() == "abXYcdef"
    await put(client, path, "!", mode="append")
    assert path.read_text() == "abXYcdef!"
    await put(client, path, "-", mode="append", position=1)
    assert path.read_text() == "abXYcdef-!"
    await put(client, path, "Z", mode="truncate", position=3)
    assert path.read_text() == "abXZ"
    error = await client.refused(
        "resourceWrite", uri=path.as_uri(), data="x", encoding="utf-8", mode="insert", position=99
    )
    assert error["code"] == -32602
    assert path.read_text() == "abXZ"


@requirement("core:resource:create-only")
async def test_create_only_never_overwrites(client: RawClient, work: Path) -> None:
    path = work / "c"
    await put(client, path, "one", createOnly=True)
    error = await client.refused("resourceWrite", uri=path.as_uri(), data="two", encoding="utf-8", createOnly=True)
    assert error["code"] == -32010
    assert path.read_text() == "one"


@requirement("core:resource:if-match")
async def test_if_match_writes_only_when_nothing_changed(client: RawClient, work: Path) -> None:
    path = work / "e"
    await put(client, path, "one")
    seen = await etag(client, path)
    await put(client, path, "two", ifMatch=seen)
    error = await client.refused("resourceWrite", uri=path.as_uri(), data="three", encoding="utf-8", ifMatch=seen)
    assert error["code"] == -32011
    assert path.read_text() == "two"


@requirement("core:resource:resolve")
async def test_resolve_gives_metadata_real_path_and_etag(client: RawClient, work: Path) -> None:
    (work / "real.txt").write_text("hello")
    (work / "link").symlink_to("real.txt")
    found = await client.ask("resourceResolve", uri=(work / "link").as_uri())
    assert (found["uri"], found["type"], found["size"]) == ((work / "real.txt").as_uri(), "file", 5)
    assert found["etag"]
    link = await client.ask("resourceResolve", uri=(work / "link").as_uri(), followSymlinks=False)
    assert (link["uri"], link["type"]) == ((work / "link").as_uri(), "symlink")
    assert (await client.refused("resourceResolve", uri=(work / "none").as_uri()))["code"] == -32008


@requirement("core:resource:mkdir-parents")
async def test_mkdir_makes_parents_and_is_content_with_what_exists(client: RawClient, work: Path) -> None:
    for _ in range(2):
        assert await client.ask("resourceMkdir", uri=(work / "x" / "y" / "z").as_uri()) == {}
    (work / "file").write_text("")
    assert (await client.refused("resourceMkdir", uri=(work / "file").as_uri()))["code"] == -32010


async def test_copy_move_and_delete(client: RawClient, work: Path) -> None:
    (work / "a").write_text("A")
    uri = {name: (work / name).as_uri() for name in "abcd"}
    await client.ask("resourceCopy", source=uri["a"], destination=uri["b"])
    assert (await client.refused("resourceCopy", source=uri["a"], destination=uri["b"], failIfExists=True))[
        "code"
    ] == -32010
    await client.ask("resourceMove", source=uri["b"], destination=uri["c"])
    assert not (work / "b").exists()
    await client.ask("resourceDelete", uri=uri["c"])
    assert (await client.refused("resourceDelete", uri=uri["c"]))["code"] == -32008
    (work / "d").mkdir()
    (work / "d" / "x").write_text("")
    assert (await client.refused("resourceDelete", uri=uri["d"]))["code"] == -32602
    await client.ask("resourceDelete", uri=uri["d"], recursive=True)
    assert not (work / "d").exists()


@requirement("core:resource:outside-roots")
@requirement("core:wire:permission-error-data")
async def test_outside_the_roots_nothing_is_touched_and_the_error_says_how_to_ask(
    client: RawClient, work: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    for method, params in (
        ("resourceRead", {"uri": secret.as_uri()}),
        ("resourceWrite", {"uri": secret.as_uri(), "data": "x", "encoding": "utf-8"}),
        ("resourceDelete", {"uri": secret.as_uri()}),
        ("resourceRead", {"uri": f"{work.as_uri()}/../secret"}),
        ("resourceList", {"uri": "file:///etc"}),
    ):
        error = await client.refused(method, **params)
        assert error["code"] == -32009, method
        assert error["data"]["request"]["uri"] == params["uri"]
    assert secret.read_text() == "s"


async def test_links_cannot_lead_out_not_even_as_parents_of_new_files(
    client: RawClient, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (work / "door").symlink_to(tmp_path / "out")
    assert (await client.refused("resourceRead", uri=(work / "door").as_uri()))["code"] == -32009
    error = await client.refused("resourceWrite", uri=(work / "door" / "new").as_uri(), data="x", encoding="utf-8")
    assert error["code"] == -32009
    assert (await client.refused("resourceMkdir", uri=(work / "door" / "d").as_uri()))["code"] == -32009
    assert os.listdir(tmp_path / "out") == []
    (work / "loop").symlink_to("loop")
    assert "error" in await client.call("resourceRead", uri=(work / "loop").as_uri())


async def test_a_request_is_granted_only_where_the_settings_allow_it(
    client: RawClient, bench: Bench, tmp_path: Path
) -> None:
    lent = tmp_path / "lend" / "f"
    lent.write_text("lent")
    assert (await client.refused("resourceRead", uri=lent.as_uri()))["code"] == -32009
    assert (await client.refused("resourceRequest", uri="file:///etc", read=True))["code"] == -32009
    await client.ask("resourceRequest", uri=(tmp_path / "lend").as_uri(), read=True)
    assert (await client.ask("resourceRead", uri=lent.as_uri()))["data"] == "lent"
    denied = await client.refused("resourceWrite", uri=lent.as_uri(), data="x", encoding="utf-8")
    assert denied["code"] == -32009
    other = await bench.client()
    assert (await other.refused("resourceRead", uri=lent.as_uri()))["code"] == -32009


@pytest.mark.parametrize("uri", ["http://x/y", "file://server/share", "file:relative", "file:///a%00b", "nonsense"])
async def test_uris_that_name_no_local_path_are_refused(client: RawClient, uri: str) -> None:
    assert (await client.refused("resourceRead", uri=uri))["code"] == -32602


async def test_a_hook_directory_is_not_writable_although_it_is_inside_the_workspace(
    client: RawClient, bench: Bench, work: Path
) -> None:
    hooks = work / ".github" / "hooks"
    hooks.mkdir(parents=True)
    container: Any = {"type": "directory", "id": "h", "uri": hooks.as_uri(), "name": "hooks", "enabled": True}
    container |= {"contents": "hook", "writable": False}
    [session] = bench.host.services.session_uris()
    bench.host.services.dispatch(session, session_customizations_changed(customizations=[container]))
    error = await client.refused("resourceWrite", uri=(hooks / "evil.json").as_uri(), data="{}", encoding="utf-8")
    assert error["code"] == -32009
    assert (await client.ask("resourceList", uri=hooks.as_uri())) == {"entries": []}


async def test_sealed_files_cannot_be_reached_by_moving_what_is_around_them(client: RawClient, work: Path) -> None:
    (work / ".github" / "hooks").mkdir(parents=True)
    (work / "mine" / "hooks").mkdir(parents=True)
    (work / "mine" / "hooks" / "evil.json").write_text("{}")
    mine, theirs = (work / "mine").as_uri(), (work / ".github").as_uri()
    assert (await client.refused("resourceMove", source=theirs, destination=(work / "x").as_uri()))["code"] == -32009
    assert (await client.refused("resourceCopy", source=mine, destination=theirs))["code"] == -32009
    assert (await client.refused("resourceDelete", uri=theirs, recursive=True))["code"] == -32009
    settings = (work / ".claude" / "settings.json").as_uri()
    assert (await client.refused("resourceWrite", uri=settings, data="{}", encoding="utf-8"))["code"] == -32009
    assert os.listdir(work / ".github" / "hooks") == []


@requirement("session:customization:directory-write")
async def test_a_writable_customization_directory_comes_into_being_with_its_first_file(
    client: RawClient, bench: Bench, work: Path
) -> None:
    skills = work / ".claude" / "skills"
    container: Any = {"type": "directory", "id": "s", "uri": skills.as_uri(), "name": "skills", "enabled": True}
    container |= {"contents": "skill", "writable": True}
    [session] = bench.host.services.session_uris()
    bench.host.services.dispatch(session, session_customizations_changed(customizations=[container]))
    await put(client, skills / "review" / "SKILL.md", "Review it")
    assert (skills / "review" / "SKILL.md").read_text() == "Review it"
    elsewhere = (work / "none" / "file").as_uri()
    assert (await client.refused("resourceWrite", uri=elsewhere, data="", encoding="utf-8"))["code"] == -32008


@requirement("core:resource:watch-channel")
@requirement("core:resource:watch-released")
async def test_a_watch_reports_changes_until_its_last_subscriber_leaves(
    client: RawClient, bench: Bench, work: Path
) -> None:
    params: Json = {"recursive": True, "excludes": {"items": ["*.tmp"]}}
    channel = (await client.ask("createResourceWatch", uri=work.as_uri(), **params))["channel"]
    assert channel.startswith("ahp-resource-watch:/")
    snapshot = (await client.ask("subscribe", channel))["snapshot"]
    assert snapshot["state"] == {"root": work.as_uri(), **params}
    (work / "noise.tmp").write_text("x")
    (work / "new.txt").write_text("x")

    def tells_new(envelope: Json) -> bool:
        if envelope["channel"] != channel:
            return False
        items: list[Json] = envelope["action"]["changes"]["items"]
        return any(item["uri"] == (work / "new.txt").as_uri() for item in items)

    envelope = await client.action(tells_new)
    assert all("noise" not in item["uri"] for item in envelope["action"]["changes"]["items"])
    client.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": channel}})
    await client.ask("ping")
    assert bench.host.services.state(channel) is None


@requirement("gen:watch:no-empty-batch")
@pytest.mark.parametrize("recursive", [False, True])
async def test_a_batch_is_never_empty_and_its_kinds_are_three(bench: Bench, work: Path, recursive: bool) -> None:
    """What a watch leaves out makes no batch, also when nothing else changed."""
    client = await bench.client("ahp-root://", offer=["1.0.0"])
    await bench.session(client, workingDirectories=[work.as_uri()])
    params: Json = {"recursive": recursive, "excludes": {"items": ["*.tmp", "out/*"]}, "includes": {"items": ["*"]}}
    channel = (await client.ask("createResourceWatch", uri=work.as_uri(), **params))["channel"]
    await client.ask("subscribe", channel)

    def told() -> list[list[Json]]:
        return [said["action"]["changes"]["items"] for said in client.actions(channel)]

    def kinds(path: Path) -> set[str]:
        return {item["type"] for items in told() for item in items if item["uri"] == path.as_uri()}

    file = work / "file.txt"
    steps = (
        ("added", lambda: file.write_text("a")),
        ("updated", lambda: file.write_text("b")),
        ("deleted", file.unlink),
    )
    for kind, step in steps:
        for number in range(3):
            (work / f"{kind}{number}.tmp").write_text("noise")
        step()
        await client.wait(lambda said, kind=kind: kind in kinds(file))
    assert all(told())
    assert {item["type"] for items in told() for item in items} <= {"added", "updated", "deleted"}
    assert not any(".tmp" in item["uri"] for items in told() for item in items)


@requirement("gen:watch:gate")
@pytest.mark.parametrize("version", ["0.4.0", "0.9.0", "1.0.0"])
async def test_what_may_not_be_read_may_not_be_watched(bench: Bench, tmp_path: Path, work: Path, version: str) -> None:
    client = await bench.client("ahp-root://", offer=[version])
    await bench.session(client, workingDirectory=work.as_uri())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("x")
    (work / "door").symlink_to(tmp_path / "out")
    (work / "peek").symlink_to(tmp_path / "out" / "secret")
    for place in (
        tmp_path,
        tmp_path / "out",
        tmp_path / "out" / "secret",
        work / "door",
        work / "peek",
        tmp_path / "no",
    ):
        error = await client.refused("createResourceWatch", uri=place.as_uri(), recursive=True)
        assert error["code"] == -32009, place
    around = f"{work.as_uri()}/../out"
    assert (await client.refused("createResourceWatch", uri=around, recursive=False))["code"] in (-32009, -32602)


@requirement("gen:watch:gate", "gen:reconnect:missing-covers-permission")
@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "1.0.0"])
async def test_a_watch_is_observed_by_those_who_may_read_the_place(bench: Bench, tmp_path: Path, version: str) -> None:
    lent = tmp_path / "lend"
    first = await bench.client("ahp-root://", client_id="first", offer=[version])
    other = await bench.client("ahp-root://", client_id="other", offer=[version])
    await first.ask("resourceRequest", uri=lent.as_uri(), read=True)
    channel = (await first.ask("createResourceWatch", uri=lent.as_uri()))["channel"]
    await first.ask("subscribe", channel)
    assert (await other.refused("subscribe", channel))["code"] == -32009
    third = await bench.connect("third")
    begun = await third.initialize(channel, "ahp-root://", protocolVersions=[version])
    assert [one["resource"] for one in begun["snapshots"]] == ["ahp-root://"]
    await other.ask("resourceRequest", uri=lent.as_uri(), read=True)
    seen = (await other.ask("subscribe", channel))["snapshot"]["fromSeq"]
    await other.aclose()  # What it was granted goes with it; the watch stays for the first.
    back = await bench.connect("other")
    wanted = ["ahp-root://", channel, "ahp-session:/gone"]
    answer = await back.ask("reconnect", clientId="other", lastSeenServerSeq=seen, subscriptions=wanted)
    assert answer["type"] == "replay"
    assert answer["missing"] == [channel, "ahp-session:/gone"]
    (lent / "new").write_text("x")
    await first.action(lambda said: said["channel"] == channel)
    await back.ask("ping")
    assert back.actions(channel) == []


@requirement("gen:reconnect:missing-covers-permission")
async def test_an_answer_by_snapshots_says_nothing_of_what_is_missing(bench: Bench) -> None:
    client = await bench.client("ahp-root://", client_id="late", offer=["1.0.0"])
    await client.aclose()
    back = await bench.connect("late")
    wanted = ["ahp-root://", "ahp-session:/gone"]
    answer = await back.ask("reconnect", clientId="late", lastSeenServerSeq=10**6, subscriptions=wanted)
    assert answer["type"] == "snapshot"
    assert "missing" not in answer
    assert [one["resource"] for one in answer["snapshots"]] == ["ahp-root://"]


async def test_content_of_agents_is_served_by_its_uri(client: RawClient, bench: Bench) -> None:
    [session] = bench.host.services.session_uris()
    store = bench.host.registered.turns.content.provided
    assert store is not None
    uri = store(session, b"\x89PNG\xff", "image/png")
    read = await client.ask("resourceRead", uri=uri)
    assert base64.b64decode(read["data"]) == b"\x89PNG\xff"
    assert read["contentType"] == "image/png"
    assert await client.ask("resourceRead", uri=f"{uri}/a%20name for people.png") == read
    assert (await client.refused("resourceRead", uri="ahp-content:/../../etc/passwd"))["code"] == -32006


async def test_what_lies_in_a_directory_that_a_session_gets_later_can_be_read(
    client: RawClient, bench: Bench, work: Path
) -> None:
    [session] = bench.host.services.session_uris()
    more = work.parent / "more"
    more.mkdir()
    (more / "a").write_text("a")
    assert (await client.refused("resourceRead", uri=(more / "a").as_uri()))["code"] == -32009
    bench.host.services.dispatch(session, session_working_directory_set(directory=more.as_uri()))
    assert (await client.ask("resourceRead", uri=(more / "a").as_uri()))["data"] == "a"
