"""Follows the tool calls of one turn, in whatever order the agent reports them. No I/O.

Agents differ in everything here. A call may first come in an update or in a permission request; its announcement may
come late, twice or never; its status may go back; its end may never be reported; a permission may have its own id,
which is used again for the next one. So the first message with an id creates the call, later ones are merged into it,
the status of a call only moves forward, and calls that are still open end with the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ahpkit.agents.acp.content import OUTPUT_KEYS, Contents, as_json
from ahpkit.agents.acp.limits import MAX_TEXT, MAX_WORDS, cut, short
from ahpkit.agents.acp.mcp_servers import HostTool, host_tool, is_call_without_tool, is_search
from ahpkit.agents.acp.meta import bounded, upward, wrapped
from ahpkit.agents.untrusted_json import obj, objects, text
from ahpkit.host.agent import Confirmation, ToolCall, Turn
from ahpkit.protocol.chat.state import ConfirmationOption, ToolResultContent
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import TRUNCATED
from ahpkit.wire.errors import InvalidRequest

_PROGRESS = {"pending": 0, "in_progress": 1, "completed": 2, "failed": 2, "cancelled": 2}
_MERGED = ("name", "title", "kind", "content", "locations", "rawInput", "rawOutput")
_PRINTED = ("formatted_output", "aggregated_output", "output", "stdout", "text")
"""Members of a raw output in which agents put what a command printed."""
_INTENTIONS = ("description", "justification", "reason")
"""Members of a raw input in which agents say why they run a command."""


class MappedCall:
    """One tool call: what the agent has sent so far, and what was passed on to the turn."""

    def __init__(self, turn: Turn, contents: Contents, first: JsonObject, *, id: str | None) -> None:
        self._contents = contents
        self._reported: JsonObject = {}
        self._meta: JsonObject = {}
        self._status = "pending"
        self._sent_meta: JsonObject = {}
        self._sent_title: str | None = None
        self._sent_input: str | None = None
        self._sent_content: list[ToolResultContent] = []
        self._terminal: str | None = None
        self._merge(first)
        self.asking = False
        """Whether a person is deciding. Messages that the agent sends meanwhile wait."""
        self.ran = False
        """Whether the call runs, or may run already because it was approved."""
        self._sent_meta, self._sent_title = self._shown_meta(), self._title
        self._turn = turn
        self._through: HostTool | None = None
        """The host's tool that this call is for, with the input as far as it is known."""
        self._id = id
        self._card = self._card_of_host()
        self.mediated = self._card is not None or is_call_without_tool(self._reported, self._meta)
        """Whether the host runs the tool and reports the progress. The call is not shown until the agent names the
        tool. If the host is called before that, the host shows the call."""
        self.gone = self._card is not None and self._card.over
        """Whether the agent calls a tool that the host no longer has."""
        if not self.mediated:
            self._card = self._card_of_agent()

    @property
    def _call(self) -> ToolCall:
        assert self._card is not None
        return self._card

    @property
    def over(self) -> bool:
        return self._card is not None and self._card.over

    def update(self, update: JsonObject) -> None:
        """Take a `tool_call` or `tool_call_update`."""
        self._merge(update)
        self._look_again()
        if not self.mediated:
            self.tell()
        elif self._card is not None and self._status in ("failed", "cancelled"):
            self._card.withdraw("The agent did not make this call.")  # The agent gave up before the host ran it.

    def _look_again(self) -> None:
        """A call that goes through the host may name its tool now."""
        if self._card is not None or is_call_without_tool(self._reported, self._meta):
            return
        self._card = self._card_of_host()
        self.gone = self._card is not None and self._card.over
        if self._card is None:
            self.mediated, self._card = False, self._card_of_agent()

    def _card_of_agent(self) -> ToolCall:
        name = _name(self._turn, self._reported, self._meta)
        return self._turn.tool_call(
            name,
            display_name=self._title or name,
            id=self._id,
            intention=self._intention,
            meta=self._sent_meta or None,
        )

    def _card_of_host(self) -> ToolCall | None:
        """The host's call that this call stands for, if it goes through the host's own MCP server."""
        self._through = self._host_tool()
        if self._through is None:
            return None
        return self._turn.announce(self._through.name, as_json(self._through.arguments or {}))

    def _host_tool(self) -> HostTool | None:
        context = self._turn.context
        return host_tool(self._reported, self._meta, [*context.tools, *context.gone])

    async def confirm(
        self, request: JsonObject, options: Sequence[ConfirmationOption], *, setting: bool | None = None
    ) -> Confirmation:
        """Take a permission request to the gate. `setting` is the configuration's answer for all requests."""
        self._merge(request)
        self._look_again()
        if self.mediated:
            return await self._confirm_through_host(options, setting)
        if is_search(self._reported, self._meta):
            return Confirmation(approved=True, tool_input="")
        self._tell_meta()
        edits, more = self._contents.edits(self._reported.get("content"))
        title = f"{self._title} – and {more} more changes that are not shown" if more else self._title
        self.asking = True
        try:
            answer = await self._call.confirm(
                tool_input=self._tell_input(),
                message=title,
                title=title,
                options=options,
                edits=edits,
                intention=self._intention,
                setting=setting,
            )
        finally:
            self.asking = False
        self.ran = self.ran or answer.approved
        self.tell()
        return answer

    async def _confirm_through_host(self, options: Sequence[ConfirmationOption], setting: bool | None) -> Confirmation:
        """The agent asks about a call that it makes through the host. A yes is valid for that call with the same input.

        If the agent does not say what the call is, it gets a yes, and the host asks the person when the call is made.
        """
        if self.gone:
            return Confirmation(approved=False, tool_input="", reason="There is no such tool now.")
        host_tool_call = self._host_tool()
        if host_tool_call is not None and host_tool_call.arguments is not None:
            self._through = host_tool_call
        arguments = None if self._through is None else self._through.arguments
        if arguments is None:
            return Confirmation(approved=True, tool_input="")
        self.asking = True
        try:
            answer = await self._call.confirm(tool_input=as_json(arguments), options=options, setting=setting)
        finally:
            self.asking = False
        if answer.approved:
            self._call.covered(answer)
        return answer

    def tell(self) -> None:
        """Report to the turn what has changed."""
        if self.mediated or self._call.over:
            return
        if _PROGRESS[self._status] == 2:
            self._complete(success=self._status == "completed")
        elif not self.asking:
            self._tell_progress()

    def close(self) -> None:
        """The turn ended, and the agent did not report how this call ended. It counts as completed."""
        if not self.mediated and not self._call.over:
            self._complete(success=True)

    def _tell_progress(self) -> None:
        self._tell_meta()
        if self._status == "in_progress":
            self.ran = True
            self._tell_running()
        elif not self.ran and self._title != self._sent_title:
            self._sent_title = self._title
            self._call.input("", message=self._title)
        content = self._content()
        if self.ran and content != self._sent_content:
            self._sent_content = content
            self._call.content(content)

    def _tell_running(self) -> None:
        self._call.running(tool_input=self._tell_input(), message=self._title, intention=self._intention)

    def _complete(self, *, success: bool) -> None:
        self._tell_meta()
        if not self.ran:
            self._tell_running()
        self.ran = True
        output: Any = self._reported.get("rawOutput")
        content = self._content()
        if not content and (printed := _printed(output)):
            content.append({"type": "text", "text": cut(printed, MAX_TEXT)})
        self._call.complete(
            success=success,
            message=self._title,
            content=content,
            error=None if success else self._failure(content),
            structured_content=bounded(obj(output), MAX_TEXT) or None,
        )

    def _failure(self, content: list[ToolResultContent]) -> str:
        output = obj(self._reported.get("rawOutput"))
        texts = [item["text"] for item in content if item["type"] == "text"]
        reasons = [text(output.get("error")), text(output.get("message")), *texts]
        failure = next(
            (reason for reason in reasons if reason), "cancelled" if self._status == "cancelled" else "failed"
        )
        return cut(failure, MAX_WORDS)

    def _merge(self, update: JsonObject) -> None:
        self._reported |= {key: update[key] for key in _MERGED if update.get(key) is not None}
        self._meta |= obj(update.get("_meta"))
        if (terminal := self._contents.display(obj(update.get("_meta")))) is not None:
            self._terminal = terminal
        status = update.get("status")
        if isinstance(status, str) and _PROGRESS.get(status, -1) > _PROGRESS[self._status]:
            self._status = status

    @property
    def _title(self) -> str | None:
        return cut(text(self._reported.get("title")) or "", MAX_WORDS) or None

    @property
    def _intention(self) -> str | None:
        """Why the agent runs a command, unless the title says so. In inputs of other tools such members mean something
        else."""
        if self._reported.get("kind") != "execute":
            return None
        raw = obj(self._reported.get("rawInput"))
        intention = next((words for key in _INTENTIONS if (words := text(raw.get(key)))), None)
        return None if intention is None or intention == self._reported.get("title") else cut(intention, MAX_WORDS)

    def _content(self) -> list[ToolResultContent]:
        items = objects(self._reported.get("content"))
        if self._terminal is not None and not any(item.get("type") == "terminal" for item in items):
            items = [
                *items,
                {"type": "terminal", "terminalId": self._terminal},
            ]  # Output of a terminal that the call has not named.
        content = self._contents.tool_content(items)
        return [item for item in content if item["type"] != "text" or item["text"]]

    def _tell_input(self) -> str | None:
        raw: Any = self._reported.get("rawInput")
        self._sent_input = cut(as_json(raw), MAX_TEXT) if raw else None
        return self._sent_input

    def _tell_meta(self) -> None:
        meta = self._shown_meta()
        if meta != self._sent_meta:
            self._sent_meta = meta
            self._call.meta(meta)

    def _shown_meta(self) -> JsonObject:
        raw: Any = self._reported.get("rawInput")
        sent = self._sent_input
        written = as_json(raw) if raw else ""
        changed = raw if sent is not None and cut(written, MAX_TEXT) != sent else None
        facts = {"kind": self._reported.get("kind"), "locations": self._reported.get("locations"), "input": changed}
        meta = upward({key: value for key, value in self._meta.items() if key not in OUTPUT_KEYS})
        marks = {TRUNCATED: True} if len(written) > MAX_TEXT else {}
        return wrapped(bounded(facts | {"meta": meta}, MAX_TEXT)) | marks


