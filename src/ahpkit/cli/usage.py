"""`ahpkit usage`: tokens and cost by session, agent or day, as a table and a plot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import click

from ahpkit.cli.connection import connected, host_command, short_id
from ahpkit.cli.output import progress
from ahpkit.cli.session_search import Filter, filter_options, session_title, turns_of
from ahpkit.cli.text import printable, shorten
from ahpkit.cli.watching import LOOK, json_text, show, watch_option
from ahpkit.client import Client
from ahpkit.protocol.meta_keys import ACP, COST

_PLOT = 30
"""Columns of the longest bar."""

_LONGEST_CURRENCY = 12
"""Characters of the name of a currency."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The tokens and the cost of one turn, with its session, agent and day."""

    session: str
    title: str
    agent: str
    day: str
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = None
    currency: str = "USD"


@dataclass(slots=True)
class Total:
    """The sum of several turns, with the cost of each currency. If a turn has no price, the cost is a lower bound."""

    turns: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    costs: dict[str, float] = field(default_factory=dict[str, float])
    unpriced: int = 0

    def add(self, spent: Spent) -> None:
        self.turns += 1
        self.input += spent.input
        self.output += spent.output
        self.cached += spent.cached
        if spent.cost is None:
            self.unpriced += 1
        else:
            self.costs[spent.currency] = self.costs.get(spent.currency, 0.0) + spent.cost

    @property
    def price(self) -> str:
        """The cost in words; empty if no turn has a price."""
        if not self.costs:
            return ""
        amounts = (in_money(cost, currency, 2 if cost >= 1 or not cost else 4) for currency, cost in self.costs.items())
        return f"{'≥ ' if self.unpriced else ''}{' + '.join(amounts)}"

    def as_data(self) -> dict[str, Any]:
        counts = {"turns": self.turns, "inputTokens": self.input, "outputTokens": self.output}
        costs = [{"cost": round(cost, 6), "currency": currency} for currency, cost in self.costs.items()]
        cost = costs[0] if len(costs) == 1 else {"costs": costs} if costs else {}
        return {**counts, "cacheReadTokens": self.cached, **cost, "unpricedTurns": self.unpriced}


@click.command()
@click.option(
    "--by", type=click.Choice(["session", "agent", "day"]), default="day", show_default=True, help="How to add up."
)
@filter_options
@watch_option
@click.option("--json", "json_output", is_flag=True, help="The sums as JSON; with --watch one list on each line.")
@host_command
async def usage(
    url: str | None,
    token: str | None,
    by: str,
    agent: str | None,
    directory: Path | None,
    status: str | None,
    since: timedelta | None,
    watching: bool,
    json_output: bool,
) -> None:
    """Add up tokens and cost of all sessions, by session, agent or day.

    Only what agents report is counted. "≥" stands before a cost when some turns have no price. Each currency is added
    up by itself.

    \b
    Example:
      ahpkit usage
      ahpkit usage --by agent --since 30d
      ahpkit usage --by session --dir . --json
    """
    wanted = Filter(agent, directory, status, None, everything=status is None)

    async def lines() -> str:
        with nullcontext() if watching else progress("Reading"):
            turns = [one async for one in spending(client, wanted, since)]
        sums = add_up(turns, by)
        if json_output:
            titles = _titles(turns, by)
            named = [(name, {"title": titles[name]} if name in titles else {}) for name in sums]
            data = [{by: name, **title, **sums[name].as_data()} for name, title in named]
            return json_text(data, watching=watching)
        return "\n".join(table(sums, add_up(turns, ""), _titles(turns, by)))

    async with connected(url, token) as client:
        await show(lines, watching=watching, client=client, clear=not json_output, calm=LOOK)


async def spending(client: Client, wanted: Filter, since: timedelta | None) -> AsyncIterator[Spent]:
    """The tokens and the cost of the turns of these sessions. Turns without a report are left out."""
    now = datetime.now(UTC)
    summaries = [one for one in await client.sessions() if wanted.fits(one, now)]
    async with aclosing(turns_of(client, summaries)) as turns:
        async for summary, _, turn in turns:
            spent = spent_on(summary, turn)
            if spent is not None and _is_recent(turn, since, now):
                yield spent


