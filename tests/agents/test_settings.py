from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp import AcpAgent
from ahpkit.agents.openai import OpenAiAgent
from ahpkit.agents.python import PythonAgent
from ahpkit.agents.settings import agent_from_settings
from ahpkit.protocol.errors import AhpError


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
