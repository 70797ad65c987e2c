"""Notifications that belong to no channel of their own."""

from __future__ import annotations

from typing import Literal, NotRequired

from ahpkit.dialects.v0_4.common.commands import BaseParams

AuthRequiredReason = Literal["required", "expired"]


class AuthRequiredParams(BaseParams):
    """`auth/required`: `resource` needs a token, for what `channel` says."""

    resource: str
    reason: NotRequired[AuthRequiredReason]


__all__ = [
    "AuthRequiredParams",
    "AuthRequiredReason",
]
