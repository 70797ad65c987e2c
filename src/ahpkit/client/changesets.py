"""Lists the changesets of a session, follows one, and invokes operations on it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from ahpkit.client.core import Core
from ahpkit.client.dispatch import Dispatch
from ahpkit.client.errors import ClientError
from ahpkit.client.subscription import Subscription
from ahpkit.protocol.errors import ContentNotFound, NotFound

MESSAGE_KEY = "ahpkit/message"
"""In `_meta` of `invokeChangesetOperation`: the message of a commit."""

_VARIABLE = re.compile(r"\{([^}]*)\}")
_KNOWN: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({"turnId"}),
    frozenset({"originalTurnId", "modifiedTurnId"}),
)
"""The sets of variables that the protocol gives a meaning to."""


def variables(template: str) -> frozenset[str]:
    """The variables of a URI template."""
    return frozenset(_VARIABLE.findall(template))


def offered(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The changesets whose URI templates this client can expand; others are left out without an error."""
    entries: Sequence[Mapping[str, Any]] = state.get("changesets") or ()
    return [entry for entry in entries if variables(entry["uriTemplate"]) in _KNOWN]


def expand(template: str, **values: str) -> str:
    """The URI that a template stands for; raises `ValueError` when a value is missing."""
    missing = variables(template) - values.keys()
    if missing:
        raise ValueError(f"this changeset needs values for: {', '.join(sorted(missing))}")
    return _VARIABLE.sub(lambda match: quote(values[match[1]], safe=""), template)


class ConfirmationRequired(Exception):
    """An operation asks to be confirmed; `question` is what to show the person."""

    def __init__(self, question: str) -> None:
        super().__init__(f"this operation has to be confirmed: {question}")
        self.question = question


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The host's answer to an operation. The changes themselves arrive as actions."""

    message: str
    """A sentence for the person; may be empty."""
    open_outside: str | None = None
    """A URI to open outside this client, in a browser for instance."""
    show: str | None = None
    """A URI whose content this client may show itself."""

    def __str__(self) -> str:
        return self.message


class ChangesetView:
    """One changeset.

        async with session.changeset("session") as changes:
            for file in changes.files:
                print(file["id"])

    Its state is followed until the block ends.
    """

    def __init__(self, core: Core, subscription: Subscription, entry: Mapping[str, Any], uri: str) -> None:
        self._core = core
        self._subscription = subscription
        self._entry = entry
        self.uri = uri

    async def __aenter__(self) -> Self:
        await self._subscription.__aenter__()
        await self.wait_ready()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._subscription.__aexit__(*exc)

    @property
    def state(self) -> Mapping[str, Any]:
        return self._subscription.confirmed

    @property
    def files(self) -> Sequence[Mapping[str, Any]]:
        return self.state["files"]

    @property
    def operations(self) -> Sequence[Mapping[str, Any]]:
        return self.state.get("operations") or ()

    @property
    def can_review(self) -> bool:
        """Whether files of this changeset can be marked as reviewed."""
        return "review" in (self._entry.get("capabilities") or {})

    def is_reviewed(self, file: str) -> bool:
        """Whether a file, by its id, is marked as reviewed."""
        return any(one["id"] == file and one.get("reviewed") is True for one in self.files)

    async def wait_ready(self) -> None:
        """Wait until the changeset is computed; raises `ClientError` with the host's reason when that failed."""
        state = await self._subscription.wait_for(lambda state: state["status"] in ("ready", "error"))
        if state["status"] == "error":
            raise ClientError(state["error"]["message"])

    async def read(self, side: Mapping[str, Any] | None) -> str | None:
        """The text of one side (`before` or `after`) of a file; None when there is no content, the host has not kept
        it, or it is not text."""
        if side is None:
            return None
        params = {"uri": side["content"]["uri"], "encoding": "utf-8"}
        try:
            found = await self._core.request("resourceRead", params)
        except (NotFound, ContentNotFound):
            return None
        return found["data"] if found.get("encoding") == "utf-8" and "\0" not in found["data"] else None

    async def invoke(
        self, operation: str, *, file: str | None = None, message: str | None = None, confirmed: bool = False
    ) -> OperationResult:
        """Run an operation on the whole changeset, or on one file by its id. The state changes when actions arrive.

        An operation that asks to be confirmed raises `ConfirmationRequired` unless `confirmed`.
        """
        known = next((one for one in self.operations if one["id"] == operation), None)
        if known is not None and "confirmation" in known and not confirmed:
            raise ConfirmationRequired(_plain(known["confirmation"]))
        params: dict[str, Any] = {"operationId": operation}
        if file is not None:
            params["target"] = {"kind": "resource", "resource": file}
        if message is not None:
            params["_meta"] = {MESSAGE_KEY: message}
        result = await self._core.request("invokeChangesetOperation", params, channel=self.uri)
        follow_up: Mapping[str, Any] | None = result.get("followUp")
        content: Mapping[str, Any] = {} if follow_up is None else follow_up["content"]
        return OperationResult(
            _plain(result.get("message", "")),
            open_outside=content.get("uri") if follow_up and follow_up.get("external") else None,
            show=content.get("uri") if follow_up and not follow_up.get("external") else None,
        )

    def review(self, files: Collection[str], reviewed: bool = True) -> Dispatch:
        """Mark files, by their ids, as reviewed or not."""
        if not self.can_review:
            raise ValueError("this changeset does not offer review")
        action = {"type": "changeset/filesReviewChanged", "files": list(files), "reviewed": reviewed}
        return self._core.channels.dispatch(self.uri, action)


def _plain(text: Any) -> str:
    return text if isinstance(text, str) else str(text.get("markdown", ""))


__all__ = ["ChangesetView", "ConfirmationRequired", "OperationResult", "expand", "offered", "variables"]
