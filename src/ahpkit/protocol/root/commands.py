from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI, JsonObject
from ahpkit.protocol.session.state import SessionConfigSchema, SessionSummary


class ListSessionsParams(TypedDict):
    channel: Literal["ahp-root://"]
    filter: NotRequired[JsonObject]


class ListSessionsResult(TypedDict):
    items: list[SessionSummary]


class ResolveSessionConfigParams(TypedDict):
    channel: Literal["ahp-root://"]
    provider: NotRequired[str]
    workingDirectory: NotRequired[URI]
    config: NotRequired[JsonObject]


class ResolveSessionConfigResult(TypedDict):
    schema: SessionConfigSchema
    values: JsonObject


class SessionConfigValueItem(TypedDict):
    value: str
    label: str
    description: NotRequired[str]


class SessionConfigCompletionsParams(TypedDict):
    channel: Literal["ahp-root://"]
    provider: NotRequired[str]
    workingDirectory: NotRequired[URI]
    config: NotRequired[JsonObject]
    property: str
    query: NotRequired[str]


class SessionConfigCompletionsResult(TypedDict):
    items: list[SessionConfigValueItem]
