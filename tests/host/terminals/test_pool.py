from __future__ import annotations

from pathlib import Path

import pytest

from ahpkit.host.terminals.pool import agent_command, agent_environment, environment, login_shell, title_of
from ahpkit.protocol.errors import InvalidParams

HOST = {"PATH": "/bin:/usr/bin", "HOME": "/home/me", "SHELL": "/bin/sh", "MODEL_API_KEY": "secret", "TERM": "dumb"}


def test_a_terminal_sees_what_programs_need_and_no_secret_of_the_host() -> None:
    env = environment({**HOST, "LC_TIME": "de_DE.UTF-8", "https_proxy": "http://p", "PATH_EXTRA": "x"})
    assert env["PATH"] == HOST["PATH"]
    assert (env["TERM"], env["LC_TIME"], env["https_proxy"]) == ("xterm-256color", "de_DE.UTF-8", "http://p")
    assert not {"MODEL_API_KEY", "PATH_EXTRA"} & env.keys()


def test_text_is_utf8_unless_the_host_says_otherwise() -> None:
    assert environment(HOST)["LANG"] == "C.UTF-8"
    assert "LANG" not in environment({**HOST, "LC_ALL": "de_DE.ISO-8859-1"})


def test_an_agents_command_is_not_paged_unless_it_says_so() -> None:
    assert agent_environment(HOST, {})["PAGER"] == "cat"
    env = agent_environment(HOST, {"PAGER": "less", "CI": "1"})
    assert (env["PAGER"], env["CI"]) == ("less", "1")


@pytest.mark.parametrize("shell", ["", "sh", "/no/such/shell", "/etc/passwd"])
def test_the_shell_is_the_persons_if_it_is_one(shell: str) -> None:
    assert login_shell({"SHELL": shell}) == ["/bin/sh", "-l"]
    assert login_shell({"SHELL": "/bin/bash"}) == ["/bin/bash", "-l"]


def test_a_command_is_found_on_its_own_path(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "tool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    env = {"PATH": str(program.parent)}
    assert agent_command("tool", ["-v"], env=env, cwd=tmp_path) == [str(program), "-v"]
    assert agent_command("bin/tool", [], env={"PATH": ""}, cwd=tmp_path) == [str(program)]
    assert agent_command(str(program), [], env={"PATH": ""}, cwd=tmp_path) == [str(program)]


def test_a_command_line_goes_to_the_shell(tmp_path: Path) -> None:
    line = "npm test && echo ok"
    assert agent_command(line, [], env=HOST, cwd=tmp_path) == ["/bin/sh", "-c", line]


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidParams, match="there is no program 'nope'"):
        agent_command("nope", ["x"], env=HOST, cwd=tmp_path)


def test_a_title_is_one_short_line() -> None:
    assert title_of("git", ["commit", "-m", "two words"]) == "git commit -m 'two words'"
    assert title_of("cat <<E\nlong\nE", []) == "cat <<E"
    assert len(title_of("x" * 200, [])) == 80
