"""What can cause execution is written by neither clients nor agents, and what runs is what was trusted."""

from __future__ import annotations

import asyncio
import json
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from customizations.desk import Publisher
from support import requirement
from support.flow import say
from support.raw_client import Json, RawClient
from support.site import Site
from support.waiting import BOUND, until

DENIED = -32009


def hook(command: str) -> str:
    return json.dumps({"hooks": {"UserPromptSubmit": [{"command": command}]}})


def place(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# -- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("directory", "file"),
    [
        (".", "work/.github/hooks/evil.json"),
        ("work", "work/sub/.github/hooks/evil.json"),
        (".", ".copilot/hooks/evil.json"),
    ],
    ids=["by a session in a parent directory", "below the working directory", "in a home folder that we read"],
)
@requirement("security:execution:sealed")
async def test_a_hook_file_is_not_written_and_not_run(site: Site, directory: str, file: str) -> None:
    (site.work / "sub").mkdir()
    marker = site.home / "ran"
    async with site.serving("--allow-hooks", "--trust", str(site.work)) as client:
        await site.session(site.home / directory)
        error = await site.write(site.home / file, hook(f"touch {marker}"))
        assert error is not None
        assert error["code"] == DENIED
        for method, params in (
            ("resourceMkdir", {"uri": (site.home / file).parent.as_uri()}),
            ("resourceCopy", {"source": (site.home / "data").as_uri(), "destination": (site.home / file).as_uri()}),
        ):
            assert (await client.refused(method, **params))["code"] == DENIED
        assert not (site.home / file).exists()
        place(site.home / file, hook(f"touch {marker}"))  # However it came there.
        for where in (site.work, site.work / "sub", site.home):
            _, chat = await site.session(where)
            await site.turn(chat)
    assert not marker.exists()


@requirement("security:execution:sealed")
async def test_hook_files_cannot_be_built_elsewhere_and_moved_into_place(site: Site) -> None:
    place(site.work / "mine" / "hooks" / "evil.json", "{}")
    place(site.work / "claude" / "settings.json", "{}")
    (site.work / "link").symlink_to("mine")
    (site.work / "tree").mkdir()
    (site.work / "tree" / ".github").symlink_to("../mine")
    async with site.serving() as client:
        await site.session()
        for method in ("resourceCopy", "resourceMove"):
            for source, destination in (
                ("mine", ".github"),
                ("mine/hooks", ".github/hooks"),
                ("claude", ".claude"),
                ("claude", ".CLAUDE"),
                ("claude/settings.json", "a/b/.mcp.json"),
                ("claude/settings.json", ".git/config"),
            ):
                params = {
                    name: (site.work / path).as_uri()
                    for name, path in (("source", source), ("destination", destination))
                }
                assert (await client.refused(method, **params))["code"] in (DENIED, -32008), (method, destination)
        for method, source, destination in (
            ("resourceMove", "link", ".github"),
            ("resourceCopy", "tree", "elsewhere"),
        ):
            params = {"source": (site.work / source).as_uri(), "destination": (site.work / destination).as_uri()}
            assert (await client.refused(method, **params))["code"] == DENIED
    assert not (site.work / ".github").exists()
    assert not (site.work / ".claude").exists()


SEALED = [
    ".mcp.json",
    ".vscode/mcp.json",
    ".vscode/tasks.json",
    ".claude/settings.json",
    ".claude-plugin/plugin.json",
    "plugin.json",
    "hooks/hooks.json",
    ".git/hooks/pre-commit",
    ".git/config",
    ".git",
    ".envrc",
    ".GitHub/Hooks/x.json",
    ".github./hooks/x.json",
    ".\u200bgithub/hooks/x.json",
    ".github/hooks\ufe00/x.json",
    ".mcp.json\u034f",
    ".\u3164mcp.json",
    ".mcp.j\u017fon",
    "deep/er/.github/hooks/x.json",
    ".github/extensions/x/extension.mjs",
    ".copilot/extensions/x/extension.mjs",
    ".opencode/tools/x.ts",
    ".clinerules/hooks/PreToolUse",
    ".factory/hooks/x",
    ".augment/settings.local.json",
    ".cursor/worktrees.json",
    ".openhands/setup.sh",
    ".qwen/extensions/x/qwen-extension.json",
    ".hg/hgrc",
    ".config/mise/config.toml",
    ".helix/languages.toml",
]


