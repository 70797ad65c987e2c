from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.details import Dialect, Parsed, ServerDetail
from ahpkit.customizations.mcp_files import Surroundings, launch_config
from customizations.builders import child, children, codes, load, names, read_plugin, write
from support import requirement

STDIO = {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": "${GITHUB_TOKEN}"}}


def read(tmp_path: Path, servers: Any, **manifest: Any) -> Parsed:
    files: dict[str, Any] = {".plugin/plugin.json": {"name": "p", **manifest}}
    if servers is not None:
        files[".mcp.json"] = servers
    return read_plugin(write(tmp_path / "p", files))


@requirement("mcp:server:shape")
@requirement("customizations:children:mcp-server-fields")
@requirement("customizations:children:no-execution-details")
@pytest.mark.parametrize(
    "servers",
    [
        {"mcpServers": {"files": STDIO}},
        {"servers": {"files": STDIO}, "inputs": []},
        {"files": STDIO},
        {"mcpServers": {"mcpServers": {"files": STDIO}}},
    ],
)
def test_servers_are_listed_whatever_they_are_wrapped_in(
    tmp_path: Path, servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "s3cret")
    parsed = read(tmp_path, servers)
    [entry] = children(parsed)
    assert entry == {
        "type": "mcpServer",
        "id": entry["id"],
        "uri": (tmp_path / "p/.mcp.json").as_uri(),
        "name": "files",
        "enabled": True,
        "state": {"kind": "stopped"},
        "range": entry["range"],
    }
    assert "npx" not in str(parsed.container)
    [detail] = parsed.details.values()
    assert isinstance(detail, ServerDetail)
    assert detail.config == STDIO


@requirement("mcp:server:inline-range")
@requirement("customizations:identity:inline-declaration-range")
def test_a_server_in_the_manifest_points_at_its_declaration(tmp_path: Path) -> None:
    manifest = '{\n  "name": "p",\n  "mcpServers": {\n    "files": {"command": "npx"}\n  }\n}'
    parsed = read_plugin(write(tmp_path / "p", {".plugin/plugin.json": manifest}))
    [entry] = children(parsed)
    assert entry["uri"] == (tmp_path / "p/.plugin/plugin.json").as_uri()
    assert entry["range"] == {"start": {"line": 3, "character": 4}, "end": {"line": 3, "character": 31}}


@pytest.mark.parametrize("switch", [{"disabled": True}, {"enabled": False}, {"disabled": "true"}])
@requirement("enablement:surface:disabled-child-listed")
def test_a_server_that_is_switched_off_is_listed_as_such(tmp_path: Path, switch: dict[str, Any]) -> None:
    assert child(read(tmp_path, {"files": {**STDIO, **switch}}), "files")["enabled"] is False


@pytest.mark.parametrize(
    "config", [{}, {"url": ""}, {"command": ""}, {"command": 7}, {"command": []}, "npx", {"command": "x", "args": "y"}]
)
def test_a_server_that_cannot_start_says_so_and_harms_no_other(tmp_path: Path, config: Any) -> None:
    parsed = read(tmp_path, {"mcpServers": {"bad": config, "good": STDIO}})
    assert child(parsed, "bad")["state"]["kind"] == "error"
    assert child(parsed, "bad")["state"]["error"]["errorType"] == "configuration"
    assert child(parsed, "good")["state"] == {"kind": "stopped"}
    assert codes(parsed, "warning") == ["server-unusable"]


@pytest.mark.parametrize("config", [{"url": "https://x"}, {"type": "sse", "url": "https://x"}, {"command": ["a", "b"]}])
def test_other_ways_to_declare_a_server_are_fine(tmp_path: Path, config: Any) -> None:
    parsed = read(tmp_path, {"s": config})
    assert load(parsed) == {"kind": "loaded"}


def test_a_server_may_be_called_like_a_wrapper(tmp_path: Path) -> None:
    assert names(read(tmp_path, {"servers": STDIO})) == ["servers"]


def test_odd_names_are_cleaned_for_display_only(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"a/b\u202e": STDIO})
    [entry] = children(parsed)
    assert entry["name"] == "a-b"
    detail = parsed.details[entry["id"]]
    assert isinstance(detail, ServerDetail)
    assert detail.name == "a/b\u202e"


