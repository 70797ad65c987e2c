"""What all reducers share: nothing changes its argument, and nothing changes without need."""

import pytest

from ahpkit.protocol.common.reducing import (
    Handler,
    amend,
    apply,
    assign,
    assign_optional,
    index_of,
    iso_time,
    merge_config,
    put,
    removed,
    replaced,
    unchanged,
    upserted,
    without,
)
from ahpkit.protocol.common.state import JsonObject
from support import requirement

STATE: JsonObject = {"a": 1, "b": None}


def failing(error: type[Exception]) -> Handler:
    def handler(state: JsonObject, action: JsonObject) -> JsonObject:
        raise error

    return handler


@requirement("core:reducer:unknown-type-same-object")
@pytest.mark.parametrize("action", [{"type": "x/unknown"}, {"type": None}, {"type": ["x"]}, {"type": {}}, {}, [], None])
def test_an_action_without_a_handler_does_not_apply(action: JsonObject) -> None:
    assert apply({"x/known": unchanged}, STATE, action) is STATE


@pytest.mark.parametrize("error", [KeyError, TypeError, AttributeError, IndexError, ValueError])
def test_a_handler_that_stumbles_over_malformed_data_does_not_apply(error: type[Exception]) -> None:
    assert apply({"x": failing(error)}, STATE, {"type": "x"}) is STATE


def test_other_failures_of_a_handler_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        apply({"x": failing(ZeroDivisionError)}, STATE, {"type": "x"})


def test_edits_of_an_object() -> None:
    assert put(STATE, "a", 2) == {"a": 2, "b": None}
    assert put(STATE, "a", None) == {"b": None}
    assert put(STATE, "c", None) is STATE
    assert without(STATE, "a", "c") == {"b": None}
    assert without(STATE, "c") is STATE
    assert STATE == {"a": 1, "b": None}


def test_amend_removes_what_it_sets_to_none_and_keeps_other_nulls() -> None:
    assert amend(STATE, {"a": None, "c": 3}) == {"b": None, "c": 3}
    assert amend(STATE, {}) == STATE


def test_edits_of_a_keyed_list() -> None:
    items: list[JsonObject] = [{"id": "a", "n": 1}, {"id": "b"}, {"no": "id"}]
    assert upserted(items, {"id": "a"}, key="id") == [{"id": "a"}, {"id": "b"}, {"no": "id"}]
    assert upserted(items, {"id": "c"}, key="id")[-1] == {"id": "c"}
    assert upserted(None, {"id": "c"}, key="id") == [{"id": "c"}]
    assert removed(items, "id", "b") == [{"id": "a", "n": 1}, {"no": "id"}]
    assert removed(items, "id", "z") is items
    assert replaced(items, 1, {"id": "x"})[1] == {"id": "x"}
    assert (index_of(items, "id", "b"), index_of(items, "id", "z")) == (1, -1)
    assert items == [{"id": "a", "n": 1}, {"id": "b"}, {"no": "id"}]


def test_assigning_needs_the_field_unless_it_is_optional() -> None:
    assert assign("a")(STATE, {"a": 5})["a"] == 5
    assert assign("a", field="z")(STATE, {"z": 6})["a"] == 6
    assert apply({"x": assign("a")}, STATE, {"type": "x"}) is STATE
    assert assign_optional("a")(STATE, {}) == {"b": None}


def test_config_is_merged_or_replaced_where_there_is_one() -> None:
    state: JsonObject = {"config": {"schema": {}, "values": {"a": 1, "b": 2}}}
    assert merge_config(state, {"config": {"b": 3}})["config"]["values"] == {"a": 1, "b": 3}
    assert merge_config(state, {"config": {"b": 3}, "replace": True})["config"]["values"] == {"b": 3}
    assert merge_config({}, {"config": {"b": 3}}) == {}


@requirement("core:reducer:time-formats")
@pytest.mark.parametrize(
    ("now", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (9999, "1970-01-01T00:00:09.999Z"),
        (1_741_632_123_120, "2025-03-10T18:42:03.120Z"),
    ],
)
def test_chats_write_time_as_iso_text_with_milliseconds(now: int, text: str) -> None:
    assert iso_time(now) == text


def test_an_entry_is_found_among_many_also_where_some_have_no_key() -> None:
    items: list[JsonObject] = [{"id": str(number)} for number in range(1_000)]
    for entries in (items, [{}, *items]):
        assert entries[index_of(entries, "id", "999")] == {"id": "999"}
        assert index_of(entries, "id", "1000") == -1
    assert index_of([{"id": "x"}, *items, {"id": "x"}], "id", "x") == 0
