"""Computes the configuration of a new session: its settings, and their values with defaults filled in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

from ahpkit.host.agent import Agent
from ahpkit.host.policy.config import all_values
from ahpkit.host.registration import SettingsSource
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.json_schema import check_schema, find_problem
from ahpkit.protocol.session.state import SessionConfigSchema, SessionConfigState

_log = logging.getLogger(__name__)

_CONFIG_PATIENCE = 2.0
"""Seconds for an agent to report its settings. The creation of a session must not hang."""


async def resolve_config(
    agent: Agent, directory: Path, values: JsonObject, further: Iterable[SettingsSource] = ()
) -> SessionConfigState:
    """The settings of a session, and their values with defaults filled in.

    If the agent does not answer in time, the session has none of its settings. A setting of the agent replaces one of
    the host with the same name.
    """
    schema: SessionConfigSchema | None = None
    try:
        async with asyncio.timeout(_CONFIG_PATIENCE):
            schema = await agent.session_config(directory, values)
    except TimeoutError:
        _log.warning("the agent %s did not say in time how it can be configured", agent.provider)
    if schema and (reason := check_schema(schema)) is not None:
        _log.warning("the configuration of the agent %s is not used: %s", agent.provider, reason)
        schema = None
    schema = schema or {"type": "object", "properties": {}}
    of_host = {name: one for settings in further for name, one in (await settings(directory)).items()}
    if of_host:
        schema = {**schema, "properties": {**of_host, **schema["properties"]}}
    defaults = {key: prop["default"] for key, prop in schema["properties"].items() if "default" in prop}
    return {"schema": schema, "values": {**defaults, **values}}


async def initial_config(
    agent: Agent, directory: Path, values: JsonObject, further: Iterable[SettingsSource] = ()
) -> SessionConfigState:
    """`SessionState.config` of a new session; raises if a chosen value does not fit the schema.

    Settings that are not in the schema are left out, because clients send settings that only some agents have.
    """
    config = await resolve_config(agent, directory, values, further)
    schema, values = config["schema"], config["values"]
    if unknown := values.keys() - schema["properties"].keys():
        _log.warning("settings that %s does not have are left out: %s", agent.provider, ", ".join(sorted(unknown)))
        values = {key: value for key, value in values.items() if key not in unknown}
    if schema["properties"] and (problem := find_problem(all_values(schema), values)) is not None:
        raise InvalidParams(f"config{problem}")
    return {"schema": schema, "values": values}


__all__ = ["initial_config", "resolve_config"]
