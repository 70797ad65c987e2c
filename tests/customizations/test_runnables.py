"""What would run: which files a command names, and how changes of them are noticed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.details import HookDetail, ServerDetail
from ahpkit.customizations.runnables import (
    OwnerTrust,
    Surrounding,
    named_by,
    own_runnables,
    repository_is_trusted,
    runnable_of,
    runnables_at,
)
from ahpkit.host.trust import Trust
from ahpkit.protocol.common.state import JsonObject
from customizations.builders import write


def files(tmp_path: Path, command: str, **more: object) -> set[str]:
    detail = HookDetail("Stop", None, ({"command": command, **more},), "claude")
    around = Surrounding(str(tmp_path), home=str(tmp_path / "home"))
    return {Path(path).relative_to(tmp_path).as_posix() for path in runnable_of(detail, "s", around).files}


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("./a.sh", {"a.sh"}),
        ("a.sh", {"a.sh"}),
        ("python a.sh --x", {"a.sh"}),
        ("bash -c './a.sh; echo x'", {"a.sh"}),
        ("env X=1 sh dir/b", {"dir/b"}),
        ("FOO=1 ./a.sh && true", {"a.sh"}),
        ("if true; then ./a.sh; fi", {"a.sh"}),
        ('"$CLAUDE_PROJECT_DIR"/a.sh', {"a.sh"}),
        ("$CLAUDE_PROJECT_DIR/dir/b", {"dir/b"}),
        ('true && "${CLAUDE_PROJECT_DIR}"/a.sh', {"a.sh"}),
        ("true; $HOME/h.py", {"home/h.py"}),
        ("~/h.py | tee a.sh", {"home/h.py"}),
        ("echo started >> a.sh", set[str]()),
        ("cat a.sh", set[str]()),
        ("cat a.sh | sh", {"a.sh"}),
        ('echo "$(./a.sh)"', {"a.sh"}),
        ("sh < a.sh", {"a.sh"}),
        ("echo x > dir/b; ./a.sh", {"a.sh"}),
        ("make check", {"Makefile"}),
        ("npm run lint", {"package.json"}),
        ("echo 'one\n./a.sh\n'; python a.sh", {"a.sh"}),
        ("/usr/bin/env python3 -c pass", set[str]()),
        ("cd dir && cd deep && ./c", {"dir/deep/c"}),
        ("A=a; ./$A.sh", {"a.sh"}),
        ("A=./a; ${A}.sh", {"a.sh"}),
        ("$(printf ./a.sh)", {"a.sh"}),
        ("run-parts dir", {"dir/b"}),
        ("gmake check", {"Makefile"}),
        ("docker compose up", {"compose.yaml"}),
        ("node node-app", {"node-app/package.json", "node-app/index.js", "node-app/lib/start.js"}),
        ("node node-app/lib/start", {"node-app/lib/start.js"}),
        ("npx ./node-app", {"package.json", "node-app/package.json", "node-app/index.js", "node-app/lib/start.js"}),
    ],
)
def test_files_that_a_hook_names(tmp_path: Path, command: str, named: set[str]) -> None:
    write(tmp_path, {"a.sh": "", "dir/b": "", "home/h.py": "", "Makefile": "", "package.json": "{}"})
    write(tmp_path, {"dir/deep/c": "", "compose.yaml": "", "node-app/index.js": "", "node-app/lib/start.js": ""})
    write(tmp_path, {"node-app/package.json": '{"main": "./lib/start", "bin": {"a": "lib/start.js"}}'})
    assert files(tmp_path, command) == named


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ("tool", {"PATH": "bin:/usr/bin"}),
        ("bash -c true", {"BASH_ENV": "./bin/tool"}),
        ("true", {"LD_PRELOAD": "./bin/tool"}),
        ("node -e 1", {"NODE_OPTIONS": "--require ./bin/tool"}),
        ('sh -c "$LINE"', {"LINE": "exec bin/tool"}),
    ],
)
def test_variables_of_a_hook_name_files_too(tmp_path: Path, command: str, env: dict[str, str]) -> None:
    write(tmp_path, {"bin/tool": "", "log/out.log": ""})
    assert files(tmp_path, command, env={**env, "LOG": "log/out.log"}) == {"bin/tool"}


@pytest.mark.parametrize("wild", ["/*/*/*/*/x.sh", "../*/*/x.sh", "*/../../*/x.sh"])
def test_wild_cards_do_not_lead_out_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wild: str
) -> None:
    workspace, walked, scandir = tmp_path / "code", list[str](), os.scandir
    write(workspace, {"hooks/x.sh": "echo"})

    def watched(path: Any) -> Any:
        walked.append(str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", watched)
    detail = HookDetail("Stop", None, ({"command": f"bash {wild}; bash */x.sh"},), "claude")
    assert len(runnable_of(detail, "s", Surrounding(str(workspace))).files) == 1
    assert {path for path in walked if not path.startswith(str(workspace))} == set()


def test_arguments_and_folders_of_an_action_count(tmp_path: Path) -> None:
    write(tmp_path, {"a.sh": "", "dir/b": ""})
    assert files(tmp_path, "node", args=["b"], cwd="dir") == {"dir/b"}
    assert list(named_by(["x"])) == ["x"]


def test_a_server_is_its_configuration_and_the_files_it_names(tmp_path: Path) -> None:
    write(tmp_path, {"server.py": "1", "preload.js": ""})
    config = {"command": "python", "args": ["server.py"], "env": {"NODE_OPTIONS": "--require=./preload.js"}}
    detail = ServerDetail("db", config, "workspace")
    found = runnable_of(detail, "s", Surrounding(str(tmp_path)))
    assert sorted(found.files) == [str(tmp_path / "preload.js"), str(tmp_path / "server.py")]
    write(tmp_path, {"server.py": "2"})
    assert runnable_of(detail, "s", Surrounding(str(tmp_path))).digest != found.digest


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ({"args": ["serve.py", "--db-path", "notes.sqlite"]}, {"serve.py"}),
        ({"args": ["serve.py", "--log=run.log"]}, {"serve.py"}),
        ({"args": ["serve.py"], "env": {"MEMORY_FILE_PATH": "m.jsonl"}}, {"serve.py"}),
        ({"args": ["serve.py"], "env": {"MEMORY_FILE_PATH": "m.json"}}, {"serve.py"}),
        ({"args": ["serve.py"], "env": {"CONFIG_PATH": "m.json"}}, {"serve.py", "m.json"}),
        ({"args": ["run.log"]}, {"run.log"}),
        ({"args": ["--require", "run.log"]}, {"run.log"}),
        ({"args": ["--database", "serve.py"]}, {"serve.py"}),
        ({"args": ["serve.py"], "env": {"BASH_ENV": "run.log"}}, {"serve.py", "run.log"}),
        ({"args": ["serve.py", "notes.sqlite", "my notes.db"]}, {"serve.py"}),
        ({"args": ["serve.py", "-d", "notes.sqlite"]}, {"serve.py"}),
        ({"args": ["serve.py", "memory.json"]}, {"serve.py"}),
        ({"args": ["serve.py", "--store=m.json"]}, {"serve.py"}),
        ({"args": ["serve.py", "--vault", "notes.md", "--export", "run.log"]}, {"serve.py"}),
        ({"command": "sh", "args": ["-c", "exec python serve.py --db notes.sqlite"]}, {"serve.py"}),
        ({"command": "proxy", "args": ["--stdio", "python serve.py notes.sqlite"]}, {"serve.py"}),
        ({"command": "uvx", "args": ["mcp-server-sqlite", "--db-path", "${workspaceFolder}/notes.sqlite"]}, set[str]()),
        ({"command": "sh", "args": ["-c", "python notes.md"]}, {"notes.md"}),
        ({"command": "env", "args": ["X=1", "python3.12", "-u", "notes.md"]}, {"notes.md"}),
        ({"command": "node", "args": ["-r", "run.log", "serve.py", "run.log"]}, {"run.log", "serve.py"}),
        ({"command": "./notes.md", "args": ["notes.md"]}, {"notes.md"}),
        ({"command": "tclsh", "args": ["notes.md"]}, {"notes.md"}),
        ({"command": "make", "args": ["-f", "run.log"]}, {"run.log"}),
        ({"command": "make", "args": ["--file=notes.sqlite"]}, {"notes.sqlite"}),
        ({"args": ["serve.py", "--reporter", "plain.md"]}, {"serve.py", "plain.md"}),
        ({"args": ["serve.py", "--out", "plain.md"]}, {"serve.py"}),
        ({"command": "notes-server", "args": ["--log", "run.log"]}, set[str]()),
        ({"args": ["serve.py", "m.json"]}, {"serve.py", "m.json"}),
        ({"args": ["serve.py", "--state-config", "m.json"]}, {"serve.py", "m.json"}),
        ({"args": ["serve.py", "--router", "m.json"]}, {"serve.py", "m.json"}),
        ({"args": ["serve.py", "--store", "starts.json"]}, {"serve.py", "starts.json"}),
        ({"args": ["serve.py", "--store", "hidden.json"]}, {"serve.py", "hidden.json"}),
        ({"args": ["serve.py", "--log", "script.log"]}, {"serve.py", "script.log"}),
        ({"args": ["serve.py", "--log", "executable.log"]}, {"serve.py", "executable.log"}),
    ],
)
def test_what_a_server_writes_is_no_part_of_what_it_runs(tmp_path: Path, declared: JsonObject, named: set[str]) -> None:
    for name in (
        "serve.py",
        "notes.sqlite",
        "my notes.db",
        "notes.md",
        "plain.md",
        "run.log",
        "m.jsonl",
        "m.json",
        "memory.json",
    ):
        (tmp_path / name).write_text("x")
    (tmp_path / "starts.json").write_text('{"x": {"Command" : "sh"}}')
    (tmp_path / "hidden.json").write_text('{"\\u0063ommand": "sh"}')
    (tmp_path / "script.log").write_text("#!/bin/sh")
    (tmp_path / "executable.log").touch(0o755)
    detail = ServerDetail("notes", {"command": "python", **declared}, "workspace")
    found = runnable_of(detail, str(tmp_path / ".mcp.json"), Surrounding(str(tmp_path))).files
    assert {Path(file).name for file in found} == named


def test_the_folders_in_which_a_server_looks_for_programs_count(tmp_path: Path) -> None:
    write(tmp_path, {"bin/tool": ""})
    config = {"command": "tool", "env": {"PATH": "${workspaceFolder}/bin:/usr/bin"}}
    found = runnable_of(ServerDetail("db", config, "workspace"), "s", Surrounding(str(tmp_path)))
    assert list(found.files) == [str(tmp_path / "bin" / "tool")]


def test_a_server_behind_a_url_names_no_file(tmp_path: Path) -> None:
    detail = ServerDetail("web", {"type": "http", "url": "http://127.0.0.1:1/mcp"}, "workspace")
    assert runnable_of(detail, "s", Surrounding(str(tmp_path))).files == {}
    write(tmp_path, {".mcp.json": '{"mcpServers": {"web": {"url": "http://127.0.0.1:1/mcp"}}}'})
    assert [runnable.name for runnable in runnables_at(tmp_path, home=None)] == ["web"]


def test_a_directory_is_looked_through_but_not_what_others_install_there(tmp_path: Path) -> None:
    server = {"mcpServers": {"db": {"command": "x"}}}
    write(
        tmp_path,
        {
            ".mcp.json": server,
            "deep/er/.vscode/mcp.json": server,
            "deep/.claude/settings.json": {"hooks": {"Stop": [{"command": "x"}]}},
            "node_modules/p/.mcp.json": server,
            ".git/.mcp.json": server,
        },
    )
    found = {Path(one.source).relative_to(tmp_path).as_posix() for one in runnables_at(tmp_path, home=None)}
    assert found == {".mcp.json", "deep/er/.vscode/mcp.json", "deep/.claude/settings.json"}
    [one] = runnables_at(tmp_path / "deep/.claude/settings.json", home=None)
    assert one.kind == "hook"


def test_what_git_would_run_of_a_repository_is_trusted_by_its_content_too(tmp_path: Path) -> None:
    write(
        tmp_path, {".git/hooks/pre-commit": "true", ".git/hooks/x.sample": "", ".git/config": "[core]\n", "sub/a": ""}
    )
    hook = tmp_path / ".git/hooks/pre-commit"
    trust = Trust(None)
    assert not repository_is_trusted(tmp_path, trust), "not executable: nothing runs"
    hook.chmod(0o755)
    trust.add(runnables_at(tmp_path, home=None), now=1, directory=tmp_path)
    assert [entry.runnable.name for entry in trust.entries()] == ["git pre-commit"]
    assert repository_is_trusted(tmp_path / "sub", trust)
    hook.write_text("rm -rf /")
    assert not repository_is_trusted(tmp_path, trust)
    trust.add(runnables_at(hook, home=None), now=2)
    assert repository_is_trusted(tmp_path, trust)
    write(tmp_path, {".git/config": '[filter "x"]\n\tclean = evil\n'})
    assert not repository_is_trusted(tmp_path, trust)
    assert not repository_is_trusted(Path("/"), trust)


def test_the_users_own_configuration_is_trusted_as_it_was_at_the_start(tmp_path: Path) -> None:
    home = write(tmp_path / "home", {".copilot/hooks/a.json": {"hooks": {"Stop": [{"command": "~/x.sh"}]}}, "x.sh": ""})
    plugin = write(
        tmp_path / "plugin",
        {".plugin/plugin.json": {"name": "p"}, ".mcp.json": {"db": {"command": "${PLUGIN_ROOT}/db"}}},
    )
    own = Trust(None)
    own.add(own_runnables(home, [plugin]), now=1)
    word = OwnerTrust(Trust(None), own)
    assert [(one.kind, word.standing(one)) for one in own_runnables(home, [plugin])] == [
        ("hook", "trusted"),
        ("server", "trusted"),
    ]
    write(home, {"x.sh": "changed", ".copilot/hooks/b.json": {"hooks": {"Stop": [{"command": "y"}]}}})
    assert [word.standing(one) for one in own_runnables(home, [])] == ["changed", "unknown"]
