"""Actions that are read in one step are read as the general way reads them; everything else takes the general way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.host.clients.quick_reading import read_dispatched
from ahpkit.protocol.validation import check_params
from ahpkit.wire.codec import Notification, decode
from support.bench import Bench

Json = dict[str, Any]

ACTION: Json = {"type": "session/titleChanged", "title": "Ein Titel"}
PARAMS: Json = {"channel": "ahp-session:/s", "clientSeq": 7, "action": ACTION}
MESSAGE: Json = {"jsonrpc": "2.0", "method": "dispatchAction", "params": PARAMS}


def compact(message: Json) -> bytes:
    """As JavaScript writes it, and our own client."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(compact(MESSAGE), id="compact"),
        pytest.param(json.dumps(MESSAGE, ensure_ascii=False).encode(), id="with spaces"),
        pytest.param(json.dumps(MESSAGE, ensure_ascii=False, indent=1).encode() + b"\n", id="in lines"),
    ],
)
def test_an_action_as_clients_write_it_is_read_in_one_step(data: bytes) -> None:
    read = read_dispatched(data)
    assert read is not None
    assert (read.channel, read.clientSeq, read.action) == ("ahp-session:/s", 7, ACTION)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(compact({"method": "dispatchAction", "jsonrpc": "2.0", "params": PARAMS}), id="another order"),
        pytest.param(compact({**MESSAGE, "id": 1}), id="a request"),
        pytest.param(compact({**MESSAGE, "method": "unsubscribe"}), id="another method"),
        pytest.param(compact({**MESSAGE, "jsonrpc": "1.0"}), id="another version"),
        pytest.param(compact({**MESSAGE, "params": {**PARAMS, "_meta": {}}}), id="more than an action"),
        pytest.param(compact({**MESSAGE, "params": {**PARAMS, "clientSeq": -1}}), id="a negative number"),
        pytest.param(compact({**MESSAGE, "params": {**PARAMS, "clientSeq": 7.0}}), id="a number with a point"),
        pytest.param(compact({**MESSAGE, "params": {**PARAMS, "clientSeq": 2**53}}), id="a number that is too large"),
        pytest.param(compact({**MESSAGE, "params": {**PARAMS, "action": []}}), id="no action"),
        pytest.param(compact({**MESSAGE, "params": {**PARAMS, "channel": "a" * 400}}), id="long"),
        pytest.param(compact(MESSAGE).replace(b'"title":', b'"title":"","title":'), id="a name twice"),
        pytest.param(compact(MESSAGE).replace(b'"title":', b'"title": "", "title": '), id="a name twice, with spaces"),
        pytest.param(compact(MESSAGE).replace(b"Ein", b"\\ud800"), id="a lone surrogate"),
        pytest.param(compact(MESSAGE).replace(b"Ein", b"\xff"), id="not UTF-8"),
        pytest.param(compact(MESSAGE)[:-1], id="cut off"),
        pytest.param(compact(MESSAGE).replace(b'"Ein Titel"', b"1e400"), id="a number beyond a double"),
    ],
)
def test_any_other_message_takes_the_general_way(data: bytes) -> None:
    assert read_dispatched(data) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    channel=st.text(max_size=20) | VALUES,
    number=st.integers(-1, 2**53) | st.floats(-1, 10) | VALUES,
    action=st.dictionaries(st.sampled_from(["type", "title", "\u2028", "a\\b"]), VALUES) | VALUES,
    indent=st.none() | st.integers(0, 2),
)
def test_what_is_read_in_one_step_is_what_the_general_way_reads(
    channel: Any, number: Any, action: Any, indent: int | None
) -> None:
    message = {**MESSAGE, "params": {"channel": channel, "clientSeq": number, "action": action}}
    data = compact(message) if indent is None else json.dumps(message, indent=indent, ensure_ascii=False).encode()
    read = read_dispatched(data)
    if read is not None:
        general = decode(data)
        assert isinstance(general, Notification)
        check_params(general.method, general.params)
        assert general.params == {"channel": read.channel, "clientSeq": read.clientSeq, "action": read.action}


async def test_an_action_in_any_spelling_is_applied_once_and_echoed(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    await client.ask("subscribe", session)
    for number, spell in enumerate([compact, lambda message: json.dumps(message, indent=2).encode()], 100):
        action = {"type": "session/titleChanged", "title": f"Title {number}"}
        params = {"channel": session, "clientSeq": number, "action": action}
        client.send_bytes(spell({**MESSAGE, "params": params}))
        client.send_bytes(spell({**MESSAGE, "params": params}))
        echo = await client.action(lambda told, seq=number: told.get("origin", {}).get("clientSeq") == seq)
        assert echo["action"] == action
    applied = [one for one in client.actions(session) if one["action"]["type"] == "session/titleChanged"]
    assert len({one["serverSeq"] for one in applied}) == 2
    assert [entry["title"] for entry in (await client.ask("listSessions"))["items"]] == ["Title 101"]
