"""Odd and hostile servers, each a program of its own: what they send is mended or refused in words."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from ahpkit.mcp.calls import Limits, RateLimit
from ahpkit.mcp.connect import LineStream, ServerConfig
from ahpkit.mcp.errors import McpError
from ahpkit.mcp.server import McpServer
from ahpkit.mcp.tolerance import message_in, messages_in, with_known_content
from ahpkit.transports.stdio import LineTransport
from mcp_servers.running import Answers, Port, running, text_of

PATIENT = Limits(start=30.0, call=30.0, delays=(), relist=0.01)

PROGRAM = """
import json, os, sys, threading, time

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
TOOLS = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}


def send(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()


def answer(id, result):
    send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))


def for_ever(work):
    def run():
        try:
            while True:
                work()
                time.sleep(0.0005)
        except OSError:
            os._exit(0)

    threading.Thread(target=run, daemon=True).start()


def notify(method, **params):
    send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))


def on_initialize(id, params): answer(id, HELLO)
def on_list(id, params): answer(id, TOOLS)
def on_call(id, params): answer(id, {"content": [{"type": "text", "text": "ok"}]})


exec(sys.argv[1])
HANDLERS = {"initialize": on_initialize, "tools/list": on_list, "tools/call": on_call}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") in HANDLERS:
        HANDLERS[message["method"]](message["id"], message.get("params") or {})
    elif "id" in message and "method" in message:
        send('{"jsonrpc": "2.0", "id": %s, "error": {"code": -32601, "message": "no"}}' % json.dumps(message["id"]))
"""


def odd(directory: Path, code: str) -> ServerConfig:
    """A server that behaves, but for this code."""
    program = directory / "odd.py"
    program.write_text(PROGRAM)
    return ServerConfig(name="odd", command=(sys.executable, str(program), code))


async def called(server: McpServer) -> str:
    """What a call of its tool returns or fails with."""
    try:
        return text_of(await server.call_tool("t", {}, Answers()))
    except McpError as error:
        return f"failed: {error}"


BATCHES = {
    "two answers": ("two.reverse(); send(json.dumps(two))", ["call 1", "call 2"]),
    "a wrong answer beside a good one": (
        "two[0]['result'] = 7; send(json.dumps(two))",
        ["call 2", "failed: its answer is not valid: it has no result that is an object"],
    ),
    "half a character": (
        "two[0]['result']['content'][0]['text'] = chr(0xd800); send(json.dumps(two))",
        ["?", "call 2"],
    ),
    "news, and what is no message": (
        "send(json.dumps([{'jsonrpc': '2.0', 'method': 'notifications/tools/list_changed'}, 7, [], *two]))",
        ["call 1", "call 2"],
    ),
    "batches of one": ("[send(json.dumps([one])) for one in two]", ["call 1", "call 2"]),
    "spaces": ("send(' [ ' + json.dumps(two)[1:])", ["call 1", "call 2"]),
    "chatter that looks like one": (
        "[send(one) for one in ('[INFO] ready', '[]', '[{]', json.dumps([{}] * 5000), json.dumps(two))]",
        ["call 1", "call 2"],
    ),
}
"""How a server answers two calls, where `two` holds the answers; and what the callers get."""


@pytest.mark.parametrize("case", BATCHES)
async def test_a_batch_is_read_message_by_message(tmp_path: Path, case: str) -> None:
    """MCP 2025-03-26: who speaks it has to read batches."""
    answers, expected = BATCHES[case]
    code = f"""
HELLO["protocolVersion"] = "2025-03-26"
two = []


def on_call(id, params):
    content = [{{"type": "text", "text": f"call {{len(two) + 1}}"}}]
    two.append({{"jsonrpc": "2.0", "id": id, "result": {{"content": content}}}})
    if len(two) == 2:
        {answers}
