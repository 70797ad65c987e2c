"""Relatives of the attacks on files: other spellings, other doors, other orders of the same steps."""

from __future__ import annotations

import json
import os

from support.raw_client import Json
from support.site import SECRET, Site

DENIED = -32009


async def test_a_tree_is_not_copied_with_what_is_cut_out_of_it(site: Site) -> None:
    (site.home / ".ssh").mkdir()
    (site.home / ".ssh" / "id").write_text(SECRET)
    async with site.serving("--root", str(site.home), "--root", str(site.outside)) as client:
        await site.session(site.home)
        await site.session(site.outside)
        for method in ("resourceCopy", "resourceMove"):
            params = {"source": site.home.as_uri(), "destination": (site.outside / "copy").as_uri()}
            assert (await client.refused(method, **params))["code"] == DENIED
        assert (await client.refused("resourceDelete", uri=site.home.as_uri(), recursive=True))["code"] == DENIED
    assert os.listdir(site.outside) == ["secret"]
    assert (site.home / ".ssh" / "id").exists()


async def test_a_working_directory_that_is_a_link_is_where_it_really_is(site: Site) -> None:
    (site.home / "to-outside").symlink_to(site.outside)
    (site.home / "to-data").symlink_to(site.home / "data")
    (site.home / "to-work").symlink_to(site.work)
    (site.work / "plain").write_text("plain")
    async with site.serving() as client:
        for name in ("to-outside", "to-data"):
            uri = (site.home / name).as_uri()
            assert (
                "--root" in (await client.refused("createSession", "ahp-session:/x", workingDirectory=uri))["message"]
            )
        await site.session(site.home / "to-work")
        plain = (site.home / "to-work" / "plain").as_uri()
        assert (await client.ask("resourceRead", uri=plain))["data"] == "plain"
        (site.home / "to-work").unlink()
        (site.home / "to-work").symlink_to(site.outside)
        error = await client.refused("resourceRead", uri=(site.home / "to-work" / "secret").as_uri())
        assert error["code"] == DENIED
    assert SECRET not in json.dumps(client.received)


async def test_the_demo_agent_reads_no_further_than_a_client(site: Site) -> None:
    async with site.serving() as client:
        _, chat = await site.session(site.home)
        for number, path in enumerate((".bashrc", "data/token", "../outside/secret", "/etc/passwd")):
            turn: Json = {
                "type": "chat/turnStarted",
                "turnId": f"t{number}",
                "message": {"text": f"/tool read_file {json.dumps({'path': path})}", "origin": {"kind": "user"}},
            }
            await client.accepted(chat, turn)
            ready = await client.action(
                lambda e, id=f"t{number}": e["action"]["type"] == "chat/toolCallReady" and e["action"]["turnId"] == id
            )
            yes: Json = {"type": "chat/toolCallConfirmed", "turnId": f"t{number}", "approved": True}
            await client.accepted(
                chat, {**yes, "toolCallId": ready["action"]["toolCallId"], "confirmed": "user-action"}
            )
            await client.action(
                lambda e, id=f"t{number}": e["action"]["type"] == "chat/turnComplete" and e["action"]["turnId"] == id
            )
        told = json.dumps(client.received)
    assert SECRET not in told
    assert (site.host.token or "-") not in told
    assert "root:x:0" not in told


async def test_a_client_cannot_open_a_directory_by_publishing_it(site: Site) -> None:
    async with site.serving() as client:
        session, _ = await site.session()
        container: Json = {
            "type": "directory",
            "id": "mine",
            "uri": site.outside.as_uri(),
            "name": "Mine",
            "enabled": True,
            "contents": "skill",
            "writable": True,
        }
        active = {"clientId": client.client_id, "tools": [], "customizations": [container]}
        await client.dispatch(session, {"type": "session/activeClientChanged", "activeClient": active})
        assert (await client.refused("resourceRead", uri=(site.outside / "secret").as_uri()))["code"] == DENIED
        assert (await site.write(site.outside / "new") or {}).get("code") == DENIED


