from typing import Any

import pytest

from ahpkit.agents.acp import AcpAgent
from ahpkit.agents.acp.connection import AUTH_REQUIRED
from ahpkit.host.agent import AgentError
from ahpkit.testing.recording import RecordingTurn
from support.scripted_acp import Scripted

METHODS = [
    {"id": "api key", "name": "API key", "type": "env_var", "link": "https://x/keys", "vars": [{"name": "SOME_KEY"}]},
    {"id": "web", "name": "Browser", "description": "Opens a page"},
]


async def test_what_the_agent_says_about_itself_is_shown_once_it_has_started(scripted: Scripted) -> None:
    agent = scripted.agent(initialize={"authMethods": METHODS})
    changes: list[Any] = []
    agent.follow(lambda: changes.append(agent.meta))
    assert agent.meta is None

    await agent.open(scripted.chat())
    await agent.open(scripted.chat())

    assert len(changes) == 2, "what it is, then which models it has"
    assert agent.meta is not None
    assert agent.meta["info"]["name"] == "scripted"
    assert agent.meta["capabilities"]["loadSession"] is True
    assert agent.protected_resources == [
        {
            "resource": "acp://scripted/api%20key",
            "resource_name": "API key",
            "required": False,
            "resource_documentation": "https://x/keys",
        },
        {"resource": "acp://scripted/web", "resource_name": "Browser", "required": False},
    ]


class TestLogin:
    def agent(self, scripted: Scripted) -> AcpAgent:
        return scripted.agent(initialize={"authMethods": METHODS}, requires_env="SOME_KEY")

    async def test_a_session_that_needs_one_fails_and_works_after_a_key_was_given(self, scripted: Scripted) -> None:
        agent = self.agent(scripted)
        with pytest.raises(AgentError, match="Log in first") as error:
            await agent.open(scripted.chat())
        assert error.value.error_type == AUTH_REQUIRED
        assert scripted.running() == []

        await agent.authenticate("acp://scripted/api%20key", "sk-123")
        chat = scripted.chat()
        turn = RecordingTurn("x", chat=chat)
        await (await agent.open(chat)).run(turn)

        assert turn.answer == "You said: x"
        assert "sk-123" not in str(agent.meta)

    async def test_any_other_way_is_asked_of_the_agent(self, scripted: Scripted) -> None:
        agent = self.agent(scripted)
        with pytest.raises(AgentError):
            await agent.open(scripted.chat())

        await agent.authenticate("acp://scripted/web", "ignored")
        await agent.open(scripted.chat())

        assert scripted.received("authenticate") == [{"methodId": "web"}]

    async def test_a_key_takes_the_place_of_another_way(self, scripted: Scripted) -> None:
        agent = self.agent(scripted)
        with pytest.raises(AgentError):
            await agent.open(scripted.chat())

        await agent.authenticate("acp://scripted/web", "")
        await agent.authenticate("acp://scripted/api%20key", "sk-123")
        await agent.open(scripted.chat())

        assert scripted.received("authenticate") == []

    async def test_a_process_that_runs_logs_in_at_once_and_a_new_key_restarts_it(self, scripted: Scripted) -> None:
        agent = scripted.agent(initialize={"authMethods": METHODS})
        await agent.open(scripted.chat())
        first = scripted.running()

        await agent.authenticate("acp://scripted/web", "")
        assert scripted.received("authenticate") == [{"methodId": "web"}]
        assert scripted.running() == first
        await agent.authenticate("acp://scripted/api%20key", "sk-123")

        assert scripted.running() == []

    async def test_an_unknown_login_is_refused(self, scripted: Scripted) -> None:
        with pytest.raises(AgentError, match="has no login"):
            await scripted.agent().authenticate("acp://other/key", "t")


async def test_stopping_ends_every_chat(scripted: Scripted) -> None:
    agent = scripted.agent()
    for _ in range(2):
        await agent.open(scripted.chat())
    opened = await agent.open(scripted.chat())

    await agent.aclose()
    await opened.aclose()

    assert scripted.running() == []
