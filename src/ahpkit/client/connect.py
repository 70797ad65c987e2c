"""Connect to a host by URL, or to the one that is running. The client's only door to real transports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahpkit.client.client import REQUEST_TIMEOUT, Client
from ahpkit.client.endpoints import Endpoint, find_endpoint
from ahpkit.client.errors import HostNotFound
from ahpkit.client.reconnect import Backoff
from ahpkit.client.responder import OnConfirmation, OnInput
from ahpkit.wire.transport import Transport


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    client_id: str | None = None,
    locale: str | None = None,
    extensions: Mapping[str, Any] | None = None,
    backoff: Backoff | None = None,
    request_timeout: float | None = REQUEST_TIMEOUT,
    on_confirmation: OnConfirmation | None = None,
    on_input: OnInput | None = None,
) -> Client:
    """`async with connect() as client`: the host at `url` (ws, wss or ws+unix), else the one that is running.

    Without a URL the host is looked for again at every reconnect, because a restarted host may listen elsewhere.
    """

    async def dial() -> Transport:
        from ahpkit.transports.connect import (
            connect_transport,
        )  # Late: only who connects pays for the WebSocket library.

        endpoint = Endpoint(url, token) if url is not None else find_endpoint()
        if endpoint is None:
            raise HostNotFound
        return await connect_transport(endpoint.url, token=token or endpoint.token)

    return Client(
        dial,
        client_id=client_id,
        locale=locale,
        extensions=extensions,
        backoff=backoff,
        request_timeout=request_timeout,
        on_confirmation=on_confirmation,
        on_input=on_input,
    )


__all__ = ["connect"]