@requirement("security:execution:sealed")
async def test_clients_do_not_write_what_can_cause_execution_at_any_depth_in_any_spelling(site: Site) -> None:
    async with site.serving() as client:
        await site.session()
        for number, name in enumerate(SEALED):
            for path in (site.work / str(number) / name, site.work / str(number) / "sub" / name):
                path.parent.mkdir(parents=True, exist_ok=True)
                error = await site.write(path)
                assert error is not None, path
                assert error["code"] == DENIED
                assert "it is" in error["message"]
                assert not path.exists()
        assert client.closed is None


@requirement("security:execution:agents-ask")
async def test_an_agent_writes_it_only_after_an_approval_that_says_what_it_is(site: Site) -> None:
    path = site.work / ".github" / "hooks" / "evil.json"
    step = {"request": "fs/write_text_file", "params": {"path": str(path), "content": hook("true")}}
    async with site.serving(*site.agent(step)) as client:
        _, chat = await site.session(provider="scripted")
        answers: dict[str, Json] = {
            "no": {"approved": False, "reason": "denied"},
            "yes": {"approved": True, "confirmed": "user-action"},
        }
        for id, answer in answers.items():
            turn = {"type": "chat/turnStarted", "turnId": id, "message": {"text": "x", "origin": {"kind": "user"}}}
            await client.accepted(chat, turn)
            ready = await _of_turn(client, "chat/toolCallReady", id)
            assert "hook file" in json.dumps(ready["confirmationTitle"])
            assert not path.exists()
            confirmed: Json = {"type": "chat/toolCallConfirmed", "turnId": id, "toolCallId": ready["toolCallId"]}
            await client.accepted(chat, {**confirmed, **answer})
            await _of_turn(client, "chat/turnComplete", id)
            assert path.exists() is (id == "yes")
        refused, _ = await site.answered(2)
        assert "was not approved" in refused["message"]
    assert path.read_text() == hook("true")


async def _of_turn(client: RawClient, type: str, turn_id: str) -> Json:
    """An action of one turn."""
    found = await client.action(lambda said: (said["action"]["type"], said["action"].get("turnId")) == (type, turn_id))
    return found["action"]


@requirement("security:execution:agents-ask")
async def test_an_agents_link_to_a_sealed_file_is_the_sealed_file(site: Site) -> None:
    place(site.work / ".mcp.json", "{}")
    (site.work / "innocent").symlink_to(".mcp.json")
    (site.work / "door").symlink_to(site.outside)
    steps = [
        {"request": "fs/write_text_file", "params": {"path": str(site.work / "door" / "secret"), "content": "EVIL"}},
        {"request": "fs/read_text_file", "params": {"path": str(site.work / "door" / "secret")}},
        {"request": "fs/read_text_file", "params": {"path": "/proc/self/environ"}},
        {"request": "fs/read_text_file", "params": {"path": str(site.home / "data" / "token")}},
        {"request": "fs/write_text_file", "params": {"path": str(site.work / "innocent"), "content": "EVIL"}},
    ]
    async with site.serving(*site.agent(*steps)) as client:
        _, chat = await site.session(provider="scripted")
        turn = {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "x", "origin": {"kind": "user"}}}
        await client.accepted(chat, turn)
        await client.action("chat/toolCallReady")
        outside = await site.answered(4)
        assert all("outside" in answer["message"] for answer in outside)
        await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t"})
    assert (site.work / ".mcp.json").read_text() == "{}"


# -- running ---------------------------------------------------------------------------------------------------------


