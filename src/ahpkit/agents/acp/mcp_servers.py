"""Declares a turn's MCP servers to an ACP agent, as far as the agent supports their transport. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ahpkit.agents.untrusted_json import obj, strings, text
from ahpkit.host.agent import McpServerOffer
from ahpkit.protocol.common.state import JsonObject


def mcp_servers(offers: Iterable[McpServerOffer], capabilities: JsonObject) -> list[JsonObject]:
    """The servers the agent can use; `capabilities` are its `mcpCapabilities`."""
    servers = [_server(offer, capabilities) for offer in offers]
    return [server for server in servers if server is not None]


def _server(offer: McpServerOffer, capabilities: JsonObject) -> JsonObject | None:
    config = dict(offer.config)
    url = text(config.get("url"))
    if url is not None:
        kind = "sse" if config.get("type") == "sse" else "http"
        remote: JsonObject = {"type": kind, "name": offer.name, "url": url, "headers": _pairs(config.get("headers"))}
        return remote if capabilities.get(kind) else None
    web = obj(config.get("http"))
    if web and capabilities.get("http"):
        return {"type": "http", "name": offer.name, "url": web["url"], "headers": _pairs(web.get("headers"))}
    if text(config.get("command")) is None:
        return None
    return {
        "name": offer.name,
        "command": config["command"],
        "args": strings(config.get("args")),
        "env": _pairs(config.get("env")),
    }


def _pairs(entries: object) -> list[JsonObject]:
    return [{"name": name, "value": str(value)} for name, value in obj(entries).items()]


__all__ = ["mcp_servers"]
