import msgspec
import pytest

from ahpkit.agents.acp.meta import (
    MAX_META_BYTES,
    bounded,
    clean,
    upward,
    with_meta_around,
    without_secrets,
    wrapped,
)
from ahpkit.protocol.meta_keys import ACP
from support import requirement


def test_what_an_agent_says_beyond_ahp_stands_under_one_namespaced_key() -> None:
    assert wrapped({"kind": "edit", "locations": None, "meta": {}}) == {ACP: {"kind": "edit"}}
    assert wrapped({"kind": None}) == {}
    assert "/" in ACP


@requirement("extensibility:meta:any-json-values")
def test_any_json_is_kept() -> None:
    odd = {"": None, "ü": [1, {"deep": [True]}], "quota": {"x": 1.5}}

    assert upward(odd) == odd
    assert upward("no object") == {}


def test_entries_that_may_hold_secrets_are_dropped_at_any_depth() -> None:
    meta = {"terminal-auth": {"command": "x"}, "a": {"env": {"K": "v"}, "accessToken": "t", "b": [{"api_key": "k"}]}}

    assert upward(meta) == {"a": {"b": [{}]}}
    assert clean({"inputTokens": 3}) == {"inputTokens": 3}


def test_large_entries_are_left_out_and_named() -> None:
    meta = upward({"small": 1, "huge": "x" * 548_000, "also": "y" * 9_000})

    assert meta == {"small": 1, "ahpkit/left-out": ["also", "huge"]}
    assert len(msgspec.json.encode(meta)) < MAX_META_BYTES


def test_meta_of_a_message_is_added_to_that_of_what_it_is_about() -> None:
    assert with_meta_around({"x": 1, "_meta": {"a": 1}}, {"_meta": {"a": 2, "b": 2}}) == {
        "x": 1,
        "_meta": {"a": 1, "b": 2},
    }
    assert with_meta_around({"x": 1}, {}) == {"x": 1}
    assert with_meta_around("no object", {"_meta": 5}) == {}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("bad key swordfish-1", "bad key …"),
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer …"),
        ('"api_key": "qwertyuiop1234"', '"api_key": "…"'),
        ("--token zxcvbnm0987654 --verbose", "--token … --verbose"),
        ("https://user:hunter2secret@example.com/", "https://user:…@example.com/"),
        ("refused: ghp_abcdefghijklmnop.", "refused: …"),
        ("max_tokens: 4096 is too large", "max_tokens: 4096 is too large"),
    ],
)
def test_secrets_in_what_an_agent_says_are_not_shown(said: str, shown: str) -> None:
    assert without_secrets({"a": [said, 1]}, ["swordfish-1"]) == {"a": [shown, 1]}


def test_what_is_left_out_is_named_shortly_and_not_without_end() -> None:
    kept = bounded({f"{number}" + "k" * 5000: "v" * 100 for number in range(100)}, 1000)

    assert len(kept["ahpkit/left-out"]) == 20
    assert max(map(len, kept["ahpkit/left-out"])) == 1000


@pytest.mark.parametrize("piece", ["n", "token", "token-", "://", "api_key ", "bearer ", "sk-"])
def test_no_line_holds_up_the_search_for_secrets(piece: str) -> None:
    """A search that takes time with the square of the length would last for minutes here."""
    assert len(without_secrets(piece * 30_000, [])) <= len(piece) * 30_000
