from typing import Any

import pytest

from ahpkit.customizations.details import Dialect, ServerDetail
from ahpkit.customizations.launch import Surroundings, launch_config

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
