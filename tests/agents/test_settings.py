from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp import AcpAgent
from ahpkit.agents.openai import OpenAiAgent
from ahpkit.agents.python import PythonAgent
from ahpkit.agents.settings import agent_from_settings, missing_program
from ahpkit.wire.errors import AhpError


def test_an_option_names_a_known_agent_a_program_or_an_endpoint() -> None:
    known = agent_from_settings("gemini", {"option": "gemini"})
    program = agent_from_settings("mine", {"option": "mine=agent --url=http://x"})
    endpoint = agent_from_settings("local", {"option": "local=http://127.0.0.1:8080/v1"})

    assert (type(known), known.display_name) == (AcpAgent, "Gemini CLI")
    assert (type(program), program.provider) == (AcpAgent, "mine")
    assert (type(endpoint), endpoint.provider) == (OpenAiAgent, "local")


def test_a_table_names_a_program_an_endpoint_or_python_code(tmp_path: Path) -> None:
    code = "from ahpkit.agents.python import agent\n@agent(name='parrot')\nasync def parrot(turn):\n    return 'x'\n"
    (tmp_path / "mine.py").write_text(code)

    program = agent_from_settings("mine", {"command": "agent", "description": "Fast"})
    endpoint = agent_from_settings("local", {"url": "https://x/v1", "models": ["a", "b"], "timeout": 5})
    python = agent_from_settings("parrot", {"python": f"{tmp_path / 'mine.py'}:parrot"})

    assert (type(program), program.description) == (AcpAgent, "Fast")
    assert [model["id"] for model in endpoint.models] == ["a", "b"]
    assert isinstance(python, PythonAgent)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "agents.mine: give a command"),
        ({"url": "http://x", "modles": []}, r"agents\.mine\.modles: unknown key"),
        ({"url": "http://x", "models": "a"}, r"agents\.mine\.models: 'a' has the wrong type"),
        ({"url": "http://x", "models": [1]}, r"agents\.mine\.models: expected strings only"),
        ({"url": "http://x", "max_requests": True}, r"agents\.mine\.max_requests: True has the wrong type"),
        ({"option": "mine"}, "no known agent 'mine'"),
    ],
)
def test_what_cannot_be_used_names_the_key(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(AhpError, match=complaint):
        agent_from_settings("mine", fields)


@pytest.mark.parametrize(
    ("name", "extra", "told"),
    [
        ("parrot", {"title": "P"}, "agents.parrot.title: unknown key; a table with python has no other key"),
        ("polly", {}, "agents.polly: the agent calls itself parrot; use [agents.parrot]"),
    ],
)
def test_a_python_table_has_the_agents_name_and_no_other_keys(name: str, extra: dict[str, Any], told: str) -> None:
    with pytest.raises(AhpError) as caught:
        agent_from_settings(name, {"python": "examples/agent_parrot.py:parrot", **extra})
    assert str(caught.value) == told


def test_python_code_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def (")
    with pytest.raises(AhpError, match=r"cannot load the agent .*bad.py, line 1"):
        agent_from_settings("bad", {"python": f"{tmp_path / 'bad.py'}:bad"})


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        ({"option": "mine=no-such-program --acp"}, "no-such-program is not installed"),
        ({"command": "no-such-program"}, "no-such-program is not installed"),
        ({"option": "mine=sh -c x"}, None),
        ({"command": "./agent"}, None),
        ({"command": "/nowhere/agent"}, "/nowhere/agent is not installed"),
        ({"url": "http://127.0.0.1:1/v1"}, None),
        ({"python": "nowhere:agent"}, None),
    ],
)
def test_a_program_that_is_not_installed_is_known_before_it_is_needed(
    fields: dict[str, Any], missing: str | None
) -> None:
    assert missing_program("mine", fields) == missing


def test_how_to_install_a_known_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    told = "gemini is not installed; install it with:  npm install -g @google/gemini-cli"
    assert missing_program("gemini", {"option": "gemini"}) == told
    assert missing_program("gemini", {"command": "my-gemini"}) == "my-gemini is not installed"
