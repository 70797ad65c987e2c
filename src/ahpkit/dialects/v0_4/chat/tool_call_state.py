"""Tool calls inside a response: six states, and what a result can hold."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.chat.messages import Message
from ahpkit.dialects.v0_4.common import URI, ContentRef, FileEdit, JsonObject, StringOrMarkdown

ToolCallStatus = Literal[
    "streaming", "pending-confirmation", "running", "pending-result-confirmation", "completed", "cancelled"
]

ToolCallConfirmationReason = Literal["not-needed", "user-action", "setting"]

ToolCallCancellationReason = Literal["denied", "skipped", "result-denied"]

ConfirmationOptionKind = Literal["approve", "deny"]

ToolCallContributorKind = Literal["client", "mcp"]

ToolResultContentType = Literal["text", "embeddedResource", "resource", "fileEdit", "terminal", "subagent"]


class ToolResultTextContent(TypedDict):
    """Text."""

    type: Literal["text"]
    text: str


class ToolResultEmbeddedResourceContent(TypedDict):
    """Content inside the result, in base64."""

    type: Literal["embeddedResource"]
    data: str
    contentType: str


class ToolResultResourceContent(ContentRef):
    """A resource by its URI."""

    type: Literal["resource"]


class ToolResultFileEditContent(FileEdit):
    """A file that the tool changed."""

    type: Literal["fileEdit"]


class ToolResultTerminalContent(TypedDict):
    """A terminal that the tool uses."""

    type: Literal["terminal"]
    resource: URI
    title: str


class ToolResultSubagentContent(TypedDict):
    """A chat that the tool started."""

    type: Literal["subagent"]
    resource: URI
    title: str
    agentName: NotRequired[str]
    description: NotRequired[str]


ToolResultContent = (
    ToolResultTextContent
    | ToolResultEmbeddedResourceContent
    | ToolResultResourceContent
    | ToolResultFileEditContent
    | ToolResultTerminalContent
    | ToolResultSubagentContent
)


class ToolCallError(TypedDict):
    """Why a tool failed."""

    message: str
    code: NotRequired[str]


class ToolCallResult(TypedDict):
    """What a tool returned."""

    success: bool
    pastTenseMessage: StringOrMarkdown
    content: NotRequired[list[ToolResultContent]]
    structuredContent: NotRequired[JsonObject]
    error: NotRequired[ToolCallError]


class ToolCallEdits(TypedDict):
    """What a tool is going to change, to look at before approving it."""

    items: list[FileEdit]


class ConfirmationOption(TypedDict):
    """A way to approve or to deny."""

    id: str
    label: str
    kind: ConfirmationOptionKind
    group: NotRequired[int]


class ToolCallClientContributor(TypedDict):
    """The tool belongs to a client, which runs it."""

    kind: Literal["client"]
    clientId: str


class ToolCallMcpContributor(TypedDict):
    """The tool belongs to an MCP server of the session."""

    kind: Literal["mcp"]
    customizationId: str


ToolCallContributor = ToolCallClientContributor | ToolCallMcpContributor


class ToolCallBase(TypedDict):
    """What a tool call has from its start."""

    toolCallId: str
    toolName: str
    displayName: str
    contributor: NotRequired[ToolCallContributor]
    _meta: NotRequired[JsonObject]


class ToolCallParameterFields(TypedDict):
    """What a tool call has once its input is complete."""

    invocationMessage: StringOrMarkdown
    toolInput: NotRequired[str]


class ToolCallStreamingState(ToolCallBase):
    """The input arrives."""

    status: Literal["streaming"]
    partialInput: NotRequired[str]
    invocationMessage: NotRequired[StringOrMarkdown]


class ToolCallPendingConfirmationState(ToolCallBase, ToolCallParameterFields):
    """Somebody has to approve it."""

    status: Literal["pending-confirmation"]
    confirmationTitle: NotRequired[StringOrMarkdown]
    edits: NotRequired[ToolCallEdits]
    editable: NotRequired[bool]
    options: NotRequired[list[ConfirmationOption]]


class ToolCallRunningState(ToolCallBase, ToolCallParameterFields):
    """It runs; `content` shows what there is so far."""

    status: Literal["running"]
    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]
    content: NotRequired[list[ToolResultContent]]


class ToolCallPendingResultConfirmationState(ToolCallBase, ToolCallParameterFields, ToolCallResult):
    """It ran; somebody has to approve the result before the model sees it."""

    status: Literal["pending-result-confirmation"]
    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]


class ToolCallCompletedState(ToolCallBase, ToolCallParameterFields, ToolCallResult):
    """It ran."""

    status: Literal["completed"]
    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]


class ToolCallCancelledState(ToolCallBase, ToolCallParameterFields):
    """It did not run, or its result was refused."""

    status: Literal["cancelled"]
    reason: ToolCallCancellationReason
    reasonMessage: NotRequired[StringOrMarkdown]
    userSuggestion: NotRequired[Message]
    selectedOption: NotRequired[ConfirmationOption]


ToolCallState = (
    ToolCallStreamingState
    | ToolCallPendingConfirmationState
    | ToolCallRunningState
    | ToolCallPendingResultConfirmationState
    | ToolCallCompletedState
    | ToolCallCancelledState
)


__all__ = [
    "ConfirmationOption",
    "ConfirmationOptionKind",
    "ToolCallBase",
    "ToolCallCancellationReason",
    "ToolCallCancelledState",
    "ToolCallClientContributor",
    "ToolCallCompletedState",
    "ToolCallConfirmationReason",
    "ToolCallContributor",
    "ToolCallContributorKind",
    "ToolCallEdits",
    "ToolCallError",
    "ToolCallMcpContributor",
    "ToolCallParameterFields",
    "ToolCallPendingConfirmationState",
    "ToolCallPendingResultConfirmationState",
    "ToolCallResult",
    "ToolCallRunningState",
    "ToolCallState",
    "ToolCallStatus",
    "ToolCallStreamingState",
    "ToolResultContent",
    "ToolResultContentType",
    "ToolResultEmbeddedResourceContent",
    "ToolResultFileEditContent",
    "ToolResultResourceContent",
    "ToolResultSubagentContent",
    "ToolResultTerminalContent",
    "ToolResultTextContent",
]
