"""A Python agent that, asked for its settings, answers with what a client told it to answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ahpkit.agents.demo import DemoAgent


class HostileSettings(DemoAgent):
    provider = "hostile"

    async def session_config(self, working_directory: Path | None, values: Mapping[str, Any]) -> Any:
        many: int = values.get("constants", 0)
        if many:
            return {"type": "object", "properties": {"a": {"oneOf": [{"const": number} for number in range(many)]}}}
        return (
            {"type": "object", "properties": {"a": {"default": object()}}} if "odd" in values else values.get("schema")
        )


agent = HostileSettings()
