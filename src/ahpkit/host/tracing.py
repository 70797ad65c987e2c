"""Makes the host's OpenTelemetry spans: one for each request, turn and tool call, but none for streamed text.

A span belongs to the trace that `traceparent`, `tracestate` and `baggage` in `_meta` name, and the host passes the
trace on with the same keys. If no OpenTelemetry SDK is installed, nothing happens.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import Span, TracerProvider

from ahpkit.protocol.chat.state import Message
from ahpkit.wire.rpc import Params
from ahpkit.wire.trace_context import joined


class Tracing:
    """Makes the spans."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("ahpkit", tracer_provider=provider)

    @contextmanager
    def request(self, method: str, params: Params) -> Generator[None]:
        """A context around one request of a client, with its span."""
        with self._span(f"ahp {method}", params.get("_meta"), {"rpc.system": "jsonrpc", "rpc.method": method}):
            yield

    @contextmanager
    def turn(self, provider: str, chat_uri: str, message: Message) -> Generator[Context]:
        """A context around one turn, with its span. It gives the trace context, for work of the turn in other tasks."""
        attributes = {"ahp.provider": provider, "ahp.chat": chat_uri}
        with self._span("ahp turn", message.get("_meta"), attributes):
            yield get_current()

    def tool_call(self, name: str, turn: Context | None) -> Span:
        """One tool call, as a child of the turn that makes it. The caller ends the span.

        An agent's messages arrive in a task that is older than the turn, so the turn's context has to be passed in.
        """
        return self._tracer.start_span("ahp tool call", context=turn, attributes={"ahp.tool": name})

    @contextmanager
    def _span(self, name: str, meta: object, attributes: dict[str, str]) -> Generator[None]:
        with joined(meta), self._tracer.start_as_current_span(name, attributes=attributes):
            yield


__all__ = ["Tracing"]
