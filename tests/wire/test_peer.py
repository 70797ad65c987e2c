from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.protocol.errors import ERRORS, NotFound
from ahpkit.wire.codec import Notification, Request
from ahpkit.wire.errors import (
    LocalProtocolError,
    MethodNotFound,
    RemoteProtocolError,
    RpcError,
)
from ahpkit.wire.peer import TOO_MANY_REQUESTS, Answered, Peer, Rejected
from support import requirement


def wire(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def rejection(peer: Peer, data: bytes) -> Rejected:
    event = peer.receive(data)
    assert isinstance(event, Rejected)
    return event


def reply_to(rejected: Rejected) -> Any:
    assert rejected.reply is not None
    return json.loads(rejected.reply)


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
messages: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        name: values | st.sampled_from(["2.0", "m", 1])
        for name in ("jsonrpc", "id", "method", "params", "result", "error")
    },
)


class TestAsking:
    @requirement("core:wire:ids")
    def test_our_ids_are_numbers_and_never_repeat(self) -> None:
        peer = Peer()
        ids = [peer.request("ping", {}) for _ in range(3)]
        assert [id for id, _ in ids] == [1, 2, 3]
        assert [json.loads(data)["id"] for _, data in ids] == [1, 2, 3]

    def test_a_request_is_one_json_rpc_message(self) -> None:
        id, data = Peer().request("subscribe", {"channel": "ahp-root://"})
        expected = {"jsonrpc": "2.0", "id": id, "method": "subscribe", "params": {"channel": "ahp-root://"}}
        assert json.loads(data) == expected

    def test_a_notification_has_no_id(self) -> None:
        data = Peer().notify("unsubscribe", {"channel": "x:/1"})
        assert json.loads(data) == {"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": "x:/1"}}

    def test_a_result_reaches_its_request(self) -> None:
        peer = Peer()
        first, _ = peer.request("a", {})
        second, _ = peer.request("b", {})
        assert peer.receive(wire(id=second, result=[1])) == Answered(second, [1])
        assert peer.receive(wire(id=first, result=None)) == Answered(first, None)

    def test_an_error_reaches_its_request_as_its_own_exception(self) -> None:
        peer = Peer(errors=ERRORS)
        id, _ = peer.request("a", {})
        event = peer.receive(wire(id=id, error={"code": -32008, "message": "no such turn", "data": {"x": 1}}))
        assert isinstance(event, Answered)
        assert isinstance(event.error, NotFound)
        assert (event.error.message, event.error.data) == ("no such turn", {"x": 1})

    def test_too_many_unanswered_requests_are_our_own_mistake(self) -> None:
        peer = Peer(max_pending=2)
        first, _ = peer.request("a", {})
        peer.request("b", {})
        with pytest.raises(LocalProtocolError, match="c: 2 requests"):
            peer.request("c", {})
        peer.receive(wire(id=first, result=1))
        assert peer.request("c", {})[0] == 3

    def test_params_that_are_not_json_leave_nothing_pending(self) -> None:
        peer = Peer()
        with pytest.raises(LocalProtocolError):
            peer.request("a", {"x": object()})
        assert peer.close() == []

    def test_close_returns_what_was_never_answered(self) -> None:
        peer = Peer()
        ids = [peer.request("a", {})[0] for _ in range(3)]
        peer.receive(wire(id=ids[1], result=None))
        assert peer.close() == [ids[0], ids[2]]
        assert peer.close() == []


class TestAnswersNobodyWaitsFor:
    @pytest.mark.parametrize("id", [7, "7", "x"])
    def test_an_unknown_id_is_reported_and_not_answered(self, id: int | str) -> None:
        rejected = rejection(Peer(), wire(id=id, result=1))
        assert rejected.reply is None
        assert isinstance(rejected.error, RemoteProtocolError)

    def test_a_second_answer_is_reported_and_changes_nothing(self) -> None:
        peer = Peer()
        id, _ = peer.request("a", {})
        assert peer.receive(wire(id=id, result=1)) == Answered(id, 1)
        assert rejection(peer, wire(id=id, result=2)).reply is None

    def test_an_answer_that_comes_after_we_gave_up_is_no_fault_of_the_other_side(self) -> None:
        peer = Peer()
        id, _ = peer.request("a", {})
        peer.forget(id)
        assert peer.receive(wire(id=id, result=1)) == Answered(id, 1)
        assert rejection(peer, wire(id=id, result=1)).reply is None, "a second time"

    def test_an_error_without_an_id_is_not_answered_with_another(self) -> None:
        # Two peers that answer each other's complaints would never stop.
        assert rejection(Peer(), wire(id=None, error={"code": -32700, "message": "?"})).reply is None


