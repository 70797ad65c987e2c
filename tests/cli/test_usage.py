"""What turns took, added up: pure sums, and one look at a real host."""

import json
from pathlib import Path
from typing import Any

import pytest

from ahpkit.cli.usage import Spent, add_up, cost_of, in_money, short_count, spent_on, table
from support.process import finish_cli, host_process

TURNS = [
    Spent("ahp-session:/aaaaaaaa1", "first", "demo", "2026-11-14", 100, 10, cost=0.5),
    Spent("ahp-session:/aaaaaaaa1", "first", "demo", "2026-11-15", 2000, 300, cost=0.25),
    Spent("ahp-session:/bbbbbbbb2", "second", "other", "2026-11-15", 1, 1),
]


def test_days_are_in_order_and_the_rest_by_size() -> None:
    assert list(add_up(TURNS, "day")) == ["2026-11-14", "2026-11-15"]
    assert list(add_up(TURNS, "agent")) == ["demo", "other"]
    assert list(add_up(TURNS, "session")) == ["ahp-session:/aaaaaaaa1", "ahp-session:/bbbbbbbb2"]
    [total] = add_up(TURNS, "").values()
    assert (total.turns, total.input, total.output, total.costs, total.unpriced) == (3, 2101, 311, {"USD": 0.75}, 1)


def test_currencies_are_not_added_to_each_other() -> None:
    in_euros = Spent("ahp-session:/c", "third", "other", "2026-11-15", 1, 1, cost=2.0, currency="EUR")
    [total] = add_up([*TURNS, in_euros], "").values()
    assert total.price == "≥ $0.7500 + EUR 2.00"
    assert total.as_data()["costs"] == [{"cost": 0.75, "currency": "USD"}, {"cost": 2.0, "currency": "EUR"}]
    [alone] = add_up([in_euros], "").values()
    assert alone.as_data().items() >= {"cost": 2.0, "currency": "EUR", "unpricedTurns": 0}.items()


def test_the_name_of_a_currency_cannot_control_the_terminal() -> None:
    assert in_money(1.5, "\x1b[2J" + "x" * 100, 2) == "␛[2Jxxxxxxx… 1.50"


def test_a_table_has_bars_and_a_cost_that_says_when_it_is_a_lower_bound() -> None:
    head, *lines = table(add_up(TURNS, "day"), add_up(TURNS, ""))
    assert head.split() == ["turns", "in", "out", "cost"]
    assert lines[0].split() == ["2026-11-14", "1", "100", "10", "$0.5000", "█"]
    assert lines[1].split()[:6] == ["2026-11-15", "2", "2.0k", "301", "≥", "$0.2500"]
    assert lines[1].count("█") == 30
    titles = {one.session: one.title for one in TURNS}
    shown = table(add_up(TURNS, "session"), {}, titles)[1:]
    assert [line.split()[:2] for line in shown] == [["aaaaaaaa", "first"], ["bbbbbbbb", "second"]]
    assert lines[2].split() == ["all", "3", "2.1k", "311", "≥", "$0.7500"]
    assert table({}, {}) == ["No agent has reported any usage yet."]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (999, "999"), (1234, "1.2k"), (45678, "46k"), (5_600_000, "5.6M")]
)
def test_counts_are_short(count: int, text: str) -> None:
    assert short_count(count) == text


@pytest.mark.parametrize(
    ("info", "cost"),
    [
        ({}, (None, "USD")),
        ({"_meta": {"ahpkit/cost": 0.5}}, (0.5, "USD")),
        ({"_meta": {"ahpkit/acp": {"cost": {"amount": 2, "currency": "EUR"}}}}, (2.0, "EUR")),
        ({"_meta": {"cost": {"amount": "much"}}}, (None, "USD")),
    ],
)
def test_a_cost_is_found_where_agents_put_it(info: Any, cost: Any) -> None:
    assert cost_of(info) == cost


def test_a_turn_nobody_counted_is_left_out() -> None:
    assert spent_on({}, {"id": "t"}) is None


async def test_the_usage_of_a_host(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--durability", "memory"):
        assert (await finish_cli(["usage"], tmp_path))[1] == "No agent has reported any usage yet.\n"
        await finish_cli(["prompt", "/usage", "--keep"], tmp_path)
        _, output, _ = await finish_cli(["usage", "--by", "agent", "--json"], tmp_path)
        [row] = json.loads(output)
        assert (row["agent"], row["turns"], row["outputTokens"]) == ("demo", 1, 12)
        _, output, _ = await finish_cli(["usage", "--since", "1h"], tmp_path)
        assert "█" in output
