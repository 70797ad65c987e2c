"""Signing in to an MCP server for a browser: where it leads, what the host has then, and what goes wrong in words."""

from __future__ import annotations

import pytest

from ahpkit.web.signin import SignInFailed, SignIns
from mcp_servers.test_configured import entry
from mcp_servers.test_login import Place, browse, place, waiting

__all__ = ["place"]


async def test_a_browser_is_led_to_the_sign_in_and_the_token_goes_to_the_host_alone(place: Place) -> None:
    client = await place.bench.client()
    session, _, shown = await waiting(place, client)
    async with SignIns(place.bench.host.serve) as sign_ins:
        address = await sign_ins.begin(session, shown["id"])
        assert address.startswith(f"{place.authority.origin}/authorize?")
        await browse(address)
        await entry(place.bench, client, session, "ready", "tickets")
    assert not any(token in str(client.received) for token in place.guard.tokens)


async def test_what_cannot_begin_says_why(place: Place) -> None:
    client = await place.bench.client()
    session, _, shown = await waiting(place, client)
    async with SignIns(place.bench.host.serve, at_once=1) as sign_ins:
        with pytest.raises(SignInFailed, match="no MCP server 'nobody'"):
            await sign_ins.begin(session, "nobody")
        with pytest.raises(SignInFailed):
            await sign_ins.begin("ahp-session:/nowhere", shown["id"])
        await sign_ins.begin(session, shown["id"])
        with pytest.raises(SignInFailed, match="too many sign-ins"):
            await sign_ins.begin(session, shown["id"])