@pytest.mark.parametrize("servers", ["[]", "nonsense", {"mcpServers": 3}])
def test_a_broken_file_degrades_and_lists_nothing(tmp_path: Path, servers: Any) -> None:
    parsed = read(tmp_path, servers)
    assert (names(parsed), load(parsed)["kind"]) == ([], "degraded")


def test_within_a_plugin_the_first_of_two_equal_names_counts(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"files": STDIO}, mcpServers={"files": {"command": "other"}, "more": STDIO})
    assert names(parsed) == ["files", "more"]
    assert codes(parsed, "warning") == ["server-twice"]
    detail = parsed.details[child(parsed, "files")["id"]]
    assert isinstance(detail, ServerDetail)
    assert detail.config == STDIO


AROUND = Surroundings(plugin_root="/p", plugin_data="/d", workspace="/w", environment={"TOKEN": "t", "X": "${TOKEN}"})


def launch(config: dict[str, Any], dialect: Dialect = "claude", around: Surroundings = AROUND) -> dict[str, Any]:
    return launch_config(ServerDetail("s", config, dialect), around)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${CLAUDE_PLUGIN_ROOT}/run", "/p/run"),
        ("${PLUGIN_ROOT}/run", "/p/run"),
        ("${CLAUDE_PLUGIN_ROOT:-.}/run", "/p/run"),
        ("${workspaceFolder}", "/w"),
        ("${TOKEN}", "t"),
        ("${env:TOKEN}", "t"),
        ("${MISSING:-fallback}", "fallback"),
        ("${MISSING}", "${MISSING}"),
        ("${input:id}", "${input:id}"),
        ("${X}", "${TOKEN}"),
    ],
)
def test_placeholders_are_filled_in_one_pass(text: str, filled: str) -> None:
    assert launch({"command": text, "args": [text], "env": {"A": text}})["args"] == [filled]
    assert launch({"url": text, "headers": {"H": text}})["headers"] == {"H": filled}


def test_without_an_environment_nothing_of_it_is_read() -> None:
    around = Surroundings(plugin_root="/p")
    assert launch({"url": "https://evil/${TOKEN}"}, around=around)["url"] == "https://evil/${TOKEN}"


def test_an_agent_plugin_uses_its_two_placeholders_and_only_where_it_may() -> None:
    config = {"command": "${PLUGIN_ROOT}", "args": ["${PLUGIN_ROOT}", "${TOKEN}"], "env": {"D": "${PLUGIN_DATA}"}}
    launched = launch(config, "agent-plugin")
    assert launched["command"] == "${PLUGIN_ROOT}"
    assert launched["args"] == ["/p", "${TOKEN}"]
    assert launched["env"] == {"D": "/d"}
    assert launched["cwd"] == "/p"
    remote = launch({"type": "streamable-http", "url": "https://x/${PLUGIN_ROOT}"}, "agent-plugin")
    assert remote["url"] == "https://x/${PLUGIN_ROOT}"


@pytest.mark.parametrize(
    ("config", "type"),
    [
        ({"command": "x"}, "stdio"),
        ({"type": "local", "command": "x"}, "stdio"),
        ({"url": "u"}, "http"),
        ({"type": "streamable-http", "url": "u"}, "http"),
        ({"type": "sse", "url": "u"}, "sse"),
        ({"serverUrl": "u"}, "http"),
    ],
)
def test_the_type_is_named_in_one_way(config: dict[str, Any], type: str) -> None:
    launched = launch(config)
    assert launched["type"] == type
    assert ("url" in launched) is (type != "stdio")


def test_odd_values_are_put_into_shape() -> None:
    launched = launch({"command": ["npx", "-y"], "args": ["s", 7, None], "env": {"A": 1, "B": None, "C": "c"}})
    assert (launched["command"], launched["args"]) == ("npx", ["-y", "s"])
    assert launched["env"] == {"A": "1", "C": "c"}
    assert launched["cwd"] == "/w"
