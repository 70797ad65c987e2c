"""Chat completions as data: a conversation as messages, streamed deltas as one answer. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ahpkit.agents.turn_input import attachments
from ahpkit.agents.untrusted_json import integer, obj, objects, text
from ahpkit.host.agent import ToolOutcome
from ahpkit.protocol.chat.state import Message, ResponsePart
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolDefinition

_SAMPLING_STOPS = {"length": "maxTokens", "tool_calls": "toolUse", "stop": "endTurn"}


@dataclass(slots=True)
class RequestedCall:
    """A tool call that the model asks for."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Answer:
    """One answer of the model, which grows with each delta."""

    text: str = ""
    calls: dict[int, RequestedCall] = field(default_factory=dict[int, RequestedCall])
    finish: str | None = None
    usage: JsonObject = field(default_factory=dict[str, Any])

    def take(self, chunk: JsonObject) -> tuple[str, str]:
        """Take one chunk of the stream; returns the new text and the new reasoning in it."""
        self.usage = obj(chunk.get("usage")) or self.usage
        choice = next(iter(objects(chunk.get("choices"))), obj(None))
        self.finish = text(choice.get("finish_reason")) or self.finish
        delta = obj(choice.get("delta"))
        for call in objects(delta.get("tool_calls")):
            self._take_call(call)
        words = text(delta.get("content")) or ""
        self.text += words
        return words, text(delta.get("reasoning_content")) or text(delta.get("reasoning")) or ""

    def _take_call(self, delta: JsonObject) -> None:
        index = integer(delta.get("index"))
        call = self.calls.setdefault(len(self.calls) if index is None else index, RequestedCall())
        function = obj(delta.get("function"))
        call.id = call.id or text(delta.get("id")) or ""
        call.name += text(function.get("name")) or ""
        call.arguments += text(function.get("arguments")) or ""

    @property
    def message(self) -> JsonObject:
        """This answer as a message of the conversation."""
        message: JsonObject = {"role": "assistant", "content": self.text or None}
        return message | ({"tool_calls": [_call(call) for call in self.calls.values()]} if self.calls else {})


def user_message(prompt: str, message: Message) -> JsonObject:
    """The user's message with its attachments."""
    attached = [_attachment(item) for item in attachments(message)]
    content: Any = [{"type": "text", "text": prompt}, *attached] if attached else prompt
    return {"role": "user", "content": content}


def history(turns: Iterable[TurnRecord]) -> list[JsonObject]:
    """The finished turns, including tool calls and their results."""
    messages: list[JsonObject] = []
    for turn in turns:
        messages.append(user_message(turn["message"]["text"], turn["message"]))
        messages += answered(turn["responseParts"])
    return messages


def answered(parts: Iterable[ResponsePart]) -> list[JsonObject]:
    """The model's part of a turn: text, tool calls and their results."""
    messages: list[JsonObject] = []
    for part in parts:
        if part["kind"] == "markdown":
            messages.append({"role": "assistant", "content": str(part["content"])})
        elif part["kind"] == "toolCall":
            messages += _past_call(cast("JsonObject", part["toolCall"]))
    return messages


