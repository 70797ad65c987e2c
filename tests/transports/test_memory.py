from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ahpkit.transports.memory import memory_pair


@given(st.lists(st.binary(max_size=20)))
async def test_messages_may_hold_any_bytes(messages: list[bytes]) -> None:
    server, client = memory_pair()
    client.write(b"".join(client.frame(message) for message in messages))
    assert [await server.receive() for _ in messages] == messages
    assert client.buffered == 0


async def test_the_server_sees_what_the_client_presented() -> None:
    server, client = memory_pair(credential="fingerprint")
    assert server.peer.credential == "fingerprint"
    assert client.peer.credential is None
