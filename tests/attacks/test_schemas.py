"""No schema that a client or agent brings can hold up the host: it is refused with a reason when it is declared."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import support
from support.flow import open_session, say, title
from support.process import HostProcess, host_process
from support.raw_client import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOMB: Json = {
    "$ref": "#/$defs/d0",
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}},
}
CONSTANTS: Json = {"oneOf": [{"const": number} for number in range(10_000)]}
OTHER_BASE: Json = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "$defs": {f"d{n}": {} for n in range(41)},
    "allOf": [{"id": "http://elsewhere/", **BOMB}],
}
"""What a reference means depends on the draft: here on the nearest `id`, not on the whole."""

HOSTILE = {
    "forty definitions": BOMB,
    "forty definitions under another base": OTHER_BASE,
    "10,000 constants": CONSTANTS,
    "a pattern": {"pattern": "(a{1000}){1000}"},
    "a pattern of a property that is named like a keyword": {"properties": {"enum": {"pattern": "(a{1000}){1000}"}}},
}


def claim(client_id: str, **offers: Any) -> Json:
    return {"type": "session/activeClientChanged", "activeClient": {"clientId": client_id, "tools": [], **offers}}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("place", ["canvas", "action of a canvas", "tool", "answer of a tool"])
async def test_a_hostile_schema_is_refused_when_it_is_declared(host: HostProcess, name: str, place: str) -> None:
    schema = HOSTILE[name]
    canvas: Json = {"canvasId": "c", "displayName": "C", "description": "A canvas"}
    offers: Json = {
        "canvas": {"canvasProviders": [{**canvas, "inputSchema": schema}]},
        "action of a canvas": {"canvasProviders": [{**canvas, "actions": [{"name": "a", "inputSchema": schema}]}]},
        "tool": {"tools": [{"name": "t", "inputSchema": schema}]},
        "answer of a tool": {"tools": [{"name": "t", "outputSchema": schema}]},
    }[place]
    client, other = await host.client(), await host.client(client_id="other")
    session, _ = await open_session(client)
    await other.ask("subscribe", session)
    reason = await client.rejected(session, claim("tester", **offers))
    assert "refused" in reason or "bytes" in reason
    refused = await client.refused(
        "createSession", "ahp-session:/never", activeClient=claim("tester", **offers)["activeClient"]
    )
    assert refused["code"] == -32602
    await other.accepted(session, title("goes on"))
    await client.aclose()
    await other.aclose()


def _nested_unevaluated(levels: int) -> Json:
    schema: Json = {"properties": {"z": True}}
    for _ in range(levels):
        schema = {"anyOf": [schema], "unevaluatedProperties": {"type": "integer"}}
    return schema


NAMES = [f"n{number}" for number in range(100)]
VALUES: dict[str, tuple[Json, Any]] = {
    "millions of errors": ({"items": {"required": [str(number) for number in range(10_000)]}}, [{}] * 15_000),
    "an error for each subschema": ({"items": {"allOf": [{"type": "string"}] * 900}}, [1] * 2_000),
    "many choices": ({"items": {"enum": [{"a": number} for number in range(8_000)]}}, [{"a": 7_999}] * 8_000),
    "what nobody looked at": (_nested_unevaluated(4), {f"p{number}": 1 for number in range(10_000)}),
    "looking ahead": ({"items": {"pattern": "(?:(?=.*a)(?=.*b)){20}x"}}, ["ab" * 3_000]),
    "an error for each choice": ({"anyOf": [{"type": "string"}] * 1_900}, [{"a": 1}] * 10_000),
    "names that need names": (
        {"items": {"dependentRequired": dict.fromkeys(NAMES, NAMES)}},
        [dict.fromkeys(NAMES, 0)] * 400,
    ),
    "a schema for each place": ({"prefixItems": [{"type": "string"}] * 1_900}, [0] * 20_000),
    "dividing": ({"items": {"multipleOf": 0.01}}, [1e300] * 40_000),
}


@pytest.mark.parametrize("name", VALUES)
async def test_a_value_does_not_hold_up_the_host_where_a_hostile_schema_is_checked(
    host: HostProcess, name: str
) -> None:
    """The first took all memory and ended the host, others took minutes."""
    schema, value = VALUES[name]
    client = await host.client()
    session, chat = await open_session(client)
    canvas: Json = {"canvasId": "c", "displayName": "C", "description": "A canvas", "inputSchema": schema}
    await client.accepted(session, claim("tester", canvasProviders=[canvas]))
    before = host.cpu
    await client.accepted(chat, say(f"/canvas open c i {json.dumps(value)}"))
    await client.action("chat/turnComplete")
    assert host.cpu - before < 3
    answer = "".join(
        said["action"]["content"] for said in client.actions(chat) if said["action"]["type"] == "chat/delta"
    )
    assert "canvas_invalid_input" in answer
    await client.aclose()


async def test_what_asks_without_end_which_members_were_looked_at_is_refused(host: HostProcess) -> None:
    client = await host.client()
    session, _ = await open_session(client)
    schema = _nested_unevaluated(20)
    reason = await client.rejected(session, claim("tester", tools=[{"name": "t", "inputSchema": schema}]))
    assert "more than 2000 subschemas" in reason
    await client.aclose()


async def test_a_schema_of_200000_constants_is_refused_before_it_is_read(host: HostProcess) -> None:
    """The message holds more values than any may; it is refused under the number of the action."""
    client, other = await host.client(), await host.client(client_id="other")
    session, _ = await open_session(client)
    await other.ask("subscribe", session)
    schema: Json = {"oneOf": [{"const": number} for number in range(200_000)]}
    reason = await client.rejected(session, claim("tester", tools=[{"name": "t", "inputSchema": schema}]))
    assert "one message may hold 50000 values" in reason
    await other.accepted(session, title("goes on"))
    await client.aclose()
    await other.aclose()


async def test_a_hundred_thousand_tools_are_refused(host: HostProcess) -> None:
    client = await host.client()
    session, _ = await open_session(client)
    tools = [{"name": f"t{number}"} for number in range(10_000)]
    assert "tools, not 10000" in await client.rejected(session, claim("tester", tools=tools))
    await client.accepted(session, claim("tester", tools=tools[:1_000]))
    action: Json = {
        "type": "session/activeClientToolsChanged",
        "tools": [{"name": "t", "description": "x" * (1 << 20)}],
    }
    assert "bytes together" in await client.rejected(session, action)
    await client.aclose()


async def test_a_title_of_ten_megabytes_is_refused(host: HostProcess) -> None:
    client = await host.client()
    session, _ = await open_session(client)
    for length, unit in ((10_000_000, "bytes"), (1_000_000, "characters")):
        assert unit in await client.rejected(session, {"type": "session/titleChanged", "title": "x" * length})
    await client.accepted(session, {"type": "session/titleChanged", "title": "x" * 1_000})
    await client.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def with_settings(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[HostProcess]:
    """A host with an agent that has whatever settings a client tells it to have."""
    home = tmp_path_factory.mktemp("settings")
    agent = Path(support.__path__[0]) / "hostile_settings.py"
    (home / "config.toml").write_text(f"[agents.hostile]\npython = {json.dumps(f'{agent}:agent')}\n")
    async with host_process(home, "--config", str(home / "config.toml")) as host:
        yield host
        assert "the configuration of the agent hostile is not used: " in host.errors
        assert "Traceback" not in host.errors, host.errors


def _settings(**properties: Any) -> Json:
    return {"schema": {"type": "object", "properties": properties}}


SETTINGS: dict[str, Json] = {
    **{name: _settings(a=schema) for name, schema in HOSTILE.items()},
    "forty definitions of the whole": {"schema": {**BOMB, "type": "object", "properties": {}}},
    "200,000 constants": {"constants": 200_000},
    "itself": _settings(a={"$ref": "#/properties/a"}),
    "another place": _settings(a={"$ref": "http://127.0.0.1:9/schema"}),
    "a file": _settings(a={"$ref": "file:///etc/hostname"}),
    "10,000 settings": _settings(**{str(number): {"type": "string", "title": "A"} for number in range(10_000)}),
    "a long value": _settings(a={"type": "string", "title": "A", "default": "x" * 5_000_000}),
    "what nobody looked at": _settings(a=_nested_unevaluated(20)),
    "a text": {"schema": "no schema"},
    "a list": {"schema": [1]},
    "no properties": {"schema": {"type": "object"}},
    "a list of properties": {"schema": {"type": "object", "properties": [1]}},
    "a text for a property": _settings(a="x"),
    "nothing for a property": _settings(a=None),
    "no JSON": {"odd": True},
}


@pytest.mark.parametrize("name", SETTINGS)
async def test_hostile_settings_of_an_agent_are_not_used(with_settings: HostProcess, name: str) -> None:
    """Whoever asks for them gets an answer, and its sessions can be made: without them."""
    client = await with_settings.client()
    before = with_settings.cpu
    resolved = await client.ask("resolveSessionConfig", provider="hostile", config=SETTINGS[name])
    assert resolved["schema"] == {"type": "object", "properties": {}}
    session, chat = await open_session(client, provider="hostile", config=SETTINGS[name])
    assert with_settings.cpu - before < 3
    await client.accepted(chat, say("hello"))
    await client.action("chat/turnComplete")
    await client.ask("disposeSession", session)
    await client.aclose()


async def test_a_setting_with_a_pattern_that_looks_without_end_is_checked_at_once(with_settings: HostProcess) -> None:
    client = await with_settings.client()
    setting = {"type": "string", "title": "A", "pattern": "(a+)+$"}
    before = with_settings.cpu
    config = {**_settings(a=setting), "a": "a" * 50_000 + "!"}
    assert "a" in (await client.ask("resolveSessionConfig", provider="hostile", config=config))["schema"]["properties"]
    refused = await client.refused("createSession", "ahp-session:/never", provider="hostile", config=config)
    assert (refused["code"], "config['a']" in refused["message"]) == (-32602, True)
    assert with_settings.cpu - before < 3
    await client.aclose()
