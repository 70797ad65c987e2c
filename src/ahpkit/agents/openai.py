"""Runs any endpoint that speaks OpenAI's chat completions as an agent; a local model server is one line of
configuration.

    agent = OpenAiAgent(OpenAiConfig(name="local", base_url="http://127.0.0.1:8080/v1"))

Text and reasoning are streamed. The model is offered the tools of the active client and typed Python functions; they
run after approval.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from ahpkit.agents.openai_messages import (
    Answer,
    answered,
    functions,
    history,
    sampled,
    sampling_body,
    tool_result,
    user_message,
)
from ahpkit.agents.sse import HttpError, post_events, request
from ahpkit.agents.tools import Toolbox, text_of
from ahpkit.agents.turn_input import GO_ON, instructions
from ahpkit.agents.untrusted_json import integer, obj, objects, strings, text
from ahpkit.host.agent import FIRST_STAYS, Agent, AgentChat, AgentError, Chat, StopReason, Turn
from ahpkit.protocol.chat.state import UsageInfo
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import AhpError

_STOP: dict[str, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}

_LIST_TIMEOUT = 5.0
"""Seconds to list the models. A session must not wait long for an endpoint that does not answer yet."""


_PASSING = frozenset({402, 408, 409, 425, 429})
"""HTTP statuses besides 5xx after which the same request may work later."""


class OpenAiConfigError(AhpError):
    """The settings of an endpoint cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAiConfig:
    """Settings of one endpoint."""

    name: str
    """The provider name that clients see."""
    base_url: str
    """The URL including the version, such as `http://127.0.0.1:8080/v1`."""
    models: tuple[str, ...] = ()
    """The first model is the default. If the list is empty, the endpoint is asked for its models."""
    key_env: str = "OPENAI_API_KEY"
    """The variable that holds the key. Most local servers need no key."""
    title: str = ""
    system_prompt: str = ""
    timeout: float = 300.0
    """Seconds to wait for the next piece of an answer. A local model may take long to load."""
    max_requests: int = 50
    """The number of requests to the model after which a turn is stopped."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OpenAiConfigError(f"agent {self.name}: {self.base_url!r} is not an http or https URL")

    def url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}"

    def headers(self, environ: Mapping[str, str]) -> dict[str, str]:
        key = environ.get(self.key_env, "")
        return {"authorization": f"Bearer {key}"} if key else {}


_TABLE: Mapping[str, type | tuple[type, ...]] = {
    "url": str,
    "models": list,
    "key_env": str,
    "title": str,
    "system_prompt": str,
    "timeout": (int, float),
    "max_requests": int,
}


def config_from_table(name: str, table: Mapping[str, Any]) -> OpenAiConfig:
    """The settings in an `[agents.NAME]` table with a `url`."""
    if "command" in table:
        raise OpenAiConfigError(f"agents.{name}: give a command or a url, not both")
    for key, value in table.items():
        kind = _TABLE.get(key)
        if kind is None:
            raise OpenAiConfigError(f"agents.{name}.{key}: unknown key; known: {', '.join(_TABLE)}")
        if not isinstance(value, kind) or isinstance(value, bool):
            raise OpenAiConfigError(f"agents.{name}.{key}: {value!r} has the wrong type")
    models = strings(table.get("models"))
    if len(models) != len(table.get("models", [])):
        raise OpenAiConfigError(f"agents.{name}.models: expected strings only")
    rest = {key: value for key, value in table.items() if key not in ("url", "models")}
    return OpenAiConfig(name=name, base_url=str(table.get("url", "")), models=tuple(models), **rest)


class OpenAiAgent(Agent):
    """An agent for one endpoint. The model is offered `tools` and the tools of the active client."""

    resumes = True
    sampling: JsonObject | None = {"tools": {}}  # noqa: RUF012  # Nobody changes it.
    directories = FIRST_STAYS
    writes_outside_calls = False

    def __init__(
        self,
        config: OpenAiConfig,
        *,
        tools: Toolbox | None = None,
        environ: Callable[[str], Mapping[str, str]] = lambda session: os.environ,
    ) -> None:
        self.provider = config.name
        self.display_name = config.title or config.name
        self.description = f"A model at {urlsplit(config.base_url).hostname}"
        self._config = config
        self._tools = tools or Toolbox()
        self.tools = self._tools.definitions()
        self._environ = environ
        self._offer(config.models)
        self.models_later = not config.models

    async def open(self, chat: Chat) -> AgentChat:
        if not self.models:
            listed = await self._listed(chat.session_uri)
            self.models_later = listed is None
            self._offer(listed or ())
            self.changed()
        return OpenAiChat(self, self._config, self._tools, lambda: self._environ(chat.session_uri))

    async def sample(self, chat: Chat, request: JsonObject) -> JsonObject:
        """Ask the chat's model once, without the conversation."""
        asking = OpenAiChat(self, self._config, self._tools, lambda: self._environ(chat.session_uri))
        return await asking.sample(chat, request)

    def _offer(self, ids: Sequence[str]) -> None:
        self.models = [{"id": id, "provider": self.provider, "name": id} for id in ids]

    async def _listed(self, session: str) -> list[str] | None:
        """The models of the endpoint; None if it does not list them."""
        try:
            url, headers = self._config.url("models"), self._config.headers(self._environ(session))
            async with aclosing(request("GET", url, headers=headers, timeout=_LIST_TIMEOUT)) as lines:
                listed = obj(msgspec.json.decode(b"".join([line async for line in lines])))
        except (HttpError, msgspec.MsgspecError):
            return None  # The first turn reports what is wrong.
        return [id for model in objects(listed.get("data")) if (id := text(model.get("id")))]


