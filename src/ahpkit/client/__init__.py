"""The client SDK: connect to an agent host, follow and drive its sessions.

    async with connect() as client:
        session = await client.create_session()
        chat = await session.chat()
        async for event in chat.send("Hello"):
            ...

Start at `connect`; everything else is reached from its `Client`.
"""

from ahpkit.client.answers import Answer, Approve, Decline, Deny
from ahpkit.client.ask import OnApproval
from ahpkit.client.canvas import CanvasError, canvas_action
from ahpkit.client.chat import Chat
from ahpkit.client.client import Client
from ahpkit.client.connect import connect
from ahpkit.client.connection import Backoff
from ahpkit.client.dispatch import Accepted, Dispatch, Outcome, Rejected
from ahpkit.client.endpoints import Endpoint, find_endpoint, find_endpoints, publish_endpoint
from ahpkit.client.errors import (
    ActionRejected,
    ChannelGone,
    ClientClosed,
    ClientError,
    ConnectionLost,
    ExtensionNotSupported,
    HostNotFound,
    LaggedError,
    SessionFailed,
    TurnError,
    TurnTimeout,
    TurnWaiting,
    UnknownSetting,
)
from ahpkit.client.events import (
    AuthenticationNeeded,
    ConfirmationNeeded,
    InputNeeded,
    InputResolved,
    Notice,
    PartAdded,
    ReasoningDelta,
    TextDelta,
    ToolCallCancelled,
    ToolCallCompleted,
    ToolCallContent,
    ToolCallInputDelta,
    ToolCallRunning,
    ToolCallStarted,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
    Usage,
)
from ahpkit.client.logins import OnAuthRequired, Token
from ahpkit.client.mcp import McpNotReady, McpServer
from ahpkit.client.oauth import LoginFailed
from ahpkit.client.resources import InMemoryPlugin
from ahpkit.client.responder import OnConfirmation, OnInput
from ahpkit.client.session import Session
from ahpkit.client.session_list import SessionList
from ahpkit.client.subscription import Subscription
from ahpkit.client.telemetry import LogRecord, MetricPoint, Span, TelemetryEvent
from ahpkit.client.tools import ToolContext, ToolResult
from ahpkit.client.turn import TurnStream

__all__ = [
    "Accepted",
    "ActionRejected",
    "Answer",
    "Approve",
    "AuthenticationNeeded",
    "Backoff",
    "CanvasError",
    "ChannelGone",
    "Chat",
    "Client",
    "ClientClosed",
    "ClientError",
    "ConfirmationNeeded",
    "ConnectionLost",
    "Decline",
    "Deny",
    "Dispatch",
    "Endpoint",
    "ExtensionNotSupported",
    "HostNotFound",
    "InMemoryPlugin",
    "InputNeeded",
    "InputResolved",
    "LaggedError",
    "LogRecord",
    "LoginFailed",
    "McpNotReady",
    "McpServer",
    "MetricPoint",
    "Notice",
    "OnApproval",
    "OnAuthRequired",
    "OnConfirmation",
    "OnInput",
    "Outcome",
    "PartAdded",
    "ReasoningDelta",
    "Rejected",
    "Session",
    "SessionFailed",
    "SessionList",
    "Span",
    "Subscription",
    "TelemetryEvent",
    "TextDelta",
    "Token",
    "ToolCallCancelled",
    "ToolCallCompleted",
    "ToolCallContent",
    "ToolCallInputDelta",
    "ToolCallRunning",
    "ToolCallStarted",
    "ToolContext",
    "ToolResult",
    "TurnCancelled",
    "TurnCompleted",
    "TurnError",
    "TurnEvent",
    "TurnFailed",
    "TurnStarted",
    "TurnStream",
    "TurnTimeout",
    "TurnWaiting",
    "UnknownSetting",
    "Usage",
    "canvas_action",
    "connect",
    "find_endpoint",
    "find_endpoints",
    "publish_endpoint",
]