class TestServing:
    def test_a_notification_comes_without_an_id(self) -> None:
        assert Peer().receive(wire(method="n", params={"a": 1})) == Notification("n", {"a": 1})

    def test_missing_params_are_empty(self) -> None:
        assert Peer().receive(wire(id=1, method="m")) == Request(1, "m", {})

    @requirement("core:wire:ids")
    @pytest.mark.parametrize("id", [1, 0, -5, 2**60, "1", "", "a-b"])
    def test_the_answer_has_the_id_of_the_request_whatever_its_type(self, id: int | str) -> None:
        peer = Peer()
        assert peer.receive(wire(id=id, method="m")) == Request(id, "m", {})
        assert json.loads(peer.respond(id, {"ok": True})) == {"jsonrpc": "2.0", "id": id, "result": {"ok": True}}

    def test_a_string_and_a_number_are_two_ids(self) -> None:
        peer = Peer()
        peer.receive(wire(id=1, method="m"))
        assert peer.receive(wire(id="1", method="m")) == Request("1", "m", {})

    def test_extension_methods_are_ordinary(self) -> None:
        assert Peer().receive(wire(id=1, method="_acme/x", params={})) == Request(1, "_acme/x", {})

    def test_an_error_is_sent_with_its_code(self) -> None:
        peer = Peer()
        peer.receive(wire(id=1, method="m"))
        reply = json.loads(peer.fail(1, MethodNotFound("no m here")))
        assert reply == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no m here"}}

    def test_an_unexpected_exception_tells_nothing(self) -> None:
        peer = Peer()
        peer.receive(wire(id=1, method="m"))
        reply = peer.fail(1, RuntimeError("secret"))
        assert json.loads(reply)["error"]["code"] == -32603
        assert b"secret" not in reply

    def test_an_error_whose_data_is_not_json_is_answered_all_the_same(self) -> None:
        peer = Peer()
        peer.receive(wire(id=1, method="m"))
        assert json.loads(peer.fail(1, RpcError(1, "m", object())))["error"]["code"] == -32603

    def test_a_request_is_answered_once(self) -> None:
        peer = Peer()
        peer.receive(wire(id=1, method="m"))
        peer.respond(1, None)
        for again in (lambda: peer.respond(1, None), lambda: peer.fail(1, NotFound())):
            with pytest.raises(LocalProtocolError):
                again()

    def test_a_result_that_is_not_json_can_still_be_failed(self) -> None:
        peer = Peer()
        peer.receive(wire(id=1, method="m"))
        with pytest.raises(LocalProtocolError) as info:
            peer.respond(1, object())
        assert json.loads(peer.fail(1, info.value))["error"]["code"] == -32603

    def test_an_id_in_use_is_refused_until_it_is_answered(self) -> None:
        peer = Peer()
        peer.receive(wire(id=1, method="m"))
        reply = reply_to(rejection(peer, wire(id=1, method="m")))
        assert (reply["id"], reply["error"]["code"]) == (1, -32600)
        peer.respond(1, None)
        assert peer.receive(wire(id=1, method="m")) == Request(1, "m", {})

    def test_requests_over_the_limit_are_refused_and_later_ones_served(self) -> None:
        peer = Peer(max_pending=2)
        peer.receive(wire(id=1, method="m"))
        peer.receive(wire(id=2, method="m"))
        reply = reply_to(rejection(peer, wire(id=3, method="m")))
        assert (reply["id"], reply["error"]["code"]) == (3, TOO_MANY_REQUESTS)
        assert peer.receive(wire(method="n")) == Notification("n", {})
        peer.respond(1, None)
        assert peer.receive(wire(id=4, method="m")) == Request(4, "m", {})


