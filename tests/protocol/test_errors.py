"""Errors on their way to the wire and back."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from ahpkit.protocol import errors
from ahpkit.protocol.common.errors import (
    AhpErrorCode,
    AuthRequiredErrorData,
    JsonRpcErrorCode,
    PermissionDeniedErrorData,
    UnsupportedProtocolVersionErrorData,
)
from ahpkit.protocol.errors import (
    ERRORS,
    AhpError,
    AuthRequired,
    InternalError,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    RpcError,
    TransportClosed,
    UnsupportedProtocolVersion,
    from_error_object,
    to_error_object,
)
from ahpkit.protocol.validation import check
from support import requirement


@requirement("core:wire:ahp-error-codes")
def test_ahp_errors_have_the_codes_of_the_specification() -> None:
    codes = {cls.__name__: code for code, cls in ERRORS.items() if code > -32100}
    assert codes == {
        "SessionNotFound": -32001,
        "ProviderNotFound": -32002,
        "SessionAlreadyExists": -32003,
        "TurnInProgress": -32004,
        "UnsupportedProtocolVersion": -32005,
        "ContentNotFound": -32006,
        "AuthRequired": -32007,
        "NotFound": -32008,
        "PermissionDenied": -32009,
        "AlreadyExists": -32010,
        "Conflict": -32011,
    }


def test_json_rpc_errors_have_the_codes_of_json_rpc() -> None:
    codes = {cls.__name__: code for code, cls in ERRORS.items() if code < -32100}
    assert codes == {
        "ParseError": -32700,
        "InvalidRequest": -32600,
        "MethodNotFound": -32601,
        "InvalidParams": -32602,
        "InternalError": -32603,
    }


def test_the_codes_are_those_of_the_wire_types() -> None:
    assert set(ERRORS) == {*get_args(JsonRpcErrorCode), *get_args(AhpErrorCode)}


@pytest.mark.parametrize(
    ("error", "shape"),
    [
        (UnsupportedProtocolVersion(["0.4.0"]), UnsupportedProtocolVersionErrorData),
        (AuthRequired([{"resource": "https://api.example"}]), AuthRequiredErrorData),
        (
            PermissionDenied(request={"channel": "ahp-root://", "uri": "file:///etc", "read": True}),
            PermissionDeniedErrorData,
        ),
    ],
)
def test_the_data_of_an_error_has_the_shape_of_the_specification(error: RpcError, shape: Any) -> None:
    check(shape, to_error_object(error)["data"])


def test_an_error_without_data_has_no_data_on_the_wire() -> None:
    assert to_error_object(NotFound("no such turn")) == {"code": -32008, "message": "no such turn"}


@pytest.mark.parametrize(
    "error",
    [
        NotFound("gone"),
        RpcError(-32099, "theirs", {"why": [1]}),
        UnsupportedProtocolVersion(["0.4.0"]),
        AuthRequired([{"resource": "https://api.example"}]),
        PermissionDenied("outside the roots", request={"uri": "file:///etc", "read": True}),
    ],
)
def test_an_error_is_the_same_after_its_way_over_the_wire(error: RpcError) -> None:
    received = from_error_object(to_error_object(error))
    assert type(received) is type(error)
    assert to_error_object(received) == to_error_object(error)


def test_the_versions_of_a_refusal_are_in_its_data() -> None:
    error = UnsupportedProtocolVersion(["0.4.0", "0.5.0"])
    assert to_error_object(error)["data"] == {"supportedVersions": ["0.4.0", "0.5.0"]}
    assert error.supported_versions == ["0.4.0", "0.5.0"]


def test_the_resources_to_authenticate_for_are_in_the_data() -> None:
    error = AuthRequired([{"resource": "https://api.example"}])
    assert to_error_object(error)["data"] == {"resources": [{"resource": "https://api.example"}]}
    assert error.resources == [{"resource": "https://api.example"}]


def test_the_request_that_would_unlock_a_resource_is_in_the_data() -> None:
    error = PermissionDenied(request={"uri": "file:///etc", "read": True})
    assert to_error_object(error)["data"] == {"request": {"uri": "file:///etc", "read": True}}
    assert error.request == {"uri": "file:///etc", "read": True}
    assert PermissionDenied("never").request is None


def test_the_wire_learns_nothing_about_an_unexpected_exception() -> None:
    assert to_error_object(KeyError("secret")) == {"code": -32603, "message": "Internal error"}


@pytest.mark.parametrize("wire", [None, "boom", [], {}, {"code": "x"}, {"code": True}, {"message": "only"}])
def test_a_malformed_error_is_still_an_answer(wire: object) -> None:
    assert from_error_object(wire).code == InternalError.CODE


def test_strange_data_does_not_break_the_typed_properties() -> None:
    version = from_error_object({"code": -32005, "message": "", "data": {"supportedVersions": [1, "0.4.0"]}})
    auth = from_error_object({"code": -32007, "message": 5, "data": "nothing"})
    denied = from_error_object({"code": -32009, "message": "no", "data": {"request": 7}})
    assert isinstance(version, UnsupportedProtocolVersion)
    assert version.supported_versions == ["0.4.0"]
    assert isinstance(auth, AuthRequired)
    assert auth.resources == []
    assert isinstance(denied, PermissionDenied)
    assert denied.request is None


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