def tool_result(id: str, result: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": id, "content": result}


def functions(tools: Sequence[ToolDefinition]) -> list[JsonObject]:
    """Tool definitions in the form that the endpoint takes."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def _function(tool: ToolDefinition) -> JsonObject:
    schema = tool.get("inputSchema") or {"type": "object", "properties": {}}
    return {"name": tool["name"], "description": tool.get("description", ""), "parameters": schema}


def _call(call: RequestedCall) -> JsonObject:
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _past_call(call: JsonObject) -> list[JsonObject]:
    made = RequestedCall(call["toolCallId"], call["toolName"], str(call.get("toolInput") or "{}"))
    success, content = call.get("success") is True, cast("Any", objects(call.get("content")))
    outcome = ToolOutcome(success, content, structured_content=call.get("structuredContent"))
    error = text(obj(call.get("error")).get("message"))
    result = error or "\n".join(outcome.texts) or ("done" if success else "not run")
    return [{"role": "assistant", "content": None, "tool_calls": [_call(made)]}, tool_result(made.id, result)]


def _attachment(item: JsonObject) -> JsonObject:
    content_type = text(item.get("contentType")) or ""
    if item.get("type") == "embeddedResource" and content_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{content_type};base64,{item.get('data', '')}"}}
    shown = text(item.get("modelRepresentation")) or text(item.get("uri")) or text(item.get("resource"))
    return {"type": "text", "text": f"[attached: {item.get('label', '')}]" + (f"\n{shown}" if shown else "")}


def sampling_body(request: JsonObject) -> JsonObject:
    """An MCP `sampling/createMessage` as a request for a completion."""
    system = text(request.get("systemPrompt"))
    messages: list[JsonObject] = [{"role": "system", "content": system}] if system else []
    for message in objects(request.get("messages")):
        messages += _sampling_message(message)
    body: JsonObject = {"messages": messages}
    for ours, theirs in (("max_tokens", "maxTokens"), ("temperature", "temperature"), ("stop", "stopSequences")):
        if request.get(theirs) is not None:
            body[ours] = request[theirs]
    if tools := functions(cast("list[ToolDefinition]", objects(request.get("tools")))):
        body["tools"] = tools
        mode = text(obj(request.get("toolChoice")).get("mode"))
        body |= {"tool_choice": mode} if mode in ("auto", "none", "required") else {}
    return body


def _sampling_message(message: JsonObject) -> list[JsonObject]:
    """One message of MCP. In the result, each tool result is a separate message."""
    content: Any = message.get("content")
    parts = objects(content) if isinstance(content, list) else [obj(content)]
    results = [
        tool_result(str(part.get("toolUseId")), _result_text(part)) for part in parts if _is(part, "tool_result")
    ]
    calls = [
        _call(RequestedCall(str(part.get("id")), str(part.get("name")), json.dumps(part.get("input") or {})))
        for part in parts
        if _is(part, "tool_use")
    ]
    content = [shown for part in parts if (shown := _sampling_part(part)) is not None]
    if not content and not calls:
        return results
    whole: JsonObject = {"role": text(message.get("role")) or "user", "content": content or None}
    return [*results, whole | ({"tool_calls": calls} if calls else {})]


def _is(part: JsonObject, kind: str) -> bool:
    return part.get("type") == kind


def _sampling_part(part: JsonObject) -> JsonObject | None:
    if _is(part, "text"):
        return {"type": "text", "text": str(part.get("text"))}
    if _is(part, "image"):
        url = f"data:{part.get('mimeType')};base64,{part.get('data')}"
        return {"type": "image_url", "image_url": {"url": url}}
    return None


def _result_text(part: JsonObject) -> str:
    return "\n".join(str(one.get("text")) for one in objects(part.get("content")) if _is(one, "text"))


def sampled(answer: Answer, model: str) -> JsonObject:
    """An answer of the model as an MCP `CreateMessageResult`."""
    text_block: JsonObject = {"type": "text", "text": answer.text}
    stop = _SAMPLING_STOPS.get(answer.finish or "", "endTurn")
    result: JsonObject = {"role": "assistant", "model": model, "content": text_block, "stopReason": stop}
    if answer.calls:
        uses = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call.arguments)}
            for call in answer.calls.values()
        ]
        result |= {"content": [*([text_block] if answer.text else []), *uses], "stopReason": "toolUse"}
    return result


def _arguments(words: str) -> JsonObject:
    try:
        return obj(json.loads(words or "{}"))
    except (ValueError, RecursionError):
        return {}


__all__ = [
    "Answer",
    "RequestedCall",
    "answered",
    "functions",
    "history",
    "sampled",
    "sampling_body",
    "tool_result",
    "user_message",
]