"""
    port = Port()
    async with running(odd(tmp_path, code), port, limits=PATIENT) as server:
        said = await asyncio.gather(called(server), called(server))
    assert sorted(said) == expected
    assert ("news" in case) == (("notifications/tools/list_changed", {}) in port.notifications)


WRONG_STARTS = {
    "HELLO['protocolVersion'] = '1999-01-01'": "1999-01-01",
    "HELLO['protocolVersion'] = 7": "protocolVersion",
    "del HELLO['serverInfo']": "serverInfo",
    "HELLO['capabilities'] = []": "capabilities",
    "def on_initialize(id, params): answer(id, None)": "no result that is an object",
    "def on_initialize(id, params): answer(id, 'hello')": "no result that is an object",
    """def on_initialize(id, _): send('{"jsonrpc": "2.0", "id": %d, "result": ' % id + '[' * 40_000 + '}')""": "JSON",
    """def on_initialize(id, params): send('{"jsonrpc": "2.0", "id": %d, "error": null}' % id)""": "no result",
    "TOOLS['nextCursor'] = 7": "nextCursor",
    "TOOLS.clear()": "tools",
    "sys.exit('no licence')": "no licence",
    "def on_list(id, params): os._exit(9)": "exit code 9",
    "sys.stderr.write('it is cold\\\\n'); sys.stderr.flush(); HELLO.clear()": "it is cold",
}
"""What a server does at its start, and what people read about it."""


@pytest.mark.parametrize("code", WRONG_STARTS)
async def test_a_start_that_goes_wrong_says_why_at_once(tmp_path: Path, code: str) -> None:
    port = Port()
    async with running(odd(tmp_path, code), port, limits=PATIENT, wait=False) as server:
        await port.until(lambda: server.state["kind"] == "error")
        message: str = server.state["error"]["message"]
        assert WRONG_STARTS[code] in message
        assert "did not answer" not in message
        assert "exit code 0" not in message


FLOOD = "for_ever(lambda: notify({}, {}))"
STARTS = {
    "noise on stdout": "send('starting up'); send('[1, 2]'); send('{}'); send(chr(0) * 100)",
    "bytes that are no text": "sys.stdout.buffer.write(bytes([255, 254, 10])); sys.stdout.buffer.flush()",
    "hello twice": "def on_initialize(id, params): answer(id, HELLO); answer(id, HELLO)",
    "ids as texts": "def on_initialize(id, params): answer(str(id), HELLO)",
    "answers to nothing": 'answer(4711, {}); send(\'{"jsonrpc": "2.0", "id": null, "result": {}}\')',
    "a list without end": "TOOLS['nextCursor'] = 'again'",
    "log lines without end": FLOOD.format("'notifications/message'", "level='info', data='x' * 1000"),
    "changes without end": FLOOD.format("'notifications/tools/list_changed'", ""),
    "notifications that are none": FLOOD.format("'notifications/progress'", "progress='much'"),
    "notifications of nobody": FLOOD.format("'notifications/of/nobody'", "a=1"),
    "errors without end": "for_ever(lambda: os.write(2, b'e' * 1000 + b'\\n'))",
    "deaf to signals": "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "a child that holds its pipes": "import time; os.fork() or time.sleep(9999)",
}


@pytest.mark.parametrize("case", STARTS)
async def test_a_server_that_is_only_odd_is_used_and_stopped(tmp_path: Path, case: str) -> None:
    async with running(odd(tmp_path, STARTS[case]), Port(), limits=PATIENT) as server:
        assert await called(server) == "ok"
        assert len(server.log()) <= 400


RESULTS: dict[str, tuple[Any, str]] = {
    "null": (None, "failed: its answer is not valid: it has no result that is an object"),
    "a text": ("hi", "failed: its answer is not valid: it has no result that is an object"),
    "nothing in it": ({}, "failed: odd gave an answer that is not valid: content: Field required"),
    "content that is no list": ({"content": "hi"}, "failed: odd gave an answer that is not valid: content"),
    "no content beside structure": ({"structuredContent": {"n": 1}}, ""),
    "structure that is a list": ({"content": [], "structuredContent": [1, 2]}, "[1, 2]"),
    "structure that is a number, beside text": (
        {"content": [{"type": "text", "text": "five"}], "structuredContent": 5},
        "five",
    ),
    "an error without words": ({"isError": True}, ""),
    "an unknown kind": ({"content": [{"type": "hologram"}, {"type": "text", "text": "!"}]}, '{"type": "hologram"}!'),
    "a part that is none": ({"content": [None, {"type": "text", "text": "!"}]}, "null!"),
    "a text without text": ({"content": [{"type": "text"}, {"type": "text", "text": "!"}]}, '{"type": "text"}!'),
    "a picture that is none": (
        {"content": [{"type": "image", "data": 5, "mimeType": "image/png"}, {"type": "text", "text": "!"}]},
        '{"type": "image", "data": 5, "mimeType": "image/png"}!',
    ),
    "a file without anything": (
        {"content": [{"type": "resource", "resource": {"uri": "x:y"}}, {"type": "text", "text": "!"}]},
        '{"type": "resource", "resource": {"uri": "x:y"}}!',
    ),
    "a file": ({"content": [{"type": "resource", "resource": {"uri": "x:y", "text": "t", "mimeType": None}}]}, ""),
    "a kind that is no text": ({"content": [{"type": ["text"]}, {"type": "text", "text": "!"}]}, '{"type": ["text"]}!'),
    "a link to anywhere": ({"content": [{"type": "resource_link", "uri": "file:///etc/passwd", "name": "x"}]}, ""),
}


@pytest.mark.parametrize("case", RESULTS)
async def test_a_result_is_used_as_far_as_it_can_be_read(tmp_path: Path, case: str) -> None:
    result, wanted = RESULTS[case]
    code = f"def on_call(id, params): answer(id, json.loads({json.dumps(json.dumps(result))}))"
    async with running(odd(tmp_path, code), Port(), limits=PATIENT) as server:
        assert (await called(server)).startswith(wanted)
        assert server.ready


HALF = r"""send('{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "\\ud800!"}]}}' % id)"""
"""Half of a character."""


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (HALF, "?!"),
        ("answer(id, {'content': [{'type': 'text', 'text': 'once'}]}); on_list(id, 0); on_list(id, 0)", "once"),
        ("os.close(1)", "failed: the MCP server odd ended during the call: it closed its output"),
    ],
)
async def test_other_ends_of_a_call(tmp_path: Path, code: str, wanted: str) -> None:
    async with running(odd(tmp_path, f"def on_call(id, params): {code}"), Port(), limits=PATIENT) as server:
        assert (await called(server)).startswith(wanted)


async def test_a_server_that_asks_without_end_and_reads_nothing_is_given_up(tmp_path: Path) -> None:
    """Everything it asks for would wait in the host's memory."""
    ask = """while True: send('{"jsonrpc": "2.0", "id": 1, "method": "roots/list"}')"""
    port = Port()
    async with running(odd(tmp_path, f"def on_call(id, params):\n    {ask}"), port, limits=PATIENT) as server:
        assert "sent 1000 requests and read no answer" in await called(server)
        await port.until(lambda: server.state["kind"] == "error")
        assert "sent 1000 requests and read no answer" in server.state["error"]["message"]


