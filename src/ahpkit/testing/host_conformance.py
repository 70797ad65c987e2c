"""Checks a running AHP host, whoever wrote it, and reports sentence by sentence what holds.

    report = await check_host(Target(dial, prompt="hello"))
    assert report.failed == 0, str(report)

`dial` opens a connection. Nothing is sent to an agent unless `Target.prompt` says what. The protocol version is the
newest that both sides speak, or the one that `Target.protocol` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ahpkit.testing.host_checks import HOST_CHECKS, Check
from ahpkit.testing.host_probe import Json
from ahpkit.testing.host_target import NotApplicable, Target
from ahpkit.wire.errors import AhpError


@dataclass(frozen=True, slots=True)
class HostOutcome:
    """How one check went."""

    name: str
    sentence: str
    result: Literal["passed", "failed", "skipped"]
    detail: str = ""

    def __str__(self) -> str:
        line = f"{self.result.upper():8}{self.name}: {self.sentence}"
        return f"{line}\n        {self.detail}" if self.detail else line


@dataclass(frozen=True, slots=True)
class HostReport:
    """The outcome of all checks of one host."""

    protocol: str
    outcomes: Sequence[HostOutcome] = field(default_factory=tuple[HostOutcome, ...])

    def count(self, result: Literal["passed", "failed", "skipped"]) -> int:
        """How many checks had this outcome."""
        return sum(outcome.result == result for outcome in self.outcomes)

    @property
    def failed(self) -> int:
        """How many checks failed."""
        return self.count("failed")

    @property
    def summary(self) -> str:
        """The last line of the report: the counts."""
        return f"{self.count('passed')} passed, {self.failed} failed, {self.count('skipped')} skipped"

    def __str__(self) -> str:
        return "\n".join([*map(str, self.outcomes), self.summary])

    def to_json(self) -> Json:
        """The same as JSON data, for programs."""
        checks = [
            {"check": each.name, "sentence": each.sentence, "result": each.result, "detail": each.detail}
            for each in self.outcomes
        ]
        counts = {result: self.count(result) for result in ("passed", "failed", "skipped")}
        return {"protocol": self.protocol, **counts, "checks": checks}


async def check_host(
    target: Target,
    *,
    checks: Mapping[str, Check] = HOST_CHECKS,
    on_outcome: Callable[[HostOutcome], None] = lambda _outcome: None,
) -> HostReport:
    """Run the checks one after the other; `on_outcome` gets each outcome at once. Raises if no host listens at the
    address."""
    target, protocol = await target.agreed()
    outcomes: list[HostOutcome] = []
    for name, check in checks.items():
        outcomes.append(await _outcome(name, check, target))
        on_outcome(outcomes[-1])
    return HostReport(protocol, tuple(outcomes))


async def _outcome(name: str, check: Check, target: Target) -> HostOutcome:
    sentence = (check.__doc__ or "").strip()
    try:
        await check(target)
    except NotApplicable as reason:
        return HostOutcome(name, sentence, "skipped", str(reason))
    except AhpError as error:
        return HostOutcome(name, sentence, "failed", str(error))
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # The host sent something of another shape.
        return HostOutcome(name, sentence, "failed", f"an answer has another shape than expected: {error!r}")
    return HostOutcome(name, sentence, "passed")


__all__ = ["HostOutcome", "HostReport", "check_host"]
