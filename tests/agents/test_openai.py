import asyncio
from typing import Any, cast

import pytest

from ahpkit.agents.openai import OpenAiAgent, OpenAiConfig, OpenAiConfigError
from ahpkit.agents.tools import Toolbox
from ahpkit.host.agent import AgentError, ToolOutcome, TurnContext
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.testing.fake_model import CallTool, FakeModel, ModelRequest, Reply, Say
from ahpkit.testing.recording import RecordingChat, RecordingTurn, user_message
from support.waiting import BOUND, until

tools = Toolbox()


@tools.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def run(model: FakeModel, turn: RecordingTurn, **config: Any) -> str | None:
    agent = OpenAiAgent(OpenAiConfig(name="local", base_url=model.url, **config), tools=tools)
    async with asyncio.timeout(BOUND):
        return await (await agent.open(turn.chat)).run(turn)


class TestAnswering:
    async def test_text_and_reasoning_are_streamed(self) -> None:
        turn = RecordingTurn("hello")
        async with FakeModel(lambda asked: Say("one two", thought="hm")) as model:
            assert await run(model, turn) == "end_turn"

        assert turn.said[:4] == [("new_part",), ("think", "hm"), ("text", "one "), ("text", "two")]
        assert turn.said[-1] == ("usage", {"inputTokens": 11, "outputTokens": 7, "model": "fake-model"})

    async def test_the_whole_conversation_and_the_instructions_are_sent(self) -> None:
        call: Any = {"toolCallId": "c", "toolName": "add", "toolInput": "{}", "status": "completed", "success": True}
        call |= {"content": [{"type": "text", "text": "3"}]}
        parts: Any = [{"kind": "toolCall", "toolCall": call}, {"kind": "markdown", "id": "p", "content": "It is 3."}]
        past: Any = {
            "id": "t",
            "message": user_message("1+2?"),
            "responseParts": parts,
            "usage": {},
            "state": "complete",
        }
        chat = RecordingChat(history=[cast("TurnRecord", past)])
        turn = RecordingTurn("thanks", chat=chat, context=TurnContext(rules=["Be kind."]))
        async with FakeModel() as model:
            await run(model, turn, system_prompt="You are brief.")

        messages = model.requests[0].body["messages"]
        assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
        assert "You are brief." in messages[0]["content"]
        assert "Be kind." in messages[0]["content"]
        assert messages[2]["tool_calls"][0]["function"]["name"] == "add"
        assert (messages[3]["content"], messages[4]["content"]) == ("3", "It is 3.")

    async def test_an_attached_image_is_sent_as_one(self) -> None:
        image = {"type": "embeddedResource", "label": "cat", "contentType": "image/png", "data": "eA=="}
        link = {"type": "resource", "label": "notes", "uri": "file:///notes"}
        message: Any = {**user_message("look"), "attachments": [image, link]}
        async with FakeModel() as model:
            await run(model, RecordingTurn("look", message=message))

        content = model.requests[0].body["messages"][0]["content"]
        assert content[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
        assert content[2]["text"] == "[attached: notes]\nfile:///notes"

    async def test_a_steering_message_is_answered_in_the_same_turn(self) -> None:
        turn = RecordingTurn("one")
        turn.steer("two")
        async with FakeModel() as model:
            await run(model, turn)

        assert turn.answer == "You said: oneYou said: two"

    async def test_a_cancel_ends_the_request(self) -> None:
        turn = RecordingTurn("SLOW 1000")
        async with FakeModel() as model:
            running = asyncio.create_task(run(model, turn))
            await until(lambda: turn.answer)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        assert "999" not in turn.answer


class TestTools:
    async def test_a_function_is_offered_approved_run_and_its_result_returned(self) -> None:
        turn = RecordingTurn('CALL add {"a": 1, "b": 2}', confirmations=[True])
        async with FakeModel() as model:
            assert await run(model, turn) == "end_turn"

        offered = model.requests[0].body["tools"][0]["function"]
        assert (offered["name"], offered["description"]) == ("add", "Add two numbers.")
        assert offered["parameters"]["required"] == ["a", "b"]
        assert [verb for verb in turn.verbs() if verb in ("tool_call", "confirm", "complete")] == [
            "tool_call",
            "confirm",
            "complete",
        ]
        assert turn.answer == "The tool returned: 3"
        assert turn.said[-1][1]["inputTokens"] == 22

    async def test_a_denied_call_is_told_to_the_model_and_not_run(self) -> None:
        turn = RecordingTurn('CALL add {"a": 1, "b": 2}', confirmations=[False])
        async with FakeModel() as model:
            await run(model, turn)

        assert turn.answer == "The tool returned: the user denied this tool call"

    async def test_a_tool_of_the_client_is_run_by_the_client(self) -> None:
        context = TurnContext(tools=[{"name": "open_file", "inputSchema": {"type": "object"}}])
        outcome = ToolOutcome(success=True, content=[{"type": "text", "text": "opened"}])
        turn = RecordingTurn('CALL open_file {"path": "a"}', context=context, outcomes=[outcome])
        async with FakeModel() as model:
            await run(model, turn)

        assert model.requests[0].tools == ("add", "open_file")
        assert "call_tool" in turn.verbs()
        assert turn.answer == "The tool returned: opened"

    async def test_a_tool_that_does_not_exist_is_told_to_the_model(self) -> None:
        def once(asked: ModelRequest) -> Reply:
            return Say(asked.result) if asked.result else CallTool("nothing", {})

        turn = RecordingTurn("x")
        async with FakeModel(once) as model:
            await run(model, turn)

        assert "there is no tool 'nothing'" in turn.answer

    async def test_a_model_that_never_stops_calling_is_stopped(self) -> None:
        turn = RecordingTurn("x", confirmations=[True] * 3)
        async with FakeModel(lambda asked: CallTool("add", {"a": 1, "b": 2})) as model:
            assert await run(model, turn, max_requests=3) == "max_turn_requests"

        assert len(model.requests) == 3


class TestConfiguring:
    async def test_the_models_are_asked_for_when_none_are_given(self) -> None:
        async with FakeModel() as model:
            agent = OpenAiAgent(OpenAiConfig(name="local", base_url=model.url))
            changes: list[int] = []
            agent.follow(lambda: changes.append(1))
            await agent.open(RecordingChat())

        assert agent.models == [{"id": "fake-model", "provider": "local", "name": "fake-model"}]
        assert changes == [1]

    async def test_the_model_of_the_turn_is_used_else_the_first(self) -> None:
        async with FakeModel() as model:
            await run(model, RecordingTurn("x"), models=("big", "small"))
            await run(model, RecordingTurn("x", model={"id": "small"}), models=("big", "small"))

        assert [asked.body["model"] for asked in model.requests] == ["big", "small"]

    async def test_the_key_comes_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_KEY", "sk-1")
        async with FakeModel() as model:
            await run(model, RecordingTurn("x"), key_env="MY_KEY")
            await run(model, RecordingTurn("x"), key_env="NO_SUCH_KEY")

        assert [headers.get("authorization") for headers in model.headers] == ["Bearer sk-1", None]

    @pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://x", "http://"])
    def test_something_that_is_no_url_is_refused(self, url: str) -> None:
        with pytest.raises(OpenAiConfigError, match="is not an http or https URL"):
            OpenAiConfig(name="local", base_url=url)


class TestFailing:
    @pytest.mark.parametrize(
        ("prompt", "kind", "words"),
        [
            ("FAIL 400 too long", "openai/400", "HTTP 400: too long"),
            ("FAIL 401 no", "openai/auth", "set OPENAI_API_KEY"),
        ],
    )
    async def test_an_error_of_the_endpoint_says_what_and_what_to_do(self, prompt: str, kind: str, words: str) -> None:
        async with FakeModel() as model:
            with pytest.raises(AgentError, match=words) as error:
                await run(model, RecordingTurn(prompt))

        assert error.value.error_type == kind

    async def test_an_endpoint_that_is_not_there_is_named(self) -> None:
        async with FakeModel() as model:
            pass
        with pytest.raises(AgentError, match="cannot be reached") as error:
            await run(model, RecordingTurn("x"))

        assert error.value.error_type == "openai/unreachable"


class TestSampling:
    """What an MCP server or app asks of the model, past the conversation."""

    async def test_the_model_answers_without_the_conversation(self) -> None:
        message = {"role": "user", "content": {"type": "text", "text": "Hello?"}}
        request = {"messages": [message], "systemPrompt": "Be brief.", "maxTokens": 10}
        async with FakeModel(lambda asked: Say("Hi.")) as model:
            agent = OpenAiAgent(OpenAiConfig(name="local", base_url=model.url, models=("small",)), tools=tools)
            answer = await agent.sample(RecordingChat(), request)
        assert answer == {
            "role": "assistant",
            "model": "small",
            "content": {"type": "text", "text": "Hi."},
            "stopReason": "endTurn",
        }
        body = model.requests[0].body
        assert body["max_tokens"] == 10
        assert [one["role"] for one in body["messages"]] == ["system", "user"]
        assert "tools" not in body

    async def test_tools_of_the_request_are_used_and_their_results_taken(self) -> None:
        tool = {"name": "look", "inputSchema": {"type": "object"}}
        image = {"type": "image", "data": "eA==", "mimeType": "image/png"}
        used = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "sky"}}
        done = {"type": "tool_result", "toolUseId": "c1", "content": [{"type": "text", "text": "blue"}]}
        messages = [
            {"role": "user", "content": [{"type": "text", "text": "?"}, image]},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [done]},
        ]
        request = {"messages": messages, "tools": [tool], "toolChoice": {"mode": "required"}}
        async with FakeModel(lambda asked: CallTool("look", {"at": "sea"})) as model:
            agent = OpenAiAgent(OpenAiConfig(name="local", base_url=model.url))
            answer = await agent.sample(RecordingChat(), request)
        assert answer["stopReason"] == "toolUse"
        [use] = answer["content"]
        assert (use["type"], use["name"], use["input"]) == ("tool_use", "look", {"at": "sea"})
        body = model.requests[0].body
        assert [one["role"] for one in body["messages"]] == ["user", "assistant", "tool"]
        assert (body["tools"][0]["function"]["name"], body["tool_choice"]) == ("look", "required")

    async def test_an_endpoint_that_fails_says_so(self) -> None:
        agent = OpenAiAgent(OpenAiConfig(name="local", base_url="http://127.0.0.1:9/v1"))
        with pytest.raises(AgentError, match="cannot be reached"):
            await agent.sample(RecordingChat(), {"messages": []})
