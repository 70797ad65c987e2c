"""JSON-RPC errors on their way to the wire and back."""

from __future__ import annotations

import pytest

from ahpkit.protocol.errors import ERRORS, ProviderNotFound
from ahpkit.wire import errors
from ahpkit.wire.errors import (
    RPC_ERRORS,
    AhpError,
    InternalError,
    InvalidRequest,
    RpcError,
    TransportClosed,
    from_error_object,
    to_error_object,
)


def test_json_rpc_errors_have_the_codes_of_json_rpc() -> None:
    codes = {cls.__name__: code for code, cls in RPC_ERRORS.items()}
    assert codes == {
        "ParseError": -32700,
        "InvalidRequest": -32600,
        "MethodNotFound": -32601,
        "InvalidParams": -32602,
        "InternalError": -32603,
    }


@pytest.mark.parametrize("wire", [None, "boom", [], {}, {"code": "x"}, {"code": True}, {"message": "only"}])
def test_a_malformed_error_is_still_an_answer(wire: object) -> None:
    assert from_error_object(wire).code == InternalError.CODE


def test_the_wire_learns_nothing_about_an_unexpected_exception() -> None:
    assert to_error_object(KeyError("secret")) == {"code": -32603, "message": "Internal error"}


def test_a_code_means_what_the_protocol_of_the_connection_says() -> None:
    wire = {"code": -32002, "message": "file not found"}
    assert type(from_error_object(wire)) is RpcError
    assert type(from_error_object(wire, ERRORS)) is ProviderNotFound


def test_an_invalid_request_knows_which_request_it_was() -> None:
    assert InvalidRequest("bad", request_id="r1").request_id == "r1"
    assert InvalidRequest().request_id is None


def test_a_closed_transport_is_a_connection_error_with_its_reason() -> None:
    closed = TransportClosed("host stopped", code=1001)
    assert isinstance(closed, ConnectionError)
    assert (str(closed), closed.reason, closed.code) == ("host stopped", "host stopped", 1001)


def test_all_errors_have_one_base_and_are_drawn_in_the_tree() -> None:
    tree = errors.__doc__ or ""
    for name in errors.__all__:
        value = getattr(errors, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, AhpError)
            assert f" {name}" in f" {tree}".replace("\n", " "), f"{name} is not in the tree at the top of the module"
