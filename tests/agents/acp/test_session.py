"""A turn through a real process: what the agent says is what the turn hears, in order, and back."""

import asyncio
import json
from typing import Any

import pytest

from ahpkit.host.agent import AgentError, Confirmation, InputAnswers, McpServerOffer, TurnContext
from ahpkit.testing.acp_agent import CAPABILITIES
from ahpkit.testing.recording import RecordingTurn, user_message
from support import requirement
from support.scripted_acp import Scripted
from support.waiting import until

ASK: dict[str, Any] = {
    "request": "session/request_permission",
    "params": {
        "toolCall": {"toolCallId": "t", "title": "Write a", "kind": "edit", "rawInput": {"path": "a"}},
        "options": [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ],
    },
    "say": True,
    "then": {"yes": [{"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}}]},
}


async def test_text_and_thoughts_stream_in_order(scripted: Scripted) -> None:
    turn = await scripted.run({"think": "hm"}, {"text": "one "}, {"text": "two"})

    assert turn.said == [("think", "hm"), ("text", "one "), ("text", "two")]


async def test_the_result_never_overtakes_the_updates_before_it(scripted: Scripted) -> None:
    turn = await scripted.run({"repeat": 2000, "steps": [{"text": "{i} "}]})

    assert turn.answer == "".join(f"{number} " for number in range(2000))


async def test_what_comes_after_the_result_is_not_in_the_turn_but_shown_with_the_next(scripted: Scripted) -> None:
    late = [{"text": "late"}, {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t"}}]
    opened, chat = await scripted.open(turns=[[{"text": "in time"}, {"after": late}]])
    first, second = RecordingTurn("one", chat=chat), RecordingTurn("two", chat=chat)

    await opened.run(first)
    await _settle(opened)
    await opened.run(second)

    assert first.said == [("text", "in time")]
    assert second.said == [("notice", "The agent said between turns: late"), ("text", "You said: two")]


class TestPermissions:
    async def test_an_approval_is_answered_with_the_option_picked(self, scripted: Scripted) -> None:
        always = Confirmation(approved=True, tool_input="", option_id="always")
        turn = await scripted.run(ASK, turn=RecordingTurn("x", confirmations=[always]))

        assert turn.verbs() == ["tool_call", "confirm", "text", "complete"]
        assert json.loads(turn.answer) == {"outcome": {"outcome": "selected", "optionId": "always"}}

    async def test_a_denial_is_answered_with_the_option_that_rejects(self, scripted: Scripted) -> None:
        turn = await scripted.run(ASK, turn=RecordingTurn("x", confirmations=[False]))

        assert turn.verbs() == ["tool_call", "confirm", "text"]
        assert json.loads(turn.answer) == {"outcome": {"outcome": "selected", "optionId": "no"}}

    @pytest.mark.parametrize(("policy", "option"), [("allow", "yes"), ("deny", "no")])
    async def test_the_configuration_answers_without_a_person(
        self, scripted: Scripted, policy: str, option: str
    ) -> None:
        turn = await scripted.run(ASK, config={"permissions": policy})

        assert "confirm" not in turn.verbs()
        assert json.loads(turn.answer)["outcome"]["optionId"] == option

    async def test_outside_a_turn_nobody_can_be_asked(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(turns=[[{"text": "x"}, {"after": [{**ASK, "say": False}]}]])
        await opened.run(RecordingTurn("x", chat=chat))
        await _settle(opened)

        assert scripted.answers() == [{"outcome": {"outcome": "cancelled"}}]

    async def test_an_agent_that_takes_its_question_back_gets_an_error_and_goes_on(self, scripted: Scripted) -> None:
        taken_back = {"notify": "$/cancel_request", "params": {"requestId": 1}}
        never: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        opened, chat = await scripted.open(turns=[[ASK], [{"text": "next"}]], methods={"_poke": [taken_back]})
        turn = RecordingTurn("x", chat=chat, confirmations=[never])
        running = asyncio.create_task(opened.run(turn))
        await until(lambda: "confirm" in turn.verbs())

        await _request(opened, "_poke")
        await running

        assert json.loads(turn.answer)["code"] == -32800


class TestQuestions:
    FORM: dict[str, Any] = {  # noqa: RUF012  # Nobody changes it.
        "request": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
        "say": True,
    }

    async def test_a_form_is_asked_and_its_answers_returned(self, scripted: Scripted) -> None:
        given = InputAnswers("accept", {"name": {"state": "submitted", "value": {"kind": "text", "value": "Ada"}}})
        turn = await scripted.run(self.FORM, turn=RecordingTurn("x", answers=[given]))

        assert turn.said[0] == ("ask", ["name"], {"message": "Who?"})
        assert json.loads(turn.answer) == {"action": "accept", "content": {"name": "Ada"}}

    async def test_a_url_is_answered_by_the_user_or_when_the_agent_says_it_is_done(self, scripted: Scripted) -> None:
        params = {"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": "e"}
        opened, chat = await scripted.open(
            turns=[[{"request": "elicitation/create", "params": params, "say": True}]],
            methods={"_poke": [{"notify": "elicitation/complete", "params": {"elicitationId": "e"}}]},
        )
        never: asyncio.Future[InputAnswers] = asyncio.get_running_loop().create_future()
        turn = RecordingTurn("x", chat=chat, answers=[never])
        running = asyncio.create_task(opened.run(turn))
        await until(lambda: "ask" in turn.verbs())

        await _request(opened, "_poke")
        await running

        assert turn.said[0] == ("ask", [], {"message": "Log in", "url": "https://example.com/login"})
        assert json.loads(turn.answer) == {"action": "accept"}

    async def test_nobody_is_asked_to_open_what_is_no_web_page(self, scripted: Scripted) -> None:
        params = {"mode": "url", "message": "Log in", "url": "javascript:alert(1)", "elicitationId": "e"}
        turn = await scripted.run({"request": "elicitation/create", "params": params, "say": True})
        assert "ask" not in turn.verbs()
        assert "not the address of a web page" in turn.answer

    async def test_a_url_is_cancelled_with_the_turn(self, scripted: Scripted) -> None:
        params = {"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": "e"}
        ask = {"request": "elicitation/create", "params": params}
        opened, chat = await scripted.open(turns=[[ask, {"wait_cancel": True}, {"stop": "cancelled"}]])
        never: asyncio.Future[InputAnswers] = asyncio.get_running_loop().create_future()
        turn = RecordingTurn("x", chat=chat, answers=[never])

        await _cancel_once(opened.run(turn), lambda: "ask" in turn.verbs())

        assert scripted.answers() == [{"action": "cancel"}]

    async def test_outside_a_turn_it_is_cancelled(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(turns=[[{"text": "x"}, {"after": [{**self.FORM, "say": False}]}]])
        await opened.run(RecordingTurn("x", chat=chat))
        await _settle(opened)

        assert scripted.answers() == [{"action": "cancel"}]


class TestCancel:
    async def test_the_agent_is_told_and_its_end_awaited_while_it_still_talks(self, scripted: Scripted) -> None:
        steps = [{"text": "working"}, {"wait_cancel": True}, {"text": " stopping"}, {"stop": "cancelled"}]
        opened, chat = await scripted.open(turns=[steps])
        turn = RecordingTurn("x", chat=chat)

        await _cancel_once(opened.run(turn), lambda: turn.answer == "working")

        assert turn.answer == "working stopping"
        follow_up = RecordingTurn("again", chat=chat)
        await opened.run(follow_up)
        assert follow_up.answer == "You said: again"
        assert len(scripted.received("initialize")) == 1

    async def test_open_permissions_and_questions_are_answered_as_cancelled(self, scripted: Scripted) -> None:
        never: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        opened, chat = await scripted.open(turns=[[ASK, {"wait_cancel": True}, {"stop": "cancelled"}]])
        turn = RecordingTurn("x", chat=chat, confirmations=[never])

        await _cancel_once(opened.run(turn), lambda: "confirm" in turn.verbs())

        assert scripted.answers() == [{"outcome": {"outcome": "cancelled"}}]

    async def test_an_agent_that_ignores_it_is_ended_and_started_anew_for_the_next_turn(
        self, scripted: Scripted
    ) -> None:
        opened, chat = await scripted.open(turns=[[{"text": "x"}, {"sleep": None}]], config={"cancel_timeout": 0.2})
        turn = RecordingTurn("x", chat=chat)

        await _cancel_once(opened.run(turn), lambda: bool(turn.said))
        assert scripted.running() == []
        follow_up = RecordingTurn("again", chat=chat)
        await opened.run(follow_up)

        assert follow_up.answer == "You said: again"
        assert len(scripted.received("session/resume")) == 1

    async def test_an_agent_that_fails_over_it_is_not_trusted_with_the_next_turn(self, scripted: Scripted) -> None:
        failing = {"error": {"code": -32603, "message": "'NoneType' object has no attribute 'startswith'"}}
        opened, chat = await scripted.open(turns=[[{"text": "x"}, {"wait_cancel": True}, failing]])
        turn = RecordingTurn("x", chat=chat)

        await _cancel_once(opened.run(turn), lambda: bool(turn.said))
        await opened.run(RecordingTurn("again", chat=chat))

        assert len(scripted.received("initialize")) == 2


class TestOptions:
    SESSION: dict[str, Any] = {  # noqa: RUF012  # Nobody changes it.
        "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "A"}, {"id": "code", "name": "C"}]},
        "configOptions": [
            {
                "id": "model",
                "name": "Model",
                "category": "model",
                "type": "select",
                "currentValue": "m1",
                "options": [{"value": "m1", "name": "One"}, {"value": "m2", "name": "Two"}],
            },
            {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False},
        ],
    }

    async def test_they_are_reported_and_changed_in_mid_session(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(session=self.SESSION)
        assert chat.said[0][:1] == ("config_options",)
        assert chat.said[0][2] == {"model": "m1", "fast": False, "mode": "ask"}

        await opened.configure(model={"id": "m2"}, agent=None, config={"fast": True, "mode": "code"})

        reports = [said[2] for said in chat.said if said[0] == "config_options"]
        assert reports[1:] == [{"model": "m2", "fast": True, "mode": "code"}] * len(reports[1:]), "nothing in between"
        assert [change["configId"] for change in scripted.received("session/set_config_option")] == ["model", "fast"]
        assert scripted.received("session/set_mode")[0]["modeId"] == "code"

    async def test_the_models_are_offered_by_the_agent_once_it_told_them(self, scripted: Scripted) -> None:
        agent = scripted.agent(session=self.SESSION)
        changes: list[int] = []
        agent.follow(lambda: changes.append(len(agent.models)))

        await agent.open(scripted.chat())

        assert [model["name"] for model in agent.models] == ["One", "Two"]
        assert changes == [0, 2]
        assert await agent.session_config(None, {}) is not None

    async def test_a_turn_uses_its_model_the_default_one_and_the_chats_values(self, scripted: Scripted) -> None:
        agent = scripted.agent(session=self.SESSION, config={"default_model": "m2"})
        chat = scripted.chat(config={"fast": True})
        opened = await agent.open(chat)

        await opened.run(RecordingTurn("x", chat=chat))
        await opened.run(RecordingTurn("x", chat=chat, model={"id": "m1"}))

        values = [(change["configId"], change["value"]) for change in scripted.received("session/set_config_option")]
        assert values == [("fast", True), ("model", "m2"), ("model", "m1")]

    async def test_what_was_chosen_is_chosen_again_when_a_process_takes_the_session_up(
        self, scripted: Scripted
    ) -> None:
        opened, chat = await scripted.open(session=self.SESSION)
        await opened.configure(model=None, agent=None, config={"mode": "code"})
        await opened.run(RecordingTurn("x", chat=chat))
        chat.config = {"mode": "code", "model": "m1", "fast": False}
        reported = len([said for said in chat.said if said[0] == "config_options"])

        await opened.restart()
        await opened.run(RecordingTurn("x", chat=chat))

        assert [change["modeId"] for change in scripted.received("session/set_mode")] == ["code", "code"]
        reports = [said[2]["mode"] for said in chat.said if said[0] == "config_options"]
        assert set(reports[reported:]) == {"code"}, "the mode of the new process is nobody's choice"

    async def test_words_that_confirm_a_change_are_no_news(self, scripted: Scripted) -> None:
        words = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "[MODE_UPDATE] code"}}
        confirmed: dict[str, Any] = {"session/set_mode": [{"update": words}, {"result": {}}]}
        opened, chat = await scripted.open(session=self.SESSION, methods=confirmed)
        await opened.configure(model=None, agent=None, config={"mode": "code"})
        turn = RecordingTurn("x", chat=chat)
        await opened.run(turn)

        assert "notice" not in turn.verbs()

    async def test_an_agent_that_refuses_what_was_chosen_still_opens_and_its_own_values_are_reported(
        self, scripted: Scripted
    ) -> None:
        refusing = {"session/set_mode": [{"error": {"code": -32602, "message": "not now"}}]}
        chat = scripted.chat(config={"mode": "code"})
        await scripted.agent(session=self.SESSION, methods=refusing).open(chat)

        assert [said[2]["mode"] for said in chat.said if said[0] == "config_options"] == ["ask"]

    async def test_an_option_the_agent_refuses_is_shown_and_the_turn_goes_on(self, scripted: Scripted) -> None:
        refusing = {"session/set_config_option": [{"error": {"code": -32602, "message": "not now"}}]}
        agent = scripted.agent(session=self.SESSION, methods=refusing)
        chat = scripted.chat(config={"fast": True})
        turn = RecordingTurn("x", chat=chat)

        await (await agent.open(chat)).run(turn)

        assert turn.verbs() == ["notice", "text"]
        assert "not now" in turn.said[0][1]
        assert chat.said[-1][2]["fast"] is False, "what the agent really has is reported"


class TestMeta:
    @requirement("extensibility:meta:preserved-when-forwarding")
    @requirement("extensibility:meta:correlation-fields")
    @requirement("extensibility:meta:attach-own-data")
    async def test_what_a_client_puts_into_a_messages_meta_reaches_the_agent(self, scripted: Scripted) -> None:
        meta = {"requestId": "r-1", "zed.dev/debugMode": True, "example.com/x": {"deep": [None]}}
        message = {**user_message("hello"), "_meta": meta}

        await scripted.run(turn=RecordingTurn("hello", message=message))  # pyright: ignore[reportArgumentType]  # Less than a whole message.

        [prompt] = scripted.received("session/prompt")
        assert prompt["_meta"] == meta
        assert set(prompt) == {"sessionId", "prompt", "_meta"}

    @requirement("extensibility:meta:on-every-type")
    async def test_meta_named_like_arguments_changes_nothing(self, scripted: Scripted) -> None:
        evil = {"session_id": "EVIL", "sessionId": "EVIL", "update": {"sessionUpdate": "plan"}, "params": {}}
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}, "_meta": evil}
        turn = await scripted.run({"update": chunk, "fields": {"_meta": evil}}, {**ASK, "say": False})

        assert turn.answer == "hi"
        assert "confirm" in turn.verbs()


class TestExtensions:
    @requirement("extensibility:methods:custom-request-name")
    @requirement("extensibility:methods:request-carries-id")
    async def test_an_extension_request_is_forwarded_to_a_client_and_its_answer_returned(
        self, scripted: Scripted
    ) -> None:
        agent = scripted.agent(turns=[[{"request": "_example.com/buffers", "params": {"x": 1}, "say": True}]])
        chat = scripted.chat(extension_results={"_example.com/buffers": {"buffers": []}})
        turn = RecordingTurn("x", chat=chat)

        await (await agent.open(chat)).run(turn)

        [(_, method, params)] = [said for said in chat.said if said[0] == "extension_request"]
        assert (method, params["x"]) == ("_example.com/buffers", 1)
        assert json.loads(turn.answer) == {"buffers": []}

    @requirement("extensibility:methods:unknown-request-error")
    @requirement("extensibility:practice:fails-gracefully")
    async def test_a_request_nobody_knows_is_answered_with_an_error_and_the_turn_goes_on(
        self, scripted: Scripted
    ) -> None:
        turn = await scripted.run({"request": "craft/drainQueue", "say": True}, {"text": " on"})

        assert '"code": -32601' in turn.answer
        assert turn.answer.endswith(" on")

    @requirement("extensibility:methods:notification-without-id")
    @requirement("extensibility:methods:unknown-notification-ignored")
    async def test_notifications_are_forwarded_or_ignored_and_never_answered(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(
            turns=[[{"notify": "_example.com/opened", "params": {"p": 1}}, {"notify": "what/ever"}, {"text": "on"}]]
        )
        turn = RecordingTurn("x", chat=chat)
        await opened.run(turn)

        assert ("extension_notification", "_example.com/opened", {"p": 1}) in chat.said
        assert turn.answer == "on"
        assert scripted.answers() == []


class TestSteering:
    INITIALIZE: dict[str, Any] = {"_meta": {"steering": {"supported": True}}}  # noqa: RUF012  # Nobody changes it.

    async def test_an_agent_that_takes_it_gets_the_message_in_the_running_turn(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open(
            initialize=self.INITIALIZE, turns=[[{"text": "a"}, {"wait_cancel": True}, {"stop": "end_turn"}]]
        )
        turn = RecordingTurn("x", chat=chat)
        running = asyncio.create_task(opened.run(turn))
        await until(lambda: bool(turn.said))

        turn.steer("left!", meta={"client.dev/x": 1})
        await until(lambda: "steered" in turn.answer)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        assert turn.answer == "a[steered: left!]"
        steered = scripted.received("_session/steering")[0]
        assert steered["prompt"] == [{"type": "text", "text": "left!"}]
        assert steered["_meta"] == {"client.dev/x": 1, "steering": {"idleBehavior": "promptRequired"}}

    async def test_a_message_the_agent_does_not_take_is_its_next_prompt_in_the_same_turn(
        self, scripted: Scripted
    ) -> None:
        opened, chat = await scripted.open(
            initialize=self.INITIALIZE,
            methods={"_session/steering": [{"result": {"outcome": "promptRequired"}}]},
            turns=[[{"text": "a "}, {"request": "_wait"}]],
        )
        asked = asyncio.Event()
        turn = RecordingTurn("x", chat=chat)
        chat.extension_request = _held(asked)
        running = asyncio.create_task(opened.run(turn))
        await until(lambda: bool(turn.said))

        turn.steer("then this")
        await until(lambda: bool(scripted.received("_session/steering")))
        asked.set()
        await running

        assert turn.answer == "a You said: then this"

    @requirement("extensibility:capabilities:checked-before-call")
    async def test_an_agent_that_did_not_announce_it_is_never_called(self, scripted: Scripted) -> None:
        turn = RecordingTurn("x")
        turn.steer("left!")
        await scripted.run({"text": "a"}, turn=turn)

        assert scripted.received("_session/steering") == []
        assert turn.steering() is not None


class TestOpening:
    async def test_updates_that_come_before_the_session_is_known_are_kept(self, scripted: Scripted) -> None:
        early = {
            "update": {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "web"}]},
            "session": "mine",
        }
        _, chat = await scripted.open(methods={"session/new": [early, {"result": {"sessionId": "mine"}}]})

        assert ("commands", ["web"]) in chat.said

    async def test_updates_after_opening_are_taken(self, scripted: Scripted) -> None:
        title = {"update": {"sessionUpdate": "session_info_update", "title": "Cats"}}
        opened, chat = await scripted.open(opened=[title])
        await opened.run(RecordingTurn("x", chat=chat))

        assert ("title", "Cats") in chat.said

    async def test_a_session_without_an_id_is_refused(self, scripted: Scripted) -> None:
        with pytest.raises(AgentError, match="without an id"):
            await scripted.open(methods={"session/new": [{"result": None}]})

    async def test_what_an_agent_gets_with_its_servers_is_not_in_what_it_is_quoted_with(
        self, scripted: Scripted
    ) -> None:
        """It may print its whole configuration before it ends, for example."""
        web = {"url": "http://x", "headers": {"X": "Bearer value-of-two"}}
        config = {"command": "srv", "env": {"ONE": "value-of-one"}, "http": web}
        offer = McpServerOffer("1", "one", config, filled={"THREE": "value-of-three"})
        said = 'env: [{"name": "ONE", "value": "value-of-one"}] args: value-of-three and value-of-two\n'
        opened, chat = await scripted.open(turns=[[{"stderr": said}, {"exit": 3}]])
        turn = RecordingTurn("1", chat=chat, context=TurnContext(mcp_servers=[offer]))
        with pytest.raises(AgentError, match="args: … and …") as error:
            await opened.run(turn)
        assert "value-of" not in f"{error.value.message}{error.value.meta}"

    async def test_mcp_servers_of_the_turn_are_given_when_the_session_is_opened(self, scripted: Scripted) -> None:
        opened, chat = await scripted.open()
        first = TurnContext(mcp_servers=[McpServerOffer("1", "one", {"command": "srv"})])
        second = TurnContext(mcp_servers=[*first.mcp_servers, McpServerOffer("2", "two", {"url": "https://x"})])

        for context in (first, first, second):
            await opened.run(RecordingTurn("x", chat=chat, context=context))

        given = [[server["name"] for server in params["mcpServers"]] for params in scripted.received("session/new")]
        assert given == [[], ["one"]]
        [resumed] = scripted.received("session/resume")
        assert [server["name"] for server in resumed["mcpServers"]] == ["one", "two"]

    async def test_an_agent_that_cannot_resume_keeps_its_servers(self, scripted: Scripted) -> None:
        plain: dict[str, Any] = {**CAPABILITIES, "loadSession": False, "sessionCapabilities": {}}
        opened, chat = await scripted.open(initialize={"agentCapabilities": plain})
        context = TurnContext(mcp_servers=[McpServerOffer("1", "one", {"command": "srv"})])

        await opened.run(RecordingTurn("x", chat=chat))
        await opened.run(RecordingTurn("y", chat=chat, context=context))

        assert len(scripted.received("initialize")) == 1


async def _cancel_once(work: Any, condition: Any) -> None:
    running = asyncio.create_task(work)
    await until(condition)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def _request(opened: Any, method: str) -> None:
    """Make the scripted agent play the steps it has for a method."""
    with pytest.raises(AgentError):
        await opened._session.connection.request(method, {})


async def _settle(opened: Any) -> None:
    """Let everything the agent has sent be handled, and our answers arrive."""
    for _ in range(2):
        await _request(opened, "_nothing")


def _held(event: asyncio.Event) -> Any:
    async def request(method: str, params: Any) -> Any:
        await event.wait()

    return request