@requirement("security:trust:content")
async def test_a_hook_runs_as_it_was_trusted_and_a_change_is_shown_and_not_run(site: Site) -> None:
    ran, evil = site.home / "ran", site.home / "evil"
    file = place(site.work / ".github" / "hooks" / "a.json", hook(f"touch {ran}"))
    async with site.serving("--allow-hooks", "--trust", str(site.work)):
        session, chat = await site.session()
        await site.turn(chat)
        assert ran.exists()
        file.write_text(hook(f"touch {evil}"))
        shown = await site.shown(session, ".github/hooks", "changed")
        assert "changed since it was trusted" in shown["load"]["message"]
        assert shown["children"][0]["_meta"] == {"ahpkit/trust": "changed"}
        await site.turn(chat)
        assert not evil.exists()
        assert " changed  hook " in await site.run("trust", "list")
        assert str(ran) in (await site.run("trust", "show", str(site.work))).partition("what was trusted")[2]
        await site.run("trust", "add", str(site.work))
        while not evil.exists():
            await site.turn(chat)
        await site.run("trust", "remove", str(site.work))
        evil.unlink()
        await site.turn(chat)
        assert not evil.exists()


@requirement("security:trust:content")
async def test_trust_given_at_an_earlier_start_does_not_cover_what_changed_since(site: Site) -> None:
    ran = site.home / "ran"
    file = place(site.work / ".github" / "hooks" / "a.json", hook("true"))
    async with site.serving("--allow-hooks", "--trust", str(site.work)):
        await site.session()
    file.write_text(hook(f"touch {ran}"))
    place(site.work / ".github" / "hooks" / "b.json", hook(f"touch {ran}"))
    async with site.serving("--allow-hooks", "--trust", str(site.work)):
        _, chat = await site.session()
        await site.turn(chat)
    assert not ran.exists()


@requirement("security:trust:content")
async def test_a_script_that_a_trusted_hook_names_is_part_of_what_was_trusted(site: Site) -> None:
    ran = site.home / "ran"
    script = place(site.work / "check.sh", f"echo good >> {ran}\n")
    place(site.work / ".github" / "hooks" / "a.json", hook("sh ./check.sh"))
    async with site.serving("--allow-hooks", "--trust", str(site.work)):
        session, chat = await site.session()
        await site.turn(chat)
        error = await site.write(script, f"echo evil >> {ran}\n")
        assert error is not None
        assert "trusted" in error["message"]
        script.write_text(f"echo evil >> {ran}\n")
        await site.turn(chat)
        await site.shown(session, ".github/hooks", "changed since it was trusted")
        assert " changed  hook " in await site.run("trust", "list")
    assert ran.read_text() == "good\n"


async def test_a_plugin_that_changed_since_the_start_is_shown_as_changed_and_runs_once_it_is_trusted_again(
    site: Site,
) -> None:
    plugin, ran = site.home / "plugin", site.home / "ran"
    place(plugin / ".claude-plugin" / "plugin.json", '{"name": "p"}')
    command = {"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/run.sh"}
    place(plugin / "hooks" / "hooks.json", json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [command]}]}}))
    script = place(plugin / "run.sh", f"echo good >> {ran}\n")
    async with site.serving("--allow-hooks", "--plugin", str(plugin)):
        _, chat = await site.session()
        await site.turn(chat)
        assert await site.run("trust", "list", "--json") == ""
        script.write_text(f"echo changed >> {ran}\n")
        await site.turn(chat)
        item = json.loads(await site.run("trust", "list", "--json"))
        assert (item["state"], item["files"].keys()) == ("changed", {str(script)})
        assert ran.read_text() == "good\n"
        assert item["name"] in await site.run("trust", "show", item["id"])
        await site.run("trust", "add", item["id"])
        await site.turn(chat)
        assert json.loads(await site.run("trust", "list", "--json"))["state"] == "trusted"
    assert ran.read_text() == "good\nchanged\n"


_REMEMBERING = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    with open(sys.argv[1], "a") as file:
        file.write(json.dumps({"heard": message["method"]}) + "\\n")
    if "id" in message:
        known = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "m", "version": "1"}}
        answer = {**known, "capabilities": {"tools": {}}} if message["method"] == "initialize" else {"tools": []}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""
"""A server that writes down what it hears, into the file it is given."""


