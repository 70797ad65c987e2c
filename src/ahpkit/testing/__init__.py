"""The public kit for testing: conformance fixtures, and stand-ins for agents and turns. Other parts by module name."""

from ahpkit.testing.conformance import Failure, Report, run_reducer_fixtures, run_round_trips

__all__ = ["Failure", "Report", "run_reducer_fixtures", "run_round_trips"]