async def test_what_is_left_out_stays_named_when_lists_are_read_again(tmp_path: Path) -> None:
    code = "TOOLS['tools'].append({'name': 'bad'}); on_call = lambda id, _: (TOOLS['tools'].append({'name': 'worse'}),"
    code += " answer(id, {'content': []}), notify('notifications/tools/list_changed'))"
    port = Port()
    async with running(odd(tmp_path, code), port, limits=PATIENT) as server:
        assert set(server.lists.left_out) == {"bad"}
        await called(server)
        await port.until(lambda: set(server.lists.left_out) == {"bad", "worse"})


# -- lines and parts, without a server -----------------------------------------------------------------------------


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_line_is_a_message_or_an_exception(line: bytes) -> None:
    assert isinstance(message_in(line), SessionMessage | Exception)


_MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": st.sampled_from([1, "1", 1.0, 1.5, None, True, []]),
        "method": st.sampled_from(["tools/call", "", 3, None]),
        "params": st.sampled_from([{}, {"a": [1]}, [], None]),
        "result": st.sampled_from([{}, {"content": []}, [], None]),
        "error": st.sampled_from([{"code": 1, "message": "no"}, {}, None]),
        "more": st.just(1),
    },
)


@given(_MEMBERS)
def test_a_message_is_what_the_sdk_takes_it_for(members: dict[str, Any]) -> None:
    line = json.dumps(members).encode()
    item = message_in(line)
    try:
        wanted = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        assert isinstance(item, Exception) or isinstance(item.message, JSONRPCError)
    else:
        assert isinstance(item, SessionMessage)
        assert (type(item.message), item.message) == (type(wanted), wanted)