class TestRejecting:
    @requirement("core:wire:jsonrpc-error-codes")
    @pytest.mark.parametrize(
        ("data", "code", "id"),
        [
            (b"", -32700, None),
            (b"{", -32700, None),
            (b"\xff", -32700, None),
            (b'{"jsonrpc":"2.0","id":1,"method":"m","params":NaN}', -32700, None),
            (b"5", -32600, None),
            (b"{}", -32600, None),
            (wire(id=3), -32600, None),
            (b'{"id":4,"method":"m"}', -32600, 4),
            (wire(id="s", method=5), -32600, "s"),
            (wire(id=6, method="m", params=5), -32600, 6),
            (wire(id=6, method="m", params=[1]), -32602, 6),
            (wire(id=7.5, method="m"), -32600, None),
            (wire(id=True, method="m"), -32600, None),
            (wire(id=1, result=1, error={}), -32600, None),
        ],
    )
    def test_malformed_messages_are_answered_with_the_id_where_it_can_be_read(
        self, data: bytes, code: int, id: int | str | None
    ) -> None:
        rejected = rejection(Peer(), data)
        reply = reply_to(rejected)
        assert (reply["jsonrpc"], reply["id"], reply["error"]["code"]) == ("2.0", id, code)

    @pytest.mark.parametrize("params", [[], [1], 5, "text"])
    def test_a_notification_is_not_answered_even_when_its_params_cannot_be_read(self, params: object) -> None:
        rejected = rejection(Peer(), wire(method="m", params=params))
        assert rejected.reply is None
        assert "must be an object" in str(rejected.error)

    @requirement("core:wire:no-batches")
    def test_a_batch_is_refused_as_a_whole(self) -> None:
        peer = Peer()
        id, _ = peer.request("mine", {})
        batch = b"[%s,%s]" % (wire(id=9, method="m"), wire(id=id, result=1))
        reply = reply_to(rejection(peer, batch))
        assert (reply["id"], reply["error"]["code"]) == (None, -32600)
        with pytest.raises(LocalProtocolError):
            peer.respond(9, None)
        assert peer.close() == [id]

    def test_a_message_over_the_limit_is_refused(self) -> None:
        rejected = rejection(Peer(max_bytes=100), wire(method="m", params={"x": "y" * 100}))
        assert reply_to(rejected)["error"]["code"] == -32600

    def test_after_a_malformed_message_the_next_one_counts(self) -> None:
        peer = Peer()
        rejection(peer, b"garbage")
        assert peer.receive(wire(id=1, method="m")) == Request(1, "m", {})

    @given(st.binary(max_size=200))
    def test_no_bytes_make_it_raise(self, data: bytes) -> None:
        Peer().receive(data)

    @given(messages)
    def test_no_json_makes_it_raise_and_every_reply_is_json_rpc(self, message: dict[str, Any]) -> None:
        event = Peer().receive(json.dumps(message).encode())
        if isinstance(event, Rejected) and event.reply is not None:
            assert json.loads(event.reply)["error"]["code"] in (-32700, -32600)


class TestAnswersThatCannotBeRead:
    @pytest.mark.parametrize(
        "answer",
        [
            {"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": "x"}},
            {"jsonrpc": "2.0", "id": 1},
            {"id": 1, "result": 1},
        ],
    )
    def test_whoever_asked_learns_it_at_once(self, answer: dict[str, Any]) -> None:
        peer = Peer()
        peer.request("mine", {})
        event = peer.receive(json.dumps(answer).encode())
        assert isinstance(event, Answered)
        assert event.error is not None
        assert (event.id, event.error.code) == (1, -32603)
        assert "cannot be read" in event.error.message
        assert peer.close() == []

    @pytest.mark.parametrize("data", [b'{"id":9,"result":1}', b'{"jsonrpc":"2.0","id":9,"result":1,"result":2}'])
    def test_nothing_is_ever_sent_under_an_id_of_ours(self, data: bytes) -> None:
        assert reply_to(rejection(Peer(), data))["id"] is None
