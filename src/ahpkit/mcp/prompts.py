"""Prompts and resources of servers for people: completes them while a person types, and fills them in when the message
is sent.

`/SERVER:PROMPT words` is replaced by the server's text for this prompt. `@SERVER:RESOURCE` attaches a resource; its
text is read when the message is sent, and is added after the message.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from ahpkit.host.agent import AgentError
from ahpkit.host.turns.completions import TypedWord, word_at
from ahpkit.mcp.errors import McpError
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import JsonObject

if TYPE_CHECKING:
    from ahpkit.mcp.calls import Caller
    from ahpkit.mcp.server import McpServer

META_KEY = "ahpkit/mcp-resource"
"""In an attachment's `_meta`: the server and the URI of a resource that a completion stands for."""

_LIMIT = 200
"""Items of one answer."""
_ATTACHED = 10
_TEXT = 200_000
"""Resources of one message that are read, and characters of each."""


def complete(servers: Sequence[McpServer], text: str, offset: int) -> list[CompletionItem]:
    """Items for the word at `offset`: prompts after `/` at the beginning of a message, resources after `@`."""
    word = word_at(text, offset)
    mark, typed = word.typed[:1], word.typed[1:].lower()
    if mark == "/" and not word.before.strip():
        found = _prompts(servers, word)
    elif mark == "@":
        found = _resources(servers, word)
    else:
        return []
    return [item for item in found if typed in item["insertText"].lower()][:_LIMIT]


def _prompts(servers: Sequence[McpServer], word: TypedWord) -> Iterator[CompletionItem]:
    for server in servers:
        for prompt in server.lists.prompts:
            token = _token(server, prompt)
            yield _item(word, f"{token} ", token, "prompt", {"description": prompt.get("description", "")})


def _resources(servers: Sequence[McpServer], word: TypedWord) -> Iterator[CompletionItem]:
    for server in servers:
        for resource in server.lists.resources:
            token = f"{server.config.name}:{resource.get('name') or resource['uri']}"
            about = {"server": server.id, "uri": resource["uri"]}
            meta = {"description": resource.get("description", ""), META_KEY: about}
            yield _item(word, f"@{token} ", token, "resource", meta)


def _item(word: TypedWord, inserted: str, label: str, kind: str, meta: JsonObject) -> CompletionItem:
    return {
        "insertText": inserted,
        "rangeStart": word.start,
        "rangeEnd": word.end,
        "attachment": {"type": "simple", "label": label, "displayKind": kind, "_meta": meta},
    }


async def expand(servers: Sequence[McpServer], prompt: str, caller: Caller) -> str:
    """The text of a server's prompt, if the message calls one; otherwise the message itself."""
    if (called := _called(servers, prompt.lstrip())) is None:
        return prompt
    server, declared, words = called
    try:
        said = await server.get_prompt(declared["name"], arguments(declared, words), caller)
    except McpError as error:
        raise AgentError(f"{_token(server, declared)}: {error}", error_type="mcp/prompt") from error
    return "\n\n".join(_words(said)) or prompt


def _called(servers: Sequence[McpServer], text: str) -> tuple[McpServer, JsonObject, str] | None:
    """The prompt that a message calls, and the words after it. Names may have any characters, also spaces, so of
    several prompts that fit, the one with the longest name counts."""
    found: tuple[McpServer, JsonObject, str] | None = None
    for server in servers if text.startswith("/") else ():
        for prompt in server.lists.prompts:
            rest = text.removeprefix(_token(server, prompt))
            if len(rest) < len(text if found is None else found[2]) and (not rest or rest[0].isspace()):
                found = server, prompt, rest
    return found


def _token(server: McpServer, prompt: JsonObject) -> str:
    return f"/{server.config.name}:{prompt['name']}"


def arguments(prompt: JsonObject, words: str) -> dict[str, str]:
    """The arguments of a prompt: by name (`name=value`), or else by position. The last argument gets the rest of the
    text."""
    names: list[str] = [one["name"] for one in prompt.get("arguments") or ()]
    try:
        given = shlex.split(words)
    except ValueError:
        given = words.split()
    found = {name: value for name, mark, value in (one.partition("=") for one in given) if mark and name in names}
    free = [one for one in given if one.partition("=")[0] not in found]
    left = [name for name in names if name not in found]
    for name, value in zip(left, free, strict=False):
        found[name] = value
    if left and len(free) > len(left):
        found[left[-1]] = " ".join(free[len(left) - 1 :])
    missing = [one["name"] for one in prompt.get("arguments") or () if one.get("required") and one["name"] not in found]
    if missing:
        raise AgentError(f"the prompt {prompt['name']} needs: {', '.join(missing)}", error_type="mcp/prompt")
    return found


def _words(said: JsonObject) -> Iterator[str]:
    """The texts of a prompt. What has no text, such as a picture or a link, is named."""
    for message in said.get("messages") or ():
        content: JsonObject = message.get("content") or {}
        resource: JsonObject = content.get("resource") or {}
        text = content.get("text", resource.get("text"))
        named = (content.get("type"), content.get("uri") or resource.get("uri"))
        yield text if isinstance(text, str) else f"({', '.join(str(word) for word in named if word)})"


async def attached(servers: Sequence[McpServer], message: Message, caller: Caller) -> list[str]:
    """Reads the resources that a message attaches; returns texts for the agent."""
    texts: list[str] = []
    for server_id, uri in list(_attachments(message))[:_ATTACHED]:
        server = next((one for one in servers if one.id == server_id and one.ready), None)
        try:
            if server is None:
                raise McpError("its MCP server does not run")
            texts.append(_resource(uri, await server.read_resource(uri, caller)))
        except McpError as error:
            texts.append(f"The attached resource {uri} cannot be read: {error}")
    return texts


def _attachments(message: Message) -> Iterator[tuple[str, str]]:
    for item in cast("list[JsonObject]", message.get("attachments") or []):
        meta: JsonObject = item.get("_meta") or {}
        about: Any = meta.get(META_KEY)
        if isinstance(about, dict):
            named = cast("JsonObject", about)
            yield str(named.get("server")), str(named.get("uri"))


def _resource(uri: str, read: JsonObject) -> str:
    contents: list[JsonObject] = read.get("contents") or []
    texts = [str(one["text"]) if "text" in one else f"({one.get('mimeType', 'binary')})" for one in contents]
    return f"Attached resource {json.dumps(uri)}:\n\n" + "\n".join(texts)[:_TEXT]


__all__ = ["META_KEY", "arguments", "attached", "complete", "expand"]