class OpenAiChat(AgentChat):
    """One conversation. The endpoint remembers nothing, so each request contains the whole conversation."""

    def __init__(
        self, agent: OpenAiAgent, config: OpenAiConfig, tools: Toolbox, environ: Callable[[], Mapping[str, str]]
    ) -> None:
        self._agent = agent
        self._config = config
        self._environ = environ
        self._tools = tools

    @property
    def can_rest(self) -> bool:
        return True

    async def run(self, turn: Turn) -> StopReason | None:
        messages = self._conversation(turn)
        used: Counter[str] = Counter()
        for _ in range(self._config.max_requests):
            answer = await self._ask(turn, messages)
            used.update(_tokens(answer.usage))
            if used:
                turn.usage(_usage(used, self._model(turn)))
            messages.append(answer.message)
            messages += await self._run_tools(turn, answer)
            steered = turn.steering()
            if steered is not None:
                messages.append(user_message(steered["text"], steered))
            elif not answer.calls:
                return _STOP.get(answer.finish or "", "end_turn")
        return "max_turn_requests"

    def _conversation(self, turn: Turn) -> list[JsonObject]:
        parts = [self._config.system_prompt, instructions(turn.context)]
        system = "\n\n".join(part for part in parts if part)
        before: list[JsonObject] = [{"role": "system", "content": system}] if system else []
        asked = [*before, *history(turn.chat.history), user_message(turn.prompt, turn.message)]
        answered_before = answered(turn.parts) if turn.resumed else []
        return [*asked, *answered_before, {"role": "user", "content": GO_ON}] if answered_before else asked

    def _model(self, turn: Turn) -> str | None:
        known = [model["id"] for model in self._agent.models]
        return turn.model["id"] if turn.model else next(iter(known), None)

    async def _ask(self, turn: Turn, messages: list[JsonObject]) -> Answer:
        """Send one request, and stream the model's answer into the turn."""
        body: JsonObject = {"messages": messages, "stream": True, "stream_options": {"include_usage": True}}
        if (model := self._model(turn)) is not None:
            body["model"] = model
        if tools := functions(self._tools.definitions(turn)):
            body["tools"] = tools
        answer = Answer()
        turn.new_part()
        try:
            await self._stream(turn, body, answer)
        except HttpError as error:
            raise self._failure(error) from error
        return answer

    async def _stream(self, turn: Turn, body: JsonObject, answer: Answer) -> None:
        url, headers = self._config.url("chat/completions"), self._config.headers(self._environ())
        sent = msgspec.json.encode(body)
        async with aclosing(post_events(url, headers=headers, body=sent, timeout=self._config.timeout)) as events:
            async for event in events:
                if event == "[DONE]":
                    return
                text, thought = answer.take(_decoded(event))
                if thought:
                    turn.think(thought)
                if text:
                    turn.text(text)

    async def _run_tools(self, turn: Turn, answer: Answer) -> list[JsonObject]:
        results: list[JsonObject] = []
        for call in answer.calls.values():
            outcome = await self._tools.call(turn, call.name, call.arguments or "{}")
            results.append(tool_result(call.id, text_of(outcome)))
        return results

    async def sample(self, chat: Chat, request: JsonObject) -> JsonObject:
        """An answer to a `sampling/createMessage`."""
        model = chat.model["id"] if chat.model else self._agent.default_model
        body = {**sampling_body(request), **({"model": model} if model is not None else {}), "stream": True}
        answer = Answer()
        url, headers = self._config.url("chat/completions"), self._config.headers(self._environ())
        sent = msgspec.json.encode(body)
        try:
            async with aclosing(post_events(url, headers=headers, body=sent, timeout=self._config.timeout)) as events:
                async for event in events:
                    if event == "[DONE]":
                        break
                    answer.take(_decoded(event))
        except HttpError as error:
            raise self._failure(error) from error
        return sampled(answer, model or self._config.name)

    def _failure(self, error: HttpError) -> AgentError:
        where = self._config.base_url
        if error.status == 0:
            reason = f"The model at {where} cannot be reached: {error.body}"
            return AgentError(reason, error_type="openai/unreachable", resumable=True)
        if error.status in (401, 403):
            advice = f"set {self._config.key_env} in the host's environment"
            reason = f"The model at {where} wants a valid key: {advice}."
            return AgentError(reason, error_type="openai/auth", resumable=True)
        message = f"The model at {where} answered with HTTP {error.status}: {_error_text(error.body)}"
        passing = error.status in _PASSING or error.status >= 500
        return AgentError(message, error_type=f"openai/{error.status}", resumable=passing)


def _decoded(event: str) -> JsonObject:
    try:
        chunk = obj(msgspec.json.decode(event))
    except msgspec.MsgspecError:
        raise HttpError(0, f"it sent an event that is not JSON: {event[:100]!r}") from None
    if "error" in chunk:
        raise HttpError(500, event)
    return chunk


def _error_text(body: str) -> str:
    try:
        error: Any = obj(msgspec.json.decode(body)).get("error")
    except msgspec.MsgspecError:
        return body[:500]
    return text(obj(error).get("message")) or text(error) or body[:500]


def _tokens(usage: JsonObject) -> dict[str, int]:
    found = {
        "inputTokens": integer(usage.get("prompt_tokens")),
        "outputTokens": integer(usage.get("completion_tokens")),
        "cacheReadTokens": integer(obj(usage.get("prompt_tokens_details")).get("cached_tokens")),
    }
    return {key: value for key, value in found.items() if value is not None}


def _usage(used: Counter[str], model: str | None) -> UsageInfo:
    return cast("UsageInfo", dict(used) | ({"model": model} if model else {}))


__all__ = ["OpenAiAgent", "OpenAiChat", "OpenAiConfig", "OpenAiConfigError", "config_from_table"]
