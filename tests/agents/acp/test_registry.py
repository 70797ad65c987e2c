from ahpkit.agents.acp.config import parse_agent_option
from ahpkit.agents.acp.registry import KNOWN_AGENTS


def test_every_known_agent_can_be_started_installed_and_given_a_key() -> None:
    assert len(KNOWN_AGENTS) >= 13
    for name, agent in KNOWN_AGENTS.items():
        assert agent.name == name
        assert agent.install
        assert agent.keys
        assert parse_agent_option(name).display_name == agent.title