def _is_recent(turn: Any, since: timedelta | None, now: datetime) -> bool:
    return since is None or ("startedAt" in turn and now - datetime.fromisoformat(turn["startedAt"]) <= since)


def spent_on(summary: Any, turn: Any) -> Spent | None:
    """The tokens and the cost of a turn; None if its agent reports none."""
    info: Any = turn.get("usage")
    if not info:
        return None
    started = turn.get("startedAt") or summary["modifiedAt"]
    cost, currency = cost_of(info)
    return Spent(
        summary["resource"],
        session_title(summary),
        summary["provider"],
        datetime.fromisoformat(started).astimezone().strftime("%Y-%m-%d"),
        info.get("inputTokens", 0),
        info.get("outputTokens", 0),
        info.get("cacheReadTokens", 0),
        cost,
        currency,
    )


def cost_of(info: Mapping[str, Any]) -> tuple[float | None, str]:
    """The amount and the currency, at the places where agents put them."""
    meta: Any = info.get("_meta", {})
    acp: Any = meta.get(ACP) or {}
    for value in (meta.get(COST), acp.get("cost"), meta.get("cost")):
        if isinstance(value, int | float):
            return float(value), "USD"
        if isinstance(value, dict):
            found = cast("dict[str, Any]", value)
            if not isinstance(found.get("amount"), int | float):
                continue
            return float(found["amount"]), str(found.get("currency") or "USD")
    return None, "USD"


def in_money(amount: float, currency: str, digits: int = 4) -> str:
    """An amount with its currency: `$0.1234`, `EUR 2.00`. An agent may use any name for its currency."""
    sign = "$" if currency == "USD" else f"{printable(shorten(currency, _LONGEST_CURRENCY))} "
    return f"{sign}{amount:.{digits}f}"


def add_up(turns: Iterable[Spent], by: str) -> dict[str, Total]:
    """The sums by session, agent or day, or one sum of all. Days are in their order, all others are sorted by
    tokens."""
    sums: dict[str, Total] = {}
    for spent in turns:
        name = {"session": spent.session, "agent": spent.agent, "day": spent.day}.get(by, "")
        sums.setdefault(name, Total()).add(spent)
    order = sorted(sums, key=lambda name: name if by == "day" else -(sums[name].input + sums[name].output))
    return {name: sums[name] for name in order}


def _titles(turns: Iterable[Spent], by: str) -> dict[str, str]:
    """The titles of the sessions, if the sums are by session."""
    return {spent.session: spent.title for spent in turns} if by == "session" else {}


def table(
    sums: Mapping[str, Total], overall: Mapping[str, Total], titles: Mapping[str, str] = MappingProxyType({})
) -> Sequence[str]:
    """A line for each sum, with a bar that shows its share, and a line for the sum of all."""
    if not sums:
        return ["No agent has reported any usage yet."]
    shown = {name: f"{short_id(name)} {titles[name]}".strip() if name in titles else name for name in sums}
    names = {name: printable(shorten(text or "all", 34)) for name, text in shown.items()}
    width = max(map(len, [*names.values(), "all"]))
    most = max(total.input + total.output for total in sums.values()) or 1
    lines = [f"{'':{width}}  {'turns':>6}  {'in':>8}  {'out':>8}  {'cost':>10}"]
    for name, total in sums.items():
        bar = "█" * max(round(_PLOT * (total.input + total.output) / most), 1 if total.input + total.output else 0)
        lines.append(f"{_line(names[name], width, total)}  {bar}".rstrip())
    return [*lines, *(_line("all", width, total).rstrip() for total in overall.values())]


def _line(name: str, width: int, total: Total) -> str:
    tokens = f"{short_count(total.input):>8}  {short_count(total.output):>8}"
    return f"{name:{width}}  {total.turns:6}  {tokens}  {total.price:>10}"


def short_count(count: int) -> str:
    """A number in short form: `950`, `1.2k`, `34k`, `5.6M`."""
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1000:.1f}k" if count < 10_000 else f"{count / 1000:.0f}k"
    return f"{count / 1_000_000:.1f}M"


__all__ = ["Spent", "Total", "add_up", "cost_of", "in_money", "short_count", "spent_on", "table", "usage"]
