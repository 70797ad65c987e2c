"""Notifications that belong to no channel of their own."""

from __future__ import annotations

from typing import Literal, NotRequired

from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import ProtectedResourceMetadata

AuthRequiredReason = Literal["required", "expired"] | str


class AuthRequiredParams(BaseParams):
    """`auth/required`: `resource` needs a token, for what `channel` says."""

    resource: ProtectedResourceMetadata
    reason: NotRequired[AuthRequiredReason]


__all__ = [
    "AuthRequiredParams",
    "AuthRequiredReason",
]
