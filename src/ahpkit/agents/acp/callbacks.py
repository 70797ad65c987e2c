"""Answers the requests of an ACP agent to its client: permissions, questions, files, terminals.

Every request is answered. When the turn ends, requests that wait for a person end too: the agent gets the answer
`cancelled`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

from ahpkit.agents.acp import questions
from ahpkit.agents.acp.access import Approval, FileAccess, TerminalAccess, TerminalOutput
from ahpkit.agents.acp.limits import MAX_TEXT, MAX_WAITING, MAX_WORDS, cut
from ahpkit.agents.acp.mapping import SessionMapper
from ahpkit.agents.acp.meta import upward, with_meta_around, wrapped
from ahpkit.agents.acp.turn import TurnMapper
from ahpkit.agents.untrusted_json import integer, objects, strings, text
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import NotFound, PermissionDenied
from ahpkit.protocol.json_schema import check_schema
from ahpkit.protocol.meta_keys import TRUNCATED
from ahpkit.wire.errors import InvalidParams, InvalidRequest, MethodNotFound, RpcError
from ahpkit.wire.tasks import running

T = TypeVar("T")
Handler = Callable[[JsonObject], Awaitable[Any]]

RESOURCE_NOT_FOUND = -32002
"""ACP's error code for a file that does not exist."""