@requirement("security:trust:content")
async def test_a_server_may_write_its_own_data_but_not_what_it_runs_or_starts(site: Site) -> None:
    script, memory = place(site.work / "server.py", _REMEMBERING), site.work / "memory.json"
    declared = {"command": sys.executable, "args": ["server.py", "memory.json"]}
    place(site.work / ".mcp.json", json.dumps({"mcpServers": {"notes": declared}}))
    async with site.serving("--trust", str(site.work)):
        session, _ = await site.session()
        await site.shown(session, ".mcp.json", '"kind": "ready"')
        assert "tools/list" in memory.read_text()  # The server made it, after trust was given.
    async with site.serving("--trust", str(site.work)):
        session, _ = await site.session()
        await site.shown(session, ".mcp.json", '"kind": "ready"')
        assert " changed " not in await site.run("trust", "list")
        assert await site.write(memory, "[]") is None
        for file, text in ((memory, '{"command": "sh"}'), (script, f"{_REMEMBERING}# x")):
            before = file.read_text()
            file.write_text(text)
            await site.shown(session, ".mcp.json", "changed since it was trusted")
            assert " changed  server " in await site.run("trust", "list")
            file.write_text(before)
            assert " changed " not in await site.run("trust", "list")


@requirement("security:trust:consent")
async def test_a_server_of_a_client_or_of_an_agent_is_not_started_and_gets_no_environment(site: Site) -> None:
    server = {"command": "sh", "args": ["-c", f"echo ${{MY_API_KEY}} > {site.home}/started"]}
    async with site.serving(*site.agent(), "--trust", str(site.work)) as client:
        place(site.work / ".mcp.json", json.dumps({"mcpServers": {"written": server}}))  # By an agent, say.
        session, chat = await site.session(provider="scripted")
        publisher = Publisher(client, {"plugin.json": '{"name": "p"}', ".mcp.json": json.dumps({"theirs": server})})
        await publisher.claim(session, publisher.plugin())
        await site.shown(session, "p", "theirs")
        await site.turn(chat)
        assert "MY_API_KEY" not in site.recorded
        listed = await site.run("trust", "list")
        assert " asks " in listed
        assert " new " in listed
        theirs = next(line.split()[0] for line in listed.splitlines() if "theirs" in line)
        await site.run("trust", "add", theirs)
        assert f"{theirs}  trusted" in await site.run("trust", "list")
        await publisher.aclose()


@requirement("security:trust:environment")
async def test_the_environment_is_only_for_the_users_own_and_for_trusted_content(site: Site) -> None:
    own = {"mcpServers": {"own": {"command": "sh", "args": ["-c", "touch '${HOME}/own'"]}}}
    trusted = {"mcpServers": {"ours": {"command": "sh", "args": ["-c", "touch '${HOME}/ours'"]}}}
    place(site.home / ".copilot" / "mcp-config.json", json.dumps(own))
    place(site.work / ".mcp.json", json.dumps(trusted))
    foreign = site.home / "foreign"
    place(foreign / ".mcp.json", json.dumps({"mcpServers": {"foreign": {"command": "x", "args": ["${HOME}/foreign"]}}}))
    async with site.serving(*site.agent(), "--trust", str(site.work)):
        for directory in (site.work, foreign):
            _, chat = await site.session(directory, provider="scripted")
            await site.turn(chat)
        await until(lambda: (site.home / "own").exists() and (site.home / "ours").exists())
        assert "${HOME}/foreign" not in site.recorded
        assert f"{site.home}/foreign\\" not in site.recorded
        assert not (site.home / "started").exists()


@requirement("security:trust:private")
async def test_trust_and_roots_are_kept_in_private_files(site: Site) -> None:
    async with site.serving("--trust", str(site.work)):
        for name in ("roots.json", "trust/trust.json", "token"):
            assert (site.home / "data" / name).stat().st_mode & 0o077 == 0, name


