"""Connects to a host by URL, or to the one that runs on this machine. The only module here that imports transports."""

from __future__ import annotations

from collections.abc import Mapping
from ssl import SSLContext
from typing import Any

from ahpkit.client.client import REQUEST_TIMEOUT, Client
from ahpkit.client.connection import Backoff, Dial
from ahpkit.client.endpoints import Endpoint, find_endpoint, trusted_certificate
from ahpkit.client.errors import HostNotFound
from ahpkit.client.resources import OnUnsavedText
from ahpkit.client.responder import OnConfirmation, OnInput
from ahpkit.wire.transport import Transport


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    host_name: str | None = None,
    client_id: str | None = None,
    locale: str | None = None,
    extensions: Mapping[str, Any] | None = None,
    backoff: Backoff | None = None,
    request_timeout: float | None = REQUEST_TIMEOUT,
    ssl: SSLContext | None = None,
    on_confirmation: OnConfirmation | None = None,
    on_input: OnInput | None = None,
    unsaved_text: OnUnsavedText | None = None,
    mcp_apps: bool = False,
) -> Client:
    """`async with connect() as client`: the host at `url` (ws, wss or ws+unix), else the one that is running.

    With several hosts running, `host_name` says which one; otherwise it is the newest.

    `ssl` replaces the system's certificates for `wss://`; a host of your own on this machine is trusted by the
    certificate that it published. Without a URL the host is looked for again at every
    reconnect, because a restarted host may listen elsewhere.
    """
    return Client(
        dialler(url, token=token, host_name=host_name, ssl=ssl),
        client_id=client_id,
        locale=locale,
        extensions=extensions,
        backoff=backoff,
        request_timeout=request_timeout,
        on_confirmation=on_confirmation,
        on_input=on_input,
        unsaved_text=unsaved_text,
        mcp_apps=mcp_apps,
    )


def dialler(
    url: str | None = None, *, token: str | None = None, host_name: str | None = None, ssl: SSLContext | None = None
) -> Dial:
    """Opens connections to the host that `connect` with the same options talks to. Raises `ConnectError`."""
    return _Dialler(url, token, host_name, ssl)


class _Dialler:
    """Opens connections to one host: at the given URL, or where a running host is found."""

    def __init__(self, url: str | None, token: str | None, name: str | None, ssl: SSLContext | None) -> None:
        self._url = url
        self._token = token
        self._name = name
        self._ssl = ssl
        self._data_dir: str | None = None

    async def __call__(self) -> Transport:
        # Imported late, so that the WebSocket library is loaded only when needed.
        from ahpkit.transports.connect import connect_transport

        endpoint = self._endpoint()
        ssl = self._ssl or trusted_certificate(endpoint.url)
        transport = await connect_transport(endpoint.url, token=self._token or endpoint.token, ssl=ssl)
        self._data_dir = endpoint.data_dir  # Connect only to this host from now on, even if others run.
        return transport

    def _endpoint(self) -> Endpoint:
        if self._url is not None:
            return Endpoint(self._url)
        endpoint = find_endpoint(data_dir=self._data_dir, name=self._name)
        if endpoint is None:
            raise HostNotFound(self._name)
        return endpoint


__all__ = ["connect", "dialler"]