async def test_odd_names_are_refused_or_served_and_never_an_internal_error(site: Site) -> None:
    (site.work / "plain").write_text("plain")
    base = site.work.as_uri()
    uris = [
        f"{base}/%ff",
        f"{base}/%00",
        f"{base}/{'a/' * 400}x",
        f"{base}/{'a' * 300}",
        f"{base}/" + "%e2%80%ae" + "x",
        f"{base}/plain/x",
        f"{base}/plain/",
        f"{base}//plain",
        f"{base}/./plain",
        f"{base}/plain?x",
        f"{base}/plain#x",
        "file:",
        "file://",
        "FILE:///etc/passwd",
        "file://evil.example/etc/passwd",
        "file://[::1]/etc/passwd",
        "file://[/etc/passwd",
    ]
    async with site.serving() as client:
        await site.session()
        for uri in uris:
            calls: list[tuple[str, Json]] = [
                ("resourceRead", {"uri": uri}),
                ("resourceList", {"uri": uri}),
                ("resourceResolve", {"uri": uri, "followSymlinks": False}),
                ("resourceMkdir", {"uri": f"{uri}/made"}),
                ("resourceWrite", {"uri": uri, "data": "x", "encoding": "utf-8", "createOnly": True}),
                ("resourceMove", {"source": uri, "destination": f"{uri}/in/itself"}),
                ("resourceCopy", {"source": uri, "destination": f"{uri}/in/itself"}),
            ]
            for method, params in calls:
                answer = await client.call(method, **params)
                assert answer.get("error", {}).get("code") != -32603, (method, uri, answer)
        (site.work / os.fsdecode(b"by-others-\xff")).write_text("x")
        session, _ = await site.session()
        (site.work / ".claude" / "commands").mkdir(parents=True)
        (site.work / ".claude" / "commands" / "later.md").write_text("Later.")
        await site.shown(session, ".claude/commands", "later")
        assert (await client.ask("resourceList", uri=base))["entries"]
        assert "Traceback" not in site.host.errors, site.host.errors


async def test_hooks_behind_a_link_are_the_files_that_they_really_are(site: Site) -> None:
    ran = site.home / "ran"
    (site.work / "mine").mkdir()
    (site.work / ".github").mkdir()
    (site.work / ".github" / "hooks").symlink_to("../mine")
    trusted = site.work / "mine" / "a.json"
    trusted.write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"command": "true"}]}}))
    evil = json.dumps({"hooks": {"UserPromptSubmit": [{"command": f"touch {ran}"}]}})
    async with site.serving("--allow-hooks", "--trust", str(site.work)) as client:
        _, chat = await site.session()
        assert (await site.write(trusted, evil) or {}).get("code") == DENIED
        for method, params in (
            ("resourceDelete", {"uri": trusted.as_uri()}),
            ("resourceMove", {"source": trusted.parent.as_uri(), "destination": (site.work / "x").as_uri()}),
        ):
            assert (await client.refused(method, **params))["code"] == DENIED
        assert (await site.write(site.work / "mine" / "b.json", evil) or {}).get("code") == DENIED
        (site.work / "mine" / "b.json").write_text(evil)  # However it came there.
        await site.turn(chat)
    assert not ran.exists()


async def test_a_terminal_does_not_start_outside(site: Site) -> None:
    async with site.serving("--terminals") as client:
        await site.session()
        claim = {"kind": "client", "clientId": client.client_id}
        for cwd in ("file:///", site.outside.as_uri(), (site.home / "data").as_uri()):
            error = await client.refused("createTerminal", "ahp-terminal:/t", claim=claim, cwd=cwd)
            assert error["code"] == DENIED


async def test_content_that_is_no_base64_is_refused(site: Site) -> None:
    async with site.serving() as client:
        await site.session()
        for data in ("é", "\u202e", "a", "ab=c", "====", "a b=", "Zg==" * 300_000):
            uri = (site.work / "file").as_uri()
            error = await client.refused("resourceWrite", uri=uri, data=data, encoding="base64")
            assert error["code"] == -32602
        await client.ask("resourceWrite", uri=uri, data="AAAA" * 300_000 + "Zg==", encoding="base64")
    assert (site.work / "file").stat().st_size == 900_001
    assert "Traceback" not in site.host.errors, site.host.errors
