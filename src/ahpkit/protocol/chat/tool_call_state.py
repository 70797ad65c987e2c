"""Tool calls inside a response: seven states, and what a result can hold."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.chat.messages import Message
from ahpkit.protocol.common.state import URI, ContentRef, FileEdit, JsonObject, StringOrMarkdown
from ahpkit.protocol.session.mcp import McpAuthRequirement

ToolCallStatus = (
    Literal[
        "streaming",
        "pending-confirmation",
        "running",
        "auth-required",
        "pending-result-confirmation",
        "completed",
        "cancelled",
    ]
    | str
)

ToolCallConfirmationReason = Literal["not-needed", "user-action", "setting"] | str

ToolCallCancellationReason = Literal["denied", "skipped", "result-denied"]

ConfirmationOptionKind = Literal["approve", "deny"] | str

ToolCallContributorKind = Literal["client", "mcp"] | str

ToolResultContentType = Literal["text", "embeddedResource", "resource", "fileEdit", "terminal", "subagent"] | str

ToolCallRiskAssessmentKind = Literal["judge"] | str

ToolInput = str | ContentRef
"""The input of a tool: its text, or where to read it."""


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


class TerminalCommandResult(TypedDict):
    """How a command in a terminal ended; the terminal may live on."""

    exitCode: NotRequired[int]
    preview: NotRequired[str]
    truncated: NotRequired[bool]


class ToolResultTerminalContent(TypedDict):
    """A terminal that the tool uses."""

    type: Literal["terminal"]
    resource: URI
    title: str
    isPty: NotRequired[bool]
    result: NotRequired[TerminalCommandResult]


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


class ToolCallRiskAssessmentBase(TypedDict):
    """Who judges whether a call is safe."""

    kind: ToolCallRiskAssessmentKind


class ToolCallRiskAssessmentLoadingState(ToolCallRiskAssessmentBase):
    """The assessment is under way."""

    status: Literal["loading"]


class ToolCallRiskAssessmentCompleteState(ToolCallRiskAssessmentBase):
    """The assessment: `safety` from 0 to 1. It informs the user and decides nothing."""

    status: Literal["complete"]
    reason: StringOrMarkdown
    safety: int | float


ToolCallRiskAssessment = ToolCallRiskAssessmentLoadingState | ToolCallRiskAssessmentCompleteState


class ToolCallBase(TypedDict):
    """What a tool call has from its start. `intention` says in words what the model wants with it."""

    toolCallId: str
    toolName: str
    displayName: str
    intention: NotRequired[str]
    contributor: NotRequired[ToolCallContributor]
    _meta: NotRequired[JsonObject]


class ToolCallParameterFields(TypedDict):
    """What a tool call has once its input is complete."""

    invocationMessage: StringOrMarkdown
    toolInput: NotRequired[ToolInput]


class ToolCallPostConfirmationFields(TypedDict):
    """What a tool call has once it may run."""

    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]


class ToolCallStreamingState(ToolCallBase):
    """The input arrives."""

    status: Literal["streaming"]
    partialInput: NotRequired[str]
    invocationMessage: NotRequired[StringOrMarkdown]


class ToolCallPendingConfirmationState(ToolCallBase, ToolCallParameterFields):
    """Somebody has to approve it."""

    status: Literal["pending-confirmation"]
    confirmationTitle: NotRequired[StringOrMarkdown]
    riskAssessment: NotRequired[ToolCallRiskAssessment]
    edits: NotRequired[ToolCallEdits]
    editable: NotRequired[bool]
    options: NotRequired[list[ConfirmationOption]]


class ToolCallRunningState(ToolCallBase, ToolCallParameterFields, ToolCallPostConfirmationFields):
    """It runs; `content` shows what there is so far."""

    status: Literal["running"]
    content: NotRequired[list[ToolResultContent]]


class ToolCallAuthRequiredState(ToolCallParameterFields, ToolCallPostConfirmationFields):
    """Its MCP server wants a token before it goes on."""

    toolCallId: str
    toolName: str
    displayName: str
    intention: NotRequired[str]
    contributor: ToolCallMcpContributor
    status: Literal["auth-required"]
    auth: McpAuthRequirement
    content: NotRequired[list[ToolResultContent]]
    _meta: NotRequired[JsonObject]


class ToolCallPendingResultConfirmationState(
    ToolCallBase, ToolCallParameterFields, ToolCallResult, ToolCallPostConfirmationFields
):
    """It ran; somebody has to approve the result before the model sees it."""

    status: Literal["pending-result-confirmation"]


class ToolCallCompletedState(ToolCallBase, ToolCallParameterFields, ToolCallResult, ToolCallPostConfirmationFields):
    """It ran."""

    status: Literal["completed"]


class ToolCallCancelledState(ToolCallBase, ToolCallParameterFields):
    """It did not run, or its result was refused."""

    status: Literal["cancelled"]
    reason: ToolCallCancellationReason
    reasonMessage: NotRequired[StringOrMarkdown]
    userSuggestion: NotRequired[Message]
    selectedOption: NotRequired[ConfirmationOption]


ToolCallConfirmationState = ToolCallPendingConfirmationState | ToolCallPendingResultConfirmationState
"""A call that waits for approval."""

ToolCallState = (
    ToolCallStreamingState
    | ToolCallPendingConfirmationState
    | ToolCallRunningState
    | ToolCallAuthRequiredState
    | ToolCallPendingResultConfirmationState
    | ToolCallCompletedState
    | ToolCallCancelledState
)


__all__ = [
    "ConfirmationOption",
    "ConfirmationOptionKind",
    "TerminalCommandResult",
    "ToolCallAuthRequiredState",
    "ToolCallBase",
    "ToolCallCancellationReason",
    "ToolCallCancelledState",
    "ToolCallClientContributor",
    "ToolCallCompletedState",
    "ToolCallConfirmationReason",
    "ToolCallConfirmationState",
    "ToolCallContributor",
    "ToolCallContributorKind",
    "ToolCallEdits",
    "ToolCallError",
    "ToolCallMcpContributor",
    "ToolCallParameterFields",
    "ToolCallPendingConfirmationState",
    "ToolCallPendingResultConfirmationState",
    "ToolCallPostConfirmationFields",
    "ToolCallResult",
    "ToolCallRiskAssessment",
    "ToolCallRiskAssessmentBase",
    "ToolCallRiskAssessmentCompleteState",
    "ToolCallRiskAssessmentKind",
    "ToolCallRiskAssessmentLoadingState",
    "ToolCallRunningState",
    "ToolCallState",
    "ToolCallStatus",
    "ToolCallStreamingState",
    "ToolInput",
    "ToolResultContent",
    "ToolResultContentType",
    "ToolResultEmbeddedResourceContent",
    "ToolResultFileEditContent",
    "ToolResultResourceContent",
    "ToolResultSubagentContent",
    "ToolResultTerminalContent",
    "ToolResultTextContent",
]
