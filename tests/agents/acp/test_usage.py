from typing import Any

from ahpkit.agents.acp.meta import META_KEY
from ahpkit.agents.acp.usage import Usage


def result(input: int, output: int = 10, **more: Any) -> dict[str, Any]:
    return {"stopReason": "end_turn", "usage": {"inputTokens": input, "outputTokens": output, **more}}


def inputs(usage: Usage, *reported: int) -> list[Any]:
    infos = [usage.turn(result(value, 10 * number), chunk_meta={}) for number, value in enumerate(reported, 1)]
    return [info.get("inputTokens") if info else None for info in infos]


def test_running_totals_become_what_each_turn_took() -> None:
    assert inputs(Usage(), 133, 399, 665, 931) == [133, 266, 266, 266]


def test_numbers_per_turn_stay_as_they_are_once_they_fall() -> None:
    assert inputs(Usage(), 100, 40, 70) == [100, 40, 70]


def test_numbers_that_grow_by_less_than_the_turn_before_took_are_per_turn() -> None:
    assert inputs(Usage(), 1200, 1260, 1310) == [1200, 1260, 1310]


def test_all_token_kinds_are_passed_on_raw_beside_ours() -> None:
    raw = {"totalTokens": 30, "thoughtTokens": 4, "cachedReadTokens": 5, "cachedWriteTokens": 6}

    info = Usage().turn(result(10, 20, **raw), chunk_meta={})

    assert info is not None
    assert (info.get("inputTokens"), info.get("outputTokens"), info.get("cacheReadTokens")) == (10, 20, 5)
    assert info.get("_meta", {})[META_KEY]["usage"] == {"inputTokens": 10, "outputTokens": 20, **raw}


def test_a_turn_without_numbers_says_nothing() -> None:
    assert Usage().turn({"stopReason": "end_turn"}, chunk_meta={}) is None


def test_context_cost_stop_reason_and_meta_of_the_result_are_kept() -> None:
    usage = Usage()
    usage.update({"used": 5, "size": 100, "cost": {"amount": 0.1, "currency": "USD"}, "_meta": {"x": 1}})

    info = usage.turn({"stopReason": "max_tokens", "_meta": {"quota": {"left": 3}}}, chunk_meta={"usage": {"n": 1}})

    assert info == {
        "_meta": {
            META_KEY: {
                "context": {"used": 5, "size": 100, "cost": {"amount": 0.1, "currency": "USD"}, "meta": {"x": 1}},
                "stopReason": "max_tokens",
                "result": {"quota": {"left": 3}},
                "message": {"usage": {"n": 1}},
            }
        }
    }


def test_malformed_numbers_are_ignored() -> None:
    assert Usage().turn({"usage": {"inputTokens": "many", "outputTokens": None}}, chunk_meta={}) is not None
    assert "inputTokens" not in (Usage().turn(result(1) | {"usage": [1]}, chunk_meta={}) or {})