@given(st.integers(0, 10**9) | st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=20))
def test_whoever_waits_for_a_bad_answer_hears_of_it(id: int | str) -> None:
    for rest in ('"result": 3', '"result": null', '"error": 1', '"result": {"a": [[[', '"result": {"a": "\udc00"', "{"):
        item = message_in(f'{{"jsonrpc": "2.0", "id": {json.dumps(id)}, {rest}}}'.encode("utf-8", "surrogatepass"))
        assert isinstance(item, SessionMessage)
        assert isinstance(item.message, JSONRPCError | JSONRPCResponse)
        assert item.message.id == id


def test_a_request_is_never_taken_for_an_answer() -> None:
    line = b'{"jsonrpc": "2.0", "id": 1, "method": 3, "params": []}'
    assert isinstance(message_in(line), Exception)


@pytest.mark.parametrize("result", [{}, {"tools": []}, {"content": [{"type": "text", "text": "x"}]}, {"content": "x"}])
def test_other_results_are_not_touched(result: dict[str, Any]) -> None:
    assert with_known_content(result) is result


def test_a_result_of_very_many_parts_is_cut_and_says_so() -> None:
    part = {"type": "text", "text": "x"}
    cut = with_known_content({"content": [part] * 5000})["content"]
    assert (len(cut), cut[:999], cut[-1]["text"]) == (1000, [part] * 999, "(4001 more parts are left out)")


@pytest.mark.parametrize(
    ("result", "taken"),
    [
        ({"structuredContent": {"a": [1] * 49_000}}, True),
        ({"structuredContent": {"a": [1] * 150_000}}, False),
        ({"content": [{"type": "text", "text": ","}] * 60_000}, False),
        ({"content": [{"type": "text", "text": "," * 400_000}]}, True),
        ({"tools": [{"name": "t", "inputSchema": {"type": "object"}}] * 30_000}, True),
        ({"tools": [1] * 250_000}, False),
        ({"tools": [], "content": [], "structuredContent": {"a": [1] * 150_000}}, False),
    ],
)
def test_an_answer_of_too_many_values_fails_the_call_it_answers(result: dict[str, Any], taken: bool) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 7, "result": result}).encode()
    [item] = messages_in(line)
    assert isinstance(item, SessionMessage)
    if taken:
        assert isinstance(item.message, JSONRPCResponse)
    else:
        assert isinstance(item.message, JSONRPCError)
        assert (item.message.id, "values" in item.message.error.message) == (7, True)


async def test_a_result_without_end_fails_its_call_and_the_server_goes_on(tmp_path: Path) -> None:
    many = "{'content': [{'type': 'text', 'text': 'x'}] * 60_000}"
    code = f"def on_call(id, params): answer(id, {many} if params['arguments'] else {{'content': []}})"
    async with running(odd(tmp_path, code), Port(), limits=PATIENT) as server:
        with pytest.raises(McpError, match="one message may hold 50000 values"):
            await server.call_tool("t", {"long": True}, Answers())
        assert (await server.call_tool("t", {}, Answers()))["content"] == []


def test_progress_comes_in_a_burst_and_then_steadily() -> None:
    now = [0.0]
    pace = RateLimit(lambda: now[0], burst=3, every=0.5)
    assert [pace.allows() for _ in range(5)] == [True, True, True, False, False]
    now[0] = 0.5
    assert [pace.allows() for _ in range(2)] == [True, False]
    now[0] = 100.0
    assert [pace.allows() for _ in range(4)] == [True, True, True, False]


async def test_a_flood_of_messages_that_came_at_once_leaves_everybody_else_their_turns() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b'{"jsonrpc": "2.0", "method": "notifications/progress"}\n' * 100)
    turns = 0

    async def somebody_else() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(somebody_else())
    writer = cast("asyncio.StreamWriter", None)  # Nothing is written.
    lines = LineStream(LineTransport(reader, writer, address="flood"))
    for _ in range(100):
        assert isinstance(await lines.receive(), SessionMessage)
    other.cancel()
    assert turns >= 99