class ToolCalls:
    """The calls of one turn, by the agent's ids. `past` are the ids of the turn before; late messages about those calls
    are dropped. `may_begin` is called before each new call."""

    def __init__(
        self,
        turn: Turn,
        contents: Contents,
        *,
        may_begin: Callable[[], bool] = lambda: True,
        past: Collection[str] = (),
    ) -> None:
        self._turn = turn
        self._contents = contents
        self._may_begin = may_begin
        self._past = past
        self._calls: dict[str, MappedCall] = {}
        self._all: list[MappedCall] = []

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self._calls)

    def update(self, update: JsonObject) -> bool:
        """Take a `tool_call` or `tool_call_update`; False if it belongs to no call of this turn."""
        id = text(update.get("toolCallId"))
        if id is None:
            return False
        known = self._calls.get(id)
        if known is not None:
            known.update(update)
        elif (id in self._past and update.get("sessionUpdate") == "tool_call_update") or not self._may_begin():
            return False
        else:
            self._begin(id, update).tell()
        return True

    def for_permission(self, request: JsonObject) -> MappedCall:
        """The call for which a permission is asked. A new call is created if the id is unknown, or its call has ended
        or is already being asked about."""
        id = text(request.get("toolCallId")) or ""
        known = self._calls.get(id)
        if known is not None and (known.gone or not (known.over or known.asking)):
            return known
        if not self._may_begin():
            raise InvalidRequest("this turn has more tool calls than this host shows: end it")
        return self._begin(id, request)

    def close(self, *, ended_well: bool) -> None:
        """The turn is over. Several agents never report that calls end, or even that they run. After a turn that
        completed, all calls count as completed. Otherwise calls that never ran are left to the host, which marks them
        as skipped."""
        for call in self._all:
            if ended_well or call.ran:
                call.close()

    def _begin(self, id: str, first: JsonObject) -> MappedCall:
        fresh = id == short(id) and bool(id) and id not in self._calls and id not in self._past
        call = MappedCall(self._turn, self._contents, first, id=id if fresh else None)
        self._calls[id] = call
        self._all.append(call)
        return call


def _printed(output: Any) -> str | None:
    """A raw output as text, for a call without content: the output itself, or what a command printed."""
    if output is None or isinstance(output, dict):
        return next((printed for key in _PRINTED if (printed := text(obj(output).get(key)))), None)
    return as_json(output)


def _name(turn: Turn, first: JsonObject, meta: JsonObject) -> str:
    """The tool's name: the one that the agent gives, else one from the places where agents put it, else the call's
    kind."""
    name = short(text(first.get("name")) or _hidden_name(meta) or text(first.get("kind")) or "tool")
    # With the name of a client's tool, that client would run the call.
    return f"agent.{name}" if name in {tool["name"] for tool in turn.context.tools} else name


def _hidden_name(meta: JsonObject, depth: int = 3) -> str | None:
    """`toolName` at the root of `_meta` or in the agent's own objects there."""
    below = (_hidden_name(obj(value), depth - 1) for value in meta.values()) if depth else ()
    return text(meta.get("toolName")) or next((name for name in below if name), None)


__all__ = ["MappedCall", "ToolCalls"]