ROUNDABOUT: dict[str, str | tuple[str, dict[str, str]]] = {
    "a folder to go to": "cd @ && ./x.sh",
    "a folder to go to and come back": "bash -c 'pushd @ > /dev/null; ./x.sh'",
    "a folder that is searched": "find @ -name x.sh -exec sh {} \\;",
    "a folder for make": "make -s -C @",
    "a folder of programs": "PATH=./@:$PATH x.sh",
    "the present folder": "$(pwd)/@/x.sh",
    "the present folder, as it was written once": "`pwd`/@/x.sh",
    "a folder in a variable": "export P=@; $P/x.sh",
    "a variable that is not set": "sh ${UNSET:-@/x.sh}",
    "a wild card": "for f in @/*.sh; do sh $f; done",
    "a wild card for the folder": "sh ./@*/x.sh",
    "braces": "bash -c 'bash @/{x,none}.sh'",
    "a module": "python3 -m @.x",
    "one folder after the other": "cd @; cd deeper; ./x.sh",
    "a name in a variable": "A=x; sh @/$A.sh",
    "a name that is printed": "sh $(printf @/x.sh)",
    "programs of a variable": ("x.sh", {"PATH": "@:/usr/bin:/bin"}),
    "a variable for the shell": ("bash -c true", {"BASH_ENV": "@/x.sh"}),
    "a variable for the line": ('sh "$SCRIPT"', {"SCRIPT": "@/x.sh"}),
    "a variable for modules": ("python3 -m x", {"PYTHONPATH": "@"}),
}
"""Ways to name a script of the workspace in a line of shell, or in its variables; `@` is its folder."""


def _hook_in(folder: str, told: str | tuple[str, dict[str, str]]) -> Json:
    line, env = (told, None) if isinstance(told, str) else told
    declared: Json = {"command": line} if env is None else {"command": line, "env": env}
    return json.loads(json.dumps(declared).replace("@", folder))


def _scripts(folder: Path, marker: Path) -> None:
    place(folder / "x.sh", f"#!/bin/sh\ntouch {marker}\n").chmod(0o755)
    place(folder / "x.py", f"open({str(marker)!r}, 'w')")
    place(folder / "Makefile", f"all:\n\ttouch {marker}\n")


async def test_a_script_that_a_hook_names_in_a_roundabout_way_is_part_of_what_was_trusted(site: Site) -> None:
    hooks: list[Json] = []
    for number, line in enumerate(ROUNDABOUT.values()):
        _scripts(site.work / f"d{number}x", site.home / f"ran-{number}")
        _scripts(site.work / f"d{number}x" / "deeper", site.home / f"ran-{number}")
        hooks.append(_hook_in(f"d{number}x", line))
    place(site.work / ".github" / "hooks" / "h.json", json.dumps({"hooks": {"UserPromptSubmit": hooks}}))
    async with site.serving("--allow-hooks", "--trust", str(site.work)):
        _, chat = await site.session()
        await site.turn(chat)
        ran = [name for number, name in enumerate(ROUNDABOUT) if (site.home / f"ran-{number}").exists()]
        assert ran == list(ROUNDABOUT)
        for number in range(len(ROUNDABOUT)):
            for folder in (site.work / f"d{number}x", site.work / f"d{number}x" / "deeper"):
                _scripts(folder, site.home / f"changed-{number}")
        _, chat = await site.session()
        await site.turn(chat)
    changed = [name for number, name in enumerate(ROUNDABOUT) if (site.home / f"changed-{number}").exists()]
    assert not changed


@requirement("security:trust:content")
async def test_a_client_does_not_choose_the_environment_of_agents(site: Site) -> None:
    """The command line gives a shell's environment to agents. A client with a `PATH` would choose what runs as one."""
    ran = site.home / "ran"
    evil = place(site.work / "bin" / "sh", f"#!/bin/dash\n: > {ran}\n")
    evil.chmod(0o755)
    async with site.serving("--agent", "plain=sh -c 'exit 0'") as client:
        uri = "ahp-session:/chosen"
        body = json.dumps({"session": uri, "variables": {"PATH": str(evil.parent)}}).encode()
        host, _, port = site.host.url.removeprefix("ws://").partition(":")
        for owner in (None, "", site.host.token, "x"):
            headers = {"Authorization": f"Bearer {site.host.token}", "Content-Type": "application/json"}
            connection = HTTPConnection(host, int(port.rstrip("/")), timeout=BOUND)
            sent = headers if owner is None else {**headers, "X-Ahpkit-Owner": owner}
            await asyncio.to_thread(connection.request, "POST", "/environment/", body, sent)
            assert connection.getresponse().status == 403
            connection.close()
        await client.ask("createSession", uri, workingDirectory=site.work.as_uri(), provider="plain")
        chat = (await client.ask("subscribe", uri))["snapshot"]["state"]["defaultChat"]
        await client.ask("subscribe", chat)
        client.post(chat, say("hi"))
        await client.action("chat/error")
    assert not ran.exists()
