"""One chat over the lives of its processes: starting, restarting, taking a conversation up again."""

import asyncio
from typing import Any

import pytest

from ahpkit.agents.acp.chat import STARTS
from ahpkit.agents.acp.connection import EXITED, SESSION_ID
from ahpkit.host.agent import AgentError, LoginNeeded, TurnContext
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.testing.acp_agent import CAPABILITIES
from ahpkit.testing.recording import RecordingTurn, user_message
from support.scripted_acp import Scripted
from support.waiting import until

FORGETFUL: dict[str, Any] = {"agentCapabilities": {**CAPABILITIES, "loadSession": False, "sessionCapabilities": {}}}
LOADS: dict[str, Any] = {"agentCapabilities": {**CAPABILITIES, "sessionCapabilities": {}}}


def told(asked: str, answered: str) -> TurnRecord:
    part = {"kind": "markdown", "id": "p", "content": answered}
    turn: Any = {"id": "t", "message": user_message(asked), "responseParts": [part], "usage": {}, "state": "complete"}
    return turn


class TestStarting:
    async def test_a_new_chat_starts_its_process_when_it_is_opened(self, scripted: Scripted) -> None:
        _, chat = await scripted.open()

        assert len(scripted.running()) == 1
        assert set(chat.memory) == {SESSION_ID}
        assert scripted.received("session/new")[0]["cwd"] == str(chat.working_directory)

    async def test_a_restored_chat_starts_it_with_its_next_turn(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open()
        await opened.run(RecordingTurn("one", chat=chat))
        await opened.aclose()
        agent = scripted.agent()

        again = await agent.open(chat)
        assert scripted.running() == []
        turn = RecordingTurn("two", chat=chat)
        await again.run(turn)

        assert turn.said == [("activity", "Starting scripted"), ("activity", None), ("text", "You said: two")]
        assert scripted.received("session/resume")[0]["sessionId"] == chat.memory[SESSION_ID]
        assert len(scripted.received("session/new")) == 1

    async def test_each_chat_has_a_process_of_its_own(self, scripted: Scripted) -> None:
        agent = scripted.agent(turns=[[{"kill": 9}]])
        first, second = scripted.chat(uri="ahp-chat:/1"), scripted.chat(uri="ahp-chat:/2")
        one, two = await agent.open(first), await agent.open(second)
        assert len(scripted.running()) == 2

        with pytest.raises(AgentError):
            await one.run(RecordingTurn("x", chat=first))

        assert len(scripted.running()) == 1
        with pytest.raises(AgentError):
            await two.run(RecordingTurn("x", chat=second))

    async def test_a_process_that_dies_while_it_starts_is_tried_a_few_times_with_growing_waits(
        self, scripted: Scripted
    ) -> None:
        failures: list[int] = []

        def no_wait(count: int) -> float:
            failures.append(count)
            return 0.0

        with pytest.raises(AgentError, match="exited with code 4") as error:
            await scripted.open(given={"pause": no_wait}, methods={"session/new": [{"exit": 4}]})

        assert error.value.error_type == EXITED
        assert failures == list(range(STARTS))
        assert scripted.running() == []

    async def test_one_that_only_fails_is_not_tried_again(self, scripted: Scripted) -> None:
        with pytest.raises(AgentError, match="no disk"):
            await scripted.open(methods={"session/new": [{"error": {"code": -32603, "message": "no disk"}}]})

        assert len(scripted.received("initialize")) == 1
        assert scripted.running() == []


class TestRestoring:
    async def test_after_a_crash_the_next_turn_takes_the_conversation_up_again(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(
            turns=[[{"text": "one"}], [{"text": "tw"}, {"stderr": "boom\n"}, {"kill": 9}]]
        )
        await opened.run(RecordingTurn("1", chat=chat))
        failing = RecordingTurn("2", chat=chat)

        with pytest.raises(AgentError, match=r"was ended by signal 9.\nIts last output:\nboom") as error:
            await opened.run(failing)
        assert error.value.error_type == EXITED
        assert failing.answer == "tw"
        assert scripted.running() == []
        following = RecordingTurn("3", chat=chat)
        await opened.run(following)

        assert following.answer == "You said: 3"
        assert len(scripted.received("session/resume")) == 1

    async def test_after_a_refusal_for_want_of_a_login_the_next_turn_has_a_new_process(
        self, scripted: Scripted
    ) -> None:
        """It sees a key, or a login with the agent's own program, which the old one may never look for again."""
        opened, chat = await scripted.open(turns=[[{"error": {"code": -32000, "message": "Authentication required"}}]])
        with pytest.raises(LoginNeeded):
            await opened.run(RecordingTurn("1", chat=chat))
        following = RecordingTurn("2", chat=chat)
        await opened.run(following)
        assert following.answer == "You said: 2"
        assert len(scripted.received("initialize")) == 2
        await opened.run(RecordingTurn("3", chat=chat))
        assert len(scripted.received("initialize")) == 2

    async def test_a_process_through_which_somebody_logged_in_stays(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(turns=[[{"error": {"code": -32000, "message": "Authentication required"}}]])
        with pytest.raises(LoginNeeded):
            await opened.run(RecordingTurn("1", chat=chat))
        await opened.authenticate("web")
        await opened.run(RecordingTurn("2", chat=chat))
        assert len(scripted.received("initialize")) == 1

    async def test_a_process_that_died_between_turns_is_noticed(self, scripted: Scripted) -> None:
        opened: Any
        opened, chat = await scripted.open(turns=[[{"text": "x"}, {"after": [{"exit": 0}]}]])
        await opened.run(RecordingTurn("1", chat=chat))
        await until(lambda: opened._session is None or opened._session.closed)

        following = RecordingTurn("2", chat=chat)
        await opened.run(following)

        assert following.answer == "You said: 2"

    async def test_a_history_that_the_agent_repeats_on_loading_is_not_doubled(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(initialize=LOADS)
        await opened.run(RecordingTurn("one", chat=chat))
        await opened.restart()

        turn = RecordingTurn("two", chat=chat)
        await opened.run(turn)

        assert turn.answer == "You said: two"
        assert len(scripted.received("session/load")) == 1

    async def test_one_that_promises_resume_and_cannot_is_loaded(self, scripted: Scripted) -> None:
        broken = {"session/resume": [{"error": {"code": -32601, "message": "Method not found"}}]}
        opened, chat = await scripted.open(methods=broken)
        await opened.run(RecordingTurn("one", chat=chat))
        await opened.restart()

        turn = RecordingTurn("two", chat=chat)
        await opened.run(turn)

        assert turn.answer == "You said: two"
        assert len(scripted.received("session/load")) == 1

    async def test_one_that_can_do_neither_is_told_what_was_said(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(initialize=FORGETFUL)
        await opened.run(RecordingTurn("what is 1+1?", chat=chat))
        chat.history = [told("what is 1+1?", "2")]
        await opened.restart()

        turn = RecordingTurn("and 2+2?", chat=chat)
        await opened.run(turn)
        await opened.run(RecordingTurn("thanks", chat=chat))

        before, after, last = [params["prompt"] for params in scripted.received("session/prompt")]
        assert len(before) == len(last) == 1
        assert "User: what is 1+1?\n\nAssistant: 2" in after[0]["text"]
        assert after[1]["text"] == "and 2+2?"
        assert "notice" in turn.verbs()

    async def test_a_cut_history_begins_a_session_that_knows_only_what_is_left(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open()
        await opened.run(RecordingTurn("one", chat=chat))
        chat.history = [told("one", "1")]

        await opened.truncated(chat.history)
        await opened.run(RecordingTurn("two", chat=chat))

        assert len(scripted.received("session/new")) == 2
        assert scripted.received("session/resume") == []
        assert "Assistant: 1" in scripted.received("session/prompt")[-1]["prompt"][0]["text"]


class TestContext:
    async def test_instructions_are_told_when_they_are_new_and_again_after_a_restart(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open()
        for rules in (["Be kind."], ["Be kind."], ["Be brief."]):
            await opened.run(RecordingTurn("x", chat=chat, context=TurnContext(rules=rules)))
        await opened.restart()
        await opened.run(RecordingTurn("x", chat=chat, context=TurnContext(rules=["Be brief."])))

        prompts = [[block["text"] for block in params["prompt"]] for params in scripted.received("session/prompt")]
        assert [len(prompt) for prompt in prompts] == [2, 1, 2, 2]
        assert "Be kind." in prompts[0][0]
        assert "Be brief." in prompts[2][0]


class TestIdle:
    async def test_a_process_with_nothing_to_do_is_ended_and_comes_back(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(config={"idle_timeout": 0.05})
        await opened.run(RecordingTurn("one", chat=chat))
        await until(lambda: not scripted.running())

        turn = RecordingTurn("two", chat=chat)
        await opened.run(turn)

        assert turn.answer == "You said: two"

    async def test_one_that_no_client_follows_is_ended_sooner(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(config={"unwatched_timeout": 0.0})
        await opened.run(RecordingTurn("one", chat=chat))
        await asyncio.sleep(0)
        assert len(scripted.running()) == 1, "it is followed"

        chat.watched = False
        await until(lambda: not scripted.running())

        turn = RecordingTurn("two", chat=chat)
        await opened.run(turn)
        assert turn.answer == "You said: two"

    async def test_one_that_was_never_asked_anything_is_ended_too(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(config={"idle_timeout": 0.05}, initialize=FORGETFUL)
        await until(lambda: not scripted.running())

        turn = RecordingTurn("one", chat=chat)
        await opened.run(turn)

        assert turn.answer == "You said: one"

    async def test_one_that_could_not_take_the_conversation_up_again_stays(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(config={"idle_timeout": 0.0}, initialize=FORGETFUL)
        await opened.run(RecordingTurn("one", chat=chat))
        for _ in range(10):
            await asyncio.sleep(0)

        assert len(scripted.running()) == 1

    async def test_turns_are_run_one_after_another(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open()
        turns = [RecordingTurn(str(number), chat=chat) for number in range(3)]

        await asyncio.gather(*(opened.run(turn) for turn in turns))

        assert [turn.answer for turn in turns] == ["You said: 0", "You said: 1", "You said: 2"]

    async def test_closing_in_mid_turn_ends_everything(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(turns=[[{"text": "x"}, {"spawn": "daemon"}, {"sleep": None}]])
        turn = RecordingTurn("x", chat=chat)
        running = asyncio.create_task(opened.run(turn))
        await until(lambda: len(turn.said) == 2)

        await opened.aclose()

        with pytest.raises(AgentError):
            await running
        assert scripted.running() == []
