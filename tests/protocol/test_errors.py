"""Errors on their way to the wire and back."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from ahpkit.dialects.v0_4.messages import (
    AhpErrorCode,
    AuthRequiredErrorData,
    JsonRpcErrorCode,
    PermissionDeniedErrorData,
    UnsupportedProtocolVersionErrorData,
)
from ahpkit.protocol import errors
from ahpkit.protocol.errors import (
    ERRORS,
    AhpError,
    AuthRequired,
    NotFound,
    PermissionDenied,
    RpcError,
    UnsupportedProtocolVersion,
    from_error_object,
    to_error_object,
)
from ahpkit.protocol.validation import check
from support import requirement


def ahp_error(wire: dict[str, Any]) -> RpcError:
    return from_error_object(wire, ERRORS)


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
    received = from_error_object(to_error_object(error), ERRORS)
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


def test_strange_data_does_not_break_the_typed_properties() -> None:
    version = ahp_error({"code": -32005, "message": "", "data": {"supportedVersions": [1, "0.4.0"]}})
    auth = ahp_error({"code": -32007, "message": 5, "data": "nothing"})
    denied = ahp_error({"code": -32009, "message": "no", "data": {"request": 7}})
    assert isinstance(version, UnsupportedProtocolVersion)
    assert version.supported_versions == ["0.4.0"]
    assert isinstance(auth, AuthRequired)
    assert auth.resources == []
    assert isinstance(denied, PermissionDenied)
    assert denied.request is None


def test_all_errors_are_drawn_in_the_tree() -> None:
    tree = (errors.__doc__ or "").replace("\n", " ")
    for cls in ERRORS.values():
        if cls.__module__ == errors.__name__:
            assert issubclass(cls, AhpError)
            assert f" {cls.__name__} " in tree, f"{cls.__name__} is not in the tree at the top of the module"
