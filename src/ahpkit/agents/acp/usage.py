"""Counts tokens and cost of one ACP session, per turn.

Some agents report each turn's tokens, others the running total of the session, and none says which. A total never
falls, and it grows by at least what the turn before took, because every turn reads the whole conversation again. The
moment an agent's numbers break that, they are per turn, for good. The raw numbers are passed on beside ours.
"""

from __future__ import annotations

from typing import Any

from ahpkit.agents.acp.meta import upward, wrapped
from ahpkit.agents.untrusted_json import integer, obj
from ahpkit.protocol.chat.state import UsageInfo
from ahpkit.protocol.common.state import JsonObject

Tokens = dict[str, int]

_COUNTS = ("totalTokens", "inputTokens", "outputTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens")


class Usage:
    """Keeps what is needed to tell per-turn numbers from running totals."""

    def __init__(self) -> None:
        self.context: JsonObject = {}
        """The last `usage_update`: context used, its size, cost."""
        self._reported: Tokens = {}
        self._last_turn: Tokens = {}
        self._per_turn = False

    def update(self, update: JsonObject) -> None:
        """Take a `usage_update`."""
        known = upward({key: update[key] for key in ("used", "size", "cost") if update.get(key) is not None})
        self.context = known | ({"meta": meta} if (meta := upward(update.get("_meta"))) else {})

    def turn(self, result: JsonObject, *, chunk_meta: JsonObject) -> UsageInfo | None:
        """What one turn took, from the prompt's result; None when there is nothing to say."""
        raw = obj(result.get("usage"))
        tokens = self._this_turn({key: value for key in _COUNTS if (value := integer(raw.get(key))) is not None})
        info: UsageInfo = {}
        if "inputTokens" in tokens:
            info["inputTokens"] = tokens["inputTokens"]
        if "outputTokens" in tokens:
            info["outputTokens"] = tokens["outputTokens"]
        if "cachedReadTokens" in tokens:
            info["cacheReadTokens"] = tokens["cachedReadTokens"]
        meta = wrapped(self._facts(result, raw, chunk_meta))
        if meta:
            info["_meta"] = meta
        return info or None

    def _facts(self, result: JsonObject, raw: JsonObject, chunk_meta: JsonObject) -> JsonObject:
        stop: Any = result.get("stopReason")
        return {
            "usage": {key: value for key, value in raw.items() if key != "_meta"},
            "usageMeta": upward(raw.get("_meta")),
            "context": self.context,
            "stopReason": None if stop == "end_turn" else stop,
            "result": upward(result.get("_meta")),
            "message": upward(chunk_meta),
        }

    def _this_turn(self, reported: Tokens) -> Tokens:
        if not reported:
            return {}
        growth = {key: value - self._reported.get(key, 0) for key, value in reported.items()}
        self._per_turn = self._per_turn or not self._may_be_total(growth)
        self._reported = reported
        self._last_turn = reported if self._per_turn else growth
        return self._last_turn

    def _may_be_total(self, growth: Tokens) -> bool:
        never_fell = all(value >= 0 for value in growth.values())
        return never_fell and growth.get("inputTokens", 0) >= self._last_turn.get("inputTokens", 0)


__all__ = ["Usage"]
