"""One table from URI to channel."""

from __future__ import annotations

import pytest

from ahpkit.dialects.v0_4.channels import CHANNELS, ROOT_URI, channel_of, reduce
from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS, TYPES
from support import requirement


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        (ROOT_URI, "root"),
        ("ahp-session:/0f3e", "session"),
        ("ahp-session:/0f3e/annotations", "annotations"),
        ("ahp-chat:/0f3e", "chat"),
        ("ahp-terminal:/1", "terminal"),
        ("ahp-changeset:/0f3e", "changeset"),
        ("ahp-changeset:/0f3e/turn/t1", "changeset"),
        ("ahp-resource-watch:/7", "resourceWatch"),
        ("ahp-otlp:/logs", "telemetry"),
        ("ahp-otlp://host/traces", "telemetry"),
        ("mcp://server/1", "mcp"),
    ],
)
def test_a_uri_names_its_channel(uri: str, name: str) -> None:
    channel = channel_of(uri)
    assert channel is not None
    assert channel is CHANNELS[name]
    assert uri.startswith(f"{channel.scheme}:")


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "ahp-root:",
        "ahp-root://x",
        "ahp-session:",
        "ahp-session:/",
        "ahp-session:/a/b",
        "ahp-session:/a/annotations/b",
        "ahp-session:/a\n",
        "ahp-chat:/a/b",
        "ahp-chat:/a?x",
        "AHP-CHAT:/a",
        "chat:/a",
        "mcp:",
        "file:///etc/passwd",
    ],
)
def test_other_uris_name_none(uri: str) -> None:
    assert channel_of(uri) is None


def test_every_action_belongs_to_exactly_one_channel() -> None:
    owned = [action for channel in CHANNELS.values() for action in channel.actions]
    assert sorted(owned) == sorted(ACTIONS)


def test_a_channel_with_state_has_a_reducer_and_actions_and_one_without_has_none() -> None:
    for channel in CHANNELS.values():
        assert (channel.state is None) == (channel.reducer is None) == (not channel.actions), channel.name


def test_states_are_named_after_their_channel() -> None:
    for channel in CHANNELS.values():
        if channel.state is not None:
            name = channel.name[0].upper() + channel.name[1:]
            assert channel.state is TYPES[f"{name}State"]


@requirement("core:chat:own-channel")
def test_turns_input_requests_and_tool_calls_live_on_chat_channels() -> None:
    assert {"turns", "activeTurn", "inputRequests"} <= CHANNELS["chat"].state.__annotations__.keys()
    assert not {"turns", "activeTurn", "inputRequests"} & CHANNELS["session"].state.__annotations__.keys()


def test_the_reducer_of_the_uri_is_used() -> None:
    state: JsonObject = {"title": "old", "content": [], "claim": {"kind": "client", "clientId": "c"}}
    action = {"type": "terminal/titleChanged", "title": "new"}
    assert reduce("ahp-terminal:/1", state, action, now=1)["title"] == "new"


@pytest.mark.parametrize("uri", ["foo:/bar", "mcp://server", "ahp-otlp:/logs"])
def test_a_channel_without_state_reduces_to_the_same_object(uri: str) -> None:
    state = {"title": "old"}
    assert reduce(uri, state, {"type": "terminal/titleChanged", "title": "new"}, now=1) is state
