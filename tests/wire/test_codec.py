"""Bytes to messages and back: what is kept, repaired and refused."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.protocol.rope import Rope
from ahpkit.wire.codec import (
    MAX_ANSWER_DEPTH,
    MAX_BYTES,
    MAX_DEPTH,
    ErrorResponse,
    Notification,
    Request,
    Response,
    decode,
    decode_json,
    encode,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
)
from ahpkit.wire.errors import InvalidAnswer, InvalidParams, InvalidRequest, LocalProtocolError, ParseError, RpcError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**80), max_value=2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def message(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode()


def refusal(data: bytes | str, **options: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        decode(data, **options)
    return caught.value


# -- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_id", [0, 7, -1, 2**53, "seven", ""])
def test_a_request_has_a_number_or_a_string_as_id(request_id: int | str) -> None:
    assert decode(message(id=request_id, method="ping", params={"channel": "c"})) == Request(
        request_id, "ping", {"channel": "c"}
    )
    assert decode(encode_response(request_id, None)) == Response(request_id, None)


def test_a_call_without_id_is_a_notification() -> None:
    assert decode(message(method="unsubscribe", params={"channel": "c"})) == Notification(
        "unsubscribe", {"channel": "c"}
    )


@pytest.mark.parametrize("members", [{}, {"params": None}])
def test_missing_params_are_empty(members: dict[str, Any]) -> None:
    assert decode(message(id=1, method="ping", **members)) == Request(1, "ping", {})


def test_members_nobody_knows_do_no_harm() -> None:
    assert decode(message(id=1, method="ping", params={}, trace="x")) == Request(1, "ping", {})


def test_a_result_of_null_is_a_result() -> None:
    assert decode(message(id=1, result=None)) == Response(1, None)


def test_an_error_response_may_name_no_request() -> None:
    answer = decode(message(id=None, error={"code": -32700, "message": "Parse error"}))
    assert isinstance(answer, ErrorResponse)
    assert answer.id is None
    assert isinstance(answer.error, ParseError)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (encode_request(1, "m", {"a": 1}), Request(1, "m", {"a": 1})),
        (encode_notification("n", {}), Notification("n", {})),
        (encode_response("x", [None]), Response("x", [None])),
    ],
)
def test_what_is_written_can_be_read(written: bytes, read: object) -> None:
    assert decode(written) == read


def test_a_refusal_is_written_with_code_and_message_only() -> None:
    written = encode_error(3, InvalidParams("channel: missing"))
    assert json.loads(written) == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {"code": -32602, "message": "channel: missing"},
    }
    assert json.loads(encode_error(None, ZeroDivisionError("internals"))) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32603, "message": "Internal error"},
    }


# -- what is not a message --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"x"}]'])
def test_a_batch_is_an_invalid_request(data: bytes) -> None:
    error = refusal(data)
    assert (error.code, error.request_id) == (-32600, None)


@pytest.mark.parametrize("data", [b"1", b'"ping"', b"null", b"true"])
def test_a_scalar_is_an_invalid_request(data: bytes) -> None:
    assert refusal(data).code == -32600


@pytest.mark.parametrize("version", [None, "1.0", 2.0, 2, []])
def test_another_json_rpc_is_an_invalid_request_that_can_be_answered(version: object) -> None:
    error = refusal(json.dumps({"jsonrpc": version, "id": 4, "method": "ping"}).encode())
    assert (error.code, error.request_id) == (-32600, 4)


def test_a_missing_json_rpc_member_is_an_invalid_request() -> None:
    assert refusal(b'{"id":1,"method":"ping"}').code == -32600


@pytest.mark.parametrize("request_id", [None, 1.5, True, [], {}])
def test_an_id_that_is_neither_string_nor_whole_number_is_refused(request_id: object) -> None:
    error = refusal(message(id=request_id, method="ping"))
    assert (error.code, error.request_id) == (-32600, None)
    assert '"id"' in error.message


@pytest.mark.parametrize(("params", "code"), [(5, -32600), ("x", -32600), (True, -32600), ([], -32602), ([1], -32602)])
def test_params_that_are_not_an_object_are_refused(params: object, code: int) -> None:
    """A list is a request that JSON-RPC allows, so only its parameters are wrong."""
    error = refusal(message(id=9, method="ping", params=params))
    assert (error.code, error.request_id) == (code, 9)


@pytest.mark.parametrize(
    "members",
    [
        {"id": 1, "method": 5},
        {"id": 1, "method": "ping", "result": 1},
        {"id": 1, "method": "ping", "error": {}},
        {"id": 1},
        {"id": 1, "result": 1, "error": {"code": 1, "message": ""}},
        {"result": 1},
        {"id": None, "result": 1},
        {"id": [], "error": {"code": 1, "message": ""}},
        {},
    ],
)
def test_a_message_that_is_neither_call_nor_answer_is_refused(members: dict[str, Any]) -> None:
    assert refusal(message(**members)).code == -32600


def test_a_malformed_answer_is_not_answered_under_its_id() -> None:
    assert refusal(message(id=1, result=1, error={})).request_id is None


def test_a_malformed_error_still_answers_its_request() -> None:
    answer = decode(message(id=1, error="boom"))
    assert isinstance(answer, ErrorResponse)
    assert (answer.id, answer.error.code) == (1, -32603)


# -- what is not JSON -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"a":1,}',
        b"{'a':1}",
        b"\xff",
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":NaN,"b":"\\ud800"}',
        b'{"a":1e999,"b":"\\ud800"}',
        b'{"a":"\xff","b":"\\ud800"}',
        b'{"b":"\\ud800",}',
        b'{"a":' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_not_json_is_a_parse_error(data: bytes) -> None:
    error = refusal(data)
    assert (error.code, error.request_id) == (-32700, None)


def nested(depth: int) -> Any:
    value: Any = "x" * 1000
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [MAX_ANSWER_DEPTH + 1, 950, 5_000, 200_000])
@pytest.mark.parametrize("surrogate", [b"", b'"\\ud800",'])
def test_deep_nesting_is_a_parse_error(depth: int, surrogate: bytes) -> None:
    for data in (
        b"[" + surrogate + b"[" * (depth - 1) + b"]" * depth,
        b'{"a":' * depth + b"1" + b"}" * depth,
    ):
        assert refusal(data).code == -32700


def test_a_call_is_kept_up_to_its_limit() -> None:
    params = {"deep": nested(MAX_DEPTH - 2)}
    assert decode(encode_request(1, "m", params)) == Request(1, "m", params)
    assert refusal(encode_request(1, "m", {"deep": nested(MAX_DEPTH - 1)})).code == -32700


def test_an_answer_has_room_for_the_state_that_calls_have_filled() -> None:
    result = nested(MAX_ANSWER_DEPTH - 1)
    assert decode(encode_response(1, result)) == Response(1, result)
    assert refusal(encode_response(1, nested(MAX_ANSWER_DEPTH))).code == -32700


def test_values_of_our_own_have_no_limit() -> None:
    assert decode_json(encode(nested(600))) == nested(600)
    assert len(decode_json(encode("x" * (MAX_BYTES + 1)))) == MAX_BYTES + 1


def test_many_objects_side_by_side_are_not_deep() -> None:
    value: list[Any] = [{"a": [{}]}] * 5_000
    assert decode_json(encode(value)) == value


# -- limits and repeated names ----------------------------------------------------------------------------------------


def test_a_frame_of_64_mib_is_refused_before_it_is_read() -> None:
    error = refusal(b"[" * (64 * 1024 * 1024))
    assert error.code == -32600
    assert str(MAX_BYTES) in error.message


def test_the_limit_can_be_chosen() -> None:
    data = message(id=1, method="ping")
    assert decode(data, max_bytes=len(data)) == Request(1, "ping", {})
    assert refusal(data, max_bytes=len(data) - 1).code == -32600
    assert refusal(data.decode(), max_bytes=len(data) - 1).code == -32600
    assert refusal('{"a":"éé"}', max_bytes=10).code == -32600


@pytest.mark.parametrize(
    ("data", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', 1),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"x": [{"y": 1, "y": 1}]}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\\ud800","x":1}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":1,"\\u0061":2}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}', None),
    ],
)
def test_a_name_given_twice_in_one_object_is_an_invalid_request(data: bytes, request_id: int | None) -> None:
    error = refusal(data)
    assert (error.code, error.request_id) == (-32600, request_id)
    assert "twice" in error.message


def test_a_name_given_twice_is_refused_outside_messages_too() -> None:
    with pytest.raises(InvalidRequest):
        decode_json(b'{"a":1,"a":1}')


def test_the_same_name_in_two_objects_is_fine() -> None:
    assert decode_json(b'[{"a": 1}, {"a": {"a": 2}}]') == [{"a": 1}, {"a": {"a": 2}}]


# -- what is kept, and what is repaired -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"a":null,"b":{}}',
        '{"n":18446744073709551616,"m":-9223372036854775809,"big":123456789012345678901234567890}',
        '{"f":1.0,"e":1e-7}',
        '{"_meta":{"x/y":[null,{"z":false}]},"unknown":{"type":"future/thing"}}',
        '"\\u0000 \\u001f \u2028 😀"',
    ],
)
def test_everything_json_can_say_survives(text: str) -> None:
    value = decode_json(text)
    assert value == json.loads(text)
    assert decode_json(encode(value)) == value


@pytest.mark.parametrize("escape", ["\\ud800", "\\uDC00", "\\udc00\\ud800", "a\\ud83d"])
def test_a_lone_surrogate_is_replaced(escape: str) -> None:
    value = decode_json(f'{{"{escape}":["{escape}",1,null],"ok":"\\ud83d\\ude00"}}')
    repaired = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in json.loads(f'"{escape}"'))
    assert value == {repaired: [repaired, 1, None], "ok": "😀"}
    encode(value).decode("utf-8")


def test_a_str_frame_with_a_lone_surrogate_is_invalid_utf8() -> None:
    assert refusal('{"a":"\ud800"}').code == -32700


def test_text_with_a_lone_surrogate_goes_out_repaired() -> None:
    value = {"\ud800": Rope.of("b\udc00"), "list": ["\ud83d", 1, None, {"x": "fine"}], "tuple": ("\ud83d", ("\ud800",))}
    repaired = '{"\ufffd":"b\ufffd","list":["\ufffd",1,null,{"x":"fine"}],"tuple":["\ufffd",["\ufffd"]]}'
    assert encode(value).decode("utf-8") == repaired


def test_what_is_encoded_already_goes_out_as_it_is() -> None:
    raw = msgspec.Raw(encode({"x": "ok"}))
    assert encode({"action": raw}) == b'{"action":{"x":"ok"}}'
    assert encode({"action": raw, "by": "\ud800"}).decode("utf-8") == '{"action":{"x":"ok"},"by":"\ufffd"}'


def test_a_rope_goes_out_as_a_string() -> None:
    assert encode({"content": Rope.of("ab").add("c")}) == b'{"content":"abc"}'


def test_nan_goes_out_as_null() -> None:
    assert encode([math.nan, math.inf]) == b"[null,null]"


def test_what_is_not_json_cannot_go_out() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value in (object(), circle, {"a": {1, object()}}, {"a": "\ud800", "b": object()}):
        with pytest.raises(LocalProtocolError):
            encode(value)


# -- properties -------------------------------------------------------------------------------------------------------


@given(JSON)
def test_decoding_what_was_encoded_gives_the_same(value: Any) -> None:
    assert decode_json(encode(value)) == value


@given(JSON)
def test_other_spellings_of_the_same_json_give_the_same(value: Any) -> None:
    assert decode_json(json.dumps(value, indent=1)) == value


@given(st.binary(max_size=200) | JSON.map(encode) | JSON.map(lambda value: json.dumps(value).encode("utf-8")[:-1]))
def test_no_bytes_raise_anything_but_the_documented_errors(data: bytes) -> None:
    with suppress(ParseError, InvalidRequest, InvalidParams):
        decode(data)


@given(
    st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), JSON | st.just("2.0")
    )
)
def test_no_object_raises_anything_but_the_documented_errors(value: dict[str, Any]) -> None:
    try:
        read = decode(encode({"jsonrpc": "2.0", **value}))
    except (InvalidRequest, InvalidParams):
        return
    assert isinstance(read, Request | Notification | Response | ErrorResponse)


def call(meta: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"_meta": meta}}).encode()


MANY: list[Any] = [[0] * 2_000, [[]] * 2_000, [""] * 2_000, {str(n): n for n in range(2_000)}, [{"a": 1}] * 1_000]


@pytest.mark.parametrize("meta", MANY)
def test_a_message_with_too_many_values_is_refused(meta: object) -> None:
    with pytest.raises(InvalidRequest, match="one message may hold 1000 values"):
        decode(call(meta), max_values=1_000)
    assert decode(call(meta))


def test_what_is_too_much_is_refused_under_its_id() -> None:
    """Whoever waits for an answer must hear that it came and was not read."""
    for spelling in ("7", "7.0"):
        with pytest.raises(InvalidRequest) as refused:
            decode(f'{{"jsonrpc":"2.0","params":{[0] * 2_000},"method":"x","id":{spelling}}}', max_values=1_000)
        assert (type(refused.value), refused.value.request_id) == (InvalidRequest, 7)
        with pytest.raises(InvalidAnswer) as unread:
            decode(f'{{"jsonrpc":"2.0","result":{[0] * 2_000},"id":{spelling}}}', max_values=1_000)
        assert unread.value.answers == 7


@pytest.mark.parametrize("text", ["1,2,[{:\n", '"a","b",\\"\\', "\\", "ü,", '":{['])
def test_a_long_text_is_one_value_whatever_is_in_it(text: str) -> None:
    message = decode(call({"text": text * 5_000}), max_values=1_000)
    assert isinstance(message, Notification)
    assert message.params["_meta"]["text"] == text * 5_000


@pytest.mark.parametrize("padding", ["", "x" * 100_000])
def test_a_member_twice_is_noticed_in_any_spelling(padding: str) -> None:
    for data in (
        f'{{"jsonrpc":"2.0","method":"x","params":{{"a":1,"a":2,"t":"{padding}"}}}}',
        f'{{ "jsonrpc" : "2.0", "method": "x", "params": {{"a\\":": 1, "a\\":": 2, "t": "{padding}"}} }}',
        f'{{"jsonrpc":"2.0","method":"x","params":{{"a":[{{"b":1,"b":1}}],"t":"{padding}"}}}}',
    ):
        with pytest.raises(InvalidRequest, match="is given twice in one object"):
            decode(data.encode())