class Callbacks:
    """Serves the requests of one session."""

    def __init__(
        self,
        mapper: SessionMapper,
        *,
        working_directory: Path,
        policy: questions.Policy,
        files: FileAccess | None,
        terminals: TerminalAccess | None,
        mark: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`mark` returns the variables by which a command of this agent is recognised."""
        self._mapper = mapper
        self._directory = working_directory
        self._policy = policy
        self._waiting: set[asyncio.Future[Any]] = set()
        self._urls: dict[str, asyncio.Future[Any]] = {}
        self._completed: set[str] = set()
        self._terminals: dict[str, TurnMapper | None] = {}
        self._terminal_access = terminals
        self._mark = mark
        self._handlers: dict[str, Handler] = {
            "session/request_permission": self._permission,
            "elicitation/create": self._elicit,
        }
        if files is not None:
            self._handlers |= self._file_handlers(files)
        if terminals is not None:
            self._handlers |= self._terminal_handlers(terminals)

    async def serve(self, method: str, params: JsonObject) -> Any:
        """Answer one request."""
        handler = self._handlers.get(method)
        if handler is None:
            raise MethodNotFound(f"this host does not serve {method} to agents")
        return await handler(params)

    def stop_waiting(self) -> None:
        """The turn is over: stop waiting for answers."""
        for task in self._waiting:
            task.cancel()

    async def end_commands(self, cancelled: TurnMapper) -> None:
        """A turn was cancelled: end the commands that it started, if the agent left them running."""
        if self._terminal_access is None:
            return
        for id in [id for id, turn in self._terminals.items() if turn is cancelled]:
            with suppress(RpcError):
                await self._terminal_access.kill(id)

    async def release(self) -> None:
        """The session is over: end the terminals that it left running."""
        if self._terminal_access is None:
            return
        while self._terminals:
            with suppress(RpcError):
                await self._terminal_access.release(self._terminals.popitem()[0])

    def elicitation_complete(self, params: JsonObject) -> None:
        """The user has finished what the page at a URL asked for, so the question is answered."""
        id = str(params.get("elicitationId"))
        if id in self._urls:
            self._completed.add(id)
            self._urls[id].cancel()

    # People.

    async def _permission(self, params: JsonObject) -> JsonObject:
        turn, request = self._mapper.turn, with_meta_around(params.get("toolCall"), params)
        options = questions.confirmation_options(params.get("options"))
        if turn is None:
            return questions.CANCELLED
        self._check_waiting()
        call = turn.for_permission(request)
        setting = None if self._policy == "ask" else self._policy == "allow"
        answer = await self._answered(call.confirm(request, options, setting=setting))
        return questions.CANCELLED if answer is None else questions.outcome(options, answer)

    async def _elicit(self, params: JsonObject) -> JsonObject:
        turn = self._mapper.turn
        if turn is None:
            return {"action": "cancel"}
        self._check_waiting()
        if params.get("mode") == "url":
            return await self._elicit_url(turn, params)
        schema = params.get("requestedSchema")
        if schema is not None and (reason := check_schema(schema)) is not None:
            raise InvalidParams(f"requestedSchema: {reason}")
        asked = turn.turn.ask(questions.form_questions(schema), message=_message(params), meta=_meta_of(params))
        given = await self._answered(asked)
        return {"action": "cancel"} if given is None else questions.form_answer(schema, given) | _with(given.meta)

    async def _elicit_url(self, turn: TurnMapper, params: JsonObject) -> JsonObject:
        try:
            id, url = str(params.get("elicitationId")), questions.web_address(params.get("url"))
        except ValueError as error:
            raise InvalidParams(str(error)) from None
        question = turn.turn.ask([], message=_message(params), url=url, meta=_meta_of(params))
        async with running(question) as asked:
            self._urls[id] = asked
            try:
                given = await self._answered(asked)
            finally:
                self._urls.pop(id, None)  # It is missing when the agent used one id twice.
        if given is None:
            return {"action": "accept" if id in self._completed else "cancel"}
        return {"action": given.response} | _with(given.meta)

    def _check_waiting(self) -> None:
        if len(self._waiting) >= MAX_WAITING:
            raise InvalidRequest(f"{MAX_WAITING} questions wait for a person already: wait for an answer")

    async def _answered(self, work: Awaitable[T]) -> T | None:
        """Wait for a person; None when nobody will answer."""
        async with running(work) as task:
            self._waiting.add(task)
            try:
                await asyncio.wait([task])
            finally:
                self._waiting.discard(task)
        return None if task.cancelled() else task.result()

    # Files.

    def _file_handlers(self, files: FileAccess) -> Mapping[str, Handler]:
        async def read(params: JsonObject) -> JsonObject:
            path = Path(_required(params, "path"))
            try:
                content = await files.read(path)
            except NotFound as error:
                raise RpcError(RESOURCE_NOT_FOUND, error.message) from None
            return {"content": _lines(content, params.get("line"), params.get("limit"))}

        async def write(params: JsonObject) -> JsonObject:
            content = params.get("content")
            if not isinstance(content, str):
                raise InvalidParams("content: expected string")
            path = Path(_required(params, "path"))
            approval = await files.needs_approval(path)
            if approval is None:
                async with self._writing(path):
                    await files.write(path, content)
            else:
                await self._write_approved(files, path, content, approval)
            return {}

        return {"fs/read_text_file": read, "fs/write_text_file": write}

    def _writing(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Tell the host that the agent writes a file, if a turn runs."""
        turn = self._mapper.turn
        return nullcontext() if turn is None else turn.turn.writing(path)

    async def _write_approved(self, files: FileAccess, path: Path, content: str, approval: Approval) -> None:
        """Write a file that can make programs run, after a person has approved it. No setting approves it instead."""
        refused = PermissionDenied(f"{approval.path} is {approval.what}: writing it was not approved")
        turn = self._mapper.turn
        if turn is None:
            raise refused
        self._check_waiting()
        meta = {TRUNCATED: True} if len(content) > MAX_TEXT else None
        call = turn.turn.tool_call("write_text_file", display_name=f"Write {cut(approval.path.name, 200)}", meta=meta)
        asked = call.confirm(
            tool_input=json.dumps({"path": str(approval.path), "content": cut(content, MAX_TEXT)}, ensure_ascii=False),
            title=f"Write {approval.path}? It is {approval.what}.",
            message=f"Write {approval.path}, which is {approval.what}",
        )
        answer = await self._answered(asked)
        if answer is None or not answer.approved:
            raise refused
        try:
            async with self._writing(path):
                await files.write(path, content, approved=approval)
        except RpcError as error:
            call.complete(success=False, error=error.message)
            raise
        call.complete(success=True, message=f"Wrote {approval.path}")

    # Terminals.

    def _terminal_handlers(self, access: TerminalAccess) -> Mapping[str, Handler]:
        async def create(params: JsonObject) -> JsonObject:
            turn = self._mapper.turn
            id = await access.create(
                _required(params, "command"),
                strings(params.get("args")),
                env={**_variables(params), **self._mark()},
                cwd=Path(text(params.get("cwd")) or self._directory),
                output_limit=integer(params.get("outputByteLimit")),
                turn_id=None if turn is None else turn.turn.id,
            )
            self._terminals[id] = turn
            return {"terminalId": id}

        async def output(params: JsonObject) -> JsonObject:
            shown = await access.output(self._own(params))
            return {"output": shown.output, "truncated": shown.truncated} | (
                {"exitStatus": _exit_status(shown)} if shown.exited else {}
            )

        async def wait(params: JsonObject) -> JsonObject:
            return _exit_status(await access.wait(self._own(params)))

        async def kill(params: JsonObject) -> JsonObject:
            await access.kill(self._own(params))
            return {}

        async def release(params: JsonObject) -> JsonObject:
            id = self._own(params)
            del self._terminals[id]
            await access.release(id)
            return {}

        names = {"create": create, "output": output, "wait_for_exit": wait, "kill": kill, "release": release}
        return {f"terminal/{name}": handler for name, handler in names.items()}

    def _own(self, params: JsonObject) -> str:
        id = _required(params, "terminalId")
        if id not in self._terminals:
            raise InvalidParams(f"terminalId: this session has no terminal {id!r}")
        return id


def _meta_of(params: JsonObject) -> JsonObject | None:
    """An agent's `_meta` of a question, as clients are shown it."""
    return wrapped({"meta": upward(params.get("_meta"))}) or None


def _with(meta: JsonObject) -> JsonObject:
    return {"_meta": meta} if meta else {}


def _lines(content: str, line: int | None, limit: int | None) -> str:
    """At most `limit` lines of a text, from line `line` on; the first line is 1."""
    if line is None and limit is None:
        return content
    first = max(line - 1, 0) if line is not None else 0
    last = first + max(limit, 0) if limit is not None else None
    return "".join(content.splitlines(keepends=True)[first:last])


def _exit_status(shown: TerminalOutput) -> JsonObject:
    return {"exitCode": shown.exit_code, "signal": shown.signal}


def _variables(params: JsonObject) -> dict[str, str]:
    return {str(entry.get("name")): str(entry.get("value")) for entry in objects(params.get("env"))}


def _message(params: JsonObject) -> str | None:
    return cut(text(params.get("message")) or "", MAX_WORDS) or None


def _required(params: JsonObject, key: str) -> str:
    value = text(params.get(key))
    if value is None:
        raise InvalidParams(f"{key}: expected string")
    return value


__all__ = ["Callbacks"]
