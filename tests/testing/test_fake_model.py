import asyncio
import json
from typing import Any

from ahpkit.agents.sse import post_events, request
from ahpkit.testing.fake_model import FakeModel
from support.waiting import BOUND


async def responses(model: FakeModel, **body: Any) -> list[Any]:
    sent = json.dumps({"stream": True, **body}).encode()
    async with asyncio.timeout(BOUND):
        events = post_events(f"{model.url}/responses", headers={}, body=sent, timeout=BOUND)
        return [json.loads(event) async for event in events]


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


async def test_the_responses_form_streams_text_and_ends_with_its_usage() -> None:
    async with FakeModel() as model:
        events = await responses(model, input=[said("hi there")])

    assert events[0]["type"] == "response.created"
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == "You said: hi there"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "You said: hi there"
    assert events[-1]["response"]["usage"]["total_tokens"] == 18


async def test_the_responses_form_calls_a_tool_that_is_offered_and_reads_its_result() -> None:
    offered = [{"type": "function", "name": "add"}]
    async with FakeModel() as model:
        called = await responses(model, input=[said('CALL add {"a": 1}')], tools=offered)
        item = called[-1]["response"]["output"][0]
        result = {"type": "function_call_output", "call_id": item["call_id"], "output": "2"}
        after = await responses(model, input=[said('CALL add {"a": 1}'), item, result], tools=offered)
        unknown = await responses(model, input=[said("CALL other {}")], tools=offered)

    assert (item["name"], json.loads(item["arguments"])) == ("add", {"a": 1})
    assert after[-1]["response"]["output"][0]["content"][0]["text"] == "The tool returned: 2"
    assert unknown[-1]["response"]["output"][0]["type"] == "message"


async def test_reminders_in_the_users_name_are_not_what_the_user_said() -> None:
    async with FakeModel() as model:
        await responses(model, input=[said("real"), said("<system-reminder>date</system-reminder>")])

    assert model.requests[0].text == "real"


async def test_it_lists_a_model_and_answers_without_a_stream_too() -> None:
    async with asyncio.timeout(BOUND), FakeModel() as model:
        listed = [line async for line in request("GET", f"{model.url}/models", headers={}, timeout=BOUND)]
        body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
        url = f"{model.url}/chat/completions"
        whole = [line async for line in request("POST", url, headers={}, body=body, timeout=BOUND)]

    assert json.loads(b"".join(listed))["data"][0]["id"] == "fake-model"
    assert json.loads(b"".join(whole))["choices"][0]["message"]["content"] == "You said: hi"


async def posted(model: FakeModel, path: str, **body: Any) -> list[Any]:
    async with asyncio.timeout(10):
        events = post_events(f"{model.root}{path}", headers={}, body=json.dumps(body).encode(), timeout=5)
        return [json.loads(event) async for event in events]


async def test_the_messages_form_streams_text_and_calls_tools() -> None:
    reminder, words = ({"type": "text", "text": text} for text in ("<system-reminder/>", 'CALL add {"a": 1}'))
    asked = {"stream": True, "tools": [{"name": "add"}]}
    async with FakeModel() as model:
        said = await posted(model, "/v1/messages", stream=True, messages=[{"role": "user", "content": "hi there"}])
        first = {"role": "user", "content": [words, reminder]}
        called = await posted(model, "/v1/messages", **asked, messages=[first])
        call = next(event["content_block"] for event in called if event["type"] == "content_block_start")
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "2"}]}
        await posted(model, "/v1/messages", **asked, messages=[first, {"role": "assistant", "content": [call]}, result])

    deltas = [event["delta"]["text"] for event in said if event["type"] == "content_block_delta"]
    assert "".join(deltas) == "You said: hi there"
    assert [event["type"] for event in said][-2:] == ["message_delta", "message_stop"]
    assert (call["type"], call["name"]) == ("tool_use", "add")
    assert model.requests[-1].result == "2"


async def test_the_gemini_form_streams_text_and_calls_tools() -> None:
    tools = [{"functionDeclarations": [{"name": "add"}]}]
    path = "/v1beta/models/m:streamGenerateContent?alt=sse"
    async with FakeModel() as model:
        said = await posted(model, path, contents=[{"role": "user", "parts": [{"text": "hi there"}]}])
        first = {"role": "user", "parts": [{"text": 'CALL add {"a": 1}'}]}
        called = await posted(model, path, contents=[first], tools=tools)
        call = called[0]["candidates"][0]["content"]["parts"][0]["functionCall"]
        result = {"role": "user", "parts": [{"functionResponse": {"name": "add", "response": {"output": 2}}}]}
        await posted(model, path, contents=[first, {"role": "model", "parts": []}, result], tools=tools)

    texts = [event["candidates"][0]["content"]["parts"][0]["text"] for event in said]
    assert "".join(texts) == "You said: hi there"
    assert said[-1]["candidates"][0]["finishReason"] == "STOP"
    assert (call["name"], call["args"]) == ("add", {"a": 1})
    assert model.requests[-1].result == '{"output": 2}'
