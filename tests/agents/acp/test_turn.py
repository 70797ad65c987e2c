from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp.content import Contents
from ahpkit.agents.acp.turn import TurnMapper, Usage, notice_text
from ahpkit.protocol.meta_keys import ACP
from ahpkit.testing.recording import RecordingTurn


def mapper(prompt: str = "hello") -> tuple[TurnMapper, RecordingTurn]:
    turn = RecordingTurn(prompt)
    return TurnMapper(turn, Contents(turn.store, root=Path("/w"), terminal_uri=lambda id: None)), turn


def chunk(text: str, message: str | None = None, **more: Any) -> dict[str, Any]:
    return {"content": {"type": "text", "text": text}, **({"messageId": message} if message else {}), **more}


def finish(mapped: TurnMapper, stop: str | None = "end_turn", **more: Any) -> str:
    return mapped.finish({"stopReason": stop, **more}, Usage())


def test_text_and_thoughts_stream_in_order() -> None:
    mapped, turn = mapper()
    mapped.agent_thought_chunk(chunk("hm"))
    mapped.agent_message_chunk(chunk("a"))
    mapped.agent_message_chunk(chunk("b"))

    assert turn.said == [("think", "hm"), ("text", "a"), ("text", "b")]


def test_a_new_message_id_begins_a_new_part_and_an_empty_chunk_says_nothing() -> None:
    mapped, turn = mapper()
    for text, message in (("a", "1"), ("", "2"), ("b", "1"), ("c", "2")):
        mapped.agent_message_chunk(chunk(text, message))
    mapped.agent_thought_chunk(chunk("t", "3"))

    assert turn.said == [("text", "a"), ("text", "b"), ("new_part",), ("text", "c"), ("think", "t")]


def test_images_are_attached_and_links_are_shown() -> None:
    mapped, turn = mapper()
    png = {"type": "image", "data": base64.b64encode(b"x").decode(), "mimeType": "image/png"}
    mapped.agent_message_chunk({"content": png})
    mapped.agent_message_chunk({"content": {"type": "resource_link", "uri": "file:///a", "name": "a"}})

    assert turn.said == [("attach", b"x", "image/png"), ("text", "[a](file:///a)")]


def test_content_of_an_unknown_kind_is_kept_and_shown_as_such() -> None:
    mapped, turn = mapper()
    mapped.agent_message_chunk({"content": {"type": "hologram", "shape": "cat"}})

    [(verb, text, more)] = turn.said
    assert verb == "notice"
    assert "hologram" in text
    assert more["meta"] == {"ahpkit/acp": {"update": {"type": "hologram", "shape": "cat"}}}


@pytest.mark.parametrize("echo", ["hello", "Instructions…\n\nhello"])
def test_the_users_own_words_coming_back_are_no_news(echo: str) -> None:
    mapped, turn = mapper()
    for letter in echo:
        mapped.user_message_chunk(chunk(letter))
    mapped.agent_message_chunk(chunk("hi"))

    assert turn.said == [("text", "hi")]


def test_words_the_agent_adds_as_the_users_are_shown_and_steering_is_known() -> None:
    mapped, turn = mapper()
    mapped.steered("and be quick")
    mapped.user_message_chunk(chunk("and be quick"))
    mapped.agent_message_chunk(chunk("ok"))
    mapped.user_message_chunk(chunk("<system-reminder>"))
    finish(mapped)

    assert turn.said == [("text", "ok"), ("notice", "<system-reminder>")]


def test_notices_and_compaction_are_system_notifications() -> None:
    mapped, turn = mapper()
    mapped.notice_update({"message": "low on credit"})
    mapped.compaction_update({"compactionId": "c", "status": "in_progress"})
    mapped.compaction_summary_chunk({"compactionId": "c", **chunk("we ")})
    mapped.compaction_summary_chunk({"compactionId": "c", **chunk("talked")})
    mapped.compaction_update({"compactionId": "c", "status": "completed"})

    notices = [said[1] for said in turn.said]
    assert notices[0] == "low on credit"
    assert notices[-1].endswith("we talked")
    assert set(turn.verbs()) == {"notice"}


def test_the_words_of_a_notice_are_found_wherever_they_are() -> None:
    assert notice_text({"content": {"type": "text", "text": "x"}}) == "x"
    assert notice_text({"title": "t", "text": "x"}) == "x"
    assert "without words" in notice_text({})


def test_a_turn_that_said_nothing_says_so() -> None:
    mapped, turn = mapper()

    assert finish(mapped) == "end_turn"
    assert turn.verbs() == ["notice"]


@pytest.mark.parametrize("stop", ["max_tokens", "max_turn_requests", "refusal"])
def test_reasons_the_host_knows_are_passed_on_and_kept_with_the_usage(stop: str) -> None:
    mapped, turn = mapper()

    assert finish(mapped, stop) == stop
    assert turn.said == [("usage", {"_meta": {"ahpkit/acp": {"stopReason": stop}}})]


def test_cancelled_without_a_cancel_is_an_ordinary_end() -> None:
    mapped, _ = mapper()
    mapped.agent_message_chunk(chunk("a"))

    assert finish(mapped, "cancelled") == "end_turn"


def test_an_unknown_or_missing_reason_is_an_ordinary_end_that_is_shown() -> None:
    mapped, turn = mapper()

    assert finish(mapped, "coffee") == "end_turn"
    assert "coffee" in turn.said[0][1]
    assert mapper()[0].finish({}, Usage()) == "end_turn"


def test_usage_is_told_after_everything_else() -> None:
    mapped, turn = mapper()
    mapped.tool_call({"sessionUpdate": "tool_call", "toolCallId": "t", "status": "in_progress"})
    mapped.agent_message_chunk(chunk("a", _meta={"usage": {"n": 1}}))
    finish(mapped, usage={"inputTokens": 1, "outputTokens": 2})

    assert turn.verbs() == ["tool_call", "running", "text", "complete", "usage"]
    assert turn.said[-1][1]["_meta"]["ahpkit/acp"]["message"] == {"usage": {"n": 1}}


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
    assert info.get("_meta", {})[ACP]["usage"] == {"inputTokens": 10, "outputTokens": 20, **raw}


def test_a_turn_without_numbers_says_nothing() -> None:
    assert Usage().turn({"stopReason": "end_turn"}, chunk_meta={}) is None


def test_context_cost_stop_reason_and_meta_of_the_result_are_kept() -> None:
    usage = Usage()
    usage.update({"used": 5, "size": 100, "cost": {"amount": 0.1, "currency": "USD"}, "_meta": {"x": 1}})

    info = usage.turn({"stopReason": "max_tokens", "_meta": {"quota": {"left": 3}}}, chunk_meta={"usage": {"n": 1}})

    assert info == {
        "_meta": {
            ACP: {
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
