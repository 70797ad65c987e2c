"""`ahpkit sessions diff` and `undo` against a real host in a real repository."""

from __future__ import annotations

from pathlib import Path

from support import requirement
from support.process import finish_cli, host_process
from support.repository import Repository

AGENT = """
from ahpkit.agents.python import agent
from pathlib import Path


@agent(name="editor")
async def editor(turn):
    Path("a.txt").write_text("one\\ntwo\\n")
    Path("new.txt").write_text("new\\n")
    Path("deep/new.txt").write_text("other\\n")
    Path("old.txt").rename(Path("later.txt"))
    Path("data.bin").write_bytes(bytes(range(256)))
    turn.text("Done.")
"""


@requirement("changesets:command-line")
async def test_what_a_session_changed_is_shown_and_taken_back(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    repo.write("agent.py", AGENT.replace('Path("', f'Path("{repo.root}/'))
    repo.write("host.toml", f'[agents.editor]\npython = "{repo.root}/agent.py:editor"\n')
    repo.write(".gitignore", "__pycache__\n")
    repo.write("deep/kept.txt", "kept\n")
    repo.commit(a_txt="one\n", old_txt="a line that is long enough to be known again\n")
    async with host_process(tmp_path, "--config", str(repo.root / "host.toml"), "--root", str(repo.root)) as host:
        place = {"AHPKIT_URL": host.url, "AHPKIT_TOKEN": host.token or ""}
        code, _, errors = await finish_cli(["prompt", "--keep", "change it"], repo.root, **place)
        assert code == 0, errors
        code, output, errors = await finish_cli(["sessions", "diff", "change"], repo.root, **place)
        assert code == 0, errors
        lines = output.splitlines()
        assert [line for line in lines if line[0] in "cdr"] == [
            "change a.txt +1 -0",
            "create data.bin (binary)",
            "create deep/new.txt +1 -0",
            "rename old.txt → later.txt +0 -0",
            "create new.txt +1 -0",
        ]
        assert {"+two", "+new", "+other"} <= set(lines)
        code, output, errors = await finish_cli(["sessions", "undo", "change", "none", "--yes"], repo.root, **place)
        assert (code, "not one of the changed files: a.txt, data.bin, deep/new.txt" in errors) == (1, True)
        code, output, _ = await finish_cli(["sessions", "undo", "change", "new.txt", "--yes"], repo.root, **place)
        unknown = "It is not known who wrote new.txt; redo brings the content back."
        assert (code, output) == (0, f"Undid 1 file. {unknown}\n"), "the agent wrote it by itself"
        assert repo.status() == {"a.txt", "data.bin", "deep/new.txt", "old.txt", "later.txt"}
        code, output, _ = await finish_cli(["sessions", "undo", "change", "--yes"], repo.root, **place)
        assert repo.status() == set()
        code, output, _ = await finish_cli(["sessions", "diff", "change"], repo.root, **place)
        assert output == "Nothing changed.\n"
        code, output, _ = await finish_cli(["sessions", "redo", "change"], repo.root, **place)
        assert (code, output) == (0, "Brought back 5 files.\n")
        assert repo.status() == {"a.txt", "data.bin", "deep/new.txt", "old.txt", "later.txt"}
        code, output, _ = await finish_cli(["sessions", "redo", "change"], repo.root, **place)
        assert (code, output) == (0, "Brought back 1 file.\n")
        code, output, _ = await finish_cli(["sessions", "redo", "change"], repo.root, **place)
        assert (code, output) == (0, "There is no undo to bring back.\n")
        code, output, _ = await finish_cli(["sessions", "diff", "change"], repo.root, **place)
        assert {"+two", "+new", "+other"} <= set(output.splitlines())
        (repo.root / ".git").rename(tmp_path / "gone")
        code, _, errors = await finish_cli(["sessions", "diff", "change", "--of", "uncommitted"], repo.root, **place)
        assert (code, errors.count("\n")) == (1, 1), errors
        assert "not a git repository" in errors


WRITER = """
from ahpkit.agents.python import agent


@agent(name="writer")
async def writer(turn):
    (turn.chat.working_directory / "new.txt").write_text("new\\n")
    turn.text("Done.")
"""


@requirement("changesets:worktree:made", "changesets:worktree:merged-back", "changesets:worktree:disposed")
async def test_a_session_in_a_work_tree_of_its_own_is_merged_back(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    repo.write("agent.py", WRITER)
    repo.write("host.toml", f'[agents.writer]\npython = "{repo.root}/agent.py:writer"\n')
    repo.write(".gitignore", "__pycache__\n")
    repo.commit(a_txt="one\n")
    async with host_process(tmp_path, "--config", str(repo.root / "host.toml"), "--root", str(tmp_path)) as host:
        place = {"AHPKIT_URL": host.url, "AHPKIT_TOKEN": host.token or ""}
        code, _, errors = await finish_cli(["prompt", "--worktree", "write it"], repo.root, **place)
        assert code == 0, errors
        assert "kept as" in errors
        assert repo.status() == set()
        code, output, errors = await finish_cli(["sessions", "diff", "write"], repo.root, **place)
        assert "+new" in output, errors
        merge = ["sessions", "merge", "write", "-m", "By an agent", "--remove"]
        code, output, errors = await finish_cli(merge, repo.root, **place)
        assert code == 0, errors
        assert "Merged" in output
        assert "Removed" in output
        assert repo.git("log", "-1", "--format=%s").strip() == "By an agent"
        assert repo.git("worktree", "list").count("\n") == 1
        code, _, errors = await finish_cli(["sessions", "diff", "write"], repo.root, **place)
        assert code != 0
        assert f"{repo.root}/.ahpkit/worktrees/" in errors
        assert "was removed" in errors
        code, _, errors = await finish_cli(["prompt", "--worktree", "second"], repo.root, **place)
        assert code == 0, errors
        code, output, errors = await finish_cli(["sessions", "dispose", "second", "--yes"], repo.root, **place)
        assert f"kept if something in it is nowhere else: {repo.root}/.ahpkit/worktrees/" in output, errors
        code, _, errors = await finish_cli(["prompt", "--worktree", "write it"], tmp_path, **place)
        assert code != 0
        assert "no git repository" in errors
