import msgspec

from ahpkit.agents.acp.meta import MAX_META_BYTES, META_KEY, clean, upward, with_meta_around, wrapped
from support import requirement


def test_what_an_agent_says_beyond_ahp_stands_under_one_namespaced_key() -> None:
    assert wrapped({"kind": "edit", "locations": None, "meta": {}}) == {META_KEY: {"kind": "edit"}}
    assert wrapped({"kind": None}) == {}
    assert "/" in META_KEY


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
